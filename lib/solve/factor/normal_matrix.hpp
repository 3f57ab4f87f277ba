// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/local/buffer.hpp"
#include "gridlops/solve/spectrum.hpp"
#include "solve/factor/gram_matrix.hpp"
#include "solve/factor/qr_of_rows.hpp"
#include "solve/factor/whole_rows.hpp"

namespace gridlops {

/// Throws UsageError unless factors of A with this damping are possible. Not collective.
template <Scalar T>
void require_factor(const LinearOperator<T>& A, double damp) {
  require<UsageError>(std::isfinite(damp) && damp >= 0, "a factor with the damping ", damp,
                      " is impossible; it must be a number that is not negative");
  require<UsageError>(A.domain().grid->backend() == nullptr ||
                          A.domain().grid->backend()->memory_space() == MemorySpace::host,
                      "a factor of an operator of ", A.rows(), " x ", A.cols(),
                      " on GPUs is impossible; make the operator on a grid in host memory");
}

/// 2^(2·power) AᴴA, or AAᴴ where A has fewer rows than columns: its upper triangle, whole on every rank, in
/// the precision of sums. A power other than 0 keeps squares of norms in the range of their type.
template <Scalar T>
class NormalMatrix {
  using Wide = Accumulator<T>;

 public:
  /// damp: a damping that will be added, which decides about the power, too. Not collective. Throws
  /// OutOfMemory on this rank alone.
  NormalMatrix(const LinearOperator<T>& A, double damp)
      : A_(A),
        damp_(damp),
        size_(std::min(A.rows(), A.cols())),
        elements_(A.domain().grid->backend(), size_ * size_) {}

  /// Collective over the grid. Throws InputError, on all ranks, if A is not finite.
  void compute() {
    sum();
    if (!has_range()) {
      choose_power();
      sum();
    }
    require<InputError>(std::isfinite(trace()), no_factor);
  }

  bool of_data() const { return A_.rows() < A_.cols(); }
  Index size() const { return size_; }
  MatrixView<Wide> view() { return elements_.matrix(size_, size_); }
  Buffer<Wide>& elements() { return elements_; }
  int power() const { return power_; }
  /// D, in the units of the matrix.
  double scaled(double damp) const { return std::ldexp(damp, power_); }
  /// ε of the sums.
  double epsilon() const { return epsilon_; }
  /// The smallest singular value of rows that is more than rounding to T, relative to the largest: nε. Of
  /// data ten times as much, since x = Aᴴ y takes rounding of y with ‖A‖, but not so much that corrections,
  /// which leave about 10⁻³ ε²κ³ of b (measured, n from 300 to 1000), would still contract: ε²κ³ ≤ 100.
  double rounding_of_rows() const {
    constexpr auto epsilon = static_cast<double>(std::numeric_limits<Real<T>>::epsilon());
    const double rounding = static_cast<double>(size_) * epsilon;
    return of_data() ? std::min(10 * rounding, std::cbrt(epsilon * epsilon / 100)) : rounding;
  }
  /// The length of the longest column, or row, of 2^power A.
  double longest() const { return std::sqrt(longest_squared_); }
  /// Whether it was summed from the rows, or columns, of A; if not, by products with unit vectors.
  bool has_rows() const { return matrix_with_rows(A_, op()) != nullptr; }
  /// The matrix becomes the triangle of the QR factorisation of 2^power·[op(A); D·I] (collective over the
  /// grid), if it has rows.
  void factor_rows(double damp) {
    qr_of_rows(*matrix_with_rows(A_, op()), op(), *A_.domain().grid, power_, damp, view());
  }

 private:
  /// The matrix is op(A)ᴴ op(A).
  Op op() const { return of_data() ? Op::adjoint : Op::none; }
  void sum() {
    epsilon_ = gram_matrix(A_, op(), power_, view());
    longest_squared_ = 0;
    for (Index j = 0; j < size_; ++j) longest_squared_ = std::max(longest_squared_, std::real(view()(j, j)));
  }
  double trace() {
    double trace = 0;
    for (Index j = 0; j < size_; ++j) trace += std::real(view()(j, j));
    return trace;
  }
  /// Whether squares of norms, and what Cholesky makes of them, are in the range of the sums.
  bool has_range() const {
    constexpr double of_single = 1e-10;
    const double most = epsilon_ > of_single ? 1e25 : 1e200;
    return size_ == 0 ||
           (longest_squared_ > 1 / most && longest_squared_ < most && scaled(damp_) < std::sqrt(most));
  }
  void choose_power() {
    const double norm = std::hypot(estimate_norm(A_), damp_);
    require<InputError>(std::isfinite(norm), no_factor);
    // 2^power is a number, too.
    constexpr int most = std::numeric_limits<double>::max_exponent - 1;
    if (norm > 0) power_ = std::clamp(-std::ilogb(norm), -most, most);
  }

  static constexpr const char* no_factor =
      "A has no factor, since it has elements that are not finite, or so large that its norm is not";

  const LinearOperator<T>& A_;
  const double damp_;
  const Index size_;
  Buffer<Wide> elements_;
  int power_ = 0;
  double epsilon_ = 0;
  double longest_squared_ = 0;
};

}  // namespace gridlops
