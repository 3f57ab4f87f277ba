// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "gridlops/linear_operator.hpp"

namespace gridlops {

/// What tells a problem from others without looking into the operator, the same on every grid up to rounding:
/// for a fixed random model z, ‖A z‖, and of every column ‖b‖ and (A z)ᴴb. Collective over the grid; one
/// product.
template <Scalar T>
std::vector<double> fingerprint(const LinearOperator<T>& A, const ConstDistMatrix<T>& B);

/// The same of an initial guess: of every column ‖x‖ and zᴴx.
template <Scalar T>
std::vector<double> fingerprint_of_guess(const LinearOperator<T>& A, const ConstDistMatrix<T>& X);

/// Whether two fingerprints of guesses differ by no more than rounding explains.
template <Scalar T>
bool same_guess(const LinearOperator<T>& A, const std::vector<double>& saved,
                const std::vector<double>& found);

/// What differs between two fingerprints of such a problem by more than rounding explains, in words; empty:
/// nothing.
template <Scalar T>
std::string difference(const LinearOperator<T>& A, const std::vector<double>& saved,
                       const std::vector<double>& found);

}  // namespace gridlops
