// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "arguments.hpp"
#include "gridlops/dist_matrix.hpp"

namespace gridlops::program {

// Elements are pure functions of the arguments and of the global index, so that a problem does not depend on
// the ranks that made it. They are computed in double precision for all types.

/// Throws UsageError if the arguments contradict each other, or ask for more than memory can be addressed.
void check(const MakeProblemArguments& arguments);
ScalarType type_of(const MakeProblemArguments& arguments);

template <Scalar T>
void fill_matrix(const MakeProblemArguments& arguments, DistMatrix<T>& A);
template <Scalar T>
void fill_model(const MakeProblemArguments& arguments, DistMatrix<T>& X);
/// To each element of a column b of m rows adds S·‖b‖/√m times a number of unit variance, where S is the
/// noise asked for (collective over the grid).
template <Scalar T>
void add_noise(const MakeProblemArguments& arguments, DistMatrix<T>& B);

}  // namespace gridlops::program
