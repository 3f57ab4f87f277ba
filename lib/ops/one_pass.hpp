// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/linear_operator.hpp"

namespace gridlops {

/// What an operator derives from besides LinearOperator if it has a normal product.
template <Scalar T>
class OnePass {
 public:
  virtual ~OnePass() = default;
  /// Whether it has one on its grid.
  virtual bool can_pass_once() const = 0;
  /// Stores A as the normal product wants it; other products take it from there, too, so that their rounding
  /// changes.
  virtual void prepare() const = 0;
  /// As normal_product(), with at least one column, on members of the grid only; layouts were checked.
  virtual void pass_once(const DistMatrix<T>& P, const DistMatrix<T>& R, DistMatrix<T>& Q, DistMatrix<T>& U,
                         DistMatrix<T>& V) const = 0;
};

}  // namespace gridlops
