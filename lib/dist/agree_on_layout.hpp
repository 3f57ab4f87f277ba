// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "comm/agreement.hpp"
#include "gridlops/dist_matrix.hpp"
#include "gridlops/layout.hpp"
#include "gridlops/process_grid.hpp"

namespace gridlops {

/// Where a partition cuts, for texts: the sizes of its parts, of many parts a number made of them.
std::string describe_cut(const Partition& partition);

/// Names how a matrix lies to an agreement: its shape, the axes along which it is cut, and where.
inline void agree_on_layout(Agreement& agreement, const char* name, const Layout& layout) {
  agreement.on(name, layout.describe(), ", cut into ", describe_cut(layout.rows.partition), " rows and ",
               describe_cut(layout.cols.partition), " columns");
}

/// Names a matrix: its element type, and how it lies.
template <Scalar T>
void agree_on_matrix(Agreement& agreement, const char* name, const ConstDistMatrix<T>& X) {
  agreement.on("the element type", name_of(scalar_type_of<T>));
  agree_on_layout(agreement, name, X.layout());
}

/// agree_at_entry() over this grid, whose idle ranks run local_part alone.
inline void agree_on_grid(const std::shared_ptr<const ProcessGrid>& grid, const char* operation,
                          const std::function<void(Agreement&)>& local_part) {
  if (grid != nullptr && grid->is_member()) return agree_at_entry(grid->comm(), operation, local_part);
  Agreement alone(operation);
  local_part(alone);
}

}  // namespace gridlops
