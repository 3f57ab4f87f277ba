// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gridlops/base/types.hpp"
#include "streamed/disk/disk_file.hpp"

namespace gridlops {

/// Describes the tiles in a file that was kept.
struct TileRecord {
  std::string of;         ///< what they are made of, and how: tiles of another text are others
  Index strips_each = 0;  ///< of a slab
  double norm = 0;        ///< ‖block‖_F
  std::vector<std::uint64_t> hashes;
  std::string file{};  ///< its name, which no file with other tiles has
};

// The tiles of a block stay at a path: a record, PATH.json, names the file that has them, beside it.

/// The record of these tiles; nothing if there is none, or if it is damaged or of other tiles.
std::optional<TileRecord> read_record(const std::string& path, const std::string& of);
/// The file of a record that has been read; nothing unless it has this many bytes.
std::optional<DiskFile> file_of_record(const std::string& path, const TileRecord& record, Index bytes);
/// A file for new tiles. Only where the disk has no room for both does it remove those that are there. Throws
/// OutputError on this rank alone.
DiskFile file_for_tiles(const std::string& path, Index bytes);
/// Names the file that has these tiles, puts its record in place of the one that was there, and removes the
/// files of others. A job that reads those goes on. Throws OutputError on this rank alone.
void keep_tiles(const std::string& path, TileRecord record, DiskFile& file);

}  // namespace gridlops
