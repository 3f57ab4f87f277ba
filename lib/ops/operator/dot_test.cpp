// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/ops/dot_test.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "comm/failure/failure.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/random.hpp"
#include "gridlops/dist/column_arithmetic.hpp"
#include "gridlops/dist/dist_matrix.hpp"
#include "ops/operator/library_operator.hpp"

namespace gridlops {

namespace {

/// Multiplies every column by a power of two, so that sums of products with it neither overflow nor vanish.
/// Returns the exponents: the original column j is 2^(exponents[j]) times as long. Elements in single
/// precision need none, since sums are in double precision.
template <Scalar T>
std::vector<int> take_out_exponents(DistMatrix<T>& X, FailureScope& failures) {
  std::vector<int> exponents(static_cast<std::size_t>(X.cols()), 0);
  if constexpr (sizeof(Real<T>) == 8) {
    constexpr int most = 1000;  // 2^most and 2^−most are normal numbers
    const std::vector<double> largest = column_norms(X, std::numeric_limits<double>::infinity());
    ColumnScalars factors(X.cols());
    for (Index j = 0; j < X.cols(); ++j) {
      const double element = largest[at(j)];
      if (element > 0 && std::isfinite(element))
        exponents[at(j)] = std::clamp(std::ilogb(element), -most, most);
      factors[j] = std::ldexp(1.0, -exponents[at(j)]);
    }
    failures.run([&] { X *= factors; });
  }
  return exponents;
}

}  // namespace

template <Scalar T>
DotTestResult dot_test(const LinearOperator<T>& A, Index columns, double tolerance, std::uint64_t seed) {
  agree(A.domain().grid, "dot_test", [&](Agreement& agreement) {
    describe_operator(agreement, A);
    agreement.on("the columns", columns).on("the seed", seed);
    require<UsageError>(columns >= 1, "a dot test of ", columns,
                        " columns would test nothing; take at least one");
    require<UsageError>(tolerance >= 0, "a dot test with tolerance ", tolerance,
                        " is impossible; it must be positive, or 0 for what rounding allows");
  });
  DotTestResult result;
  result.tolerance = tolerance > 0 ? tolerance
                                   : 4 * std::sqrt(static_cast<double>(A.rows() + A.cols())) *
                                         static_cast<double>(std::numeric_limits<Real<T>>::epsilon());
  if (!A.domain().grid->is_member()) return result;

  DistMatrix<T> x = allocate_matrix<T>(A.domain().grid, A.domain().layout(columns)),
                y = allocate_matrix<T>(A.range().grid, A.range().layout(columns));
  DistMatrix<T> Ax = allocate_matrix<T>(y.grid(), y.layout()), Ahy = allocate_matrix<T>(x.grid(), x.layout());
  FailureScope failures;
  x.fill([seed](Index i, Index j) { return counter_random<T>(seed, i, j); });
  y.fill([seed](Index i, Index j) { return counter_random<T>(seed + 1, i, j); });
  A.apply(T(1), x, T(0), Ax);
  A.apply_adjoint(T(1), y, T(0), Ahy);

  const std::vector<int> of_Ax = take_out_exponents(Ax, failures), of_Ahy = take_out_exponents(Ahy, failures);
  const auto in_range = column_dots(Ax, y);
  const auto in_domain = column_dots(x, Ahy);
  const std::vector<double> norm_Ax = column_norms(Ax), norm_y = column_norms(y), norm_x = column_norms(x),
                            norm_Ahy = column_norms(Ahy);
  // The most that underflow in the products can change: half of the smallest positive number in each of the
  // 4mn real products of complex numbers, once forwards and once backwards.
  const double lost = 4 * static_cast<double>(A.rows()) * static_cast<double>(A.cols()) *
                      static_cast<double>(std::numeric_limits<Real<T>>::denorm_min());
  for (std::size_t j = 0; j < in_range.size(); ++j) {
    const int unit = std::max(of_Ax[j], of_Ahy[j]);
    const double of_range = std::ldexp(1.0, of_Ax[j] - unit), of_domain = std::ldexp(1.0, of_Ahy[j] - unit);
    const double scale = of_range * norm_Ax[j] * norm_y[j] + of_domain * norm_x[j] * norm_Ahy[j];
    const double difference =
        std::abs(of_range * in_range[j] - of_domain * in_domain[j]) - std::ldexp(lost, -unit);
    if (difference <= 0) continue;
    // Infinities turn this into NaN. The test then fails, and the result stays NaN.
    const double mismatch = difference / scale;
    if (!(mismatch <= result.tolerance)) result.passed = false;
    if (!(mismatch <= result.mismatch) && !std::isnan(result.mismatch)) result.mismatch = mismatch;
  }
  return result;
}

#define GRIDLOPS_INSTANTIATE(T) \
  template DotTestResult dot_test(const LinearOperator<T>&, Index, double, std::uint64_t);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
