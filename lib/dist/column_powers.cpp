// SPDX-License-Identifier: BSD-3-Clause
#include "dist/column_powers.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/instantiate.hpp"
#include "comm/failure/failure.hpp"
#include "gridlops/dist/column_arithmetic.hpp"

namespace gridlops {

template <Scalar T>
void multiply_by_powers(DistMatrix<T>& X, const std::vector<int>& powers) {
  constexpr int most = std::numeric_limits<Real<T>>::max_exponent - 1;
  std::vector<int> left = powers;
  while (std::any_of(left.begin(), left.end(), [](int power) { return power != 0; })) {
    ColumnScalars factors(static_cast<Index>(left.size()));
    for (std::size_t j = 0; j < left.size(); ++j) {
      const int now = std::clamp(left[j], -most, most);
      factors[static_cast<Index>(j)] = std::ldexp(1.0, now);
      left[j] -= now;
    }
    X *= factors;
  }
}

template <Scalar T>
std::vector<int> powers_of_columns(const ConstDistMatrix<T>& B) {
  std::vector<int> powers;
  for (const double largest : column_norms(B, std::numeric_limits<double>::infinity()))
    powers.push_back(largest > 0 && std::isfinite(largest) ? std::ilogb(largest) : 0);
  return powers;
}

template <Scalar T>
std::vector<double> normalise_columns(DistMatrix<T>& X) {
  const std::vector<int> powers = powers_of_columns(X);
  FailureScope failures;
  failures.run([&] { multiply_by_powers(X, opposite(powers)); });
  std::vector<double> norms = column_norms(X);
  ColumnScalars factors(X.cols());
  for (std::size_t j = 0; j < norms.size(); ++j) {
    factors[static_cast<Index>(j)] = norms[j] > 0 ? 1 / norms[j] : 1;
    norms[j] = std::ldexp(norms[j], powers[j]);
  }
  failures.run([&] { X *= factors; });
  return norms;
}

#define GRIDLOPS_INSTANTIATE(T)                                              \
  template void multiply_by_powers(DistMatrix<T>&, const std::vector<int>&); \
  template std::vector<int> powers_of_columns(const ConstDistMatrix<T>&);    \
  template std::vector<double> normalise_columns(DistMatrix<T>&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
