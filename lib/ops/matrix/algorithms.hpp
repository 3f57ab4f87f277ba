// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "gridlops/ops/cost_model.hpp"
#include "gridlops/ops/matrix_mult.hpp"

namespace gridlops {

// matrix_mult() makes these operators, each in its own file. A has the layout of matrix_layout(), and the
// options have been checked.

template <Scalar T>
OperatorPtr<T> make_block_mult(DistMatrix<T> A, const MatrixMultOptions& options);
template <Scalar T>
OperatorPtr<T> make_summa(DistMatrix<T> A, const MatrixMultOptions& options);
template <Scalar T>
OperatorPtr<T> make_stationary_a(DistMatrix<T> A, const MatrixMultOptions& options);
template <Scalar T>
OperatorPtr<T> make_stationary_b(DistMatrix<T> A, const MatrixMultOptions& options);

/// Throws ShapeError unless a matrix in this layout is cut along the axes of matrix_layout(). who: whose
/// matrix it is, for the message.
void require_layout(const std::string& who, Algorithm algorithm, const ProcessGrid& grid,
                    const Layout& layout);

constexpr bool never_moves_A(Algorithm algorithm) {
  return algorithm == Algorithm::block || algorithm == Algorithm::stationary_a;
}

/// The spaces of data and models for an A in two-dimensional blocks. Data and models lie in such blocks too.
template <Scalar T>
Space range_in_blocks(const ConstDistMatrix<T>& A) {
  return {A.grid(), A.layout().rows, Axis::grid_cols};
}
template <Scalar T>
Space domain_in_blocks(const ConstDistMatrix<T>& A) {
  return {A.grid(), Cut::balanced(Axis::grid_rows, A.cols(), *A.grid()), Axis::grid_cols};
}

/// Returns the space for stationary-a. Block p of the data is cut over the ranks of grid row p, and block q
/// of the models over those of grid column q.
template <Scalar T>
Space range_nested(const ConstDistMatrix<T>& A) {
  return {A.grid(), {Axis::all, Partition::nested(A.layout().rows.partition, A.grid()->cols())}, Axis::uncut};
}
template <Scalar T>
Space domain_nested(const ConstDistMatrix<T>& A) {
  return {A.grid(),
          {Axis::all_transposed, Partition::nested(A.layout().cols.partition, A.grid()->rows())},
          Axis::uncut};
}

/// The bytes that products with this many columns take on this rank, beside their matrix.
template <Scalar T>
Index workspace_bytes(Algorithm algorithm, const LinearOperator<T>& A, Index columns, Index panel = 0) {
  const ProcessGrid& grid = *A.domain().grid;
  return product_workspace_bytes(algorithm, {A.rows(), A.cols(), columns, scalar_type_of<T>}, grid.shape(),
                                 grid.my_row(), grid.my_col(), A.has_one_pass(), panel);
}

/// The order in which sums over ranks are computed: fixed, if columns must be stable.
inline ReductionOrder reduction_order(const MatrixMultOptions& options) {
  return options.column_stable ? ReductionOrder::by_rank : ReductionOrder::any;
}

}  // namespace gridlops
