// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gridlops/base/types.hpp"

namespace gridlops {

/// A block of a matrix that one rank wrote, and the XXH3 hash (64 bits) of its elements in column-major
/// order.
struct SavedBlock {
  Range rows, cols;
  std::uint64_t hash = 0;
};

struct SavedMatrix {
  ScalarType type = ScalarType::f64;
  Index rows = 0, cols = 0;
  std::vector<SavedBlock> blocks;
};

/// The contents of a checkpoint, as its manifest.json lists them.
struct Manifest {
  std::string folder;    ///< of the matrices, beside the manifest
  std::string previous;  ///< the folder of the previous checkpoint, beside this one; empty if there is none
  std::map<std::string, std::string> facts;
  std::map<std::string, SavedMatrix> matrices;  ///< by their file names, without ".npy"
};

/// The manifest as JSON, ending with a hash of itself.
std::string manifest_text(const Manifest& manifest);

/// Parses JSON that manifest_text() wrote. Throws InputError, with `path`, unless it is complete, undamaged,
/// and of a version that this library understands.
Manifest parse_manifest(const std::string& text, const std::string& path);

}  // namespace gridlops
