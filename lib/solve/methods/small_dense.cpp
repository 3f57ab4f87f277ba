// SPDX-License-Identifier: BSD-3-Clause
#include "solve/methods/small_dense.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/numbers.hpp"

namespace gridlops {

namespace {

/// a·b. The product of std::complex would call a slow routine that repairs infinities.
double times(double a, double b) { return a * b; }
std::complex<double> times(std::complex<double> a, std::complex<double> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}
double squared(double a) { return a * a; }
double squared(std::complex<double> a) { return a.real() * a.real() + a.imag() * a.imag(); }

/// xᴴ y. Each addition waits for the one before, so eight sums are on their way.
template <Scalar S>
S dot(Index n, const S* x, const S* y) {
  std::array<S, 8> sums{};
  Index i = 0;
  for (; i + 8 <= n; i += 8)
    for (Index k = 0; k < 8; ++k) sums[at(k)] += times(conjugate(x[i + k]), y[i + k]);
  for (; i < n; ++i) sums[0] += times(conjugate(x[i]), y[i]);
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

template <Scalar S>
void axpy(Index n, S alpha, const S* x, S* y) {
  for (Index i = 0; i < n; ++i) y[i] += times(alpha, x[i]);
}

/// The numbers of A's rows, those with the largest elements first.
template <Scalar S>
std::vector<Index> by_falling_size(const SmallMatrix<S>& A) {
  std::vector<double> sizes(at(A.rows()), 0.0);
  for (Index j = 0; j < A.cols(); ++j)
    for (Index i = 0; i < A.rows(); ++i) {
      const double size = std::abs(A(i, j));
      sizes[at(i)] =
          std::isnan(size) ? std::numeric_limits<double>::infinity() : std::max(sizes[at(i)], size);
    }
  std::vector<Index> order(sizes.size());
  std::iota(order.begin(), order.end(), Index{0});
  std::stable_sort(order.begin(), order.end(), [&](Index i, Index j) { return sizes[at(i)] > sizes[at(j)]; });
  return order;
}

template <Scalar S>
SmallMatrix<S> with_rows(const std::vector<Index>& order, const SmallMatrix<S>& A) {
  SmallMatrix<S> result(A.rows(), A.cols());
  for (Index j = 0; j < A.cols(); ++j)
    for (Index i = 0; i < A.rows(); ++i) result(i, j) = A(order[at(i)], j);
  return result;
}

}  // namespace

template <Scalar S>
SmallMatrix<S> SmallMatrix<S>::identity(Index size) {
  SmallMatrix result(size, size);
  for (Index i = 0; i < size; ++i) result(i, i) = S(1);
  return result;
}

template <Scalar S>
SmallMatrix<S> SmallMatrix<S>::row_block(Range rows) const {
  SmallMatrix result(rows.size, cols_);
  for (Index j = 0; j < cols_; ++j) std::copy_n(column(j) + rows.begin, rows.size, result.column(j));
  return result;
}

template <Scalar S>
double SmallMatrix<S>::column_norm_squared(Index j) const {
  double sum = 0;
  for (Index i = 0; i < rows_; ++i) sum += squared((*this)(i, j));
  return sum;
}

template <Scalar S>
SmallMatrix<S> adjoint(const SmallMatrix<S>& A) {
  SmallMatrix<S> result(A.cols(), A.rows());
  for (Index j = 0; j < A.cols(); ++j)
    for (Index i = 0; i < A.rows(); ++i) result(j, i) = conjugate(A(i, j));
  return result;
}

template <Scalar S>
SmallMatrix<S> product(const SmallMatrix<S>& A, const SmallMatrix<S>& B) {
  SmallMatrix<S> result(A.rows(), B.cols());
  for (Index j = 0; j < B.cols(); ++j) {
    S* const y = result.column(j);
    Index k = 0;
    for (; k + 4 <= B.rows(); k += 4) {
      // Four columns of A for one sweep over y.
      const S *a = A.column(k), *b = A.column(k + 1), *c = A.column(k + 2), *d = A.column(k + 3);
      const S x = B(k, j), u = B(k + 1, j), v = B(k + 2, j), w = B(k + 3, j);
      for (Index i = 0; i < A.rows(); ++i)
        y[i] = y[i] + times(x, a[i]) + times(u, b[i]) + times(v, c[i]) + times(w, d[i]);
    }
    for (; k < B.rows(); ++k) axpy(A.rows(), B(k, j), A.column(k), y);
  }
  return result;
}

template <Scalar S>
SmallMatrix<S> stacked(const SmallMatrix<S>& A, const SmallMatrix<S>& B) {
  SmallMatrix<S> result(A.rows() + B.rows(), A.cols());
  for (Index j = 0; j < A.cols(); ++j) {
    std::copy_n(A.column(j), A.rows(), result.column(j));
    std::copy_n(B.column(j), B.rows(), result.column(j) + A.rows());
  }
  return result;
}

template <Scalar S>
SmallMatrix<S> inverse_upper(const SmallMatrix<S>& R, double smallest) {
  const Index n = R.cols();
  SmallMatrix<S> inverse = SmallMatrix<S>::identity(n);
  for (Index j = 0; j < n; ++j) {
    S* x = inverse.column(j);
    for (Index i = j; i >= 0; --i) {
      x[i] = std::abs(R(i, i)) > smallest ? x[i] / R(i, i) : S(0);
      axpy(i, -x[i], R.column(i), x);
    }
  }
  return inverse;
}

template <Scalar S>
GramFactors<S> GramFactors<S>::select(const std::vector<Index>& columns) const {
  GramFactors result;
  result.C = SmallMatrix<S>(C.rows(), static_cast<Index>(columns.size()));
  result.R = SmallMatrix<S>(static_cast<Index>(columns.size()), R.cols());
  for (std::size_t k = 0; k < columns.size(); ++k) {
    const auto to = static_cast<Index>(k);
    std::copy_n(C.column(columns[k]), C.rows(), result.C.column(to));
    for (Index j = 0; j < R.cols(); ++j) result.R(to, j) = R(columns[k], j);
    result.origins.push_back(origins[at(columns[k])]);
    result.lengths.push_back(lengths[at(columns[k])]);
  }
  return result;
}

template <Scalar S>
GramFactors<S> factor_gram(const SmallMatrix<S>& G, const std::vector<double>& floors,
                           const std::vector<double>& units) {
  const Index n = G.cols();
  std::vector<double> norms(at(n), 0.0), rests(at(n), 1.0);
  const auto length = [&](Index j) {
    return norms[at(j)] * std::sqrt(std::max(rests[at(j)], 0.0)) * units[at(j)];
  };
  std::vector<Index> waiting;
  for (Index j = 0; j < n; ++j) {
    const double square = std::real(G(j, j));
    norms[at(j)] = square <= 0 ? 0 : std::sqrt(square);
    if (norms[at(j)] != 0) waiting.push_back(j);  // NaN too, so that it shows in the result
  }
  GramFactors<S> factors;
  const auto rank = static_cast<Index>(waiting.size());
  SmallMatrix<S> R(rank, n);  // of the scaled columns
  for (Index r = 0; r < rank; ++r) {
    const auto longest = std::max_element(waiting.begin(), waiting.end(),
                                          [&](Index i, Index j) { return length(i) < length(j); });
    const Index p = *longest;
    waiting.erase(longest);
    const bool is_hidden = rests[at(p)] <= floors[at(p)];
    const double pivot = std::sqrt(is_hidden ? floors[at(p)] : rests[at(p)]);
    R(r, p) = pivot;
    for (const Index j : waiting) {
      if (is_hidden) break;
      const S scaled = G(p, j) / norms[at(p)] / norms[at(j)];
      R(r, j) = (scaled - dot(r, R.column(p), R.column(j))) / pivot;
      rests[at(j)] -= squared(R(r, j));
    }
    factors.origins.push_back(p);
    factors.lengths.push_back(pivot * norms[at(p)]);
  }
  SmallMatrix<S> triangle(rank, rank);
  for (Index r = 0; r < rank; ++r) std::copy_n(R.column(factors.origins[at(r)]), rank, triangle.column(r));
  const SmallMatrix<S> inverse = inverse_upper(triangle);
  factors.C = SmallMatrix<S>(n, rank);
  for (Index r = 0; r < rank; ++r) {
    const Index p = factors.origins[at(r)];
    for (Index j = 0; j < rank; ++j) factors.C(p, j) = inverse(r, j) / norms[at(p)];
  }
  for (Index j = 0; j < n; ++j)
    for (Index r = 0; r < rank; ++r) R(r, j) *= norms[at(j)];
  factors.R = std::move(R);
  return factors;
}

template <Scalar S>
HouseholderQr<S>::HouseholderQr(const SmallMatrix<S>& A)
    : order_(by_falling_size(A)), reflected_(with_rows(order_, A)), directions_(A.rows(), A.cols()) {
  for (Index k = 0; k < reflected_.cols(); ++k) {
    const Index m = reflected_.rows() - k;
    S* v = directions_.column(k) + k;
    std::copy_n(reflected_.column(k) + k, m, v);
    const double norm = std::sqrt(std::real(dot(m, v, v)));
    const double first = std::abs(v[0]);
    if (norm == 0) continue;
    v[0] += first > 0 ? v[0] / first * norm : S(norm);
    const double length = std::sqrt(std::real(dot(m, v, v)));
    for (Index i = 0; i < m; ++i) v[i] /= length;
    reflect(k, reflected_, k);
  }
}

template <Scalar S>
void HouseholderQr<S>::reflect(Index k, SmallMatrix<S>& B, Index first_column) const {
  const Index m = B.rows() - k;
  const S* v = directions_.column(k) + k;
  for (Index j = first_column; j < B.cols(); ++j)
    axpy(m, -2.0 * dot(m, v, B.column(j) + k), v, B.column(j) + k);
}

template <Scalar S>
SmallMatrix<S> HouseholderQr<S>::upper() const {
  SmallMatrix<S> R(reflected_.cols(), reflected_.cols());
  for (Index j = 0; j < R.cols(); ++j) std::copy_n(reflected_.column(j), j + 1, R.column(j));
  return R;
}

template <Scalar S>
SmallMatrix<S> HouseholderQr<S>::apply_adjoint(const SmallMatrix<S>& B) const {
  SmallMatrix<S> result = with_rows(order_, B);
  for (Index k = 0; k < directions_.cols(); ++k) reflect(k, result, 0);
  return result;
}

template class SmallMatrix<double>;
template class SmallMatrix<std::complex<double>>;
template SmallMatrix<double> adjoint(const SmallMatrix<double>&);
template SmallMatrix<std::complex<double>> adjoint(const SmallMatrix<std::complex<double>>&);
template SmallMatrix<double> product(const SmallMatrix<double>&, const SmallMatrix<double>&);
template SmallMatrix<std::complex<double>> product(const SmallMatrix<std::complex<double>>&,
                                                   const SmallMatrix<std::complex<double>>&);
template SmallMatrix<double> stacked(const SmallMatrix<double>&, const SmallMatrix<double>&);
template SmallMatrix<std::complex<double>> stacked(const SmallMatrix<std::complex<double>>&,
                                                   const SmallMatrix<std::complex<double>>&);
template SmallMatrix<double> inverse_upper(const SmallMatrix<double>&, double);
template SmallMatrix<std::complex<double>> inverse_upper(const SmallMatrix<std::complex<double>>&, double);
template struct GramFactors<double>;
template struct GramFactors<std::complex<double>>;
template GramFactors<double> factor_gram(const SmallMatrix<double>&, const std::vector<double>&,
                                         const std::vector<double>&);
template GramFactors<std::complex<double>> factor_gram(const SmallMatrix<std::complex<double>>&,
                                                       const std::vector<double>&,
                                                       const std::vector<double>&);
template class HouseholderQr<double>;
template class HouseholderQr<std::complex<double>>;

}  // namespace gridlops
