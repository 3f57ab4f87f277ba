// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "base/message.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/dist/column_arithmetic.hpp"
#include "local/arrays/array_kernels.hpp"

namespace gridlops {

/// Bounds of every element of a matrix. Views.
template <Scalar T>
struct ColumnBox {
  const ConstDistMatrix<T>& lower;
  const ConstDistMatrix<T>& upper;
};

/// Y ← what `kind` says of V and X in the box, with a t for each column, or one for all. Y may be V or X. Not
/// collective. Throws ShapeError, on all ranks, unless all matrices have one layout and there is one t per
/// column.
template <Scalar T>
void update_in_box(BoxKind kind, ColumnOperand t, const ConstDistMatrix<T>& V, const ConstDistMatrix<T>& X,
                   const ColumnBox<T>& box, DistMatrix<T>& Y) {
  for (const ConstDistMatrix<T>* const each : {&V, &X, &box.lower, &box.upper})
    require_same_layout(*each, Y, "an update in a box");
  require<ShapeError>(t.is_constant() || t.size() == Y.cols(), t.size(), " scalars were given for ", Y.cols(),
                      " columns");
  std::vector<double> here;
  const Range mine = Y.local_col_range();
  for (Index j = mine.begin; j < mine.end(); ++j) here.push_back(t[j]);
  Y.grid()->backend()->template kernels<T>().arrays().box_update(
      {kind, here.data(), V.local(), X.local(), box.lower.local(), box.upper.local(), Y.local()});
}

}  // namespace gridlops
