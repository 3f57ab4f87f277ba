// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <limits>

#include "cuda/kernels/complex.hpp"
#include "gridlops/comm/communicator.hpp"
#include "gridlops/local/backend.hpp"

// The work of kernels on one element, or the contribution of one element to a sum. parallel.hpp spreads the
// elements over threads. operands() names what a kernel reads and writes, for tools that check that.

namespace gridlops::cuda {

template <class T>
struct Copy {
  MatrixView<const T> X;
  MatrixView<T> Y;

  template <class Visitor>
  void operands(Visitor&& visit) {
    visit.reads(X);
    visit.writes(Y);
  }
  __host__ __device__ void operator()(Index i, Index j) const { Y(i, j) = X(i, j); }
};

template <class T>
struct Fill {
  T value;
  MatrixView<T> X;

  template <class Visitor>
  void operands(Visitor&& visit) {
    visit.writes(X);
  }
  __host__ __device__ void operator()(Index i, Index j) const { X(i, j) = value; }
};

template <class T>
struct Add {
  T alpha;
  MatrixView<const T> X;
  T beta;
  MatrixView<T> Y;

  template <class Visitor>
  void operands(Visitor&& visit) {
    visit.reads(X);
    visit.writes(Y);
  }
  __host__ __device__ void operator()(Index i, Index j) const {
    const T sum = alpha * X(i, j);
    Y(i, j) = is_zero(beta) ? sum : sum + beta * Y(i, j);
  }
};

template <class T>
struct DiagonalMultiply {
  T alpha;
  MatrixView<const T> d;  // one column
  bool conjugate_d;
  MatrixView<const T> X;
  T beta;
  MatrixView<T> Y;

  template <class Visitor>
  void operands(Visitor&& visit) {
    visit.reads(d);
    visit.reads(X);
    visit.writes(Y);
  }
  __host__ __device__ void operator()(Index i, Index j) const {
    const T entry = conjugate_d ? conjugated(d(i, 0)) : d(i, 0);
    const T product = alpha * (entry * X(i, j));
    Y(i, j) = is_zero(beta) ? product : product + beta * Y(i, j);
  }
};

/// One scalar for each of some columns, as an argument of a kernel.
template <class T>
struct ColumnValues {
  static constexpr Index most = 2048 / sizeof(T);  // a kernel has 4 KiB of arguments
  T value[static_cast<std::size_t>(most)];
};

template <class T>
struct ColumnAxpy {
  ColumnValues<T> alpha;
  MatrixView<const T> X;
  MatrixView<T> Y;

  template <class Visitor>
  void operands(Visitor&& visit) {
    visit.reads(X);
    visit.writes(Y);
  }
  __host__ __device__ void operator()(Index i, Index j) const {
    Y(i, j) = Y(i, j) + alpha.value[j] * X(i, j);
  }
};

template <class T>
struct ColumnXpby {
  MatrixView<const T> X;
  ColumnValues<T> beta;
  MatrixView<T> Y;

  template <class Visitor>
  void operands(Visitor&& visit) {
    visit.reads(X);
    visit.writes(Y);
  }
  __host__ __device__ void operator()(Index i, Index j) const {
    const T b = beta.value[j];
    Y(i, j) = is_zero(b) ? X(i, j) : X(i, j) + b * Y(i, j);
  }
};

template <class T>
struct ColumnScale {
  ColumnValues<T> alpha;
  MatrixView<T> X;

  template <class Visitor>
  void operands(Visitor&& visit) {
    visit.writes(X);
  }
  __host__ __device__ void operator()(Index i, Index j) const { X(i, j) = alpha.value[j] * X(i, j); }
};

/// The magnitude that remains of m > 0 under a threshold. The comparisons keep NaN as NaN.
__host__ __device__ inline double kept_magnitude(Threshold kind, double t, double m) {
  if (kind == Threshold::soft) return m <= t ? 0 : m - t;
  if (kind == Threshold::hard) return m <= std::sqrt(2 * t) ? 0 : m;
  constexpr double pi = 3.14159265358979323846;
  const double root = std::cbrt(t);
  if (m <= std::cbrt(54.0) / 4 * root * root) return 0;
  const double third = m / 3, phi = std::acos(t / 8 / (third * std::sqrt(third)));
  return 2.0 / 3 * m * (1 + std::cos(2.0 / 3 * (pi - phi)));
}

template <class T>
struct ColumnThreshold {
  Threshold kind;
  ColumnValues<double> t;
  MatrixView<T> X;

  template <class Visitor>
  void operands(Visitor&& visit) {
    visit.writes(X);
  }
  __host__ __device__ void operator()(Index i, Index j) const {
    const T x = X(i, j);
    const double m = magnitude(x);
    const double kept = m == 0 ? 0 : kept_magnitude(kind, t.value[j], m);
    if (kept == m) return;
    if constexpr (is_device_complex<T>) {
      X(i, j) = kept == 0 ? T{} : scaled(kept / m, x);
    } else {
      X(i, j) = kept == 0 ? T(0) : static_cast<T>(std::copysign(kept, static_cast<double>(x)));
    }
  }
};

template <class T>
struct Clip {
  RealPart<T> lower, upper;
  MatrixView<T> X;

  template <class Visitor>
  void operands(Visitor&& visit) {
    visit.writes(X);
  }
  __host__ __device__ RealPart<T> clipped(RealPart<T> x) const {
    return x < lower ? lower : x > upper ? upper : x;
  }
  __host__ __device__ void operator()(Index i, Index j) const {
    T& x = X(i, j);
    if constexpr (is_device_complex<T>) {
      x = {clipped(x.re), clipped(x.im)};
    } else {
      x = clipped(x);
    }
  }
};

// The terms of sums over a column.

template <class T>
struct DotTerm {
  MatrixView<const T> X, Y;
  using Sum = Wide<T>;

