// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>
#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/ops/linear_operator.hpp"

namespace gridlops {

// These operators are built from others, and share ownership of them. The functions that make them are not
// collective. They throw ShapeError, on all ranks and without communicating, if the operands do not fit
// together.
//
// Some pass a normal_product() on, so that a part that has one pass is read once: factor · A to A, A B to A,
// vertical stacks, block diagonals and damped operators to all their parts, and on_pairs() (fourier.hpp) to
// the complex operator. Adjoints, sums and horizontal stacks cannot: they need all of A P before any of Aᴴ A
// P.

/// Aᴴ.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> adjoint(OperatorPtr<T> A);

/// factor · A.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> scale(T factor, OperatorPtr<T> A);

/// A + B. Both have the same domain and the same range.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> sum(OperatorPtr<T> A, OperatorPtr<T> B);

/// A B, which applies B first. The range of B must be the domain of A.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> product(OperatorPtr<T> A, OperatorPtr<T> B);

/// I between two spaces of the same dimension. If domain = range, it is the identity. Otherwise it
/// redistributes, so that operators with different layouts can be combined, and its adjoint redistributes
/// back. Between two spaces of the same array, cut in different ways (Space::dims), it preserves the array's
/// elements.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> identity(Space range, Space domain);
template <Scalar T>
OperatorPtr<T> identity(const Space& space) {
  return identity<T>(space, space);
}

template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> zero(Space range, Space domain);

/// diag(d). d is one uncut column, whose rows are cut as those of the space. The operator takes ownership of
/// d.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> diagonal(DistMatrix<T> d, Axis columns = Axis::uncut);
/// Makes a diagonal operator in this space, which may be a space of arrays.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> diagonal(const Space& space, DistMatrix<T> d);

// Stacks. The rows of a stacked space are ordered part by part: a rank has its rows of the first space,
// followed by its rows of the second, and so on. Stacking therefore moves no data, and dots, norms and
// solvers treat a matrix in a stacked space as any other. The same ranks must hold corresponding parts of all
// the spaces: they are cut along the same axis, or along `all` and `all_transposed`.

/// [A₁; A₂; …]. All have the same domain.
/// Reasons: docs/decisions/0003-stacked-spaces.md.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> vertical_stack(std::vector<OperatorPtr<T>> operators);

/// [A₁ A₂ …]. All have the same range.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> horizontal_stack(std::vector<OperatorPtr<T>> operators);

template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> block_diagonal(std::vector<OperatorPtr<T>> operators);

/// [A; damp · I], the operator of Tikhonov regularisation. If different ranks hold corresponding parts of
/// model and data, the identity redistributes the model to the ranks that hold the data.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> damped(OperatorPtr<T> A, double damp);
/// The two spaces whose stack is its range: that of the data, and that in which the identity places the
/// model.
GRIDLOPS_EXPORT std::vector<Space> damped_range(const Space& data, const Space& model);

/// The space that stacks these. A stack of k arrays with the same dims is an array with a new first dimension
/// of k; m × S counts as m arrays S if m is not cut. Other stacks have no dims, and neither have those that
/// would have more than Dims::most.
GRIDLOPS_EXPORT Space stack_spaces(const std::vector<Space>& spaces);
/// The rows of X that belong to spaces[k], where X is a matrix in the stack of these spaces. The result is a
/// matrix in spaces[k] in the memory of X.
template <Scalar T>
GRIDLOPS_EXPORT DistMatrix<T> stack_rows(const std::vector<Space>& spaces, std::size_t k, DistMatrix<T>& X);
template <Scalar T>
GRIDLOPS_EXPORT ConstDistMatrix<T> stack_rows(const std::vector<Space>& spaces, std::size_t k,
                                              const ConstDistMatrix<T>& X);

}  // namespace gridlops
