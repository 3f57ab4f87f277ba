// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>
#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/ops/linear_operator.hpp"

namespace gridlops {

// These operators are made of others, and share ownership of them. Functions that make them are not
// collective. They throw ShapeError, on all ranks and without communicating, if the others do not fit
// together.

/// Aᴴ.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> adjoint(OperatorPtr<T> A);

/// factor · A.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> scale(T factor, OperatorPtr<T> A);

/// A + B: same domain, same range.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> sum(OperatorPtr<T> A, OperatorPtr<T> B);

/// A B, which applies B first: the range of B is the domain of A.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> product(OperatorPtr<T> A, OperatorPtr<T> B);

/// I between two spaces of one dimension. With domain = range it is the identity. Otherwise it redistributes,
/// so that operators whose layouts differ can be put together, and its adjoint redistributes back. Between
/// two spaces of one array that is cut in different ways (Space::dims) every element stays itself.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> identity(Space range, Space domain);
template <Scalar T>
OperatorPtr<T> identity(const Space& space) {
  return identity<T>(space, space);
}

template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> zero(Space range, Space domain);

/// diag(d). d is one uncut column, whose rows are cut as those of the space. It is taken over.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> diagonal(DistMatrix<T> d, Axis columns = Axis::uncut);
/// The same in this space, which may be one of arrays.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> diagonal(const Space& space, DistMatrix<T> d);

// Stacks. The rows of a stacked space are ordered part by part: a rank has its rows of the first space, below
// them its rows of the second, and so on. So nothing moves when operators are stacked, and dots, norms and
// solvers take a matrix in a stacked space as any other. The spaces must be held by the same ranks part for
// part: cut along the same axis, or along `all` and `all_transposed`.

/// [A₁; A₂; …]: same domain.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> vertical_stack(std::vector<OperatorPtr<T>> operators);

/// [A₁ A₂ …]: same range.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> horizontal_stack(std::vector<OperatorPtr<T>> operators);

template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> block_diagonal(std::vector<OperatorPtr<T>> operators);

/// [A; damp · I], the operator of Tikhonov regularisation. Where model and data are not held by the same
/// ranks part for part, the identity redistributes the model to where the data are.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> damped(OperatorPtr<T> A, double damp);
/// The two spaces that its range is a stack of: that of the data, and that in which the identity puts the
/// model.
GRIDLOPS_EXPORT std::vector<Space> damped_range(const Space& data, const Space& model);

/// The space that is a stack of these.
GRIDLOPS_EXPORT Space stack_spaces(const std::vector<Space>& spaces);
/// The rows that belong to spaces[k] of a matrix X in the stack of these spaces: a matrix in spaces[k], in
/// the memory of X.
template <Scalar T>
GRIDLOPS_EXPORT DistMatrix<T> stack_rows(const std::vector<Space>& spaces, std::size_t k, DistMatrix<T>& X);
template <Scalar T>
GRIDLOPS_EXPORT ConstDistMatrix<T> stack_rows(const std::vector<Space>& spaces, std::size_t k,
                                              const ConstDistMatrix<T>& X);

}  // namespace gridlops
