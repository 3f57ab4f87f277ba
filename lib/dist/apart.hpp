// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/message.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/dist/dist_matrix.hpp"
#include "gridlops/local/overlap.hpp"

namespace gridlops {

/// Throws UsageError where writing one matrix would overwrite the other, which is read. `both` names them.
/// What the addresses of one rank say, other ranks do not know: call it within an agreement.
template <Scalar T>
void require_apart(const ConstDistMatrix<T>& read, const ConstDistMatrix<T>& written, const char* operation,
                   const char* both) {
  if (!overlap<T>(read.local(), written.local())) return;
  throw UsageError(message(operation, " would overwrite what it reads: ", both,
                           " overlap in memory. Give each a matrix of its own"),
                   KnownTo::one_rank);
}

}  // namespace gridlops
