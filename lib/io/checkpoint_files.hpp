// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gridlops/dist/dist_matrix.hpp"
#include "io/formats/manifest.hpp"

namespace gridlops {

// A checkpoint is a folder generation-N with .npy files and a manifest. The user's directory holds the two
// newest folders, and a manifest.json of the newest, which is written last: whenever the job dies,
// manifest.json names a complete checkpoint.

/// The directory in which one job saves its checkpoints during this object's lifetime.
class CheckpointDirectory {
 public:
  /// Makes the directory if it is missing, and locks it (collective over comm). restart: the directory from
  /// which the job continues, or empty. Throws OutputError on all ranks if another job has the lock, if
  /// nothing can be written there, or if the job would replace a checkpoint that it does not continue.
  CheckpointDirectory(Communicator& comm, const std::string& directory, const std::string& restart);

  /// Throws OutputError on all ranks if the manifests of these checkpoints would exceed their limit: with
  /// these facts, and a block of every rank in each of this many matrices, whose sizes are at most `largest`
  /// (collective over comm).
  void require_room(Communicator& comm, const std::map<std::string, std::string>& facts, Index matrices,
                    Index largest) const;

 private:
  std::string path_;                  // of the manifest
  std::shared_ptr<const void> lock_;  // on rank 0
};

/// Writes one checkpoint. All functions are collective over the grid, and throw OutputError on all its ranks.
/// The destructor removes an unfinished checkpoint.
class CheckpointWriter {
 public:
  /// Makes the directory if it is missing.
  CheckpointWriter(std::shared_ptr<const ProcessGrid> grid, const std::string& directory);
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  template <Scalar T>
  void write(const std::string& name, const ConstDistMatrix<T>& X);
  /// Calls use(bytes, count) for the pieces of a rank's block, one after the other; twice, alike.
  using UsePiece = std::function<void(const void* bytes, Index count)>;
  using Pieces = std::function<void(const UsePiece& use)>;
  /// Saves a column whose blocks are nowhere in one piece. shape: its layout; it may be a planned_matrix().
  template <Scalar T>
  void write(const std::string& name, const ConstDistMatrix<T>& shape, const Pieces& pieces);
  /// Saves numbers, which must be the same on all ranks.
  void write_numbers(const std::string& name, const std::vector<double>& numbers);

  /// Completes the checkpoint, which becomes the newest. Keeps only the latest of the older ones.
  void finish(std::map<std::string, std::string> facts);

 private:
  std::string folder() const { return directory_ + "/" + name_; }
  std::string file_of(const std::string& name) const { return folder() + "/" + name + ".npy"; }

  std::shared_ptr<const ProcessGrid> grid_;
  std::string directory_, name_;
  Manifest manifest_;
  bool finished_ = false;
};

/// Reads the manifest of the checkpoint in a directory (collective). Throws InputError on all ranks if there
/// is none.
Manifest read_manifest(Communicator& comm, const std::string& directory);

/// The newest folder that is newer than the one named by the manifest; empty if there is none (collective).
/// Throws InputError on all ranks if the directory cannot be read.
std::string unfinished_generation(Communicator& comm, const std::string& directory);

/// Reads a checkpoint, on any grid. All functions are collective over the grid, and throw InputError on all
/// its ranks.
class CheckpointReader {
 public:
  /// First compares all files with the hashes in the manifest, each block on one rank. only: the names of the
  /// matrices that will be read; empty: all.
  CheckpointReader(std::shared_ptr<const ProcessGrid> grid, const std::string& directory,
                   const std::vector<std::string>& only = {});

  const Manifest& manifest() const { return manifest_; }
  /// The file of a matrix.
  std::string path_of(const std::string& name) const;

  template <Scalar T>
  void read(const std::string& name, DistMatrix<T>& X) const;
  std::vector<double> read_numbers(const std::string& name) const;

 private:
  void verify_blocks(const std::vector<std::string>& only) const;

  std::shared_ptr<const ProcessGrid> grid_;
  std::string directory_;
  Manifest manifest_;
};

}  // namespace gridlops
