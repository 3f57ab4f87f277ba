// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/compressed/compressed_matrix.hpp"

namespace gridlops {

/// Compressed matrices that are multiplied one after the other, such as the frequencies of a kernel, and
/// share a rank's disk and memory. All are in one file without a name, as StreamedMatrix has it, with the
/// same failures.
template <Scalar T>
class GRIDLOPS_EXPORT CompressedSeries {
 public:
  /// Of the options, memory says how long the parts of a matrix may become.
  explicit CompressedSeries(const StreamOptions& on_disk);
  ~CompressedSeries();
  CompressedSeries(const CompressedSeries&) = delete;
  CompressedSeries& operator=(const CompressedSeries&) = delete;

  /// Compresses A as compress() does (collective over its grid, which is in host memory), and writes what it
  /// becomes to the disk. Throws what compress() throws, and OutputError, on all ranks. The matrix works
  /// while start() has it, and the series is there; else its products throw UsageError. Its kept_bytes() are
  /// without factors, and its bytes_read() 0: the series has those of all. Ends what start() began.
  CompressedMatrixPtr<T> add(const ConstDistMatrix<T>& A, const CompressionOptions& options = {});

  /// Until the next call the matrices with these numbers work, and this rank keeps `memory` bytes of their
  /// factors in memory, or what memory() says. Products read ahead as if these matrices were multiplied in
  /// their order, then their adjoints, and so on; another order works, too. Not collective; throws
  /// UsageError, OutOfMemory and InputError on this rank alone. Frees the memory of the call before.
  void start(Index memory, Range matrices);
  /// The memory that start() takes.
  Index memory(Index memory, Range matrices) const;

  Index count() const;
  /// What this rank has in its file, has read of it, and for how long products have waited for it.
  Index bytes_on_disk() const;
  Index bytes_read() const;
  double seconds_waited() const;

 private:
  class Slices;
  std::unique_ptr<Slices> slices_;
};

}  // namespace gridlops
