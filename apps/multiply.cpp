// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include "calibrate.hpp"
#include "console.hpp"
#include "file_checks.hpp"
#include "grid.hpp"
#include "gridlops/matrix_mult.hpp"
#include "report.hpp"
#include "subcommands.hpp"

namespace gridlops::program {

namespace {

struct Operands {
  NpyHeader A, X;
};

template <Scalar T>
void multiply_on_grid(const MultiplyArguments& arguments, const std::shared_ptr<const ProcessGrid>& grid,
                      const Operands& files, Algorithm algorithm, Measurements& measured) {
  Stopwatch clock;
  DistMatrix<T> A = allocate_matrix<T>(grid, matrix_layout(algorithm, *grid, files.A.rows, files.A.cols));
  measured.setup_seconds += clock.lap();
  read_npy(arguments.product.matrix, files.A, A);
  measured.read_seconds += clock.lap();

  const OperatorPtr<T> op = matrix_mult(algorithm, std::move(A), {.panel = arguments.product.panel});
  const Space& from = arguments.adjoint ? op->range() : op->domain();
  const Space& to = arguments.adjoint ? op->domain() : op->range();
  DistMatrix<T> X = allocate_matrix<T>(grid, from.layout(files.X.cols));
  DistMatrix<T> Y = allocate_matrix<T>(grid, to.layout(files.X.cols));
  measured.setup_seconds += clock.lap();
  read_npy(arguments.input, files.X, X);
  measured.read_seconds += clock.lap();

  measured.compute(*grid, [&] {
    if (arguments.adjoint) {
      op->apply_adjoint(T(1), X, T(0), Y);
    } else {
      op->apply(T(1), X, T(0), Y);
    }
  });

  clock.lap();
  write_npy(arguments.output, Y, files.X.dimensions);
  measured.write_seconds = clock.lap();
}

}  // namespace

ExitStatus multiply(Communicator& world, const MultiplyArguments& arguments) {
  const ProductArguments& common = arguments.product;
  Stopwatch clock;
  Measurements measured;
  auto grid = make_grid(world, common.grid, common.device, common.transport);
  measured.setup_seconds = clock.lap();
  check_outputs(world, {{"--matrix", common.matrix}, {"--input", arguments.input}},
                {{"--output", arguments.output}, {"--report", common.report}});
  const Operands files{read_npy_header(world, common.matrix), read_npy_header(world, arguments.input)};
  check_operand(common.matrix, files.A, arguments.input, files.X,
                arguments.adjoint ? Fit{files.A.rows, "rows of A"} : Fit{files.A.cols, "columns of A"});
  measured.read_seconds = clock.lap();

  const ProductShape shape{files.A.rows, files.A.cols, files.X.cols, files.A.type};
  // One product does not pay for measurements.
  const Calibration calibration = calibration_for(world, shape, false, false);
  const Algorithm algorithm = resolve(common.algorithm, shape, *grid);
  grid = matrix_grid(algorithm, grid);
  run_on_grid(world, *grid, [&] {
    with_scalar_type(shape.type,
                     [&]<Scalar T>() { multiply_on_grid<T>(arguments, grid, files, algorithm, measured); });
  });
  if (!grid->is_member()) measured = {};
  write_report(world, common.report,
               {"multiply", grid->shape(), shape, common.device, transport_of(*grid),
                RunFacts::Product{algorithm, Storage::columns, calibration.source_of_choices(shape.type)}},
               measured, nullptr);
  if (world.rank() == 0) {
    print(fmt::format("{} = {} X: {} x {} by {} on {} x {} ranks in {}\n", arguments.output,
                      arguments.adjoint ? "A^H" : "A", arguments.adjoint ? shape.cols : shape.rows,
                      shape.nrhs, name_of(algorithm), grid->rows(), grid->cols(),
                      duration_text(measured.compute_seconds)));
  }
  return ExitStatus::done;
}

}  // namespace gridlops::program
