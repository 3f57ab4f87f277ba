// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/linear_operator.hpp"

namespace gridlops {

/// An operator that runs no code of the caller's, unless operators that it is made of do.
template <Scalar T>
class LibraryOperator : public LinearOperator<T> {
 protected:
  using LinearOperator<T>::LinearOperator;

 private:
  bool runs_callers_code() const final { return false; }
};

}  // namespace gridlops