  template <class Visitor>
  void operands(Visitor&& visit) {
    visit.reads(X);
    visit.reads(Y);
  }
  __host__ __device__ Sum operator()(Index i, Index j) const {
    return conjugated(widened(X(i, j))) * widened(Y(i, j));
  }
};

template <class T>
struct SquareTerm {
  MatrixView<const T> X;
  using Sum = double;

  template <class Visitor>
  void operands(Visitor&& visit) {
    visit.reads(X);
  }
  __host__ __device__ Sum operator()(Index i, Index j) const { return squared(X(i, j)); }
};

template <class T>
struct PowerTerm {
  double p;
  MatrixView<const T> X;
  using Sum = double;

  template <class Visitor>
  void operands(Visitor&& visit) {
    visit.reads(X);
  }
  __host__ __device__ Sum operator()(Index i, Index j) const {
    const double m = magnitude(X(i, j));
    if (p == 0) return m == 0 ? 0 : 1;
    if (p == 0.5) return std::sqrt(m);
    return p == 1 ? m : std::pow(m, p);
  }
};

/// A "sum" that is the larger of two numbers ≥ 0; NaN if one is NaN.
struct Largest {
  double value;
  friend __host__ __device__ Largest operator+(Largest a, Largest b) {
    return a.value < b.value || b.value != b.value ? b : a;
  }
};

template <class T>
struct MagnitudeTerm {
  MatrixView<const T> X;
  using Sum = Largest;

  template <class Visitor>
  void operands(Visitor&& visit) {
    visit.reads(X);
  }
  __host__ __device__ Sum operator()(Index i, Index j) const { return {magnitude(X(i, j))}; }
};

/// Several of such sums, which one launch computes: each block of threads adds a share of a column's terms,
/// and the last block of a column adds the shares, in their order.
template <class T>
struct SumLaunch {
  static constexpr int most = 4;

  struct Term {
    SumKind kind;
    MatrixView<const T> X, Y;
    double p;
    Index shares;       // of a column
    void* partial;      // shares × columns
    void* sums;         // one for each column
    unsigned* tickets;  // one for each column: 0 before and after
  };
  int count = 0;
  Term terms[most] = {};

  /// Where a sum's shares go, and the result.
  template <class Sum>
  struct Output {
    Index rows;
    MatrixView<Sum> partial, sums;  // sums has one column
    unsigned* tickets;
  };

  __host__ __device__ Index blocks(int t) const { return terms[t].shares * terms[t].X.cols; }

  /// Calls work(term, output) with the terms of sum t.
  template <class Work>
  __host__ __device__ void with(int t, const Work& work) const {
    const Term& one = terms[t];
    if (one.kind == SumKind::dots) return work(DotTerm<T>{one.X, one.Y}, output<Wide<T>>(one));
    if (one.kind == SumKind::norms_squared) return work(SquareTerm<T>{one.X}, output<double>(one));
    if (one.p <= std::numeric_limits<double>::max())
      return work(PowerTerm<T>{one.p, one.X}, output<double>(one));
    work(MagnitudeTerm<T>{one.X}, output<Largest>(one));
  }

  template <class Visitor>
  void operands(Visitor&& visit) {
    for (int t = 0; t < count; ++t) {
      Term& one = terms[t];
      const bool is_dot = one.kind == SumKind::dots;
      visit.reads(one.X);
      if (is_dot) visit.reads(one.Y);
      is_dot ? visit_outputs<Wide<T>>(one, visit) : visit_outputs<double>(one, visit);
    }
  }

 private:
  template <class Sum>
  __host__ __device__ Output<Sum> output(const Term& one) const {
    return {one.X.rows,
            {static_cast<Sum*>(one.partial), one.shares, one.X.cols},
            {static_cast<Sum*>(one.sums), one.X.cols, 1},
            one.tickets};
  }
  template <class Sum, class Visitor>
  void visit_outputs(Term& one, Visitor&& visit) {
    auto [rows, partial, sums, tickets] = output<Sum>(one);
    visit.writes(sums);
    one.sums = sums.data;
    if (one.shares == 1) return;
    visit.writes(partial);
    one.partial = partial.data;
    MatrixView<unsigned> zeros(tickets, one.X.cols, 1);
    visit.reads(zeros);
    one.tickets = zeros.data;
  }
};

/// ((x₀ ∘ x₁) ∘ x₂) ∘ …, with x of rank r in column r.
template <class T>
struct RankFold {
  ReduceOp op;
  MatrixView<const T> contributions;
  MatrixView<T> result;  // one column

  template <class Visitor>
  void operands(Visitor&& visit) {
    visit.reads(contributions);
    visit.writes(result);
  }
  __host__ __device__ void operator()(Index i, Index) const {
    T value = contributions(i, 0);
    for (Index rank = 1; rank < contributions.cols; ++rank) {
      const T next = contributions(i, rank);
      switch (op) {
        case ReduceOp::sum:
          value = static_cast<T>(value + next);
          break;
        case ReduceOp::prod:
          value = static_cast<T>(value * next);
          break;
        case ReduceOp::min:
          value = next < value ? next : value;
          break;
        case ReduceOp::max:
          value = value < next ? next : value;
          break;
      }
    }
    result(i, 0) = value;
  }
};

}  // namespace gridlops::cuda
