// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "gridlops/solve/proximal.hpp"
#include "solve/regularised/proximal_support.hpp"

namespace gridlops {

namespace {

/// A vector that stands for the same vector in every column, or nothing.
template <Scalar T>
class CommonColumn {
 public:
  explicit CommonColumn(DistMatrix<T> column) : column_(std::move(column)) {
    require<ShapeError>(!exists() || (column_.cols() == 1 && column_.layout().cols.axis == Axis::uncut),
                        "a vector of a proximal operator must be one uncut column, and not ", column_.cols(),
                        " columns");
  }
  bool exists() const { return column_.grid() != nullptr; }

  /// xⱼ ← xⱼ + factorⱼ · the vector.
  void add_to(DistMatrix<T>& X, ColumnOperand factor) const {
    if (!exists()) return;
    require<ShapeError>(column_.grid() == X.grid() && column_.layout().rows == X.layout().rows,
                        "the vector of a proximal operator has ", column_.rows(), " rows, and the operand ",
                        X.rows(), "; both must have the same rows on each rank");
    if (!X.grid()->is_member()) return;
    const MatrixView<T> mine = X.local();
    for (Index j = 0; j < mine.cols; ++j)
      X.grid()->backend()->template kernels<T>().add(to_scalar<T>(factor[X.local_col_range().begin + j]),
                                                     std::as_const(column_).local(), T(1),
                                                     mine.col_block({j, 1}));
  }
  /// Every column of X ← the vector.
  void copy_to(DistMatrix<T>& X) const {
    X.set_zero();
    add_to(X, 1);
  }

 private:
  DistMatrix<T> column_;
};

/// σ f(x) + ρ/2 ‖x‖² + Re aᴴx, where f may be null, for 0.
template <Scalar T>
class Postcomposed final : public ProximalOperator<T> {
 public:
  Postcomposed(ProximalPtr<T> f, double sigma, double rho, DistMatrix<T> a)
      : ProximalOperator<T>(!f || f->same_for_all_columns(),
                            (f ? f->sum_count() : 0) + (a.grid() == nullptr ? 1 : 2)),
        f_(std::move(f)),
        sigma_(sigma),
        rho_(rho),
        a_(std::move(a)) {
    require<UsageError>(sigma > 0 && std::isfinite(sigma), "sigma is ", sigma,
                        "; it must be a finite number > 0");
    require<UsageError>(rho >= 0 && std::isfinite(rho), "rho is ", rho, "; it must be a finite number ≥ 0");
  }
  std::string describe() const override {
    return message(f_ ? weighted(sigma_, f_->describe()) + " + " : "", rho_ / 2, " times the square",
                   a_.exists() ? " + a linear term" : "");
  }
  void prox(ColumnOperand tau, DistMatrix<T>& X) const override {
    const ColumnScalars taus = for_columns(tau, X.cols()), w = 1 + rho_ * taus;
    a_.add_to(X, -taus);
    if (rho_ > 0) X *= 1 / w;
    if (f_) f_->prox(sigma_ * taus / w, X);
  }
  /// Those of f, ‖x‖² and, if there is an a, Re aᴴx.
  std::vector<ColumnSum<T>> sums(const ConstDistMatrix<T>& X) const override {
    std::vector<ColumnSum<T>> sums;
    if (f_) sums = f_->sums(X);
    sums.push_back(norm2(X));
    if (!a_.exists()) return sums;
    DistMatrix<T>& a = in_columns_.matrix(X.grid(), X.layout());
    a_.copy_to(a);
    sums.push_back(dot<T>(a, X));
    return sums;
  }
  double value_of(std::span<const double> sums) const override {
    const std::size_t of_f = f_ ? static_cast<std::size_t>(f_->sum_count()) : 0;
    const double value = f_ ? sigma_ * f_->value_of(sums.first(of_f)) : 0;
    return value + 0.5 * rho_ * sums[of_f] + (a_.exists() ? sums[of_f + 1] : 0);
  }

