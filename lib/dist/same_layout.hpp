// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/message.hpp"
#include "gridlops/dist_matrix.hpp"
#include "gridlops/error.hpp"

namespace gridlops {

/// Throws ShapeError unless both matrices lie alike.
template <Scalar T>
void require_same_layout(const ConstDistMatrix<T>& X, const ConstDistMatrix<T>& Y, const char* operation) {
  if (X.grid() == Y.grid() && X.layout() == Y.layout()) return;
  throw ShapeError(message(operation, " of matrices that lie differently: ", X.layout().describe(), " and ",
                           Y.layout().describe(), "; redistribute one of them to the layout of the other"));
}

}  // namespace gridlops
