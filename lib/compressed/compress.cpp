// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.hpp"
#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "base/square_sum.hpp"
#include "comm/norm_of_ranks.hpp"
#include "compressed/compressed_files.hpp"
#include "compressed/compressed_matrix.hpp"
#include "dist/describe_layout.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/trace.hpp"
#include "gridlops/comm/failure.hpp"
#include "ops/matrix/algorithms.hpp"
#include "streamed/element_source.hpp"
#include "streamed/shared_store.hpp"

namespace gridlops {

namespace {

void require_order(const std::vector<Index>& order, Index count, const char* lines) {
  if (order.empty()) return;
  require<UsageError>(std::ssize(order) == count, "compress: there are ", count, " ", lines,
                      ", and their order has ", order.size(), " indices");
  std::vector<bool> seen(order.size());
  for (std::size_t k = 0; k < order.size(); ++k) {
    require<UsageError>(0 <= order[k] && order[k] < count && !seen[at(order[k])], "compress: index number ",
                        k, " of the order of ", lines, " is ", order[k], "; each index from 0 to ", count - 1,
                        " must occur once");
    seen[at(order[k])] = true;
  }
}

/// Cuts the rows of a block, or its columns, into tiles of about equal size.
TileLines lines_of(Range mine, const std::vector<Index>& order, Index tile) {
  TileLines lines;
  const Index count = mine.size / tile + (mine.size % tile == 0 ? 0 : 1);
  for (Index k = 0; k < count; ++k) lines.sizes.push_back(balanced_part(mine.size, count, k).size);
  for (Index k = 0; order.empty() && k < mine.size; ++k) lines.order.push_back(k);
  for (const Index index : order)
    if (mine.begin <= index && index < mine.end()) lines.order.push_back(index - mine.begin);
  return lines;
}

/// Calls work(k, panel) for each row of tiles, or for each column if the source has columns: the elements of
/// its rows and all columns, or of all rows and its columns, in the order of the tiles.
template <Scalar T, class Work>
void for_each_panel(ElementSource<T>& source, const TileLines& rows, const TileLines& cols, Work&& work) {
  const TileLines& lines = source.by_columns() ? cols : rows;
  std::vector<T> memory;
  std::span<const Index> left(lines.order);
  for (std::size_t k = 0; k < lines.sizes.size(); ++k) {
    const std::span<const Index> few = left.first(at(lines.sizes[k]));
    left = left.subspan(at(lines.sizes[k]));
    const std::span<const Index> of_rows = source.by_columns() ? std::span(rows.order) : few,
                                 of_cols = source.by_columns() ? few : std::span(cols.order);
    memory.resize(of_rows.size() * of_cols.size());
    const MatrixView<T> panel(memory.data(), std::ssize(of_rows), std::ssize(of_cols));
    if (!panel.empty()) source.gather(of_rows, of_cols, panel);
    work(static_cast<Index>(k), panel);
  }
}

/// Throws, on this rank alone, for an element of a file, or of a matrix in memory if the name is empty.
template <Scalar T>
[[noreturn]] void throw_non_finite(const std::string& file, Index row, Index col, T value, int rank) {
  if (file.empty())
    throw UsageError(message("compress: element (", row, ", ", col, ") of the matrix is ", value),
                     KnownTo::one_rank);
  throw InputError(message(file, " holds ", value, " at row ", row, ", column ", col,
                           " (from 0), in the part of rank ", rank));
}

/// ‖A‖_F of a block. Throws if an element is not finite. file: see above.
template <Scalar T>
double norm_of_block(ElementSource<T>& source, const TileLines& rows, const TileLines& cols,
                     const std::string& file, int rank) {
  SquareSum sum;
  for_each_panel(source, rows, cols, [&](Index k, MatrixView<const T> panel) {
    const auto* const numbers = reinterpret_cast<const Real<T>*>(panel.data);
    const Index parts = NarrowMatrix<T>::parts, count = parts * panel.size();
    for (Index n = 0; n < count; ++n) {
      if (std::isfinite(numbers[n])) continue;
      const Index i = n / parts % panel.rows, j = n / parts / panel.rows;
      const TileLines& lines = source.by_columns() ? cols : rows;
      const Index before = std::accumulate(lines.sizes.begin(), lines.sizes.begin() + k, Index{0});
      throw_non_finite(file, source.rows().begin + rows.order[at(source.by_columns() ? i : before + i)],
                       source.cols().begin + cols.order[at(source.by_columns() ? before + j : j)],
                       panel(i, j), rank);
    }
    sum.add(numbers, count);
  });
  return sum.root();
}

/// The tiles of a block that is divided by a power of two.
template <Scalar T>
TiledBlock compress_block(ElementSource<T>& source, TileLines rows, TileLines cols, int power,
                          double allowed_per_element, Backend& backend) {
  TiledBlock block{std::move(rows), std::move(cols), {}};
  block.tiles.resize(block.rows.sizes.size() * block.cols.sizes.size());
  const std::vector<Index>& others = source.by_columns() ? block.rows.sizes : block.cols.sizes;
  std::vector<Range> ranges;
  for (const Index size : others) ranges.push_back({ranges.empty() ? 0 : ranges.back().end(), size});
  for_each_panel(source, block.rows, block.cols, [&](Index k, MatrixView<const T> panel) {
    const double flops = 20 * product_flops<T>(panel.rows, panel.cols, 64);
    backend.for_each(std::ssize(ranges), flops, [&](Index other) {
      const Range range = ranges[at(other)];
      const MatrixView<const T> tile = source.by_columns() ? panel.row_block(range) : panel.col_block(range);
      const double scale = std::ldexp(1.0, -power);
      std::vector<Accumulator<T>> wide(at(tile.size()));
      for (Index j = 0; j < tile.cols; ++j)
        for (Index i = 0; i < tile.rows; ++i)
          wide[at(i + j * tile.rows)] = scale * static_cast<Accumulator<T>>(tile(i, j));
      const double allowed = allowed_per_element * std::sqrt(static_cast<double>(tile.size()));
      (source.by_columns() ? block.tile(other, k) : block.tile(k, other)) =
          compress_tile<T>({wide.data(), tile.rows, tile.cols}, allowed);
    });
  });
  return block;
}

std::uint64_t hash_of(const std::vector<Index>& order) {
  return hash_of_bytes(order.data(), std::ssize(order) * Index{sizeof(Index)});
}

/// LAPACK counts with int, and a tile and its factors should fit into a cache.
constexpr Index largest_tile = 16384;

void check(Agreement& agreement, const CompressionOptions& options, Index rows, Index cols) {
  agreement.on("the tolerance", options.tolerance)
      .on("the size of a tile", options.tile)
      .on("the directory", options.directory)
      .on("the order of rows", hash_of(options.row_order))
      .on("the order of columns", hash_of(options.col_order));
  require<UsageError>(options.tolerance > 0 && options.tolerance < 1, "compress: the tolerance is ",
                      options.tolerance, "; it must be above 0 and below 1");
  require<UsageError>(0 < options.tile && options.tile <= largest_tile, "compress: tiles cannot have ",
                      options.tile, " rows and columns, but 1 to ", largest_tile);
  require_order(options.row_order, rows, "rows");
  require_order(options.col_order, cols, "columns");
}

/// The block of a rank in tiles, to be multiplied by a power of two, and the report of all, whose bytes are
/// those of the factors.
struct Compression {
  TiledBlock tiles;
  int power;
  CompressionReport report;
};

/// Compresses, and saves if there is a directory. The rank is a member. open(): its block; it may throw on
/// one rank alone.
template <Scalar T, class Open>
Compression compress_on(const std::shared_ptr<const ProcessGrid>& grid, const Layout& layout,
                        const CompressionOptions& options, const std::string& file, Open&& open) {
  const TraceRegion region("compress");
  Communicator& comm = grid->comm();
  const Index m = layout.row_count(), n = layout.col_count();
  std::optional<CompressedFiles> files;
  if (!options.directory.empty()) files.emplace(grid, options.directory);
  std::unique_ptr<ElementSource<T>> source;
  TileLines rows, cols;
  double mine = 0;
  attempt(comm, [&] {
    source = open();
    rows = lines_of(source->rows(), options.row_order, options.tile);
    cols = lines_of(source->cols(), options.col_order, options.tile);
    mine = norm_of_block(*source, rows, cols, file, comm.rank());
  });
  CompressionReport report{.norm = norm_of_ranks(comm, mine), .dense_bytes = m * n * Index{sizeof(T)}};
  require<UsageError>(std::isfinite(report.norm),
                      "compress: the Frobenius norm of the matrix, whose elements are "
                      "finite, is beyond the range of double precision; divide the matrix by a constant");
  // Less than all exponents, so that a power of two times α stays in the range of T. What is left of the
  // numbers stays in that of float.
  int power = 0;
  std::frexp(report.norm, &power);
  using Limits = std::numeric_limits<Real<T>>;
  constexpr int room = std::min(Limits::max_exponent / 4, 96);
  power = std::clamp(power, Limits::min_exponent + room, Limits::max_exponent - room);
  const double norm = std::ldexp(report.norm, -power);

  TiledBlock tiles;
  attempt(comm, [&] {
    const double elements = std::max(static_cast<double>(m) * static_cast<double>(n), 1.0);
    tiles = compress_block(*source, std::move(rows), std::move(cols), power,
                           options.tolerance * norm / std::sqrt(elements), *grid->backend());
    source = nullptr;
  });
  std::array<double, 1> error{};  // squared
  std::array<Index, 4> counts{std::ssize(tiles.tiles)};
  for (const StoredTile& tile : tiles.tiles) {
    error[0] += tile.error_squared;
    counts[1] += tile.dense ? 1 : 0;
    counts[2] += tile.bytes() == 0 ? 1 : 0;
    counts[3] += tile.bytes();
  }
  comm.all_reduce(error, ReduceOp::sum);
  comm.all_reduce(counts, ReduceOp::sum);
  report.error = report.norm > 0 ? std::sqrt(error[0]) / norm : 0;
  report.tiles = counts[0];
  report.dense_tiles = counts[1];
  report.empty_tiles = counts[2];
  report.bytes = counts[3];
  if (files) files->write(layout, scalar_type_of<T>, tiles, power, report);
  return {std::move(tiles), power, report};
}

/// Stores the factors of a series, and makes the block of its tiles; may throw on one rank alone.
template <Scalar T>
using StoreTiles =
    std::function<std::shared_ptr<CompressedBlock<T>>(const std::shared_ptr<Backend>&, TiledBlock)>;

/// store: null: the operator has its factors.
template <Scalar T>
CompressedMatrixPtr<T> operator_of(const std::shared_ptr<const ProcessGrid>& grid, const Layout& layout,
                                   Compression made, const StoreTiles<T>& store = {}) {
  const std::shared_ptr<Backend>& backend = grid->backend();
  return make_compressed<T>(
      grid, layout,
      [&] {
        return store ? store(backend, std::move(made.tiles)) : make_block<T>(backend, std::move(made.tiles));
      },
      made.power, made.report, store != nullptr);
}

void check_file(const std::shared_ptr<const ProcessGrid>& grid, const std::string& name,
                const MatrixHeader& header, const CompressionOptions& options) {
  agree(grid, "compress", [&](Agreement& agreement) {
    agreement.on("the file", name).on("the rows", header.rows).on("the columns", header.cols);
    check(agreement, options, header.rows, header.cols);
  });
}

template <Scalar T>
Compression compress_file(const std::shared_ptr<const ProcessGrid>& grid, const Layout& layout,
                          const std::string& name, const MatrixHeader& header,
                          const CompressionOptions& options) {
  return compress_on<T>(grid, layout, options, name, [&] {
    return source_in_file<T>(name, header, layout.row_range(*grid, grid->my_row(), grid->my_col()),
                             layout.col_range(*grid, grid->my_row(), grid->my_col()));
  });
}

template <Scalar T>
CompressedMatrixPtr<T> compress_with(const ConstDistMatrix<T>& A, const CompressionOptions& options,
                                     const StreamOptions* on_disk, const StoreTiles<T>& store) {
  const std::shared_ptr<const ProcessGrid>& grid = A.grid();
  agree(grid, "compress", [&](Agreement& agreement) {
    describe_matrix(agreement, "the matrix", A);
    check(agreement, options, A.rows(), A.cols());
    require_layout("compress", Algorithm::stationary_a, *grid, A.layout());
    if (on_disk != nullptr) check_for_compressed(*grid, *on_disk);
  });
  if (!grid->is_member()) return idle_compressed<T>(grid, A.layout());
  return operator_of<T>(grid, A.layout(),
                        compress_on<T>(grid, A.layout(), options, "", [&] { return source_in_memory(A); }),
                        store);
}

}  // namespace

template <Scalar T>
CompressedMatrixPtr<T> compress(const ConstDistMatrix<T>& A, const CompressionOptions& options) {
  return compress_with<T>(A, options, nullptr, {});
}

template <Scalar T>
CompressedMatrixPtr<T> compress(const ConstDistMatrix<T>& A, const CompressionOptions& options,
                                StreamedSeries<T>& series) {
  SharedStore& shared = series.store();
  const auto store = [&](const std::shared_ptr<Backend>& backend, TiledBlock tiles) {
    const auto block = std::make_shared<CompressedBlock<T>>(backend, tiles, shared.options().memory);
    shared.append(backend, block,
                  [&](const StoredBlockBase::WritePart& write, const StoredBlockBase::BeginWait& begin_wait) {
                    block->store(std::move(tiles), {},
                                 [&](Index part, Index begin, const std::byte* from, Index bytes) {
                                   const DiskWait wait = begin_wait(bytes);
                                   write(part, begin, from, bytes);
                                 });
                  });
    return block;
  };
  return shared.all_or_none([&] { return compress_with<T>(A, options, &shared.options(), store); });
}

template <Scalar T>
CompressedMatrixPtr<T> compress(const std::shared_ptr<const ProcessGrid>& grid, const std::string& name,
                                const MatrixHeader& header, const CompressionOptions& options) {
  const Layout layout = matrix_layout(Algorithm::stationary_a, *grid, header.rows, header.cols);
  check_file(grid, name, header, options);
  if (!grid->is_member()) return idle_compressed<T>(grid, layout);
  return operator_of<T>(grid, layout, compress_file<T>(grid, layout, name, header, options));
}

template <Scalar T>
CompressionReport save_compressed(const std::shared_ptr<const ProcessGrid>& grid, const std::string& name,
                                  const MatrixHeader& header, const CompressionOptions& options) {
  check_file(grid, name, header, options);
  require<UsageError>(!options.directory.empty(), "save_compressed: there is no directory to save in");
  if (!grid->is_member()) return {};
  const Layout layout = matrix_layout(Algorithm::stationary_a, *grid, header.rows, header.cols);
  return compress_file<T>(grid, layout, name, header, options).report;
}

#define GRIDLOPS_INSTANTIATE(T)                                                                           \
  template CompressedMatrixPtr<T> compress(const ConstDistMatrix<T>&, const CompressionOptions&);         \
  template CompressedMatrixPtr<T> compress(const ConstDistMatrix<T>&, const CompressionOptions&,          \
                                           StreamedSeries<T>&);                                           \
  template CompressedMatrixPtr<T> compress(const std::shared_ptr<const ProcessGrid>&, const std::string&, \
                                           const MatrixHeader&, const CompressionOptions&);               \
  template CompressionReport save_compressed<T>(const std::shared_ptr<const ProcessGrid>&,                \
                                                const std::string&, const MatrixHeader&,                  \
                                                const CompressionOptions&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
