// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "gridlops/dist/dist_matrix.hpp"
#include "gridlops/ops/algorithm.hpp"
#include "support/grids.hpp"
#include "support/reference.hpp"

namespace gridlops::testing {

inline constexpr std::array all_algorithms{Algorithm::block, Algorithm::summa, Algorithm::stationary_a,
                                           Algorithm::stationary_b};

/// Whether A may be stored packed.
inline bool may_be_packed(Algorithm algorithm) {
  return algorithm == Algorithm::block || algorithm == Algorithm::stationary_a;
}

/// A whole matrix, the same on every rank, to compare with a distributed one.
template <Scalar T>
struct Whole {
  Index rows = 0;
  Index cols = 0;
  std::vector<T> values;

  T operator()(Index i, Index j) const { return values[static_cast<std::size_t>(i + j * rows)]; }
};

/// A matrix of small integers, whose sums and products are exact in every type.
template <Scalar T>
Whole<T> integers(std::uint64_t seed, Index rows, Index cols) {
  return {rows, cols,
          dense<T>(rows, cols, [seed](Index i, Index j) { return small_integer<T>(seed, i, j); })};
}

/// A matrix of numbers with inexact sums.
template <Scalar T>
Whole<T> fractions(std::uint64_t seed, Index rows, Index cols) {
  return {rows, cols,
          dense<T>(rows, cols, [seed](Index i, Index j) { return counter_random<T>(seed, i, j); })};
}

/// op(A) X, summed in extended precision.
template <Scalar T>
Whole<T> multiplied(Op op, const Whole<T>& A, const Whole<T>& X) {
  return {op == Op::none ? A.rows : A.cols, X.cols,
          reference_product(op, T(1), A.values.data(), A.rows, A.cols, X.values.data(), X.cols)};
}

/// One of many ways to cut `total` into parts. Variant 0 is balanced; most others have empty parts.
inline Partition cut_somehow(Index total, int parts, int variant) {
  if (variant == 0) return Partition::balanced(total, parts);
  std::vector<Index> ends{total};
  for (int part = 1; part < parts; ++part) {
    const double place = (1 + counter_uniform(static_cast<std::uint64_t>(variant), part, total)) / 2;
    ends.push_back(variant == 1   ? 0
                   : variant == 2 ? total
                                  : static_cast<Index>(place * static_cast<double>(total + 1)));
  }
  std::sort(ends.begin(), ends.end());
  std::vector<Index> sizes;
  for (std::size_t part = 0; part < ends.size(); ++part)
    sizes.push_back(ends[part] - (part == 0 ? 0 : ends[part - 1]));
  return Partition::with_sizes(sizes);
}
inline constexpr int cut_variants = 6;

/// The layout of rows × cols along these axes, both cut in this variant.
inline Layout layout_along(const ProcessGrid& grid, Axis row_axis, Axis col_axis, Index rows, Index cols,
                           int variant = 0) {
  return {{row_axis, cut_somehow(rows, grid.parts(row_axis), variant)},
          {col_axis, cut_somehow(cols, grid.parts(col_axis), variant)}};
}

/// A copy of this rank's block without gaps, from the host or a device.
template <Scalar T>
std::vector<T> on_host(const ConstDistMatrix<T>& X) {
  const MatrixView<const T> local = X.local();
  std::vector<T> values(static_cast<std::size_t>(local.size()));
  for (Index j = 0; j < local.cols; ++j)
    X.grid()->backend()->download(local.column(j), values.data() + j * local.rows,
                                  local.rows * static_cast<Index>(sizeof(T)));
  return values;
}

/// Counts the elements of this rank's block, copies included, that differ from value(i, j) by more than
/// `tolerance`. NaN equals only NaN.
template <Scalar T, class Function>
Index mismatches(const ConstDistMatrix<T>& X, Function&& value, double tolerance = 0) {
  Index wrong = 0;
  const std::vector<T> copy = on_host(X);
  const MatrixView<const T> local(copy.data(), X.local().rows, X.local().cols);
  for (Index j = 0; j < local.cols; ++j) {
    for (Index i = 0; i < local.rows; ++i) {
      const T found = local(i, j);
      const T expected = value(X.local_row_range().begin + i, X.local_col_range().begin + j);
      const bool near = found == expected || std::abs(found - expected) <= tolerance;
      if (!near && !(is_nan(found) && is_nan(expected))) ++wrong;
    }
  }
  return wrong;
}

/// A distributed matrix whose blocks lie within larger arrays of NaN. Code that reads around a block spoils
/// its result, and the check finds code that writes there.
template <Scalar T>
class EmbeddedMatrix {
 public:
  template <class Function>
  EmbeddedMatrix(GridPtr grid, const Layout& layout, Index padding, Function&& value)
      : grid_(std::move(grid)), layout_(layout), padding_(padding) {
    if (grid_->is_member()) {
      rows_ = layout.row_range(*grid_, grid_->my_row(), grid_->my_col()).size;
      cols_ = layout.col_range(*grid_, grid_->my_row(), grid_->my_col()).size;
    }
    const std::vector<T> nan(static_cast<std::size_t>(padding + (rows_ + padding) * cols_), quiet_nan<T>());
    memory_ = Buffer<T>(backend_, static_cast<Index>(nan.size()));
    backend_->upload(nan.data(), memory_.data(), memory_.size() * static_cast<Index>(sizeof(T)));
    matrix().fill(value);
  }

  /// A view of it.
  DistMatrix<T> matrix() {
    return DistMatrix<T>(grid_, layout_,
                         MatrixView<T>(memory_.data() + padding_, rows_, cols_, rows_ + padding_));
  }

  bool surroundings_untouched() const {
    std::vector<T> values(static_cast<std::size_t>(memory_.size()));
    backend_->download(memory_.data(), values.data(), memory_.size() * static_cast<Index>(sizeof(T)));
    for (Index k = 0; k < memory_.size(); ++k) {
      const bool inside = k >= padding_ && (k - padding_) % (rows_ + padding_) < rows_;
      if (!inside && !is_nan(values[static_cast<std::size_t>(k)])) return false;
    }
    return true;
  }

 private:
  GridPtr grid_;
  Layout layout_;
  Index padding_;
  Index rows_ = 0;
  Index cols_ = 0;
  std::shared_ptr<Backend> backend_ = make_backend();  // not the grid's backend, which counts allocations
  Buffer<T> memory_;
};

/// The sum of one number per rank of the program (collective over all of them).
inline Index sum_over_ranks(Index value) {
  std::array<Index, 1> sum{value};
  world().all_reduce(sum, ReduceOp::sum);
  return sum[0];
}

/// Calls visit(grid, layout) for every grid and every legal pair of axes.
template <class Function>
void for_each_layout(Index rows, Index cols, int variant, Function&& visit) {
  for (const GridPtr& grid : all_grids()) {
    for (const Axis row_axis : all_axes) {
      for (const Axis col_axis : all_axes) {
        if (!legal(row_axis, col_axis)) continue;
        const Layout layout = layout_along(*grid, row_axis, col_axis, rows, cols, variant);
        INFO(describe(*grid) << ": " << layout.describe() << ", cut in variant " << variant);
        visit(grid, layout);
      }
    }
  }
}

/// A matrix of value(i, j).
template <class Function>
auto filled(const GridPtr& grid, const Layout& layout, const Function& value) {
  DistMatrix<std::invoke_result_t<const Function&, Index, Index>> X(grid, layout);
  X.fill(value);
  return X;
}

}  // namespace gridlops::testing