 private:
  ProximalPtr<T> f_;
  double sigma_, rho_;
  CommonColumn<T> a_;
  mutable Scratch<T> in_columns_;
};

/// f(s x + t).
template <Scalar T>
class OfScaledAndShifted final : public ProximalOperator<T> {
 public:
  OfScaledAndShifted(ProximalPtr<T> f, double s, DistMatrix<T> t)
      : ProximalOperator<T>(f->same_for_all_columns(), f->sum_count()),
        f_(std::move(f)),
        s_(s),
        t_(std::move(t)) {
    require<UsageError>(s != 0 && std::isfinite(s), "s is ", s, "; it must be a finite number other than 0");
  }
  std::string describe() const override {
    return message(f_->describe(), " of ", s_, " x", t_.exists() ? " + t" : "");
  }
  void prox(ColumnOperand tau, DistMatrix<T>& X) const override {
    map(X);
    f_->prox(s_ * s_ * for_columns(tau, X.cols()), X);
    t_.add_to(X, -1);
    if (s_ != 1) X *= 1 / s_;
  }
  std::vector<ColumnSum<T>> sums(const ConstDistMatrix<T>& X) const override {
    DistMatrix<T>& mapped = mapped_.matrix(X.grid(), X.layout());
    copy(X, mapped);
    map(mapped);
    return f_->sums(mapped);
  }
  double value_of(std::span<const double> sums) const override { return f_->value_of(sums); }

 private:
  void map(DistMatrix<T>& X) const {
    if (s_ != 1) X *= s_;
    t_.add_to(X, 1);
  }
  ProximalPtr<T> f_;
  double s_;
  CommonColumn<T> t_;
  mutable Scratch<T> mapped_;
};

/// f(A x) with A Aᴴ = c I.
template <Scalar T>
class OfOrthogonal final : public ProximalOperator<T> {
 public:
  OfOrthogonal(ProximalPtr<T> f, OperatorPtr<T> A, double c)
      : ProximalOperator<T>(f->same_for_all_columns(), f->sum_count()),
        f_(std::move(f)),
        A_(std::move(A)),
        c_(c) {
    require<UsageError>(c > 0 && std::isfinite(c), "c is ", c, "; it must be a finite number > 0");
  }
  std::string describe() const override {
    return message(f_->describe(), " of what a ", A_->rows(), " x ", A_->cols(), " operator makes");
  }
  void prox(ColumnOperand tau, DistMatrix<T>& X) const override {
    DistMatrix<T>& y = image(X);
    DistMatrix<T>& u = change_.matrix(y.grid(), y.layout());
    copy(y, u);
    f_->prox(c_ * for_columns(tau, X.cols()), u);
    u -= y;
    A_->apply_adjoint(to_scalar<T>(1 / c_), u, T(1), X);
  }
  std::vector<ColumnSum<T>> sums(const ConstDistMatrix<T>& X) const override { return f_->sums(image(X)); }
  double value_of(std::span<const double> sums) const override { return f_->value_of(sums); }

