// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/solve/proximal.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/comm/failure.hpp"
#include "solve/regularised/kept_proximal.hpp"
#include "solve/regularised/proximal_support.hpp"

namespace gridlops {

template <Scalar T>
ColumnScalars ProximalOperator<T>::values(std::span<const ColumnScalars> sums) const {
  ColumnScalars values = sums.front();
  std::vector<double> of_column(sums.size());
  for (Index j = 0; j < values.size(); ++j) {
    for (std::size_t k = 0; k < sums.size(); ++k) of_column[k] = sums[k][j];
    values[j] = value_of(of_column);
  }
  return values;
}

template <Scalar T>
void ProximalOperator<T>::require_any_columns(Index columns, const char* solver) const {
  require<UsageError>(same_for_all_columns_ || columns <= 1, solver, ": ", describe(),
                      " has data for each column, and solvers take columns out as they end; solve for the ",
                      columns, " columns one by one");
}

template <Scalar T>
ColumnScalars value(const ProximalOperator<T>& f, const ConstDistMatrix<T>& X) {
  FailureScope failures;
  std::vector<ColumnSum<T>> terms;
  KeptProximal<T>(ProximalPtr<T>(ProximalPtr<T>(), &f)).append_sums(X, terms);
  std::vector<ColumnScalars> sums(terms.size());
  std::vector<double> none;
  ColumnSums<T>(X.grid()).reduce(terms, sums, none);
  return f.values(sums);
}

template <Scalar T>
void prox_of_conjugate(const ProximalOperator<T>& f, ColumnOperand tau, DistMatrix<T>& X, DistMatrix<T>& W) {
  const ColumnScalars taus = for_columns(tau, X.cols()), inverses = 1 / taus;
  copy(X, W);
  W *= inverses;
  FailureScope failures;
  failures.note_callers_code();
  failures.run([&] { f.prox(inverses, W); });
  X -= taus * W;
  if (X.grid()->is_member()) failures.close(X.grid()->comm());
}

namespace {

template <Scalar T>
class ThresholdPenalty final : public ProximalOperator<T> {
 public:
  ThresholdPenalty(Threshold kind, double sigma) : kind_(kind), sigma_(checked_sigma(sigma)) {}

  std::string describe() const override {
    const char* const kinds[] = {"soft", "hard", "half"};
    return weighted(sigma_, message("the ", kinds[static_cast<int>(kind_)], " threshold"));
  }
  void prox(ColumnOperand tau, DistMatrix<T>& X) const override {
    threshold(kind_, sigma_ * for_columns(tau, X.cols()), X);
  }
  std::vector<ColumnSum<T>> sums(const ConstDistMatrix<T>& X) const override { return {penalty(kind_, X)}; }
  double value_of(std::span<const double> sums) const override { return sigma_ * sums[0]; }

 private:
  Threshold kind_;
  double sigma_;
};

template <Scalar T>
class BoxIndicator final : public ProximalOperator<T> {
 public:
  BoxIndicator(double lower, double upper) : lower_(lower), upper_(upper) {
    require<UsageError>(lower <= upper, "the box from ", lower, " to ", upper,
                        " is empty; the lower bound must not be above the upper one");
  }
  std::string describe() const override { return message("the box from ", lower_, " to ", upper_); }
  void prox(ColumnOperand, DistMatrix<T>& X) const override {
    X.grid()->backend()->template kernels<T>().clip(lower_, upper_, X.local());
  }
  /// ‖x − prox(x)‖².
  std::vector<ColumnSum<T>> sums(const ConstDistMatrix<T>& X) const override {
    DistMatrix<T>& outside = outside_.matrix(X.grid(), X.layout());
    copy(X, outside);
    prox(0, outside);
    outside -= X;
    return {norm2(outside)};
  }
  double value_of(std::span<const double> sums) const override {
    return sums[0] > 0 ? std::numeric_limits<double>::infinity() : sums[0];
  }

