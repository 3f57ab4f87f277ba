// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>

#include "compressed/compressed_block.hpp"
#include "gridlops/compressed/compressed_matrix.hpp"
#include "io/checkpoint_files.hpp"

namespace gridlops {

/// A directory in which one job saves a compressed matrix.
class CompressedFiles {
 public:
  /// Makes the directory if it is missing, and locks it (collective over the grid). Throws OutputError on all
  /// ranks as CheckpointDirectory does.
  CompressedFiles(std::shared_ptr<const ProcessGrid> grid, std::string directory);

  /// Writes the tiles of all ranks; Ã is a power of two times what they are (collective over the grid).
  /// `layout`: of a matrix in dense blocks. Throws OutputError on all ranks.
  void write(const Layout& layout, ScalarType type, const TiledBlock& tiles, int power,
             const CompressionReport& report);

 private:
  std::shared_ptr<const ProcessGrid> grid_;
  std::string directory_;
  CheckpointDirectory lock_;
};

}  // namespace gridlops