 private:
  DistMatrix<T>& image(const ConstDistMatrix<T>& X) const {
    A_->domain().require_contains(X, "the operand of a composition with an operator");
    DistMatrix<T>& y = image_.matrix(X.grid(), A_->range().layout(X.layout().cols.partition));
    A_->apply(T(1), X, T(0), y);
    return y;
  }
  ProximalPtr<T> f_;
  OperatorPtr<T> A_;
  double c_;
  mutable Scratch<T> image_, change_;
};

template <Scalar T>
class SeparableSum final : public ProximalOperator<T> {
 public:
  SeparableSum(std::vector<Space> spaces, std::vector<ProximalPtr<T>> parts)
      : ProximalOperator<T>(same_for_all(parts), count_of_all(parts)),
        spaces_(std::move(spaces)),
        parts_(std::move(parts)),
        stack_(stack_spaces(spaces_)) {
    require<ShapeError>(spaces_.size() == parts_.size(), "there are ", parts_.size(), " functions for ",
                        spaces_.size(), " stacked spaces; each space needs its own");
    for (std::size_t k = 0; k < parts_.size(); ++k)
      require<UsageError>(std::find(parts_.begin(), parts_.begin() + static_cast<std::ptrdiff_t>(k),
                                    parts_[k]) == parts_.begin() + static_cast<std::ptrdiff_t>(k),
                          parts_[k]->describe(), " is given twice, and would use its memory for both; make ",
                          "one object for each space");
  }
  std::string describe() const override {
    std::string text;
    for (const ProximalPtr<T>& f : parts_) text += (text.empty() ? "" : ", and ") + f->describe();
    return text;
  }
  void prox(ColumnOperand tau, DistMatrix<T>& X) const override {
    stack_.require_contains(X, "the operand of a separable sum");
    for (std::size_t k = 0; k < parts_.size(); ++k) {
      DistMatrix<T> rows = stack_rows(spaces_, k, X);
      parts_[k]->prox(tau, rows);
    }
  }
  std::vector<ColumnSum<T>> sums(const ConstDistMatrix<T>& X) const override {
    stack_.require_contains(X, "the operand of a separable sum");
    rows_.clear();
    for (std::size_t k = 0; k < parts_.size(); ++k) rows_.push_back(stack_rows(spaces_, k, X));
    std::vector<ColumnSum<T>> all;
    for (std::size_t k = 0; k < parts_.size(); ++k)
      for (const ColumnSum<T>& sum : parts_[k]->sums(rows_[k])) all.push_back(sum);
    return all;
  }
  double value_of(std::span<const double> sums) const override {
    double value = 0;
    for (const ProximalPtr<T>& f : parts_) {
      const auto own = static_cast<std::size_t>(f->sum_count());
      value += f->value_of(sums.first(own));
      sums = sums.subspan(own);
    }
    return value;
  }

 private:
  static bool same_for_all(const std::vector<ProximalPtr<T>>& parts) {
    return std::all_of(parts.begin(), parts.end(),
                       [](const ProximalPtr<T>& f) { return f->same_for_all_columns(); });
  }
  static Index count_of_all(const std::vector<ProximalPtr<T>>& parts) {
    Index count = 0;
    for (const ProximalPtr<T>& f : parts) count += f->sum_count();
    return count;
  }
  std::vector<Space> spaces_;
  std::vector<ProximalPtr<T>> parts_;
  Space stack_;
  mutable std::vector<ConstDistMatrix<T>> rows_;
};

}  // namespace

template <Scalar T>
ProximalPtr<T> quadratic(double rho, DistMatrix<T> a) {
  return std::make_shared<Postcomposed<T>>(nullptr, 1, rho, std::move(a));
}

template <Scalar T>
ProximalPtr<T> postcompose(ProximalPtr<T> f, double sigma, double rho, DistMatrix<T> a) {
  return std::make_shared<Postcomposed<T>>(std::move(f), sigma, rho, std::move(a));
}

template <Scalar T>
ProximalPtr<T> precompose(ProximalPtr<T> f, double s, DistMatrix<T> t) {
  return std::make_shared<OfScaledAndShifted<T>>(std::move(f), s, std::move(t));
}

template <Scalar T>
ProximalPtr<T> precompose(ProximalPtr<T> f, OperatorPtr<T> A, double c) {
  return std::make_shared<OfOrthogonal<T>>(std::move(f), std::move(A), c);
}

template <Scalar T>
ProximalPtr<T> separable_sum(std::vector<Space> spaces, std::vector<ProximalPtr<T>> parts) {
  return std::make_shared<SeparableSum<T>>(std::move(spaces), std::move(parts));
}

#define GRIDLOPS_INSTANTIATE(T)                                                       \
  template ProximalPtr<T> quadratic(double, DistMatrix<T>);                           \
  template ProximalPtr<T> postcompose(ProximalPtr<T>, double, double, DistMatrix<T>); \
  template ProximalPtr<T> precompose(ProximalPtr<T>, double, DistMatrix<T>);          \
  template ProximalPtr<T> precompose(ProximalPtr<T>, OperatorPtr<T>, double);         \
  template ProximalPtr<T> separable_sum(std::vector<Space>, std::vector<ProximalPtr<T>>);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
