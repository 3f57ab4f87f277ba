// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/dist/column_arithmetic.hpp"

namespace gridlops {

/// Plane rotations, one per column, that take (a, b) to (r, 0): c a + s b = r. They are the identity where a
/// and b are 0 (Paige, Saunders 1982; hypot avoids overflow).
struct Rotations {
  Rotations() = default;
  Rotations(ColumnOperand a, ColumnOperand b) : r(hypot(a, b)), c(r), s(r) {
    for (Index j = 0; j < r.size(); ++j) {
      c[j] = r[j] == 0 ? 1 : a[j] / r[j];
      s[j] = r[j] == 0 ? 0 : b[j] / r[j];
    }
  }
  ColumnScalars r, c, s;
};

}  // namespace gridlops
