// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <complex>
#include <vector>

#include "gridlops/ops/local_operator.hpp"
#include "gridlops/ops/space.hpp"
#include "support/problems.hpp"
#include "support/test_data.hpp"

// References for the cases of PyLops-MPI's tests: whole arrays in C order on every rank, and matrices, which
// plain loops work on.

namespace gridlops::testing {

/// All ranks of the program in one column.
inline GridPtr line_of_ranks() {
  return std::make_shared<const ProcessGrid>(world(), GridShape{world().size(), 1}, make_backend());
}

/// Calls check(T()) with the type of a case.
template <class Check>
void with_type(bool complex, Check&& check) {
  if (complex) {
    check(std::complex<double>());
  } else {
    check(double());
  }
}

/// The space of arrays that are cut along one dimension over all ranks, or that are everywhere.
inline Space cut_or_everywhere(const GridPtr& grid, const std::vector<Index>& sizes, int cut,
                               bool everywhere) {
  return array_space(grid, sizes, cut, everywhere ? Axis::uncut : Axis::all);
}

inline Index product_of(const std::vector<Index>& sizes) {
  Index product = 1;
  for (const Index size : sizes) product *= size;
  return product;
}

template <Scalar T>
std::vector<T> random_array(std::uint64_t seed, Index elements) {
  return dense<T>(elements, 1, [seed](Index i, Index j) { return counter_random<T>(seed, i, j); });
}

/// Calls visit(row, place) for the cells of a box in C order, which are the rows of a block.
template <class Visit>
void for_each_cell(const Box& box, Visit&& visit) {
  std::vector<Index> place;
  for (const Range& range : box) place.push_back(range.begin);
  for (Index row = 0; row < size_of(box); ++row) {
    visit(row, place);
    for (std::size_t d = box.size(); d-- > 0;) {
      if (++place[d] < box[d].end()) break;
      place[d] = box[d].begin;
    }
  }
}

/// The number of a place of an array of these sizes in C order.
inline std::size_t in_c_order(const std::vector<Index>& sizes, const std::vector<Index>& place) {
  Index number = 0;
  for (std::size_t d = 0; d < sizes.size(); ++d) number = number * sizes[d] + place[d];
  return static_cast<std::size_t>(number);
}

/// The array as a matrix of one column.
template <Scalar T>
DistMatrix<T> placed(const Space& space, const std::vector<T>& array) {
  DistMatrix<T> X(space.grid, space.layout(1));
  const std::vector<Index> sizes = space.dims.sizes();
  for_each_cell(space.local_box(), [&](Index row, const std::vector<Index>& place) {
    X.local()(row, 0) = array[in_c_order(sizes, place)];
  });
  return X;
}

/// The larger of two numbers; NaN if one is.
inline double larger(double a, double b) { return a >= b || std::isnan(a) ? a : b; }

template <Scalar T>
double largest_of(const std::vector<T>& values) {
  double most = 0;
  for (const T value : values) most = larger(most, static_cast<double>(std::abs(value)));
  return most;
}

/// The largest difference of this rank's block from the array, relative to the array's largest element; NaN
/// if there is one.
template <Scalar T>
double difference(const ConstDistMatrix<T>& X, const Space& space, const std::vector<T>& array) {
  double most = 0;
  const std::vector<Index> sizes = space.dims.sizes();
  for_each_cell(space.local_box(), [&](Index row, const std::vector<Index>& place) {
    const double here = std::abs(X.local()(row, 0) - array[in_c_order(sizes, place)]);
    most = larger(most, here);
  });
  const double scale = largest_of(array);
  return scale == 0 ? most : most / scale;
}

/// A x and Aᴴ y for one column that is given and returned whole.
template <Scalar T>
std::vector<T> times(const Whole<T>& A, const std::vector<T>& x, Op op = Op::none) {
  std::vector<T> y(static_cast<std::size_t>(op == Op::none ? A.rows : A.cols));
  for (std::size_t j = 0; j < static_cast<std::size_t>(A.cols); ++j) {
    const T* const a = A.values.data() + j * static_cast<std::size_t>(A.rows);
    for (std::size_t i = 0; i < static_cast<std::size_t>(A.rows); ++i) {
      if (op == Op::none) {
        y[i] += a[i] * x[j];
      } else {
        y[j] += conjugate(a[i]) * x[i];
      }
    }
  }
  return y;
}

/// The largest difference of this rank's block of one column from these values, relative to their largest.
template <Scalar T>
double difference(const ConstDistMatrix<T>& X, const std::vector<T>& values) {
  double most = 0;
  for (Index i = 0; i < X.local().rows; ++i) {
    const double here =
        std::abs(X.local()(i, 0) - values[static_cast<std::size_t>(X.local_row_range().begin + i)]);
    most = larger(most, here);
  }
  const double scale = largest_of(values);
  return scale == 0 ? most : most / scale;
}

/// One column of these values.
template <Scalar T>
DistMatrix<T> column(const Space& space, const std::vector<T>& values) {
  return filled(space.grid, space.layout(1),
                [&](Index i, Index) { return values[static_cast<std::size_t>(i)]; });
}

/// op x, or opᴴ x, for one column of these values.
template <Scalar T>
DistMatrix<T> applied(const LinearOperator<T>& op, const ConstDistMatrix<T>& x, bool forward = true) {
  const Space& to = forward ? op.range() : op.domain();
  DistMatrix<T> y(to.grid, to.layout(1));
  forward ? op.apply(T(1), x, T(0), y) : op.apply_adjoint(T(1), x, T(0), y);
  return y;
}

/// The spaces of rows × cols for each rank: cut, or alike everywhere.
inline Space rows_on_ranks(const GridPtr& grid, Index rows_of_rank, bool everywhere = false) {
  const int parts = everywhere ? 1 : grid->parts(Axis::all);
  return {grid,
          {everywhere ? Axis::uncut : Axis::all, Partition::balanced(rows_of_rank * parts, parts)},
          Axis::uncut};
}

/// The matrix of every rank, in plain loops.
template <Scalar T>
using OfRank = std::function<T(int rank, Index i, Index j)>;

template <Scalar T>
OperatorPtr<T> matrices_of_ranks(const Space& range, const Space& domain, const OfRank<T>& element) {
  const int rank = range.grid->comm().rank();
  const auto B = std::make_shared<std::vector<T>>(dense<T>(
      range.local_rows(), domain.local_rows(), [&](Index i, Index j) { return element(rank, i, j); }));
  const Index m = range.local_rows(), n = domain.local_rows();
  const auto at = [=](Index i, Index j) { return (*B)[static_cast<std::size_t>(i + j * m)]; };
  return local_operator<T>(
      range, domain,
      [=](MatrixView<const T> x, MatrixView<T> y) {
        for (Index k = 0; k < x.cols; ++k) {
          for (Index i = 0; i < m; ++i) y(i, k) = T(0);
          for (Index j = 0; j < n; ++j)
            for (Index i = 0; i < m; ++i) y(i, k) += at(i, j) * x(j, k);
        }
      },
      [=](MatrixView<const T> y, MatrixView<T> x) {
        for (Index k = 0; k < y.cols; ++k) {
          for (Index j = 0; j < n; ++j) {
            x(j, k) = T(0);
            for (Index i = 0; i < m; ++i) x(j, k) += conjugate(at(i, j)) * y(i, k);
          }
        }
      });
}

/// The same as one matrix: blocks on the diagonal, above one another, or side by side, as the spaces lie.
template <Scalar T>
Whole<T> whole_of_ranks(const Space& range, const Space& domain, const OfRank<T>& element) {
  const Partition &rows = range.rows.partition, &cols = domain.rows.partition;
  const bool cut_rows = range.rows.axis == Axis::all, cut_cols = domain.rows.axis == Axis::all;
  const auto value = [&](Index i, Index j) {
    const int row_rank = cut_rows ? rows.owner_of(i) : 0, col_rank = cut_cols ? cols.owner_of(j) : 0;
    if (cut_rows && cut_cols && row_rank != col_rank) return T(0);
    return element(cut_rows ? row_rank : col_rank, i - rows.begin(row_rank), j - cols.begin(col_rank));
  };
  return {rows.total(), cols.total(), dense<T>(rows.total(), cols.total(), value)};
}

}  // namespace gridlops::testing
