// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/dist/dist_matrix.hpp"
#include "gridlops/io/array_file.hpp"
#include "gridlops/ops/linear_operator.hpp"
#include "gridlops/streamed/streamed_matrix.hpp"
#include "gridlops/streamed/streamed_series.hpp"

namespace gridlops {

struct CompressionOptions {
  double tolerance = 1e-3;  ///< ‖A − Ã‖_F is at most this times ‖A‖_F; above 0 and below 1
  Index tile = 256;         ///< the rows and columns of a tile, at most
  /// The orders in which rows and columns are cut into tiles: each index once. Neighbours in space should be
  /// neighbours here (hilbert_order()), so that tiles have low ranks. Empty: as they are.
  std::vector<Index> row_order{}, col_order{};
  /// Where Ã is saved, too: a directory, which is made if it is missing. Empty: nowhere.
  std::string directory{};
};

/// The size of a compressed matrix, and its distance from the matrix that it was made of.
struct CompressionReport {
  double norm = 0;        ///< ‖A‖_F
  double error = 0;       ///< ‖A − Ã‖_F / ‖A‖_F, of the numbers as they are stored; 0 if A = 0
  Index bytes = 0;        ///< of Ã, on all ranks, with its orders
  Index dense_bytes = 0;  ///< of A
  Index tiles = 0;        ///< all; the others are those of low rank
  Index dense_tiles = 0;  ///< stored as they are, rounded to some precision
  Index empty_tiles = 0;  ///< so small that they are zero
};

/// A matrix Ã in tiles of low rank, as an operator. Products are those of Algorithm::stationary_a, with the
/// same spaces and messages; each rank multiplies with its block of Ã. Memory in which factors become numbers
/// of T is taken where they are multiplied.
/// Reasons: docs/decisions/0060-compressed-matrices.md.
template <Scalar T>
class GRIDLOPS_EXPORT CompressedMatrix : public LinearOperator<T> {
 public:
  /// Returns the same report on all ranks, and an empty one on idle ranks.
  virtual const CompressionReport& report() const = 0;
  /// Return the bytes that this rank has read from its file, and how long products have waited for them; 0 in
  /// memory.
  virtual Index bytes_read() const = 0;
  virtual double seconds_waited() const = 0;

