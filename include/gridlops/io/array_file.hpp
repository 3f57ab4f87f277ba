// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/dist/dims.hpp"
#include "gridlops/dist/dist_matrix.hpp"

namespace gridlops {

// Files of matrices and arrays. The name of an array says in which format it is:
//
//   A.npy                 the array in a NumPy file
//   P.h5:/group/A         a dataset in an HDF5 file; the file's name ends in .h5 or .hdf5
//   P.mat:/A              the same in a MATLAB file of version 7.3, which is read and not written
//   P.h5:/A@0:3,:,5       a part of a dataset, which is read: in each dimension a range BEGIN:END or
//                         BEGIN:END:STEP, or an index, which takes the dimension away. What is left out is
//                         the first, the last, and all further dimensions. Numbers below zero count from the
//                         end.
//
// A name that ends in .npy, or has none of these endings, is the name of a NumPy file. Where this library was
// built without HDF5, names of datasets throw UsageError on all ranks.

/// Where an array is.
struct ArrayPlace {
  std::string file;
  std::string dataset;  ///< its path in an HDF5 file, which begins with a slash; empty for a NumPy file
};
/// Splits a name into its parts. Opens no file, and needs no HDF5. Throws UsageError.
GRIDLOPS_EXPORT ArrayPlace place_of_array(const std::string& name);

/// The type, shape and order of a matrix in a file. A one-dimensional array is a matrix of one column.
struct MatrixHeader {
  ScalarType type = ScalarType::f64;
  Index rows = 0;
  Index cols = 1;
  int dimensions = 2;          ///< 1 or 2
  bool fortran_order = false;  ///< columns, not rows, are contiguous
  Index data_offset = 0;       ///< bytes before the first element; below zero where HDF5 has to find them

  friend bool operator==(const MatrixHeader&, const MatrixHeader&) = default;
};

/// Whether a file may hold a matrix of this shape. The limit of 2^56 bytes is far beyond any machine, and
/// keeps sums and small multiples of sizes within 64 bits. A dimension of 0 counts as 1, as in NumPy.
constexpr bool fits_file(Index rows, Index cols, ScalarType type) {
  constexpr Index most_bytes = Index{1} << 56;
  const Index lines = rows > 0 ? rows : 1, length = cols > 0 ? cols : 1;
  return lines <= most_bytes / size_of(type) / length;
}

/// Reads and checks the header of an array with one or two dimensions (collective over comm). Rank 0 of comm
/// reads. All ranks get the result, or all throw InputError with the name and what was found. Also checks
/// that the file is as long as the header says.
///
/// A NumPy file has version 1, 2 or 3, and little-endian f4, f8, c8 or c16 elements, in C or Fortran order.
///
/// A dataset may be contiguous or in chunks, which may be compressed by any filter that HDF5 finds. Its
/// elements are real or complex numbers in any byte order, complex ones in pairs (r, i), (real, imag) or
/// (re, im). `type` is the smallest type that holds all their values: f32 for halves and integers of 16 bits,
/// f64 for integers of 32 bits. Types that f64 cannot hold, such as integers of 64 bits, are refused. A
/// dataset that MATLAB wrote, which has an attribute MATLAB_class, has its dimensions in MATLAB's order. That
/// is the reverse of HDF5's, and fortran_order.
GRIDLOPS_EXPORT MatrixHeader read_matrix_header(Communicator& comm, const std::string& name);

/// The smallest type that holds all numbers of both: f64 for f32 and f64, c128 for f64 and c64, as in NumPy.
GRIDLOPS_EXPORT ScalarType common_type(ScalarType one, ScalarType other);

/// X ← the array, whose header is `header` (collective over the grid of X). Every rank reads only its own
/// block. Elements of another type are converted if X can hold all their values: f32 becomes f64, and a real
/// number complex. Throws ShapeError if X cannot, or if the array has another shape. Throws InputError, on
/// all ranks, if a rank cannot read its part.
template <Scalar T>
GRIDLOPS_EXPORT void read_matrix(const std::string& name, const MatrixHeader& header, DistMatrix<T>& X);

/// Writes X (collective over the grid of X). Canonical owners write their blocks into a temporary file beside
/// the file. It is synchronised and then takes the file's name, so that the file appears complete or not at
/// all. With dimensions = 1 a matrix of one column becomes a one-dimensional array. If any rank cannot write,
/// throws OutputError on all ranks, and the temporary file is removed.
///
/// A NumPy file is in Fortran order. A dataset is contiguous, in C order, as HDF5 has it. An HDF5 file that
/// exists keeps all else that it holds: rank 0 copies it into the temporary file. Only a dataset of this name
/// is replaced. Groups that its path names are made. Jobs that write to one file wait for each other. `like`
/// is the name of an array: if it is a dataset, too, the new one gets its attributes, except those that
/// describe how it is stored, or refer to other objects.
template <Scalar T>
GRIDLOPS_EXPORT void write_matrix(const std::string& name, const ConstDistMatrix<T>& X, int dimensions = 2,
                                  const std::string& like = {});

/// Reads the columns of the array from `first` on, as many as X has.
template <Scalar T>
GRIDLOPS_EXPORT void read_columns(const std::string& name, const MatrixHeader& header, Index first,
                                  DistMatrix<T>& X);

/// Writes a matrix some columns at a time, into a file that takes its name when it is finished, as
/// write_matrix() does. What is not finished is removed. An HDF5 file is locked meanwhile: jobs that write to
/// it wait for ten minutes.
template <Scalar T>
class GRIDLOPS_EXPORT MatrixWriter {
 public:
  /// Makes room for the matrix (collective over the grid). `like`: see write_matrix(). Throws OutputError and
  /// UsageError on all ranks.
  MatrixWriter(const std::string& name, std::shared_ptr<const ProcessGrid> grid, Index rows, Index cols,
               int dimensions = 2, const std::string& like = {});
  ~MatrixWriter();

