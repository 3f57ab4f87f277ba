// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include "gridlops/base/export.hpp"
#include "gridlops/streamed/streamed_matrix.hpp"

namespace gridlops {

class SharedStore;

/// Matrices that are multiplied one after the other, such as the frequencies of a kernel, and share a rank's
/// disk and memory. All are in one file without a name, as StreamedMatrix has it, with the same failures.
/// They are dense, or compressed: compress() with a series.
template <Scalar T>
class GRIDLOPS_EXPORT StreamedSeries {
 public:
  /// Of the options, memory says how long the parts of a matrix may become. Throws UsageError if tiles are to
  /// stay, or matrices to be read in place.
  explicit StreamedSeries(const StreamOptions& on_disk);
  ~StreamedSeries();
  StreamedSeries(const StreamedSeries&) = delete;
  StreamedSeries& operator=(const StreamedSeries&) = delete;

  /// Writes A to the disk, as stream_matrix() does, with the same errors (collective over its grid). The
  /// matrix is active while start() names it, and the series exists; else its products throw UsageError. Its
  /// kept_bytes() are without A, and its bytes_read() 0: the series has those of all. Matrices on one grid
  /// share the memory of products (LinearOperator::add_kept_bytes()). Ends what start() began.
  StreamedMatrixPtr<T> add(const ConstDistMatrix<T>& A);

  /// Activates these matrices until the next call. This rank keeps `memory` bytes of them in memory, or as
  /// many as memory() returns. Products read ahead as if these matrices were multiplied in their order, then
  /// their adjoints, and so on; another order works, too. If all are dense, so do normal products in their
  /// order. Not collective; throws UsageError, OutOfMemory and InputError on this rank alone. Frees the
  /// memory of the call before.
  void start(Index memory, Range matrices);
  /// Returns the bytes that start() takes.
  Index memory(Index memory, Range matrices) const;

  Index count() const;
  /// Return the bytes that this rank has in its file and has read from it, and how long products have waited
  /// for them.
  Index bytes_on_disk() const;
  Index bytes_read() const;
  double seconds_waited() const;

  /// For the library.
  SharedStore& store() const;

 private:
  struct Kept;
  std::unique_ptr<Kept> kept_;
};

}  // namespace gridlops
