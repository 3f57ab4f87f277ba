// SPDX-License-Identifier: BSD-3-Clause
#include "compressed/compressed_files.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "compressed/compressed_matrix.hpp"
#include "compressed/tile_tables.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/trace.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/io/array_file.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "io/files/file.hpp"

namespace gridlops {

// The files of a compressed matrix, next to a manifest with their hashes:
//
//   rows, columns              the indices in the order of the tiles
//   row-tiles, column-tiles    how many rows a row of tiles has, and columns a column
//   tiles                      TileEntry, row of tiles by row of tiles
//   figures                    CompressionReport, and the power of two
//   bfloat16, float32, float64 for each tile the U and then the V in this precision, or the tile itself; two
//                              numbers of bfloat16 take the place of one of float32
//
// Nothing in them depends on the grid that wrote them, but where tiles end. While files are written or read,
// every rank has the orders and the table of all tiles, 7 numbers each.

namespace {

/// Where the lines of this rank are among those of all.
struct LinePlace {
  Index before = 0, all = 0;
};
LinePlace lines_of_all(Communicator& comm, Index mine) {
  std::vector<Index> counts(static_cast<std::size_t>(comm.size()));
  comm.all_gather(std::array{mine}, counts);
  return {std::accumulate(counts.begin(), counts.begin() + comm.rank(), Index{0}),
          std::accumulate(counts.begin(), counts.end(), Index{0})};
}

/// The numbers of one kind of lines, on all ranks; each part of the lines is on all ranks of `others`.
struct GlobalLines {
  std::vector<double> order, sizes;
};
GlobalLines gather_lines(Communicator& comm, bool is_first, const TileLines& mine, Range range, Index count,
                         const LinePlace& lines) {
  GlobalLines all = attempt(comm, [&] {
    return GlobalLines{std::vector<double>(at(count)), std::vector<double>(at(lines.all))};
  });
  for (std::size_t k = 0; is_first && k < mine.order.size(); ++k)
    all.order[at(range.begin) + k] = static_cast<double>(range.begin + mine.order[k]);
  for (std::size_t k = 0; is_first && k < mine.sizes.size(); ++k)
    all.sizes[at(lines.before) + k] = static_cast<double>(mine.sizes[k]);
  comm.all_reduce(all.order, ReduceOp::sum);
  comm.all_reduce(all.sizes, ReduceOp::sum);
  return all;
}

/// The factors of all tiles in one precision, some at a time, and zeros up to this many bytes.
void for_each_piece(const TiledBlock& tiles, std::size_t precision, Index bytes,
                    const CheckpointWriter::UsePiece& use) {
  constexpr Index most = Index{1} << 20;
  std::vector<std::byte> piece;
  piece.reserve(at(std::min(bytes, most)));
  Index left = bytes;
  const auto add = [&](const std::byte* from, Index count) {
    while (count > 0) {
      const Index few = std::min(count, most - std::ssize(piece));
      piece.insert(piece.end(), from, from + few);
      from += few;
      count -= few;
      left -= few;
      if (left > 0 && std::ssize(piece) < most) continue;
      use(piece.data(), std::ssize(piece));
      piece.clear();
    }
  };
  for (const StoredTile& tile : tiles.tiles)
    for (const auto* factor : {&tile.U[precision], &tile.V[precision]})
      add(factor->data(), std::ssize(*factor));
  constexpr std::array<std::byte, sizeof(float)> zeros{};
  add(zeros.data(), left);
}

/// Writes the factors in one precision, rank by rank.
template <Scalar R>
void write_factors(CheckpointWriter& writer, const std::shared_ptr<const ProcessGrid>& grid,
                   std::size_t precision, const std::vector<Index>& bytes_of_ranks, const TiledBlock& tiles) {
  std::vector<Index> sizes;
  for (const Index bytes : bytes_of_ranks) sizes.push_back(bytes / Index{sizeof(R)});
  Layout layout = row_blocks(*grid, 0, 1);
  layout.rows.partition = Partition::with_sizes(sizes);
  const Index mine = bytes_of_ranks[static_cast<std::size_t>(grid->comm().rank())];
  writer.write<R>(factor_files[precision], planned_matrix<R>(grid, layout),
                  [&](const auto& use) { for_each_piece(tiles, precision, mine, use); });
}

}  // namespace

CompressedFiles::CompressedFiles(std::shared_ptr<const ProcessGrid> grid, std::string directory)
    : grid_(std::move(grid)), directory_(std::move(directory)), lock_(grid_->comm(), directory_, {}) {}

void CompressedFiles::write(const Layout& layout, ScalarType type, const TiledBlock& tiles, int power,
                            const CompressionReport& report) {
  const TraceRegion region("write file");
  Communicator& comm = grid_->comm();
  const LinePlace row_lines = lines_of_all(grid_->col_comm(), std::ssize(tiles.rows.sizes)),
                  col_lines = lines_of_all(grid_->row_comm(), std::ssize(tiles.cols.sizes));
  const int p = grid_->my_row(), q = grid_->my_col();
  const GlobalLines rows = gather_lines(comm, q == 0, tiles.rows, layout.row_range(*grid_, p, q),
                                        layout.row_count(), row_lines),
                    cols = gather_lines(comm, p == 0, tiles.cols, layout.col_range(*grid_, p, q),
                                        layout.col_count(), col_lines);

  // Where the factors of each tile begin among those of all ranks.
  std::vector<TileEntry> entries;
  std::array<Index, precisions> mine{};
  std::vector<double> table;
  attempt(comm, [&] {
    for (const StoredTile& tile : tiles.tiles) {
      entries.push_back({tile.dense, tile.ranks, mine});
      for (std::size_t k = 0; k < precisions; ++k) mine[k] += std::ssize(tile.U[k]) + std::ssize(tile.V[k]);
    }
    table.resize(at(row_lines.all * col_lines.all) * TileEntry::numbers);
  });
  mine[0] = (mine[0] + 3) / 4 * 4;
  std::array<std::vector<Index>, precisions> bytes_of_ranks;
  for (std::size_t k = 0; k < precisions; ++k) {
    bytes_of_ranks[k].resize(static_cast<std::size_t>(comm.size()));
    comm.all_gather(std::array{mine[k]}, bytes_of_ranks[k]);
    const Index before =
        std::accumulate(bytes_of_ranks[k].begin(), bytes_of_ranks[k].begin() + comm.rank(), Index{0});
    for (TileEntry& entry : entries) entry.begins[k] += before;
  }
  const Index width = std::ssize(tiles.cols.sizes);
  for (Index t = 0; t < std::ssize(entries); ++t) {
    const Index i = row_lines.before + t / width, j = col_lines.before + t % width;
    entries[at(t)].put(&table[at(i * col_lines.all + j) * TileEntry::numbers]);
  }
  comm.all_reduce(table, ReduceOp::sum);

  CheckpointWriter writer(grid_, directory_);
  writer.write_numbers("rows", rows.order);
  writer.write_numbers("columns", cols.order);
  writer.write_numbers("row-tiles", rows.sizes);
  writer.write_numbers("column-tiles", cols.sizes);
  writer.write_numbers("tiles", table);
  writer.write_numbers("figures", {report.norm, report.error, static_cast<double>(report.tiles),
                                   static_cast<double>(report.dense_tiles),
                                   static_cast<double>(report.empty_tiles), static_cast<double>(power)});
  write_factors<float>(writer, grid_, 0, bytes_of_ranks[0], tiles);
  write_factors<float>(writer, grid_, 1, bytes_of_ranks[1], tiles);
  write_factors<double>(writer, grid_, 2, bytes_of_ranks[2], tiles);
  writer.finish({{"content", compressed_content},
                 {"element type", std::string(name_of(type))},
                 {"rows", message(layout.row_count())},
                 {"columns", message(layout.col_count())}});
}

namespace {

/// The rows `inside` of a stored matrix.
template <Scalar T>
std::vector<std::byte> rows_of(const NarrowMatrix<T>& A, const std::vector<Index>& inside) {
  const Index size = NarrowMatrix<T>::parts * bytes_of(A.precision);
  std::vector<std::byte> kept(at(std::ssize(inside) * A.cols * size));
  std::byte* to = kept.data();
  for (Index j = 0; j < A.cols; ++j)
    for (const Index i : inside) to = std::copy_n(A.data + (i + j * A.rows) * size, size, to);
  return kept;
}
template <Scalar T>
NarrowMatrix<T> columns_of(const NarrowMatrix<T>& A, const std::vector<Index>& inside,
                           std::vector<std::byte>& memory) {
  NarrowMatrix<T> kept{nullptr, A.rows, std::ssize(inside), A.precision};
  memory.resize(at(kept.bytes()));
  kept.data = memory.data();
  std::byte* to = memory.data();
  for (const Index j : inside) {
    const NarrowMatrix<T> column = A.columns({j, 1});
    to = std::copy_n(column.data, column.bytes(), to);
  }
  return kept;
}

/// Reads the parts of tiles that a rank has.
template <Scalar T>
class TileReader {
 public:
  TileReader(const CheckpointReader& reader, const std::array<MatrixHeader, precisions>& headers,
             const std::string& directory)
      : directory_(directory) {
    for (std::size_t p = 0; p < precisions; ++p) {
      const MatrixHeader& header = headers[p];
      if (header.rows == 0) continue;
      streams_[p].emplace(Stream{InputFile(reader.path_of(factor_files[p])), header.data_offset,
                                 header.rows * size_of(header.type)});
    }
  }

