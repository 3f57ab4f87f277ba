// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/benchmarks.hpp"
#include "bench/measure/results.hpp"
#include "command_line/grid.hpp"
#include "command_line/station_order.hpp"
#include "gridlops/compressed/compressed_matrix.hpp"

namespace gridlops::bench {

namespace {

struct CompressedArguments {
  std::string matrix, row_positions, col_positions;
  CompressionOptions options;
  std::vector<Index> nrhs{1, 4, 16, 64};
  std::optional<GridShape> grid;
  std::string transport = "auto";
  Method method;
};

using Grid = std::shared_ptr<const ProcessGrid>;

/// A matrix, and what compression made of it.
template <Scalar T>
struct Pair {
  double norm = 0, seconds = 0;  // ‖A‖_F; seconds: of compressing
  OperatorPtr<T> dense{};
  CompressedMatrixPtr<T> compressed{};
};

template <Scalar T>
Pair<T> read_pair(const Grid& grid, const CompressedArguments& arguments, const MatrixHeader& header,
                  Storage storage) {
  DistMatrix<T> A =
      allocate_matrix<T>(grid, matrix_layout(Algorithm::stationary_a, *grid, header.rows, header.cols));
  read_matrix(arguments.matrix, header, A);
  Pair<T> pair{.norm = frobenius_norm(A)};
  const double begin = now();
  pair.compressed = compress(ConstDistMatrix<T>(A), arguments.options);
  pair.seconds = maximum(*grid, now() - begin);
  pair.dense = matrix_mult(Algorithm::stationary_a, std::move(A), {.storage = storage});
  return pair;
}

/// Times products with both matrices in turn.
template <Scalar T>
void measure(ResultWriter& writer, LimitMeter& meter, const Grid& grid, const Pair<T>& pair, Index columns,
             bool adjoint, int repetitions) {
  const Space from = adjoint ? pair.dense->range() : pair.dense->domain();
  const Space to = adjoint ? pair.dense->domain() : pair.dense->range();
  DistMatrix<T> X = allocate_matrix<T>(grid, from.layout(columns)),
                Y = allocate_matrix<T>(grid, to.layout(columns));
  X.fill([](Index i, Index j) { return counter_random<T>(seed_of_input, i, j); });
  const auto apply = [&](const LinearOperator<T>& A, T alpha, T beta) {
    if (adjoint) {
      A.apply_adjoint(alpha, X, beta, Y);
    } else {
      A.apply(alpha, X, beta, Y);
    }
    grid->backend()->synchronize();
  };
  std::vector<double> dense, compressed, limit;
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    const Sample sample = samples<T>(*grid, meter, 1, [&] { apply(*pair.dense, T(1), T(0)); }).front();
    dense.push_back(sample.seconds);
    limit.push_back(sample.limits.bytes_per_second);
    compressed.push_back(
        samples<T>(*grid, meter, 1, [&] { apply(*pair.compressed, T(1), T(0)); }).front().seconds);
  }
  apply(*pair.dense, T(1), T(0));
  apply(*pair.compressed, T(-1), T(1));
  const double size = pair.norm * frobenius_norm(X), error = frobenius_norm(Y) / size;

  const CompressionReport& report = pair.compressed->report();
  const double smaller = static_cast<double>(report.dense_bytes) / static_cast<double>(report.bytes),
               faster = median(dense) / median(compressed),
               rounding = 1e3 * std::numeric_limits<Real<T>>::epsilon();
  const std::string text = fmt::format("{}x{}", grid->shape().rows, grid->shape().cols);
  writer.add_row(
      "results",
      fmt::format("{:<7} {:>5} {:<8} {:>10} {:>10} {:>8} {:>8} {:>8} {:>8}\n", "grid", "rhs", "product",
                  "dense ms", "ms", "GB/s", "limit", "smaller", "faster"),
      fmt::format("{:<7} {:>5} {:<8} {:>10.3f} {:>10.3f} {:>8.1f} {:>8.1f} {:>8.1f} {:>8.1f}\n", text,
                  columns, adjoint ? "adjoint" : "forward", 1e3 * median(dense), 1e3 * median(compressed),
                  static_cast<double>(report.bytes) / median(compressed) / 1e9, median(limit) / 1e9, smaller,
                  faster),
      {{"grid", {grid->shape().rows, grid->shape().cols}},
       {"nrhs", columns},
       {"adjoint", adjoint},
       {"repetitions", repetitions},
       {"samples", compressed},
       {"seconds_dense", median(dense)},
       {"seconds", median(compressed)},
       {"seconds_to_compress", pair.seconds},
       {"limit_read_gbs", median(limit) / 1e9},
       {"times_smaller", smaller},
       {"times_faster", faster},
       {"error", error},
       {"allowed_error", report.error + rounding}},
      error <= report.error + rounding
          ? std::string()
          : fmt::format("{} columns: ‖AX − ÃX‖ is {:.1e} ‖A‖‖X‖, with an error of {:.1e}", columns, error,
                        report.error));
}

ExitStatus compressed(Communicator& world, CompressedArguments arguments) {
  const MatrixHeader header = read_matrix_header(world, arguments.matrix);
  arguments.options.row_order =
      program::station_order(world, arguments.row_positions, arguments.matrix, header.rows, "rows");
  arguments.options.col_order =
      program::station_order(world, arguments.col_positions, arguments.matrix, header.cols, "columns");
  ResultWriter writer(world, arguments.method.json);
  LimitMeter meter(arguments.method.limit_order, arguments.method.limit_mib);
  const Grid grid = program::make_grid(world, arguments.grid, "cpu", arguments.transport);
  program::run_on_grid(world, *grid, [&] {
    with_scalar_type(header.type, [&]<Scalar T>() {
      const ProductShape shape{header.rows, header.cols, arguments.nrhs.front(), header.type};
      const Pair<T> pair = read_pair<T>(grid, arguments, header,
                                        faster_storage(Algorithm::stationary_a, shape, grid->shape()));
      for (const Index columns : arguments.nrhs)
        for (const bool adjoint : {false, true})
          measure(writer, meter, grid, pair, columns, adjoint, arguments.method.repetitions);
    });
  });
  return writer.close();
}

}  // namespace

Action define_compressed(Options& options) {
  const auto arguments = std::make_shared<CompressedArguments>();
  options.text("--matrix", arguments->matrix, "A", "The matrix")->required();
  options.number("--tolerance", arguments->options.tolerance, "T", 0, "As gridlops compress has it [0.001]");
  options.text("--row-positions", arguments->row_positions, "P", "The same");
  options.text("--col-positions", arguments->col_positions, "P", "The same");
  options.numbers("--rhs", arguments->nrhs, "R[,...]", "Right-hand sides [1,4,16,64]");
  options.parsed(
      "--grid", [arguments](const std::string& text) { arguments->grid = parse_grid_shape(text); }, "PxQ",
      "Process grid [near-square]");
  options.choice("--transport", arguments->transport, program::transports(), "What carries the data [auto]");
  define_method(options, arguments->method);
  explain_columns(
      options, {"grid, rhs, product      the process grid, right-hand sides, forward or adjoint",
                "dense ms, ms            with A, and with the compressed A: on the slowest rank, the median",
                "GB/s, limit             reading the compressed A in that time; a block larger than caches",
                "smaller, faster         times fewer bytes, and times less time, than A"});
  return [arguments](Communicator& world) { return compressed(world, *arguments); };
}

}  // namespace gridlops::bench
