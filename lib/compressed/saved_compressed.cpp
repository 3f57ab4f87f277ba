// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <exception>
#include <map>
#include <optional>
#include <utility>

#include "compressed/tile_tables.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/comm/process_grid.hpp"
#include "gridlops/compressed/compressed_matrix.hpp"
#include "gridlops/local/backend.hpp"
#include "gridlops/ops/matrix_mult.hpp"

namespace gridlops {

TileTables read_tables(Communicator& comm, const CheckpointReader& reader, const std::string& directory) {
  TileTables tables{.header = header_in_manifest(reader.manifest(), directory)};
  const std::vector<double> figures = reader.read_numbers("figures"), numbers = reader.read_numbers("tiles");
  tables.row_sizes = reader.read_numbers("row-tiles");
  tables.col_sizes = reader.read_numbers("column-tiles");
  tables.row_order = reader.read_numbers("rows");
  tables.col_order = reader.read_numbers("columns");
  attempt(comm, [&] { tables.tiles.reserve(numbers.size() / TileEntry::numbers); });
  interpret(tables, figures, numbers, directory);
  return tables;
}

struct SavedCompressed::Tables {
  std::string directory;
  TileTables of_tiles{};
  /// The memory of ranks of a row, or of a column, of some grid, by their range: callers ask for it again and
  /// again.
  std::map<std::pair<Index, Index>, KeptLines> rows{}, cols{};
};

namespace {

/// The real numbers of an element.
Index parts_of(ScalarType type) {
  return with_scalar_type(type, []<Scalar T>() { return NarrowMatrix<T>::parts; });
}

/// Frees the communicators of its grid also if it throws alike on all ranks, which unwinding would not do.
TileTables read_alone(Communicator& comm, const std::string& directory) {
  auto grid = std::make_shared<const ProcessGrid>(comm, GridShape{1, comm.size()}, make_host_backend());
  std::exception_ptr failure;
  try {
    return read_tables(grid->comm(), CheckpointReader(grid, directory, table_files()), directory);
  } catch (const Error& error) {
    if (error.known_to() == KnownTo::one_rank) throw;
    failure = std::current_exception();
  }
  grid = nullptr;
  std::rethrow_exception(failure);
}

TileTables read_from(Communicator& comm, const std::string& directory) {
  TileTables tables = read_alone(comm, directory);
  const MatrixHeader& header = tables.header;
  KeptLines rows, cols;
  attempt(comm, [&] {
    rows = keep(tables.row_order, tables.row_sizes, {}, header.rows, directory);
    cols = keep(tables.col_order, tables.col_sizes, {}, header.cols, directory);
  });
  const Index parts = parts_of(header.type);
  for (std::size_t t = 0; t < tables.tiles.size(); ++t) {
    const TileEntry& tile = tables.tiles[t];
    const Index m = rows.sizes[t / cols.sizes.size()], n = cols.sizes[t % cols.sizes.size()];
    if (tile.dense) tables.report.bytes += parts * m * n * bytes_of(*tile.dense);
    for (std::size_t p = 0; p < precisions; ++p)
      tables.report.bytes += parts * (m + n) * tile.ranks[p] * bytes_of(static_cast<Precision>(p));
  }
  return tables;
}

}  // namespace

SavedCompressed::SavedCompressed(Communicator& comm, const std::string& directory)
    : tables_(std::make_unique<Tables>(Tables{directory, read_from(comm, directory)})) {}
SavedCompressed::SavedCompressed(SavedCompressed&&) noexcept = default;
SavedCompressed& SavedCompressed::operator=(SavedCompressed&&) noexcept = default;
SavedCompressed::~SavedCompressed() = default;

const MatrixHeader& SavedCompressed::header() const { return tables_->of_tiles.header; }
const CompressionReport& SavedCompressed::report() const { return tables_->of_tiles.report; }

StreamedSizes SavedCompressed::sizes_of_rank(GridShape shape, int row, int col, Index columns,
                                             std::optional<Index> memory) const {
  const TileTables& tables = tables_->of_tiles;
  const MatrixHeader& header = tables.header;
  const ProcessGrid grid(shape, make_host_backend());  // has no ranks here
  const Layout layout = matrix_layout(Algorithm::stationary_a, grid, header.rows, header.cols);
  const auto kept = [&](auto& known, const auto& order, const auto& sizes, Range range,
                        Index count) -> const KeptLines& {
    const auto [place, is_new] = known.try_emplace({range.begin, range.size});
    if (is_new) place->second = keep(order, sizes, range, count, tables_->directory);
    return place->second;
  };
  const KeptLines& rows =
      kept(tables_->rows, tables.row_order, tables.row_sizes, layout.row_range(grid, row, col), header.rows);
  const KeptLines& cols =
      kept(tables_->cols, tables.col_order, tables.col_sizes, layout.col_range(grid, row, col), header.cols);
  return with_scalar_type(header.type, [&]<Scalar T>() -> StreamedSizes {
    const CompressedBlock<T> planned(nullptr, shapes_of(tables, rows, cols), memory);
    return {planned.parts().bytes_in_memory(), planned.parts().bytes_on_disk(),
            planned.order_bytes() + planned.scratch_bytes(columns)};
  });
}

Index SavedCompressed::bytes_of_rank(GridShape grid, int row, int col, Index columns) const {
  const StreamedSizes sizes = sizes_of_rank(grid, row, col, columns, std::nullopt);
  return sizes.memory + sizes.workspace;
}

StreamedSizes SavedCompressed::sizes_on_disk(GridShape grid, int row, int col, Index columns,
                                             Index memory) const {
  return sizes_of_rank(grid, row, col, columns, memory);
}

}  // namespace gridlops
