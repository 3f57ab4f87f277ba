// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>

#include "command_line/console.hpp"
#include "command_line/file_checks.hpp"
#include "command_line/grid.hpp"
#include "command_line/station_order.hpp"
#include "gridlops/compressed/compressed_matrix.hpp"
#include "measure/report.hpp"
#include "subcommands.hpp"

namespace gridlops::program {

namespace {

struct CompressArguments {
  std::string matrix, output, row_positions, col_positions;
  std::optional<GridShape> grid;
  CompressionOptions options;
};

std::string text_of(const CompressArguments& arguments, const CompressionReport& report, double seconds) {
  const auto mib = [](Index bytes) { return static_cast<double>(bytes) / (1 << 20); };
  const Index low_rank = report.tiles - report.dense_tiles - report.empty_tiles;
  return fmt::format(
      "{}: {:.3g} MiB instead of {:.3g}, {:.3g} times less; ||A - C|| = {:.2g} ||A||\n"
      "{} tiles of low rank, {} as they are, {} empty; in {}\n",
      arguments.output, mib(report.bytes), mib(report.dense_bytes),
      static_cast<double>(report.dense_bytes) / static_cast<double>(std::max<Index>(report.bytes, 1)),
      report.error, low_rank, report.dense_tiles, report.empty_tiles, duration_text(seconds));
}

ExitStatus compress_file(Communicator& world, CompressArguments arguments) {
  const MatrixHeader header = read_matrix_header(world, arguments.matrix);
  CompressionOptions& options = arguments.options;
  options.directory = arguments.output;
  options.row_order = station_order(world, arguments.row_positions, arguments.matrix, header.rows, "rows");
  options.col_order = station_order(world, arguments.col_positions, arguments.matrix, header.cols, "columns");
  const auto grid = make_grid(world, arguments.grid);
  run_on_grid(world, *grid, [&] {
    with_scalar_type(header.type, [&]<Scalar T>() {
      Stopwatch clock;
      const CompressionReport report = save_compressed<T>(grid, arguments.matrix, header, options);
      if (grid->is_member() && grid->comm().rank() == 0) print(text_of(arguments, report, clock.lap()));
    });
  });
  return ExitStatus::done;
}

}  // namespace

Action define_compress(Options& options) {
  const auto arguments = std::make_shared<CompressArguments>();
  options.text("--matrix", arguments->matrix, "A.npy", matrix_help)->required();
  options.text("--output", arguments->output, "DIR", "Gets the compressed matrix; made if missing")
      ->required();
  options.number("--tolerance", arguments->options.tolerance, "T", 0,
                 "The Frobenius norm of the error, relative to that of A: above 0, below 1 [0.001]");
  options.whole("--tile", arguments->options.tile, "N", 1, "Rows and columns of a tile, at most [256]");
  options.text("--row-positions", arguments->row_positions, "P.npy",
               "Coordinates of the rows' stations, by which rows are ordered for tiles");
  options.text("--col-positions", arguments->col_positions, "P.npy", "The same for columns");
  options.parsed(
      "--grid", [arguments](const std::string& text) { arguments->grid = parse_grid_shape(text); }, "PxQ",
      "Process grid [near-square]");
  options.examples(
      {"mpirun -n 4 gridlops compress --matrix waves/A.npy --output compressed --row-positions "
       "waves/row_positions.npy --col-positions waves/col_positions.npy",
       "gridlops compress --matrix A.npy --output smaller --tolerance 1e-6"});
  return [arguments](Communicator& world) { return compress_file(world, *arguments); };
}

}  // namespace gridlops::program
