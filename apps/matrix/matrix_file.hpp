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

/// How a run keeps its matrix.
struct KeptMatrix {
  ScalarType type = ScalarType::f64;  ///< of its elements there
  GridShape grid;
  Index columns = 0;  ///< the most of a product
  MatrixPlace place = MatrixPlace::memory;
  Index memory = 0;       ///< as in StreamOptions, on disks
  bool in_place = false;  ///< as there
};

/// The matrix A that the user names: an array in a file, or the directory of a compressed one. What all ranks
/// know before they read its elements; the same on each.
class MatrixFile {
 public:
  /// Of an array with this header; without a name it is in no file, for plans.
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
  /// Of a compressed matrix.
  const CompressionReport& compression() const { return compressed_->report(); }

  /// Throws if it is compressed, and cannot be multiplied by this algorithm, with operands of this type.
  void require_fits(Algorithm algorithm, ScalarType type) const;
  /// Throws UsageError if it is compressed, and this option, which needs its elements, is given. null: none
  /// is.
  void require_elements(const char* option) const;

  /// `seconds`, or NaN: no model knows how long compressed products take.
  double modelled(double seconds) const;
  /// The smaller, the better a grid is for products of this shape: `seconds` of the model, or the bytes that
  /// the rank with most of a compressed matrix reads of it, and receives, in a product and an adjoint one.
  double cost_on(GridShape grid, const ProductShape& shape, const std::function<double()>& seconds) const;

  /// How much of it is where, on the rank at (row, col), if it is on disks.
  StreamedSizes sizes_on_disk(const KeptMatrix& how, int row, int col) const;
  /// The bytes of a rank that keeps it so, if it is compressed or on disks, with the scratch memory of
  /// products. Empty for others, whose blocks and products have sizes by their layout.
  std::function<Index(int row, int col)> tile_bytes(const KeptMatrix& how) const;
  /// The shape of the ranks of which one needs most memory: the first one, or, if it is compressed, all.
  GridShape full_ranks(GridShape grid) const { return is_compressed() ? grid : GridShape{1, 1}; }
  /// Memory that reading a compressed matrix takes on a rank besides, for tables.
  Index bytes_of_tables(GridShape grid) const;

 private:
  std::string name_;
  MatrixHeader header_;
  bool is_compressed_ = false;
  std::shared_ptr<const SavedCompressed> compressed_;
};

}  // namespace gridlops::program
