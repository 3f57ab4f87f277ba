// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "gridlops/dist_matrix.hpp"
#include "io/manifest.hpp"

namespace gridlops {

// A checkpoint lies in a folder of its own, generation-N, as .npy files and a manifest. The directory that
// was named holds the newest two and a manifest.json of the newest, which is written last: whenever the job
// dies, it tells of a complete checkpoint.

/// Makes one checkpoint. Everything is collective over the grid, and throws OutputError on all its members; a
/// checkpoint that is not finished is removed.
class CheckpointWriter {
 public:
  /// Makes the directory if it is missing.
  CheckpointWriter(std::shared_ptr<const ProcessGrid> grid, const std::string& directory);
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  template <Scalar T>
  void write(const std::string& name, const ConstDistMatrix<T>& X);
  /// Numbers that are the same on all ranks.
  void write_numbers(const std::string& name, const std::vector<double>& numbers);

  /// The checkpoint is complete: it replaces the one before, of which the next older is removed.
  void finish(std::map<std::string, std::string> facts);

 private:
  std::string folder() const { return directory_ + "/" + name_; }

  std::shared_ptr<const ProcessGrid> grid_;
  std::string directory_, name_;
  Manifest manifest_;
  bool finished_ = false;
};

/// Whether checkpoints can be written there: makes the directory and a file in it (collective). Throws
/// OutputError on all ranks.
void check_checkpoint_directory(Communicator& comm, const std::string& directory);

/// What the checkpoint in a directory is (collective). Throws InputError on all ranks if there is none.
Manifest read_manifest(Communicator& comm, const std::string& directory);

/// Reads a checkpoint, on any grid. Everything is collective over the grid, and throws InputError on all its
/// members.
class CheckpointReader {
 public:
  /// Compares all that was written with its hashes first, each block on one rank.
  CheckpointReader(std::shared_ptr<const ProcessGrid> grid, const std::string& directory);

  const Manifest& manifest() const { return manifest_; }

  template <Scalar T>
  void read(const std::string& name, DistMatrix<T>& X) const;
  std::vector<double> read_numbers(const std::string& name) const;

 private:
  std::string path_of(const std::string& name) const;
  void verify_blocks() const;

  std::shared_ptr<const ProcessGrid> grid_;
  std::string directory_;
  Manifest manifest_;
};

}  // namespace gridlops
