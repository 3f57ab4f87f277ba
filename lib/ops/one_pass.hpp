// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/linear_operator.hpp"

namespace gridlops {

/// What an operator derives from besides LinearOperator if it has a normal product.
template <Scalar T>
class OnePass {
 public:
  virtual ~OnePass() = default;
  /// Stores A as the normal product wants it; other products take it from there, too, so that their rounding
  /// changes.
  virtual void prepare() const = 0;
  /// Takes the memory for columns cut so, before pass_once() gets more than ever: all ranks throw what one
  /// throws (collective over the grid).
  virtual void reserve_pass(const Partition& columns) const = 0;
  /// As normal_product(), with at least one column, on members of the grid only; layouts were checked.
  virtual void pass_once(const DistMatrix<T>& P, const DistMatrix<T>& R, DistMatrix<T>& Q, DistMatrix<T>& U,
                         DistMatrix<T>& V) const = 0;
};

}  // namespace gridlops
