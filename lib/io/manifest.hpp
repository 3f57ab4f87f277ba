// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gridlops/types.hpp"

namespace gridlops {

/// What one rank wrote of a matrix, and the XXH3 hash (64 bits) of these elements in column-major order.
struct SavedBlock {
  Range rows, cols;
  std::uint64_t hash = 0;
};

struct SavedMatrix {
  ScalarType type = ScalarType::f64;
  Index rows = 0, cols = 0;
  std::vector<SavedBlock> blocks;
};

/// What is in a checkpoint, as its manifest.json says.
struct Manifest {
  std::string folder;    ///< where the matrices are, beside the manifest
  std::string previous;  ///< the folder of the checkpoint before, beside this one; empty if there is none
  std::map<std::string, std::string> facts;
  std::map<std::string, SavedMatrix> matrices;  ///< by the names of their files, without ".npy"
};

/// As JSON, with a hash of its own.
std::string manifest_text(const Manifest& manifest);

/// Throws InputError, with `path`, unless text is a complete and undamaged manifest that this version
/// understands.
Manifest parse_manifest(const std::string& text, const std::string& path);

}  // namespace gridlops
