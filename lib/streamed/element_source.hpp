// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <span>
#include <string>

#include "gridlops/dist/dist_matrix.hpp"
#include "gridlops/io/array_file.hpp"

namespace gridlops {

/// A rank's block of a matrix, of which some lines are read at a time: rows, or columns if by_columns(). On
/// this rank alone.
template <Scalar T>
class ElementSource {
 public:
  ElementSource(Range rows, Range cols) : rows_(rows), cols_(cols) {}
  virtual ~ElementSource() = default;
  ElementSource(const ElementSource&) = delete;
  ElementSource& operator=(const ElementSource&) = delete;

  /// The rows and columns of the block.
  Range rows() const { return rows_; }
  Range cols() const { return cols_; }
  virtual bool by_columns() const = 0;
  /// The elements of these rows and columns of the block, in host memory, until the next call.
  virtual MatrixView<const T> read(Range rows, Range cols) = 0;
  /// to ← the elements at these rows and columns of the block, in this order. All of one kind, and of the
  /// other kind a few.
  virtual void gather(std::span<const Index> rows, std::span<const Index> cols, MatrixView<T> to) = 0;

 private:
  Range rows_, cols_;
};

/// The block of a matrix in memory, which must outlive the source.
template <Scalar T>
std::unique_ptr<ElementSource<T>> source_in_memory(const ConstDistMatrix<T>& A);

/// A block of the matrix in a file.
template <Scalar T>
std::unique_ptr<ElementSource<T>> source_in_file(const std::string& name, const MatrixHeader& header,
                                                 Range rows, Range cols);

}  // namespace gridlops
