// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gridlops/base/types.hpp"

namespace gridlops {

/// What is known of the tiles in a file that was kept.
struct TileRecord {
  std::string of;         ///< what they are made of, and how: tiles of another text are others
  Index strips_each = 0;  ///< of a slab
  double norm = 0;        ///< ‖block‖_F
  std::vector<std::uint64_t> hashes;
};

/// The record in a file; nothing if there is none, or if it is damaged or of other tiles.
std::optional<TileRecord> read_record(const std::string& path, const std::string& of);
/// Throws OutputError on this rank alone.
void write_record(const std::string& path, const TileRecord& record);

}  // namespace gridlops