 protected:
  using LinearOperator<T>::LinearOperator;
};
template <Scalar T>
using CompressedMatrixPtr = std::shared_ptr<const CompressedMatrix<T>>;

/// Compresses A, which has the layout of matrix_layout(Algorithm::stationary_a), balanced or cut at other
/// places, and is only read (collective over the grid). Each rank cuts its block into tiles. A tile becomes a
/// product U Vᴴ of few vectors, or stays as it is, whichever takes fewer bytes; the vectors of smaller
/// singular values are stored in fewer bits: bfloat16 or float32 (Amestoy, Boiteau, Buttari, Gerest,
/// Jézéquel, L'Excellent, Mary: Mixed precision low-rank approximations and their application to block
/// low-rank LU factorization, IMA J. Numer. Anal. 43, 2023). The error of each tile is computed from its
/// definition, so that of Ã is known, not estimated.
///
///   const auto rows = hilbert_order(receivers.data(), A.rows(), 2);  // x and y of each receiver
///   const auto C = compress(A, {.tolerance = 1e-3, .row_order = rows});
///   cgls(*C, B, X, {.damp = 0.1});  // verdicts are those of C, which is C->report().error from A
///
/// Throws UsageError on all ranks if the tolerance is out of range, an order has not each index once, or A
/// has an element that is not finite; ShapeError if A lies otherwise; OutOfMemory; OutputError if nothing can
/// be saved in the directory, or something was before.
template <Scalar T>
GRIDLOPS_EXPORT CompressedMatrixPtr<T> compress(const ConstDistMatrix<T>& A,
                                                const CompressionOptions& options = {});

/// Compresses A as above, and writes Ã to the disk of a series, which activates it as it does the matrices of
/// StreamedSeries::add(). Throws also OutputError on all ranks, and UsageError if the grid is on GPUs or the
/// series column-stable.
template <Scalar T>
GRIDLOPS_EXPORT CompressedMatrixPtr<T> compress(const ConstDistMatrix<T>& A,
                                                const CompressionOptions& options, StreamedSeries<T>& series);

/// Compresses the matrix in a file, whose header is `header`, on a grid, as above. No rank ever holds its
/// block: it reads a row of tiles at a time, or a column if the file is in Fortran order, twice. At the end
/// it has its factors twice. An element that is not finite is an InputError, which names the file and the
/// place.
template <Scalar T>
GRIDLOPS_EXPORT CompressedMatrixPtr<T> compress(const std::shared_ptr<const ProcessGrid>& grid,
                                                const std::string& name, const MatrixHeader& header,
                                                const CompressionOptions& options = {});

/// Compresses the matrix in a file as above, but only saves Ã, in options.directory (collective over the
/// grid). Returns the report, whose bytes are those of the factors; an empty one on idle ranks. A rank takes
/// memory for its factors, two rows of tiles or columns of them, a few tiles, and the table of all tiles. T:
/// the type of Ã.
template <Scalar T>
GRIDLOPS_EXPORT CompressionReport save_compressed(const std::shared_ptr<const ProcessGrid>& grid,
                                                  const std::string& name, const MatrixHeader& header,
                                                  const CompressionOptions& options);

/// The type and the shape of the compressed matrix that was saved in a directory (collective over comm).
/// Throws InputError on all ranks if there is none.
GRIDLOPS_EXPORT MatrixHeader read_compressed_header(Communicator& comm, const std::string& directory);
/// That matrix, whose header is `header`, on any grid (collective over the grid). A rank reads the rows and
/// columns of its block of all tiles that it shares with other ranks. Throws ShapeError if T is another type,
/// InputError on all ranks if its files are damaged, and OutOfMemory.
///
/// on_disk: a rank keeps in memory what these options say, at least the vectors of four rows of tiles, or
/// columns, and has the others in a file of its own, as StreamedMatrix does, with the same failures. Products
/// have the same bits, read ahead, and read each factor once. It never has more than one row of tiles, or
/// column, beyond that memory, also while it reads. Then throws also OutputError if the scratch directory
/// cannot take A, and UsageError if the grid is on GPUs, or the options are to keep tiles or columns stable.
template <Scalar T>
GRIDLOPS_EXPORT CompressedMatrixPtr<T> read_compressed(const std::shared_ptr<const ProcessGrid>& grid,
                                                       const std::string& directory,
                                                       const MatrixHeader& header,
                                                       const std::optional<StreamOptions>& on_disk = {});

/// A saved compressed matrix whose factors are not read. Takes memory for the orders of its rows and columns,
/// and 7 numbers a tile.
class GRIDLOPS_EXPORT SavedCompressed {
 public:
  /// Reads the tables in a directory (collective over comm). Throws InputError on all ranks if there are
  /// none, or if they are damaged.
  SavedCompressed(Communicator& comm, const std::string& directory);
  SavedCompressed(SavedCompressed&&) noexcept;
  SavedCompressed& operator=(SavedCompressed&&) noexcept;
  ~SavedCompressed();

  const MatrixHeader& header() const;
  /// Its bytes are those of the factors, which no grid changes.
  const CompressionReport& report() const;
  /// Returns the bytes that read_compressed() takes on the rank at (row, col) of a grid of this shape, with
  /// the scratch memory of products with this many columns; without that of messages. Not collective.
  Index bytes_of_rank(GridShape grid, int row, int col, Index columns) const;
  /// Returns the bytes that read_compressed() takes there with StreamOptions of this memory. The workspace
  /// includes what brings rows and vectors into their order.
  StreamedSizes sizes_on_disk(GridShape grid, int row, int col, Index columns, Index memory) const;

 private:
  struct Tables;
  StreamedSizes sizes_of_rank(GridShape grid, int row, int col, Index columns,
                              std::optional<Index> memory) const;
  std::unique_ptr<Tables> tables_;
};

}  // namespace gridlops
