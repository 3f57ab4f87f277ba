// SPDX-License-Identifier: BSD-3-Clause
#include "local/host_kernels.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>
#include <vector>

#include "base/at_work.hpp"
#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "local/products/narrow_matrix.hpp"
#include "local/products/packed_matrix.hpp"
#include "local/threads.hpp"

namespace gridlops {
namespace {

/// a̅·b in double precision.
template <Scalar T>
constexpr Accumulator<T> dot_term(T a, T b) {
  return product(conjugate(static_cast<Accumulator<T>>(a)), static_cast<Accumulator<T>>(b));
}

template <Scalar T>
constexpr double norm_term(T a) {
  const auto x = static_cast<Accumulator<T>>(a);
  if constexpr (is_complex<T>) {
    return x.real() * x.real() + x.imag() * x.imag();
  } else {
    return x * x;
  }
}

/// |a|. The squares of single precision are exact in double precision, and do not overflow there.
template <Scalar T>
double magnitude(T a) {
  if constexpr (std::same_as<T, std::complex<float>>) return std::sqrt(norm_term(a));
  return static_cast<double>(std::abs(a));
}

/// term(0) + … + term(n − 1), in independent partial sums that the compiler can vectorise without reordering.
template <class Term>
auto sum_of(Index n, Term&& term) {
  constexpr Index lanes = 8;
  using Sum = decltype(term(Index{0}));
  std::array<Sum, lanes> sums{};
  Index i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (Index lane = 0; lane < lanes; ++lane) sums[at(lane)] += term(i + lane);
  }
  for (; i < n; ++i) sums[0] += term(i);
  for (std::size_t half = lanes / 2; half > 0; half /= 2) {
    for (std::size_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
  }
  return sums[0];
}

/// The magnitude that remains of an element of magnitude m > 0 under a column's threshold t. The comparisons
/// keep NaN as NaN.
class Shrinkage {
 public:
  Shrinkage(Threshold kind, double t)
      : kind_(kind),
        t_(t),
        none_below_(kind == Threshold::soft   ? t
                    : kind == Threshold::hard ? std::sqrt(2 * t)
                                              : std::cbrt(54.0) / 4 * std::cbrt(t) * std::cbrt(t)) {}

  double operator()(double m) const {
    if (m <= none_below_) return 0;
    if (kind_ == Threshold::soft) return m - t_;
    if (kind_ == Threshold::hard) return m;
    const double scaled = m / 3, phi = std::acos(t_ / 8 / (scaled * std::sqrt(scaled)));
    return 2.0 / 3 * m * (1 + std::cos(2.0 / 3 * (std::numbers::pi - phi)));
  }