  /// rows, cols: of the whole tile.
  void check(const TileEntry& entry, Index rows, Index cols) const {
    require<InputError>(!entry.dense || *entry.dense <= own_precision<T>, directory_,
                        ": a tile has more digits than its element type");
    for (std::size_t p = 0; p < precisions; ++p)
      require<InputError>(
          0 <= entry.ranks[p] && entry.ranks[p] <= std::min(rows, cols) &&
              (entry.ranks[p] == 0 || (!entry.dense && static_cast<Precision>(p) <= own_precision<T>)),
          directory_, ": a tile of ", rows, " x ", cols, " has ", entry.ranks[p], " vectors of ",
          factor_files[p]);
  }

  /// The U of the tile, or the tile itself if it is dense, and its V.
  void read_u(const TileEntry& entry, Index rows, Index cols, const std::vector<Index>& rows_inside,
              const std::vector<Index>& cols_inside, StoredTile& tile) {
    for (std::size_t p = 0; p < precisions; ++p) {
      if (entry.dense == static_cast<Precision>(p)) {
        const NarrowMatrix<T> stored = next(p, entry.begins[p], rows, cols);
        tile.U[p] = rows_of(columns_of(stored, cols_inside, some_), rows_inside);
      } else if (entry.ranks[p] > 0) {
        tile.U[p] = rows_of(next(p, entry.begins[p], rows, entry.ranks[p]), rows_inside);
      }
    }
  }
  void read_v(const TileEntry& entry, Index rows, Index cols, const std::vector<Index>& cols_inside,
              StoredTile& tile) {
    for (std::size_t p = 0; p < precisions; ++p) {
      if (entry.ranks[p] == 0) continue;
      const NarrowMatrix<T> U{nullptr, rows, entry.ranks[p], static_cast<Precision>(p)};
      tile.V[p] = rows_of(next(p, entry.begins[p] + U.bytes(), cols, entry.ranks[p]), cols_inside);
    }
  }

