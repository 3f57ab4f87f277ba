// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "gridlops/compressed/compressed_matrix.hpp"
#include "gridlops/io/array_file.hpp"
#include "gridlops/solve/plan.hpp"
#include "gridlops/streamed/streamed_matrix.hpp"

namespace gridlops::program {

/// Where and how a run keeps its matrix.
struct KeptMatrix {
  ScalarType type = ScalarType::f64;  ///< of the elements in the run, which may be another than in the file
  GridShape grid;
  Index columns = 0;  ///< of the widest product
  MatrixPlace place = MatrixPlace::memory;
  Index memory = 0;       ///< as in StreamOptions, for a matrix on disks
  bool in_place = false;  ///< as in StreamOptions
};

/// The matrix A that the user names, an array in a file or the directory of a compressed matrix: what all
/// ranks know of it before they read its elements. It is the same on all ranks.
class MatrixFile {
 public:
  /// An array with this header. Without a name there is no file, only a shape to plan for.
  explicit MatrixFile(const MatrixHeader& header, std::string name = {})
      : name_(std::move(name)), header_(header) {}
  /// Reads its header (collective over world). Throws InputError on all ranks.
  MatrixFile(Communicator& world, const std::string& name);
  /// Reads the tables of a compressed matrix, which compression(), costs and sizes need (collective over
  /// world). Throws InputError on all ranks.
  void read_tables(Communicator& world);

  const std::string& name() const { return name_; }
  const MatrixHeader& header() const { return header_; }
  Index rows() const { return header_.rows; }
  Index cols() const { return header_.cols; }
  bool is_compressed() const { return is_compressed_; }
  /// Only for a compressed matrix.
  const CompressionReport& compression() const { return compressed_->report(); }

  /// Throws UsageError if A is compressed and this algorithm cannot multiply by it, or InputError if A is
  /// compressed and of another type than the operands.
  void require_fits(Algorithm algorithm, ScalarType type) const;
  /// Throws UsageError if A is compressed and the user gave an option that needs its elements. option: its
  /// name, or null if none was given.
  void require_elements(const char* option) const;
  /// Sets what a compressed matrix leaves no choice of: it never moves, has two passes, and is stored in
  /// tiles of its own.
  void narrow(IterationRequest& asked) const;

  /// Returns the model's seconds, or NaN for a compressed matrix, for which there is no model.
  double modelled(double seconds) const;
  /// Returns the figure by which grids are compared; the smallest is the best. For an array it is the model's
  /// seconds. For a compressed matrix it is the bytes that the busiest rank reads and receives in a product
  /// and its adjoint.
  double cost_on(GridShape grid, const ProductShape& shape, const std::function<double()>& seconds) const;

  /// Returns the bytes in memory, on disk and of workspace, for a matrix on disks, on the rank at (row, col).
  StreamedSizes sizes_on_disk(const KeptMatrix& how, int row, int col) const;
  /// Returns the function that gives a rank's bytes of a matrix that is compressed or on disks, with the
  /// scratch memory of products; an empty one for an array in memory, whose bytes follow from its layout.
  std::function<Index(int row, int col)> tile_bytes(const KeptMatrix& how) const;
  /// Returns the part of the grid that has the rank which needs most memory: its first rank, which has the
  /// largest block of an array, or for a compressed matrix all of it.
  GridShape full_ranks(GridShape grid) const { return is_compressed() ? grid : GridShape{1, 1}; }
  /// Returns the bytes of the tables that a rank has while it reads a compressed matrix.
  Index bytes_of_tables(GridShape grid) const;

 private:
  std::string name_;
  MatrixHeader header_;
  bool is_compressed_ = false;
  std::shared_ptr<const SavedCompressed> compressed_;
};

}  // namespace gridlops::program
