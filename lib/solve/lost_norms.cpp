// SPDX-License-Identifier: BSD-3-Clause
#include "solve/lost_norms.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "comm/failure_scope.hpp"
#include "dist/together.hpp"
#include "gridlops/column_arithmetic.hpp"
#include "solve/verdicts.hpp"

namespace gridlops {

template <Scalar T>
bool norm_is_lost(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, const ConstDistMatrix<T>* X,
                  Index j, double residual_norm) {
  const Partition& columns = B.layout().cols.partition;
  const int part = columns.owner_of(j);
  std::vector<Index> first(at(columns.parts()), 0), sizes = first;
  first[at(part)] = j - columns.begin(part);
  sizes[at(part)] = 1;
  const Partition one = Partition::with_sizes(sizes);
  DistMatrix<T> r = clone_together(B.column_slice(first, one)),
                s = make_together<T>(B.grid(), A.domain().layout(one));
  if (X != nullptr) A.apply(T(-1), X->column_slice(first, one), T(1), r);

  constexpr int most = sizeof(Real<T>) == 4 ? 100 : 900;  // in powers of two
  const int power =
      residual_norm >= smallest_safe_norm ? std::clamp(-std::ilogb(residual_norm), -most, most) : most;
  const auto scaled_norm = [](int by, DistMatrix<T>& v) {
    FailureScope().run([&] { v *= std::ldexp(1.0, by); });
    return column_norms(v)[0];
  };
  // What is smaller may have been lost, squares in double precision and elements in their own.
  const double least = std::max(
      smallest_safe_norm,
      static_cast<double>(std::numeric_limits<Real<T>>::min() / std::numeric_limits<Real<T>>::epsilon()));
  const double length = std::ldexp(scaled_norm(power, r), -power);
  // A column alone may be rounded otherwise, so that cancellation to zero leaves what can be squared.
  if (length == 0 || (residual_norm < smallest_safe_norm && length >= least)) return false;
  A.apply_adjoint(T(1), r, T(0), s);
  const double gradient = std::ldexp(scaled_norm(most, s), -most);
  if (residual_norm >= smallest_safe_norm && std::min(gradient, gradient * residual_norm) >= least)
    return false;
  return gradient != 0;
}

#define GRIDLOPS_INSTANTIATE(T)                                                                              \
  template bool norm_is_lost(const LinearOperator<T>&, const ConstDistMatrix<T>&, const ConstDistMatrix<T>*, \
                             Index, double);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
