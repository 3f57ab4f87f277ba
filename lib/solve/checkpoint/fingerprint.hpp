// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "gridlops/ops/linear_operator.hpp"

namespace gridlops {

/// Numbers that identify a problem without inspecting the operator, whatever its size: for a fixed random
/// model z and data y, the norm of A z and yᴴA z, and ‖b‖ and (A z)ᴴb/‖A z‖ of every column. They are the
/// same on every grid up to rounding. Collective over the grid; one product.
template <Scalar T>
std::vector<double> fingerprint(const LinearOperator<T>& A, const ConstDistMatrix<T>& B);
/// The fingerprint of columns of a space alone: ‖x‖ and zᴴx of every column, for a fixed random z of that
/// space.
template <Scalar T>
std::vector<double> fingerprint(const Space& space, const ConstDistMatrix<T>& X);

/// Describes in words what differs between the fingerprints of columns of a space by more than rounding
/// explains. Empty if nothing does.
template <Scalar T>
std::string difference_of_columns(const Space& space, const std::vector<double>& saved,
                                  const std::vector<double>& found);

/// Describes in words what differs between two problems' fingerprints by more than rounding explains. Empty
/// if nothing does. weights: the columns of weights whose numbers are before those of B.
template <Scalar T>
std::string difference(const LinearOperator<T>& A, const std::vector<double>& saved,
                       const std::vector<double>& found, Index weights = 0);

}  // namespace gridlops