 private:
  Threshold kind_;
  double t_, none_below_;
};

template <Scalar T>
T shrunk(const Shrinkage& shrink, T x) {
  const double m = magnitude(x);
  if (m == 0) return T(0);
  const double kept = shrink(m);
  if (kept == 0) return T(0);
  if (kept == m) return x;
  if constexpr (is_complex<T>) {
    return x * static_cast<Real<T>>(kept / m);
  } else {
    return std::copysign(static_cast<T>(kept), x);
  }
}

/// Calls work(x, y, length) for parts that are contiguous in both matrices.
template <Scalar T, class Function>
void for_each_run(MatrixView<const T> X, MatrixView<T> Y, Function&& work) {
  const bool is_one = X.contiguous() && Y.contiguous();
  for_each_piece(is_one ? Y.size() : Y.rows, is_one ? 1 : Y.cols, [&](Range rows, Index j) {
    work(X.column(j) + rows.begin, Y.column(j) + rows.begin, rows.size);
  });
}

/// sumsⱼ ← Σᵢ term(j)(i) for all rows i: piece by piece, whatever thread sums a piece.
template <class Sum, class Term>
void sum_columns(Index rows, Index cols, Sum* sums, Term&& term) {
  std::vector<Sum> of_pieces(at(pieces_of(rows) * cols));
  for_each_piece(rows, cols, [&](Range piece, Index j) {
    of_pieces[at(j * pieces_of(rows) + piece.begin / piece_rows)] =
        sum_of(piece.size, [of_row = term(j), piece](Index i) { return of_row(piece.begin + i); });
  });
  for (Index j = 0; j < cols; ++j)
    sums[j] = std::accumulate(of_pieces.begin() + j * pieces_of(rows),
                              of_pieces.begin() + (j + 1) * pieces_of(rows), Sum(0));
}

template <Scalar T>
bool few_columns_gemm_is_wanted(Op op, Index rows, Index cols, Index columns) {
  static const bool blas_has_one_thread = blas_info().threads == 1 || threads_per_rank() > 1;
  const KernelChoice& choice = kernel_choice();
  switch (choice.use) {
    case KernelChoice::Use::never:
      return false;
    case KernelChoice::Use::wherever_possible:
      return rows > 0 && cols > 0;
    case KernelChoice::Use::where_faster:
      break;
  }
  return blas_has_one_thread && few_columns_gemm_is_faster<T>(op, rows, cols, columns, *choice.set);
}

}  // namespace

template <Scalar T>
void HostKernels<T>::gemm(Op op_a, Op op_b, T alpha, MatrixView<const T> A, MatrixView<const T> B, T beta,
                          MatrixView<T> C) const {
  const AtWork at_work;
  if (op_b == Op::none && alpha != T(0) && few_columns_gemm_is_wanted<T>(op_a, A.rows, A.cols, B.cols)) {
    few_columns_gemm(op_a, alpha, A, B, beta, C, *kernel_choice().set, false);
  } else {
    host_gemm(op_a, op_b, alpha, A, B, beta, C, blas_limit());
  }
}

template <Scalar T>
void HostKernels<T>::gemm_batched(Index count, Op op_a, Op op_b, T alpha, MatrixBatch<const T> A,
                                  MatrixBatch<const T> B, T beta, MatrixBatch<T> C) const {
  const AtWork at_work;
  const Index inner = op_a == Op::none ? A.first.cols : A.first.rows;
  for_each_of(count, static_cast<double>(count) * product_flops<T>(C.first.rows, inner, C.first.cols),
              [&](Index k) { gemm(op_a, op_b, alpha, A[k], B[k], beta, C[k]); });
}

template <Scalar T>
Index HostKernels<T>::narrow_strip(Index rows) const {
  return gridlops::narrow_strip<T>(rows, *kernel_choice().set);
}

template <Scalar T>
void HostKernels<T>::narrow_gemm(Op op, T alpha, std::span<const NarrowMatrix<T>> A, MatrixView<const T> X,
                                 T beta, MatrixView<T> Y) const {
  gridlops::narrow_gemm(op, alpha, A, X, beta, Y, *kernel_choice().set);
}

template <Scalar T>
void HostKernels<T>::copy(MatrixView<const T> X, MatrixView<T> Y) const {
  for_each_run(X, Y, [](const T* x, T* y, Index n) { std::copy_n(x, n, y); });
}

template <Scalar T>
void HostKernels<T>::fill(T value, MatrixView<T> X) const {
  for_each_run<T>(X, X, [=](const T*, T* x, Index n) { std::fill_n(x, n, value); });
}

template <Scalar T>
void HostKernels<T>::add(T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y) const {
  for_each_run(X, Y, [=](const T* x, T* y, Index n) {
    if (beta == T(0)) {
      for (Index i = 0; i < n; ++i) y[i] = product(alpha, x[i]);
    } else {
      for (Index i = 0; i < n; ++i) y[i] = product(alpha, x[i]) + product(beta, y[i]);
    }
  });
}

template <Scalar T>
void HostKernels<T>::diagonal_multiply(T alpha, const T* d, bool conjugate_d, MatrixView<const T> X, T beta,
                                       MatrixView<T> Y) const {
  const auto scaled = [=](Index i, T x) {
    return product(alpha, product(conjugate_d ? conjugate(d[i]) : d[i], x));
  };
  for_each_piece(Y.rows, Y.cols, [&](Range rows, Index j) {
    const T* x = X.column(j);
    T* y = Y.column(j);
    if (beta == T(0)) {
      for (Index i = rows.begin; i < rows.end(); ++i) y[i] = scaled(i, x[i]);
    } else {
      for (Index i = rows.begin; i < rows.end(); ++i) y[i] = scaled(i, x[i]) + product(beta, y[i]);
    }
  });
}

namespace {

/// Updates rows of column j.
template <Scalar T>
void update_rows(const BlockUpdate<T>& update, Range rows, Index j) {
  const T factor = update.alpha[j];
  const T* x = update.X.column(j);
  T* y = update.Y.column(j);
  switch (update.kind) {
    case UpdateKind::axpy:
      for (Index i = rows.begin; i < rows.end(); ++i) y[i] += product(factor, x[i]);
      break;
    case UpdateKind::xpby:
      if (factor == T(0)) {
        std::copy_n(x + rows.begin, rows.size, y + rows.begin);
      } else {
        for (Index i = rows.begin; i < rows.end(); ++i) y[i] = x[i] + product(factor, y[i]);
      }
      break;
    case UpdateKind::scale:
      for (Index i = rows.begin; i < rows.end(); ++i) y[i] = product(factor, y[i]);
      break;
  }
}

}  // namespace

template <Scalar T>
void HostKernels<T>::column_updates(std::span<const BlockUpdate<T>> updates) const {
  Index rows = 0, cols = 0;
  for (const BlockUpdate<T>& update : updates) {
    rows = std::max(rows, update.Y.rows);
    cols = std::max(cols, update.Y.cols);
  }
  // Rows are few enough for a cache, in which one update finds what another has left.
  for_each_piece(rows, cols, [=](Range piece, Index j) {
    for (const BlockUpdate<T>& update : updates) {
      const Range here{piece.begin, std::min(piece.end(), update.Y.rows) - piece.begin};
      if (here.size > 0 && j < update.Y.cols) update_rows(update, here, j);
    }
  });
}

template <Scalar T>
void HostKernels<T>::column_threshold(Threshold kind, const double* t, MatrixView<T> X) const {
  for_each_piece(X.rows, X.cols, [=](Range rows, Index j) {
    const Shrinkage shrink(kind, t[j]);
    T* x = X.column(j);
    for (Index i = rows.begin; i < rows.end(); ++i) x[i] = shrunk(shrink, x[i]);
  });
}

namespace {

template <Scalar T>
void compute_power_sums(double p, MatrixView<const T> X, double* sums) {
  const auto sum = [X, sums](const auto& power) {
    sum_columns(X.rows, X.cols, sums, [=](Index j) {
      return [x = X.column(j), power](Index i) { return power(magnitude(x[i])); };
    });
  };
  if (p == 0) return sum([](double m) { return m == 0 ? 0.0 : 1.0; });
  if (p == 0.5) return sum([](double m) { return std::sqrt(m); });
  if (p == 1) return sum([](double m) { return m; });
  if (!std::isinf(p)) return sum([p](double m) { return std::pow(m, p); });
  for_each_of(X.cols, 8.0 * static_cast<double>(X.size()), [=](Index j) {
    double most = 0;
    for (Index i = 0; i < X.rows; ++i) {
      const double m = magnitude(X(i, j));
      most = m > most || std::isnan(m) ? m : most;
    }
    sums[j] = most;
  });
}

}  // namespace

template <Scalar T>
void HostKernels<T>::column_sums(std::span<const ColumnTerm<T>> terms) const {
  for (const ColumnTerm<T>& term : terms) {
    const MatrixView<const T> X = term.X, Y = term.Y;
    switch (term.kind) {
      case SumKind::dots:
        sum_columns(X.rows, X.cols, reinterpret_cast<Accumulator<T>*>(term.sums), [=](Index j) {
          return [x = X.column(j), y = Y.column(j)](Index i) { return dot_term(x[i], y[i]); };
        });
        break;
      case SumKind::norms_squared:
        sum_columns(X.rows, X.cols, term.sums,
                    [=](Index j) { return [x = X.column(j)](Index i) { return norm_term(x[i]); }; });
        break;
      case SumKind::power_sums:
        compute_power_sums(term.p, X, term.sums);
        break;
    }
  }
}

template <Scalar T>
void HostKernels<T>::clip(double lower, double upper, MatrixView<T> X) const {
  const auto least = static_cast<Real<T>>(lower), most = static_cast<Real<T>>(upper);
  const auto clipped = [least, most](Real<T> x) { return x < least ? least : x > most ? most : x; };
  for_each_run<T>(X, X, [clipped](const T*, T* x, Index n) {
    auto* const reals = reinterpret_cast<Real<T>*>(x);
    const Index parts = is_complex<T> ? 2 * n : n;
    for (Index i = 0; i < parts; ++i) reals[i] = clipped(reals[i]);
  });
}

#define GRIDLOPS_INSTANTIATE(T) template class HostKernels<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
