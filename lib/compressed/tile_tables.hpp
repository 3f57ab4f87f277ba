// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "compressed/compressed_block.hpp"
#include "gridlops/compressed/compressed_matrix.hpp"
#include "io/checkpoint_files.hpp"

namespace gridlops {

/// The fact "content" of the manifest, and the names of the files with factors, by Precision.
inline constexpr const char* compressed_content = "compressed matrix";
inline constexpr std::array factor_files{"bfloat16", "float32", "float64"};

/// The entry of a tile in the files.
struct TileEntry {
  std::optional<Precision> dense{};
  std::array<Index, precisions> ranks{}, begins{};  // begins: in bytes, in the file of each precision
  static constexpr std::size_t numbers = 1 + 2 * precisions;

  void put(double* to) const;
};

/// The header in a manifest of a compressed matrix. Throws InputError, alike wherever the manifest is the
/// same, if it is one of something else.
MatrixHeader header_in_manifest(const Manifest& manifest, const std::string& directory);

/// Everything that the files hold besides the factors.
struct TileTables {
  MatrixHeader header{};
  CompressionReport report{};  ///< without the bytes
  int power = 0;               ///< Ã is two to this power times the tiles
  std::vector<double> row_order{}, col_order{}, row_sizes{}, col_sizes{};
  std::vector<TileEntry> tiles{};  ///< row of tiles by row of tiles

  const TileEntry& tile(Index i, Index j) const {
    return tiles[static_cast<std::size_t>(i) * col_sizes.size() + static_cast<std::size_t>(j)];
  }
};

/// Fills the tables with what their numbers say. They have the header, the orders and the sizes, and room for
/// the tiles. Throws InputError, alike wherever the numbers are the same.
void interpret(TileTables& tables, const std::vector<double>& figures, const std::vector<double>& numbers,
               const std::string& directory);

/// Reads them (collective over comm, that of the grid of the reader). Throws InputError on all ranks if they
/// are damaged, and OutOfMemory.
TileTables read_tables(Communicator& comm, const CheckpointReader& reader, const std::string& directory);
/// The files of these, without ".npy".
std::vector<std::string> table_files();

/// The rows, or the columns, that a rank takes of the tiles: those in its range.
struct KeptLines {
  std::vector<Index> lines;                // the numbers of the lines that have some
  std::vector<Index> sizes;                // of all lines
  std::vector<std::vector<Index>> inside;  // of each kept line, which of its rows
  TileLines kept;
};
/// The tiles of these rows and columns, without factors.
TiledBlock shapes_of(const TileTables& tables, const KeptLines& rows, const KeptLines& cols);
/// count: of all rows. Throws InputError, alike wherever the tables are the same.
KeptLines keep(const std::vector<double>& order, const std::vector<double>& sizes, Range mine, Index count,
               const std::string& directory);

}  // namespace gridlops