  /// Writes columns from `first` on to the disk (collective). Throws OutputError on all ranks, ShapeError if
  /// the matrix has no such columns.
  void write(Index first, const ConstDistMatrix<T>& X);
  /// The file takes its name (collective).
  void finish();

 private:
  std::shared_ptr<const ProcessGrid> grid_;
  const Index rows_, cols_;
  bool by_columns_ = true;
  std::string name_, file_;  // the user's, and the temporary one
  Index data_offset_ = 0;
  std::unique_ptr<class NewArray> made_;  // on rank 0
};

// Arrays of one to five dimensions. A matrix whose rows are the elements of an array (see Space::dims) is
// stored as an array. One column has the dims of that array. Any other number of columns becomes one more
// dimension, the last.

/// The type, shape and order of an array in a file.
struct ArrayHeader {
  ScalarType type = ScalarType::f64;
  std::vector<Index> sizes;    ///< one to five
  bool fortran_order = false;  ///< the first dimension is contiguous, not the last
  Index data_offset = 0;       ///< bytes before the first element; below zero where HDF5 has to find them

  friend bool operator==(const ArrayHeader&, const ArrayHeader&) = default;
};

/// Reads and checks the header as read_matrix_header() does (collective over comm).
GRIDLOPS_EXPORT ArrayHeader read_array_header(Communicator& comm, const std::string& name);

/// X ← the array, whose header is `header` (collective over the grid of X). The rows of X are the elements of
/// an array with these dims, one block for each part. Every rank reads only its own box. Errors are those of
/// read_matrix().
template <Scalar T>
GRIDLOPS_EXPORT void read_array(const std::string& name, const ArrayHeader& header, const Dims& dims,
                                DistMatrix<T>& X);
/// Reads a part of the array: a range of each of its dimensions. `dims`, and X if it has not one column, have
/// the sizes of the part. Throws ShapeError if the array has no such part.
template <Scalar T>
GRIDLOPS_EXPORT void read_array(const std::string& name, const ArrayHeader& header, const Box& part,
                                const Dims& dims, DistMatrix<T>& X);

/// Writes X in C order, otherwise as write_matrix() does (collective over the grid of X). Throws ShapeError
/// on all ranks if the array would have no dimension, or more than five.
template <Scalar T>
GRIDLOPS_EXPORT void write_array(const std::string& name, const Dims& dims, const ConstDistMatrix<T>& X,
                                 const std::string& like = {});

/// Throws OutputError unless an array of this name can be written, and UsageError if the name is none of an
/// output. Tries by making a file beside it. Called by one rank alone.
GRIDLOPS_EXPORT void check_output_array(const std::string& name);

/// The version of HDF5 that this library uses, or why it has none.
GRIDLOPS_EXPORT std::string hdf5_text();

}  // namespace gridlops
