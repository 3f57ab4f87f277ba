// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>

#include "gridlops/streamed/streamed_matrix.hpp"
#include "io/matrix_boxes.hpp"
#include "streamed/slab_block.hpp"

namespace gridlops {

/// A rank's block of a matrix, as far as it has no room in memory in a file of its own.
template <Scalar T>
class OwnStore {
 public:
  /// Takes memory, and room on the disk. `of`: what the block is made of, for tiles that stay. Throws
  /// OutOfMemory and OutputError on this rank alone.
  OwnStore(std::shared_ptr<Backend> backend, Index rows, Index cols, const StreamOptions& options,
           const std::string& of = {});
  /// Whether its tiles had stayed.
  bool is_stored() const { return is_stored_; }
  /// Stores the block. Throws, on this rank alone, also what the source throws.
  void store(ElementSource<T>& source);
  /// Instead, where options.in_place says so: reads it where the boxes are, rows × cols of their matrix, each
  /// time. Throws InputError on this rank alone.
  void read_in_place(MatrixBoxes boxes, Range rows, Range cols);

  /// The products, and the norm.
  const std::shared_ptr<SlabBlock<T>>& block() const { return block_; }

 private:
  bool stays() const { return !kept_.empty(); }
  template <class Cut>
  bool take_kept(Cut&& cut, Index memory);
  void start();

  std::shared_ptr<Backend> backend_;
  std::string kept_, of_;  // the path of tiles that stay, and what they are made of
  bool is_stored_ = false;
  std::shared_ptr<SlabBlock<T>> block_;
  std::shared_ptr<StoredParts> parts_;
};

}  // namespace gridlops
