// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/dist/dims.hpp"
#include "gridlops/dist/dist_matrix.hpp"

namespace gridlops {

/// The header of a NumPy .npy file. A one-dimensional array is a matrix of one column.
struct NpyHeader {
  ScalarType type = ScalarType::f64;
  Index rows = 0;
  Index cols = 1;
  int dimensions = 2;          ///< 1 or 2
  bool fortran_order = false;  ///< columns, not rows, are contiguous
  Index data_offset = 0;       ///< bytes before the first element
};

/// Whether a file may hold a matrix of this shape. The limit of 2^56 bytes is far beyond any machine, and
/// keeps sums and small multiples of sizes within 64 bits. A dimension of 0 counts as 1, as in NumPy.
constexpr bool fits_npy(Index rows, Index cols, ScalarType type) {
  constexpr Index most_bytes = Index{1} << 56;
  const Index lines = rows > 0 ? rows : 1, length = cols > 0 ? cols : 1;
  return lines <= most_bytes / size_of(type) / length;
}

/// Reads and checks the header of a file of version 1, 2 or 3 with one or two dimensions of little-endian f4,
/// f8, c8 or c16 elements, in C or Fortran order; also checks that the file is as long as the header says
/// (collective over comm). Rank 0 of comm reads. All ranks get the result, or all throw InputError with the
/// path and what was found.
GRIDLOPS_EXPORT NpyHeader read_npy_header(Communicator& comm, const std::string& path);

/// The smallest type that holds all numbers of both: f64 for f32 and f64, c128 for f64 and c64, as in NumPy.
GRIDLOPS_EXPORT ScalarType common_type(ScalarType one, ScalarType other);

/// X ← the file, whose header is `header` (collective over the grid of X). Every rank reads only its own
/// block. Elements of another type are converted if X can hold all their values: f32 becomes f64, and a real
/// number complex. Throws ShapeError if X cannot, or if the file has another shape. Throws InputError, on all
/// ranks, if a rank cannot read its part.
template <Scalar T>
GRIDLOPS_EXPORT void read_npy(const std::string& path, const NpyHeader& header, DistMatrix<T>& X);

/// Writes X in Fortran order (collective over the grid of X). Canonical owners write their blocks into a
/// temporary file beside `path`. It is synchronised and then renamed to `path`, so that the file appears
/// complete or not at all. With dimensions = 1 a matrix of one column becomes a one-dimensional array. If any
/// rank cannot write, throws OutputError on all ranks, and the temporary file is removed.
template <Scalar T>
GRIDLOPS_EXPORT void write_npy(const std::string& path, const ConstDistMatrix<T>& X, int dimensions = 2);

// Arrays of one to five dimensions. A matrix whose rows are the elements of an array (see Space::dims) is
// stored as an array. One column has the dims of that array. Any other number of columns becomes one more
// dimension, the first.

/// The header of an array's file.
struct NpyArrayHeader {
  ScalarType type = ScalarType::f64;
  std::vector<Index> sizes;    ///< one to five
  bool fortran_order = false;  ///< the first dimension is contiguous, not the last
  Index data_offset = 0;       ///< bytes before the first element
};

/// Reads and checks the header as read_npy_header() does (collective over comm).
GRIDLOPS_EXPORT NpyArrayHeader read_npy_array_header(Communicator& comm, const std::string& path);

/// X ← the file, whose header is `header` (collective over the grid of X). The rows of X are the elements of
/// an array with these dims, one block for each part. Every rank reads only its own box. Errors are those of
/// read_npy().
template <Scalar T>
GRIDLOPS_EXPORT void read_npy_array(const std::string& path, const NpyArrayHeader& header, const Dims& dims,
                                    DistMatrix<T>& X);

/// Writes X in C order, otherwise as write_npy() does (collective over the grid of X). Throws ShapeError on
/// all ranks if the file would have no dimension, or more than five.
template <Scalar T>
GRIDLOPS_EXPORT void write_npy_array(const std::string& path, const Dims& dims, const ConstDistMatrix<T>& X);

}  // namespace gridlops
