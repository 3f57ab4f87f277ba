// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "cuda/kernels/complex.hpp"
#include "gridlops/comm/communicator.hpp"
#include "gridlops/local/backend.hpp"

// The work of kernels on one element. parallel.hpp spreads the elements over threads. operands() names what a
// kernel reads and writes, for tools that check that.

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

/// The numbers of a matrix that is stored in a lower precision.
template <class Stored, class R>
struct Widen {
  MatrixView<const Stored> from;
  MatrixView<R> to;

  template <class Visitor>
  void operands(Visitor&& visit) {
    visit.reads(from);
    visit.writes(to);
  }
  __host__ __device__ void operator()(Index i, Index j) const {
    if constexpr (sizeof(Stored) == 2) {  // bfloat16: the upper half of a float
      const std::uint32_t bits = std::uint32_t{from(i, j)} << 16;
      float number;
      memcpy(&number, &bits, sizeof number);
      to(i, j) = number;
    } else {
      to(i, j) = from(i, j);
    }
  }
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

/// How many launches the scalars of the columns take; one without columns.
template <class Value>
int launches_for(Index columns) {
  constexpr Index most = ColumnValues<Value>::most;
  return columns <= most ? 1 : static_cast<int>((columns + most - 1) / most);
}

/// Several updates of columns, in one launch. One thread makes all changes of an element, one after the
/// other.
template <class T>
struct UpdateLaunch {
  static constexpr int most = 4;
  static constexpr Index most_factors = 3584 / sizeof(T);  // a kernel has 4 KiB of arguments

  struct Update {
    UpdateKind kind;
    MatrixView<const T> X;
    MatrixView<T> Y;
  };
  int count = 0;
  Index rows = 0, cols = 0;  // of the largest
  Update updates[most] = {};
  T factors[static_cast<std::size_t>(most_factors)] = {};  // cols of them for each update

  template <class Visitor>
  void operands(Visitor&& visit) {
    for (int k = 0; k < count; ++k) {
      if (updates[k].kind != UpdateKind::scale) visit.reads(updates[k].X);
      visit.writes(updates[k].Y);
    }
  }
  __host__ __device__ void operator()(Index i, Index j) const {
    for (int k = 0; k < count; ++k) {
      const auto& [kind, X, Y] = updates[k];
      if (i >= Y.rows || j >= Y.cols) continue;
      const T factor = factors[k * cols + j];
      if (kind == UpdateKind::axpy) {
        Y(i, j) = Y(i, j) + factor * X(i, j);
      } else if (kind == UpdateKind::xpby) {
        Y(i, j) = is_zero(factor) ? X(i, j) : X(i, j) + factor * Y(i, j);
      } else {
        Y(i, j) = factor * Y(i, j);
      }
    }
  }
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
