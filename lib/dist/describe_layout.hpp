// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "comm/failure/failure.hpp"
#include "gridlops/dist/dist_matrix.hpp"
#include "gridlops/dist/layout.hpp"

namespace gridlops {

/// A text for the cuts of a partition: the sizes of its parts, or a hash of them if there are many.
std::string describe_cut(const Partition& partition);

/// Adds a layout to an agreement: the shape, the axes along which it is cut, and where.
inline void describe_layout(Agreement& agreement, const char* name, const Layout& layout) {
  agreement.on(name, layout.describe(), ", cut into ", describe_cut(layout.rows.partition), " rows and ",
               describe_cut(layout.cols.partition), " columns");
}

/// Adds a matrix to an agreement: its element type and its layout.
template <Scalar T>
void describe_matrix(Agreement& agreement, const char* name, const ConstDistMatrix<T>& X) {
  agreement.on("the element type", name_of(scalar_type_of<T>));
  describe_layout(agreement, name, X.layout());
}

}  // namespace gridlops
