// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <limits>

#include "cuda/kernels/complex.hpp"
#include "gridlops/local/backend.hpp"

// The contribution of one element to a sum over a column, and the sums of one launch: see kernel_bodies.hpp.
// Reasons: docs/decisions/0055-sums-on-the-host.md.

namespace gridlops::cuda {

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

}  // namespace gridlops::cuda
