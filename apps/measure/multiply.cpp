// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include "command_line/console.hpp"
#include "command_line/file_checks.hpp"
#include "command_line/grid.hpp"
#include "gridlops/compressed/compressed_matrix.hpp"
#include "gridlops/dist/dist_matrix.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "matrix/matrix_file.hpp"
#include "matrix/product_arguments.hpp"
#include "measure/number_checks.hpp"
#include "measure/report.hpp"
#include "subcommands.hpp"

namespace gridlops::program {

namespace {

struct MultiplyArguments {
  ProductArguments product;
  std::string input, output;
  bool adjoint = false;
};

struct Operands {
  MatrixFile A;
  MatrixHeader X;
};

/// If the product has NaN or infinity, returns a text that says which input has, too.
template <Scalar T>
std::string multiply_on_grid(const MultiplyArguments& arguments,
                             const std::shared_ptr<const ProcessGrid>& grid, const Operands& files,
                             Algorithm algorithm, Measurements& measured) {
  Stopwatch clock;
  OperatorPtr<T> op;
  if (files.A.is_compressed()) {
    op = read_compressed<T>(grid, files.A.name(), files.A.header());
  } else {
    DistMatrix<T> A =
        allocate_matrix<T>(grid, matrix_layout(algorithm, *grid, files.A.rows(), files.A.cols()));
    measured.setup_seconds += clock.lap();
    read_matrix(files.A.name(), files.A.header(), A);
    op = matrix_mult(algorithm, std::move(A), {.panel = arguments.product.panel});
  }
  measured.read_seconds += clock.lap();
  const Space from = arguments.adjoint ? op->range() : op->domain();
  const Space to = arguments.adjoint ? op->domain() : op->range();
  DistMatrix<T> X = allocate_matrix<T>(grid, from.layout(files.X.cols));
  DistMatrix<T> Y = allocate_matrix<T>(grid, to.layout(files.X.cols));
  measured.setup_seconds += clock.lap();
  read_matrix(arguments.input, files.X, X);
  measured.read_seconds += clock.lap();

  measured.compute(*grid, [&] {
    if (arguments.adjoint) {
      op->apply_adjoint(T(1), X, T(0), Y);
    } else {
      op->apply(T(1), X, T(0), Y);
    }
  });

  clock.lap();
  write_matrix(arguments.output, Y, files.X.dimensions, arguments.input);
  measured.write_seconds = clock.lap();
  if (Y.rows() == 0 || Y.cols() == 0 || !find_non_finite(Y)) return {};
  op = nullptr;  // frees the memory to read A again
  std::string inputs = non_finite_in_file<T>(arguments.input, files.X, grid, from.layout(files.X.cols));
  if (!files.A.is_compressed())
    inputs += non_finite_in_file<T>(files.A.name(), files.A.header(), grid,
                                    matrix_layout(algorithm, *grid, files.A.rows(), files.A.cols()));
  return inputs.empty() ? "; no input does, so numbers left the range of their type" : inputs;
}

/// Records this rank's figures of the product, next to the model's.
void note_prediction(const ProcessGrid& grid, Algorithm algorithm, bool adjoint, const ProductShape& shape,
                     Index panel, Measurements& measured) {
  if (!grid.is_member()) {
    measured = {.predicted_bytes_received = 0, .counted_bytes_received = 0};
    return;
  }
  measured.predicted_part_seconds = measured.compute_seconds;
  measured.predicted_bytes_received =
      product_cost(algorithm, shape, grid.shape(), grid.my_row(), grid.my_col(), adjoint, panel)
          .bytes_received;
  measured.counted_bytes_received = measured.bytes_received + measured.bytes_read_from_peers;
}

RunFacts facts_of(const MultiplyArguments& arguments, const Operands& files, const ProductShape& shape,
                  const ProcessGrid& grid, Algorithm algorithm, const std::string& choices,
                  const RunFacts::Prediction& prediction) {
  const ProductArguments& common = arguments.product;
  const MatrixHeader product{.type = shape.type,
                             .rows = arguments.adjoint ? shape.cols : shape.rows,
                             .cols = shape.nrhs,
                             .dimensions = files.X.dimensions};
  return {.command = "multiply",
          .grid = grid.shape(),
          .shape = shape,
          .device = common.device,
          .transport = transport_of(grid),
          .product = RunFacts::Product{name_of(algorithm), name_of(MatrixMultOptions().storage)},
          .choices = choices,
          .prediction = prediction,
          .problem = arguments.adjoint ? "Y = A^H X" : "Y = A X",
          .options = {{"adjoint", arguments.adjoint}, {"panel", common.panel}},
          .files = {{"--matrix", common.matrix, files.A.header()},
                    {"--input", arguments.input, files.X},
                    {"--output", arguments.output, product}},
          .hashes = common.hashes};
}

ExitStatus multiply(Communicator& world, const MultiplyArguments& arguments) {
  const ProductArguments& common = arguments.product;
  Stopwatch clock;
  Measurements measured;
  const Ranks ranks = make_ranks(world, common.device, common.transport);
  measured.setup_seconds = clock.lap();
  check_outputs(world,
                {{"--matrix", common.matrix}, {"--input", arguments.input}, {"--machine", common.machine}},
                {{"--output", arguments.output}, {"--report", common.report, NamedFile::text}});
  Operands files{MatrixFile(world, common.matrix), read_matrix_header(world, arguments.input)};
  MatrixFile& A = files.A;
  check_operand(common.matrix, A.header(), arguments.input, files.X,
                arguments.adjoint ? Fit{A.rows(), "rows of A", "without --adjoint it would fit"}
                                  : Fit{A.cols(), "columns of A", "with --adjoint it would fit"});
  const CommonType inputs_common = common_type({{common.matrix, A.header()}, {arguments.input, files.X}});
  A.require_fits(common.algorithm, inputs_common.type);
  A.read_tables(world);
  measured.read_seconds = clock.lap();

  const ProductShape shape{A.rows(), A.cols(), files.X.cols, inputs_common.type};
  // A single product does not pay for measurements.
  const Calibration calibration = calibration_for(world, shape, false, false);
  const Machine machine = read_machine(world, common.machine);
  const MachineModel model = model_of(machine, *ranks.comm);
  const auto algorithm_on = [&](GridShape on, const MachineModel& its_machine) {
    if (A.is_compressed()) return Algorithm::stationary_a;
    return common.algorithm == Algorithm::automatic ? choose_algorithm(shape, on, its_machine)
                                                    : common.algorithm;
  };
  const auto seconds = [&](GridShape on, const MachineModel& its_machine) {
    return product_seconds(algorithm_on(on, its_machine), shape, on, arguments.adjoint, its_machine,
                           common.panel);
  };
  const auto cost = [&](GridShape on) { return A.cost_on(on, shape, [&] { return seconds(on, model); }); };
  auto grid = make_grid(ranks, common.grid ? *common.grid : choose_grid(world.size(), cost));
  const MachineModel grid_model = with_shared_memory(model, *grid);
  const Algorithm algorithm = algorithm_on(grid->shape(), grid_model);
  grid = matrix_grid(algorithm, grid);
  std::string not_finite;
  run_on_grid(world, *grid, [&] {
    with_scalar_type(shape.type, [&]<Scalar T>() {
      not_finite = multiply_on_grid<T>(arguments, grid, files, algorithm, measured);
    });
  });
  note_prediction(*grid, algorithm, arguments.adjoint, shape, common.panel, measured);
  write_report(world, common.report,
               facts_of(arguments, files, shape, *grid, algorithm, calibration.source_of_choices(shape.type),
                        {"product", machine.source, A.modelled(seconds(grid->shape(), grid_model))}),
               measured, nullptr);
  if (world.rank() == 0) {
    print(inputs_common.promotions);
    if (!not_finite.empty()) warn(fmt::format("{} holds NaN or infinity{}", arguments.output, not_finite));
    print(fmt::format("{} = {} X: {} x {} by {} on {} x {} ranks in {}\n", arguments.output,
                      arguments.adjoint ? "A^H" : "A", arguments.adjoint ? shape.cols : shape.rows,
                      shape.nrhs, name_of(algorithm), grid->rows(), grid->cols(),
                      duration_text(measured.compute_seconds)));
  }
  return ExitStatus::done;
}

}  // namespace

Action define_multiply(Options& options) {
  const auto arguments = std::make_shared<MultiplyArguments>();
  options.text("--matrix", arguments->product.matrix, "A.npy", matrix_help)->required();
  options.text("--input", arguments->input, "X.npy", "The matrix X that A is multiplied with")->required();
  options.text("--output", arguments->output, "Y.npy", "Gets the product Y")->required();
  options.group("Product");
  options.flag("--adjoint", arguments->adjoint, "Multiplies with the conjugate transpose of A");
  define_product_report(options, arguments->product);
  define_products(options, arguments->product);
  options.examples({"mpirun -n 4 gridlops multiply --matrix A.npy --input X.npy --output Y.npy",
                    "mpirun -n 4 gridlops multiply --matrix A.npy --input B.npy --output G.npy --adjoint"});
  return [arguments](Communicator& world) { return multiply(world, *arguments); };
}

}  // namespace gridlops::program
