// SPDX-License-Identifier: BSD-3-Clause
#include "solve/problem_scale.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "comm/failure/failure.hpp"
#include "dist/column_powers.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/dist/column_arithmetic.hpp"

namespace gridlops {

template <Scalar T>
int change_of_power(double norm, int power, int tries) {
  constexpr int far = sizeof(Real<T>) == 4 ? 60 : 600, farthest = 2 * far;
  if (std::abs(power) >= farthest) return 0;
  if (norm == 0) return tries == 0 ? far : -power;  // the data may be orthogonal to the range of any A
  if (!std::isfinite(norm)) return -far;
  return std::abs(std::ilogb(norm)) > unscaled_powers<T> ? -std::ilogb(norm) / 2 * 2 : 0;
}

template <Scalar T>
void ScaledOperator<T>::set_power(int power, const Partition& columns) {
  power_ = power;
  half_ = to_scalar<T>(std::ldexp(1.0, power / 2));
  if (power == 0) return;
  const ProcessGrid& grid = *domain().grid;
  attempt(grid.comm(), [&] {
    const auto elements = [&](const Space& space) {
      return space.local_rows() * space.local_columns(columns);
    };
    memory_.reserve(grid.backend(), std::max(elements(domain()), elements(range())));
  });
}

template <Scalar T>
DistMatrix<T> ScaledOperator<T>::scaled(const Space& space, const ConstDistMatrix<T>& X) const {
  DistMatrix<T> result = space.matrix(X.layout().cols.partition, memory_);
  copy(X, result);
  result *= std::real(half_);
  return result;
}

template <Scalar T>
void ScaledOperator<T>::set_weights(const ConstDistMatrix<T>& W, const ActiveColumns& places) {
  weighted_.reserve(W.grid()->backend(), W.local().rows * W.local().cols);
  W_ = &W;
  places_ = &places;
}

/// Column k of the operands belongs to the column of W that is at place k. Neighbours in both go in one call,
/// where rows are not padded.
template <Scalar T>
void ScaledOperator<T>::weigh(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const {
  const Kernels<T>& kernels = Y.grid()->backend()->template kernels<T>();
  const MatrixView<const T> w = W_->local(), x = X.local();
  const MatrixView<T> y = Y.local();
  const std::vector<Index>& column = places_->order(Y.grid()->my_part(Y.layout().cols.axis));
  const bool is_dense = w.stride == w.rows && x.stride == x.rows && y.stride == y.rows;
  for (Index k = 0, next; k < y.cols; k = next) {
    for (next = k + 1; is_dense && next < y.cols && column[at(next)] == column[at(next - 1)] + 1;) ++next;
    const Index rows = y.rows * (next - k);
    kernels.diagonal_multiply(alpha, w.column(column[at(k)]), false, {x.column(k), rows, 1}, beta,
                              {y.column(k), rows, 1});
  }
}

template <Scalar T>
void ScaledOperator<T>::apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const {
  const auto multiply = [&](T factor, T keep, DistMatrix<T>& result) {
    if (power_ == 0) return A_->apply(factor, X, keep, result);
    A_->apply(factor, scaled(domain(), X), keep, result);
  };
  if (W_ == nullptr) return multiply(alpha * half_, beta, Y);
  if (beta == T(0)) {
    multiply(T(1), T(0), Y);
    return weigh(alpha * half_, Y, T(0), Y);
  }
  DistMatrix<T> product = weighted_data(Y);
  multiply(T(1), T(0), product);
  weigh(alpha * half_, product, beta, Y);
}

template <Scalar T>
void ScaledOperator<T>::apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const {
  if (W_ == nullptr) {
    if (power_ == 0) return A_->apply_adjoint(alpha, Y, beta, X);
    return A_->apply_adjoint(alpha * half_, scaled(range(), Y), beta, X);
  }
  DistMatrix<T> weighted = weighted_data(Y);
  weigh(half_, Y, T(0), weighted);
  A_->apply_adjoint(alpha * half_, weighted, beta, X);
}

// If A is to be scaled, AᴴAp may be out of range.
template <Scalar T>
void ScaledOperator<T>::normal_product(const ConstDistMatrix<T>& P, const ConstDistMatrix<T>& R,
                                       DistMatrix<T>& Q, DistMatrix<T>& U, DistMatrix<T>& V) const {
  if (power_ == 0 && W_ == nullptr) return A_->normal_product(P, R, Q, U, V);
  apply(T(1), P, T(0), Q);
  apply_adjoint(T(1), R, T(0), U);
  apply_adjoint(T(1), Q, T(0), V);
}

// Single precision is squared in double precision, but 1/‖A‖² and Aᴴb, of which ε must be a number, too, are
// not.
template <Scalar T>
void require_range_without_scaling(const char* solver, const std::vector<double>& norms,
                                   const ConstDistMatrix<T>& B) {
  constexpr int of_A = sizeof(Real<T>) == 4 ? 44 : 240, of_B = sizeof(Real<T>) == 4 ? 64 : 470,
                of_both = sizeof(Real<T>) == 4 ? 100 : 500;
  constexpr const char* advice =
      "; methods with a penalty do not scale their problems, and squares of their norms would leave the "
      "range of the numbers: multiply A, B, weights and the penalty by constants, so that norms are about 1";
  const std::vector<int> powers = powers_of_columns(B);
  const bool differ = std::adjacent_find(norms.begin(), norms.end(), std::not_equal_to<>()) != norms.end();
  for (std::size_t j = 0; j < powers.size(); ++j) {
    const double norm = norms[j];
    const int power_A = norm > 0 && std::isfinite(norm) ? std::ilogb(norm) : 0;
    require<UsageError>(std::abs(power_A) <= of_A, solver, ": the norm of A is about ", norm,
                        differ ? message(" with the weights of column ", j) : "",
                        ", by an estimate or by the step that is given", advice);
    require<UsageError>(std::abs(powers[j]) <= of_B && std::abs(power_A + powers[j]) <= of_both, solver,
                        ": right-hand side ", j, " has elements of about ", std::ldexp(1.0, powers[j]),
                        norm > 0 ? message(", and the norm of A is about ", norm) : "", advice);
  }
}

#define GRIDLOPS_INSTANTIATE(T)                                                        \
  template class ScaledOperator<T>;                                                    \
  template void require_range_without_scaling(const char*, const std::vector<double>&, \
                                              const ConstDistMatrix<T>&);              \
  template int change_of_power<T>(double, int, int);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
