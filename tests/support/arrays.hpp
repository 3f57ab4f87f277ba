// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <type_traits>
#include <vector>

#include "gridlops/ops/dot_test.hpp"
#include "gridlops/ops/linear_operator.hpp"
#include "support/padded_matrix.hpp"
#include "support/test_data.hpp"

namespace gridlops::testing {

/// The place in an array, one number per dimension, of a matrix row.
inline std::vector<Index> place_of(const Dims& dims, Index row) {
  const Partition rows = dims.rows();
  const int block = rows.owner_of(row);
  const Box box = dims.block(block);
  std::vector<Index> place(box.size());
  Index rest = row - rows.begin(block);
  for (std::size_t d = box.size(); d-- > 0;) {
    place[d] = box[d].begin + rest % box[d].size;
    rest /= box[d].size;
  }
  return place;
}

/// The number of a place in C order.
inline Index number_of(const Dims& dims, const std::vector<Index>& place) {
  Index number = 0;
  for (int d = 0; d < dims.count(); ++d) number = number * dims.size(d) + place[static_cast<std::size_t>(d)];
  return number;
}

/// Dims of these sizes, cut along `dim` over the axis. `variant` chooses one of many ways to cut.
inline Dims dims_along(const ProcessGrid& grid, const std::vector<Index>& sizes, int dim, Axis axis,
                       int variant) {
  std::vector<Partition> cuts;
  for (int d = 0; d < static_cast<int>(sizes.size()); ++d)
    cuts.push_back(d == dim ? cut_somehow(sizes[static_cast<std::size_t>(d)], grid.parts(axis), variant)
                            : Partition::balanced(sizes[static_cast<std::size_t>(d)], 1));
  return Dims(std::move(cuts));
}

/// Element (i, j) of an operator; i and j are rows of its range and of its domain.
template <Scalar T>
using ElementOf = std::function<T(Index i, Index j)>;

/// Calls check(space) for arrays of these sizes, cut along each dimension in one variant after the other, on
/// every grid and axis.
template <class Check>
void for_each_cut(const std::vector<Index>& sizes, const std::vector<int>& variants, Check&& check) {
  std::size_t first = 0;
  for (const GridPtr& grid : all_grids()) {
    for (const Axis axis : all_axes) {
      ++first;
      for (int dim = 0; dim < static_cast<int>(sizes.size()); ++dim) {
        const int variant = variants[(first + static_cast<std::size_t>(dim)) % variants.size()];
        const Space space = array_space(grid, dims_along(*grid, sizes, dim, axis, variant), axis);
        INFO(describe(*grid) << ": " << space.describe() << ", cut in variant " << variant);
        check(space);
      }
    }
  }
}

/// Element (i, j) of the product with a matrix along one dimension.
template <Scalar T, class Matrix>
ElementOf<T> along(const Space& range, const Space& domain, int dim, const Matrix& matrix) {
  return [=](Index i, Index j) {
    std::vector<Index> row = place_of(range.dims, i), col = place_of(domain.dims, j);
    const auto d = static_cast<std::size_t>(dim);
    const auto value = matrix(row[d], col[d]);
    row[d] = col[d] = 0;
    if (row != col) return T(0);
    if constexpr (std::is_same_v<decltype(value), const T>) {
      return value;
    } else {
      return number<T>(value, 0);
    }
  };
}

/// Returns this function, but computes each element once, because a formula may take longer than the
/// operator.
template <Scalar T>
ElementOf<T> remembering(const LinearOperator<T>& op, const ElementOf<T>& element) {
  const Index cols = op.cols();
  return [&element, cols, known = std::vector<std::optional<T>>(static_cast<std::size_t>(op.rows() * cols))](
             Index i, Index j) mutable {
    std::optional<T>& value = known[static_cast<std::size_t>(i * cols + j)];
    if (!value) value = element(i, j);
    return *value;
  };
}

/// Checks both directions of an operator on the columns of the identity: with α and β, and with fewer
/// columns.
template <Scalar T>
void check_elements(const LinearOperator<T>& op, const ElementOf<T>& formula, double tolerance) {
  const ElementOf<T> element = remembering(op, formula);
  release_scratch(*op.domain().grid);  // so that it has as much as it says that it needs, and no more
  for (const bool forward : {true, false}) {
    const Space& from = forward ? op.domain() : op.range();
    const Space& to = forward ? op.range() : op.domain();
    const auto expected = [&](Index i, Index j) {
      return forward ? element(i, j) : conjugate(element(j, i));
    };
    for (const bool updates : {false, true}) {
      CAPTURE(forward, updates);
      const T alpha = updates ? general<T>() : T(1), beta = updates ? number<T>(-1, 2) : T(0);
      const auto old = [](Index i, Index j) { return small_integer<T>(9, i, j); };
      EmbeddedMatrix<T> X(from.grid, from.layout(from.dimension()), 1,
                          [](Index i, Index j) { return T(i == j ? 1 : 0); });
      EmbeddedMatrix<T> Y(from.grid, to.layout(from.dimension()), 2,
                          [&](Index i, Index j) { return updates ? old(i, j) : quiet_nan<T>(); });
      const DistMatrix<T> in = X.matrix();
      DistMatrix<T> out = Y.matrix();
      forward ? op.apply(alpha, in, beta, out) : op.apply_adjoint(alpha, in, beta, out);
      CHECK(
          mismatches(
              out,
              [&](Index i, Index j) { return alpha * expected(i, j) + (updates ? beta * old(i, j) : T(0)); },
              tolerance) == 0);
      CHECK(X.surroundings_untouched());
      CHECK(Y.surroundings_untouched());
    }
  }
  for (const Index nrhs : {1, 0}) {
    DistMatrix<T> x(op.domain().grid, op.domain().layout(nrhs)), y(op.range().grid, op.range().layout(nrhs));
    const Index made = op.domain().grid->backend()->allocations();
    x.set_zero();
    y.set_zero();
    op.apply(T(1), x, T(1), y);
    op.apply_adjoint(T(1), y, T(1), x);
    const bool was_applied = op.rows() > 0 && op.cols() > 0;
    CHECK((!was_applied || op.domain().grid->backend()->allocations() == made));
  }
  CHECK(dot_test(op).passed);
}

}  // namespace gridlops::testing
