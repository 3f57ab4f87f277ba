// SPDX-License-Identifier: BSD-3-Clause
#include "dist/column_powers.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/instantiate.hpp"
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

#define GRIDLOPS_INSTANTIATE(T)                                              \
  template void multiply_by_powers(DistMatrix<T>&, const std::vector<int>&); \
  template std::vector<int> powers_of_columns(const ConstDistMatrix<T>&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
