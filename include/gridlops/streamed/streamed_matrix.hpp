// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>

#include "gridlops/base/export.hpp"
#include "gridlops/dist/dist_matrix.hpp"
#include "gridlops/io/array_file.hpp"
#include "gridlops/ops/linear_operator.hpp"

namespace gridlops {

struct StreamOptions {
  /// The directory for this rank's part of A: on a disk of its host, or one that all share. Empty: $TMPDIR,
  /// or else /var/tmp.
  std::string scratch{};
  /// The bytes of A that this rank keeps in memory, with those that it reads ahead. It takes no more than A
  /// has, and no less than reading ahead needs: see StreamedSizes.
  Index memory = 0;
  bool column_stable = false;  ///< as in MatrixMultOptions
  /// For a matrix in a file: a directory, made if missing, where its tiles stay for the next operator of the
  /// same file on the same grid. They are made anew if the file has another length or time of change, or if
  /// this rank's processor has other tiles. Empty: tiles are gone with the operator.
  std::string tiles{};
  /// For a matrix in a file: reads A from its own file in every product, instead of from a tiled copy. That
  /// keeps pace with a disk where rows, or chunks, are long: see in_place_run(). Nobody may change the file
  /// meanwhile: a product that finds other elements than the first one did throws InputError.
  bool in_place = false;
};

/// How the block of a rank is stored, in bytes.
struct StreamedSizes {
  Index memory = 0;     ///< in memory all the time, with what is read ahead
  Index disk = 0;       ///< on the disk; an iteration with one pass reads them once
  Index workspace = 0;  ///< of products, in memory
};

/// Returns the sizes on the rank at (row, col) of a grid of this shape, for its block of a rows × cols matrix
/// of T and products with this many columns at a time. Not collective.
template <Scalar T>
GRIDLOPS_EXPORT StreamedSizes streamed_sizes(Index rows, Index cols, Index columns, GridShape grid, int row,
                                             int col, Index memory, bool in_place = false);

/// Returns the average length of the contiguous runs that a rank reads, in bytes, if ranks of a grid of this
/// shape read the matrix in place (StreamOptions::in_place): that of the rank with the shortest runs. 0 if
/// its elements cannot be read in place as they are. Collective over comm, whose rank 0 opens the file.
/// Throws InputError on all ranks.
GRIDLOPS_EXPORT Index in_place_run(Communicator& comm, const std::string& name, const MatrixHeader& header,
                                   GridShape grid);

/// Measures the combined read rate of all ranks' disks (collective over comm). Together they write this many
/// bytes to files in this directory (see StreamOptions), and read them all at once, as products do with this
/// memory. Throws OutputError, InputError and OutOfMemory on all ranks.
struct DiskRate {
  double bytes_per_second = 0;
};
GRIDLOPS_EXPORT DiskRate measure_disk(Communicator& comm, const std::string& scratch, Index bytes,
                                      Index memory = Index{256} << 20);
/// Measures the combined read rate of an existing file of 256 KiB or more, of which each rank reads a part.
/// Throws InputError and OutOfMemory on all ranks.
GRIDLOPS_EXPORT DiskRate measure_file(Communicator& comm, const std::string& path, Index bytes,
                                      Index memory = Index{256} << 20);

/// A matrix that lies on disks, as an operator. Products are those of Algorithm::stationary_a with
/// Storage::packed: the same spaces and bits on the same grid. Outside a solver ranks also agree on how a
/// product ended. Each rank has its block in a file without a name, which is gone when the process ends,
/// however it ends, unless tiles are to stay, or a user's file is read in place. It keeps as much in memory
/// as it may; threads read the rest ahead, past the system's cache where the file system can, while products
/// compute. LinearOperator::normal_product() reads A once, a product with any number of columns too.
///
///   const MatrixHeader header = read_matrix_header(grid->comm(), "A.npy");
///   const auto A = stream_matrix<double>(grid, "A.npy", header, {.memory = Index{4} << 30});
///   cgls(*A, B, X, {.one_pass = true});  // each rank has 4 GiB of A; an iteration reads the rest once
///
/// If a rank cannot read its part, or a part is damaged, products throw InputError on all ranks, a solver at
/// its next sums. The next product tries again. Ranks compare hashes (XXH3) of a part when they first read
/// it; each time, if it is in a user's file, or with GRIDLOPS_CHECK=all.
/// Reasons: docs/decisions/0063-streamed-matrices.md.
template <Scalar T>
class GRIDLOPS_EXPORT StreamedMatrix : public LinearOperator<T> {
 public:
  /// ‖A‖_F, the same on all ranks of the grid; 0 on idle ones.
  virtual double frobenius_norm() const = 0;
  /// Return the bytes that this rank has read, in place by whole blocks of the file, and how long products
  /// have waited for them.
  virtual Index bytes_read() const = 0;
  virtual double seconds_waited() const = 0;

 protected:
  using LinearOperator<T>::LinearOperator;
};
template <Scalar T>
using StreamedMatrixPtr = std::shared_ptr<const StreamedMatrix<T>>;

/// The matrix in a file, whose header is `header`, on a grid in host memory (collective over the grid). No
/// rank ever holds its block: it reads a few rows at a time, or columns if the file is in Fortran order,
/// once, or in place again and again. Throws, on all ranks, UsageError if the grid is on GPUs, the options
/// differ, or the elements cannot be read in place as they are; InputError if the file cannot be read;
/// OutputError if the scratch directory cannot take A; ShapeError if T cannot hold its elements; OutOfMemory.
template <Scalar T>
GRIDLOPS_EXPORT StreamedMatrixPtr<T> stream_matrix(const std::shared_ptr<const ProcessGrid>& grid,
                                                   const std::string& name, const MatrixHeader& header,
                                                   const StreamOptions& options = {});

/// Copies a matrix in memory to disks (collective over its grid). It is only read, and has the layout of
/// matrix_layout(Algorithm::stationary_a), balanced or cut at other places. Throws ShapeError if it lies
/// otherwise.
template <Scalar T>
GRIDLOPS_EXPORT StreamedMatrixPtr<T> stream_matrix(const ConstDistMatrix<T>& A,
                                                   const StreamOptions& options = {});

}  // namespace gridlops
