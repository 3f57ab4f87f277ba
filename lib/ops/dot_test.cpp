// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/dot_test.hpp"

#include <cmath>
#include <limits>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "comm/failure_scope.hpp"
#include "dist/together.hpp"
#include "gridlops/error.hpp"
#include "gridlops/random.hpp"
#include "ops/agree_on_operator.hpp"

namespace gridlops {

template <Scalar T>
DotTestResult dot_test(const LinearOperator<T>& A, Index columns, double tolerance, std::uint64_t seed) {
  agree_on_grid(A.domain().grid, "dot_test", [&](Agreement& agreement) {
    agree_on_operator(agreement, A);
    agreement.on("the columns", columns).on("the seed", seed);
    require<UsageError>(columns >= 0 && tolerance >= 0, "a dot test of ", columns, " columns with tolerance ",
                        tolerance, " is impossible; neither may be negative");
  });
  DotTestResult result;
  result.tolerance = tolerance > 0 ? tolerance
                                   : 4 * std::sqrt(static_cast<double>(A.rows() + A.cols())) *
                                         static_cast<double>(std::numeric_limits<Real<T>>::epsilon());
  if (!A.domain().grid->is_member()) return result;

  DistMatrix<T> x = make_together<T>(A.domain().grid, A.domain().layout(columns)),
                y = make_together<T>(A.range().grid, A.range().layout(columns));
  DistMatrix<T> Ax = make_together<T>(y.grid(), y.layout()), Ahy = make_together<T>(x.grid(), x.layout());
  FailureScope failures;
  x.fill([seed](Index i, Index j) { return counter_random<T>(seed, i, j); });
  y.fill([seed](Index i, Index j) { return counter_random<T>(seed + 1, i, j); });
  A.apply(T(1), x, T(0), Ax);
  A.apply_adjoint(T(1), y, T(0), Ahy);

  const auto in_range = column_dots(Ax, y);
  const auto in_domain = column_dots(x, Ahy);
  const std::vector<double> norm_Ax = column_norms(Ax), norm_y = column_norms(y), norm_x = column_norms(x),
                            norm_Ahy = column_norms(Ahy);
  for (std::size_t j = 0; j < in_range.size(); ++j) {
    const double scale = norm_Ax[j] * norm_y[j] + norm_x[j] * norm_Ahy[j];
    const double difference = std::abs(in_range[j] - in_domain[j]);
    if (difference == 0) continue;
    // Infinities make it NaN. Then the test fails, and the result stays NaN.
    const double mismatch = difference / scale;
    if (!(mismatch <= result.tolerance)) result.passed = false;
    if (!(mismatch <= result.mismatch) && !std::isnan(result.mismatch)) result.mismatch = mismatch;
  }
  return result;
}

#define GRIDLOPS_INSTANTIATE(T) \
  template DotTestResult dot_test(const LinearOperator<T>&, Index, double, std::uint64_t);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