 private:
  struct Stream {
    InputFile file;
    Index begin, bytes;
  };

  NarrowMatrix<T> next(std::size_t p, Index begin, Index rows, Index cols) {
    NarrowMatrix<T> stored{nullptr, rows, cols, static_cast<Precision>(p)};
    const Index most = streams_[p] ? streams_[p]->bytes : 0;
    require<InputError>(begin >= 0 && cols >= 0 && begin <= most && stored.bytes() <= most - begin,
                        directory_, ": ", factor_files[p], ".npy has ", most, " bytes, not ", stored.bytes(),
                        " from ", begin, " on");
    all_.resize(at(stored.bytes()));
    if (stored.bytes() > 0) streams_[p]->file.read(all_.data(), stored.bytes(), streams_[p]->begin + begin);
    stored.data = all_.data();
    return stored;
  }

  const std::string directory_;
  std::array<std::optional<Stream>, precisions> streams_;
  std::vector<std::byte> all_, some_;
};

/// The block of a rank, of these lines. on_disk: as for make_block(); then no more than a line is ever in
/// memory besides what is to be there.
template <Scalar T>
std::shared_ptr<CompressedBlock<T>> read_block(const std::shared_ptr<Backend>& backend, TileReader<T> reader,
                                               const TileTables& tables, const KeptLines& rows,
                                               const KeptLines& cols, const StreamOptions* on_disk) {
  for (const Index i : rows.lines)
    for (const Index j : cols.lines) reader.check(tables.tile(i, j), rows.sizes[at(i)], cols.sizes[at(j)]);
  // In the order of the files V follows U. Where there is memory, it is kept until its column is filled.
  const bool v_with_u = on_disk == nullptr;
  const auto fetch = [&](Index i, Index j, bool of_row, StoredTile& tile) {
    const Index row = rows.lines[at(i)], col = cols.lines[at(j)];
    const TileEntry& entry = tables.tile(row, col);
    const Index all_rows = rows.sizes[at(row)], all_cols = cols.sizes[at(col)];
    if (of_row) reader.read_u(entry, all_rows, all_cols, rows.inside[at(i)], cols.inside[at(j)], tile);
    if (of_row == v_with_u) reader.read_v(entry, all_rows, all_cols, cols.inside[at(j)], tile);
  };
  return make_block<T>(backend, shapes_of(tables, rows, cols), fetch, on_disk);
}

}  // namespace

MatrixHeader read_compressed_header(Communicator& comm, const std::string& directory) {
  return header_in_manifest(read_manifest(comm, directory), directory);
}

template <Scalar T>
CompressedMatrixPtr<T> read_compressed(const std::shared_ptr<const ProcessGrid>& grid,
                                       const std::string& directory, const MatrixHeader& header,
                                       const std::optional<StreamOptions>& on_disk) {
  const Layout layout = matrix_layout(Algorithm::stationary_a, *grid, header.rows, header.cols);
  agree(grid, "read_compressed", [&](Agreement& agreement) {
    agreement.on("the directory", directory).on("the rows", header.rows).on("the columns", header.cols);
    agreement.on("whether it goes to disks", on_disk ? "yes" : "no");
    require<ShapeError>(header.type == scalar_type_of<T>, directory, " has elements of type ",
                        name_of(header.type), ", but it is to be read as ", name_of(scalar_type_of<T>));
    if (on_disk) check_for_compressed(*grid, *on_disk);
  });
  if (!grid->is_member()) return idle_compressed<T>(grid, layout);
  const TraceRegion region("read file");
  Communicator& comm = grid->comm();
  const CheckpointReader reader(grid, directory);
  require<InputError>(header_in_manifest(reader.manifest(), directory) == header, directory,
                      ": is another matrix than it was before; was it changed meanwhile?");
  const TileTables tables = read_tables(comm, reader, directory);
  std::array<MatrixHeader, precisions> headers;
  for (std::size_t p = 0; p < precisions; ++p)
    headers[p] = read_matrix_header(comm, reader.path_of(factor_files[p]));
  const auto read = [&] {
    const int my_row = grid->my_row(), my_col = grid->my_col();
    return read_block<T>(grid->backend(), TileReader<T>(reader, headers, directory), tables,
                         keep(tables.row_order, tables.row_sizes, layout.row_range(*grid, my_row, my_col),
                              header.rows, directory),
                         keep(tables.col_order, tables.col_sizes, layout.col_range(*grid, my_row, my_col),
                              header.cols, directory),
                         on_disk ? &*on_disk : nullptr);
  };
  return make_compressed<T>(grid, layout, read, tables.power, tables.report, on_disk.has_value());
}

#define GRIDLOPS_INSTANTIATE(T)                                                              \
  template CompressedMatrixPtr<T> read_compressed(const std::shared_ptr<const ProcessGrid>&, \
                                                  const std::string&, const MatrixHeader&,   \
                                                  const std::optional<StreamOptions>&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