 private:
  double lower_, upper_;
  mutable Scratch<T> outside_;
};

template <Scalar T>
class L2Misfit final : public ProximalOperator<T> {
 public:
  L2Misfit(OperatorPtr<T> A, const ConstDistMatrix<T>& B, double sigma, SolveOptions solve)
      : ProximalOperator<T>(false),
        A_(std::move(A)),
        B_(B),
        sigma_(checked_sigma(sigma)),
        solve_(std::move(solve)) {
    A_->range().require_contains(B, "the data of an L2 misfit");
    require<UsageError>(!solve_.damp.any() && !solve_.initial_guess,
                        "the damping and the initial guess of the map of an L2 misfit follow from tau and v; "
                        "its options must not have their own");
  }
  std::string describe() const override {
    return weighted(sigma_, message("the misfit of a ", A_->rows(), " x ", A_->cols(), " operator"));
  }

  void prox(ColumnOperand tau, DistMatrix<T>& X) const override {
    DistMatrix<T>& r = residual(X);
    DistMatrix<T>& Z = correction_.matrix(X.grid(), X.layout());
    const ColumnScalars taus = for_columns(tau, X.cols());
    const std::vector<double>& all = taus.values();
    if (all.empty()) return;
    if (std::equal(all.begin() + 1, all.end(), all.begin())) {
      correct(all.front(), r, Z);
    } else {
      for (Index j = 0; j < X.cols(); ++j) {
        DistMatrix<T> z = column(j, Z);
        correct(taus[j], column(j, r), z);
      }
    }
    X += Z;
  }
  /// ‖A x − b‖².
  std::vector<ColumnSum<T>> sums(const ConstDistMatrix<T>& X) const override { return {norm2(residual(X))}; }
  double value_of(std::span<const double> sums) const override { return 0.5 * sigma_ * sums[0]; }

 private:
  DistMatrix<T>& residual(const ConstDistMatrix<T>& X) const {
    A_->require_operands(X, B_, "an L2 misfit");
    DistMatrix<T>& r = residual_.matrix(B_.grid(), B_.layout());
    copy(B_, r);
    A_->apply(T(-1), X, T(1), r);
    return r;
  }
  /// z ← argmin ‖A z − r‖² + ‖z‖²/(τσ).
  void correct(double tau, const ConstDistMatrix<T>& r, DistMatrix<T>& z) const {
    if (tau * sigma_ == 0) return z.set_zero();
    SolveOptions options = solve_;
    options.damp = 1 / std::sqrt(tau * sigma_);
    cgls(*A_, r, z, options);
  }
  static DistMatrix<T> column(Index j, DistMatrix<T>& X) {
    const Partition& columns = X.layout().cols.partition;
    std::vector<Index> first(at(columns.parts()), 0), sizes = first;
    for (int part = 0; part < columns.parts(); ++part) {
      const Range own = columns.range(part);
      if (j < own.begin || j >= own.end()) continue;
      first[at(part)] = j - own.begin;
      sizes[at(part)] = 1;
    }
    return X.column_slice(first, Partition::with_sizes(sizes));
  }

  OperatorPtr<T> A_;
  ConstDistMatrix<T> B_;
  double sigma_;
  SolveOptions solve_;
  mutable Scratch<T> residual_, correction_;
};

}  // namespace

template <Scalar T>
ProximalPtr<T> threshold_penalty(Threshold kind, double sigma) {
  return std::make_shared<ThresholdPenalty<T>>(kind, sigma);
}

template <Scalar T>
ProximalPtr<T> box(double lower, double upper) {
  return std::make_shared<BoxIndicator<T>>(lower, upper);
}

template <Scalar T>
ProximalPtr<T> l2_misfit(OperatorPtr<T> A, const ConstDistMatrix<T>& B, double sigma, SolveOptions solve) {
  return std::make_shared<L2Misfit<T>>(std::move(A), B, sigma, std::move(solve));
}

#define GRIDLOPS_INSTANTIATE(T)                                                              \
  template class ProximalOperator<T>;                                                        \
  template ColumnScalars value(const ProximalOperator<T>&, const ConstDistMatrix<T>&);       \
  template void prox_of_conjugate(const ProximalOperator<T>&, ColumnOperand, DistMatrix<T>&, \
                                  DistMatrix<T>&);                                           \
  template ProximalPtr<T> threshold_penalty(Threshold, double);                              \
  template ProximalPtr<T> box(double, double);                                               \
  template ProximalPtr<T> l2_misfit(OperatorPtr<T>, const ConstDistMatrix<T>&, double, SolveOptions);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
