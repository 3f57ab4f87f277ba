// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/ops/linear_operator.hpp"

namespace gridlops {

/// The permutation from rows as the ranks have them, in any number and order, to rows in order (collective
/// over the grid). Row k of this rank's block in the domain is row my_rows[k] of the range, `in_order`. The
/// adjoint takes vectors back to the ranks' own orders. Idle ranks pass no rows; their domain is cut as the
/// range.
///
///   const auto P = scattered_rows<double>(array_space(grid, {m}, 0), my_rows);
///   Layout layout = matrix_layout(Algorithm::stationary_a, *grid, m, n);  // on a grid of one column
///   layout.rows.partition = P->domain().rows.partition;  // of A: my rows, in my order, stay where they are
///   …
///   P->apply(1, predicted, 0, in_order);  // a result by row numbers
///
/// A product moves elements in one all_to_all_v. A rank keeps 40 bytes for each run of rows that follow each
/// other. Both spaces are in the memory of the grid's backend; my_rows is in host memory and not kept.
///
/// Throws on all ranks, before an element moves: UsageError if a number is no row of `in_order`, or if a row
/// is no rank's or several ranks', or if ranks pass different `in_order`; ShapeError unless the rows of
/// `in_order` are cut along `all` or `all_transposed`, where no rank has copies; OutOfMemory.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> scattered_rows(const Space& in_order, const std::vector<Index>& my_rows);

}  // namespace gridlops
