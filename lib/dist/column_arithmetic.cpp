// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/dist/column_arithmetic.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "comm/failure/failure.hpp"
#include "gridlops/base/error.hpp"

namespace gridlops {

namespace {

void require_columns(ColumnOperand a, Index columns) {
  require<ShapeError>(a.is_constant() || a.size() == columns, a.size(), " scalars were given for ", columns,
                      " columns");
}

template <class Function>
ColumnScalars for_each_column(ColumnOperand a, ColumnOperand b, const Function& function) {
  const Index columns = std::max({a.size(), b.size(), Index{0}});
  require_columns(a, columns);
  require_columns(b, columns);
  ColumnScalars result(columns);
  for (Index j = 0; j < columns; ++j) result[j] = function(a[j], b[j]);
  return result;
}

template <class Function>
ColumnScalars for_each_column(const ColumnScalars& a, const Function& function) {
  return for_each_column(a, a, [&function](double of_column, double) { return function(of_column); });
}

}  // namespace

ColumnScalars operator+(ColumnOperand a, ColumnOperand b) { return for_each_column(a, b, std::plus<>()); }
ColumnScalars operator-(ColumnOperand a, ColumnOperand b) { return for_each_column(a, b, std::minus<>()); }
ColumnScalars operator*(ColumnOperand a, ColumnOperand b) {
  return for_each_column(a, b, std::multiplies<>());
}
ColumnScalars operator/(ColumnOperand a, ColumnOperand b) { return for_each_column(a, b, std::divides<>()); }
ColumnScalars operator-(const ColumnScalars& a) { return for_each_column(a, std::negate<>()); }
ColumnScalars& operator+=(ColumnScalars& a, ColumnOperand b) { return a = a + b; }
ColumnScalars& operator*=(ColumnScalars& a, ColumnOperand b) { return a = a * b; }
ColumnScalars sqrt(const ColumnScalars& a) {
  return for_each_column(a, [](double x) { return std::sqrt(x); });
}
ColumnScalars abs(const ColumnScalars& a) {
  return for_each_column(a, [](double x) { return std::abs(x); });
}
ColumnScalars hypot(ColumnOperand a, ColumnOperand b) {
  return for_each_column(a, b, [](double x, double y) { return std::hypot(x, y); });
}
ColumnScalars max(ColumnOperand a, ColumnOperand b) {
  return for_each_column(a, b, [](double x, double y) { return std::max(x, y); });
}
ColumnScalars min(ColumnOperand a, ColumnOperand b) {
  return for_each_column(a, b, [](double x, double y) { return std::min(x, y); });
}
ColumnScalars ratio(ColumnOperand a, ColumnOperand b) {
  return for_each_column(a, b, [](double x, double y) { return y == 0 ? 0 : x / y; });
}

double largest(const ColumnScalars& a) {
  double most = 0;
  for (const double x : a.values()) most = std::isnan(x) || x > most ? x : most;
  return most;
}

namespace {

/// The numbers of this rank's columns.
template <class Value, Scalar T>
std::vector<Value> here(ColumnOperand numbers, double sign, const ConstDistMatrix<T>& X) {
  const Range mine = X.local_col_range();
  std::vector<Value> values;
  for (Index j = mine.begin; j < mine.end(); ++j) {
    if constexpr (std::same_as<Value, double>) {
      values.push_back(sign * numbers[j]);
    } else {
      values.push_back(to_scalar<T>(sign * numbers[j]));
    }
  }
  return values;
}

template <Scalar T>
const Kernels<T>& kernels_of(const ConstDistMatrix<T>& X) {
  return X.grid()->backend()->template kernels<T>();
}

template <Scalar T>
void add_scaled(double sign, const ScaledColumns<T>& term, DistMatrix<T>& Y) {
  const ConstDistMatrix<T>& X = term.matrix;
  require_same_layout(X, Y, "axpy");
  require_columns(term.factor, X.cols());
  if (!term.factor.is_constant())
    return kernels_of(Y).column_axpy(here<T>(term.factor, sign, X).data(), X.local(), Y.local());
  const double factor = sign * term.factor[0];
  if (factor != 0) kernels_of(Y).add(to_scalar<T>(factor), X.local(), T(1), Y.local());
}

}  // namespace

template <Scalar T>
void operator+=(DistMatrix<T>& Y, ScaledColumns<T> X) {
  add_scaled(1, X, Y);
}

template <Scalar T>
void operator-=(DistMatrix<T>& Y, ScaledColumns<T> X) {
  add_scaled(-1, X, Y);
}

template <Scalar T>
void operator*=(DistMatrix<T>& X, ColumnOperand alpha) {
  require_columns(alpha, X.cols());
  kernels_of(X).column_scale(here<T>(alpha, 1, X).data(), X.local());
}

template <Scalar T>
void update(std::span<const ColumnUpdate<T>> updates) {
  std::vector<std::vector<T>> factors;
  std::vector<BlockUpdate<T>> blocks;
  for (const auto& [kind, factor, X, Y] : updates) {
    require<ShapeError>(Y.grid() == updates.front().Y.grid(), "an update of matrices on several grids");
    require_same_layout(X, Y, "update");
    require_columns(factor, Y.cols());
    if (kind == UpdateKind::axpy && factor.is_constant() && factor[0] == 0) continue;
    factors.push_back(here<T>(factor, 1, Y));
    const bool has_X = kind != UpdateKind::scale;
    blocks.push_back({kind, factors.back().data(), has_X ? X.local() : MatrixView<const T>(), Y.local()});
  }
  if (!blocks.empty()) kernels_of(updates.front().Y).column_updates(blocks);
}

template <Scalar T>
void threshold(Threshold kind, ColumnOperand t, DistMatrix<T>& X) {
  require_columns(t, X.cols());
  kernels_of(X).column_threshold(kind, here<double>(t, 1, X).data(), X.local());
}

namespace {

/// The doubles of this rank's sum of a column: a dot has its imaginary part, too, which nobody asks for.
template <Scalar T>
Index parts_of_sum(const ColumnSum<T>& term) {
  return term.kind == ColumnSum<T>::Kind::dot ? Index{sizeof(Accumulator<T>) / sizeof(double)} : 1;
}
/// By what the backend's sum is multiplied: half the sum of √|x| is the penalty of that name.
template <Scalar T>
double factor_of_sum(const ColumnSum<T>& term) {
  return term.kind == ColumnSum<T>::Kind::penalty && term.threshold == Threshold::half ? 0.5 : 1;
}
/// The penalty of a threshold is Σ|x|ᵖ, but for that factor.
double penalty_order(Threshold kind) {
  return kind == Threshold::soft ? 1 : kind == Threshold::hard ? 0 : 0.5;
}

}  // namespace

template <Scalar T>
void ColumnSums<T>::reduce(std::span<const ColumnSum<T>> terms, std::span<ColumnScalars> sums,
                           std::vector<double>& numbers) {
  const Index columns = terms.empty() ? 0 : terms.front().X.cols();
  Index local_columns = 0;
  for (const ColumnSum<T>& term : terms) {
    require<ShapeError>(term.X.grid() == grid_, "sums of a matrix on another grid than that of the sums");
    require<ShapeError>(term.X.cols() == columns, "sums of ", columns, " and of ", term.X.cols(),
                        " columns cannot travel together");
    if (&term.X != &term.Y) require_same_layout(term.X, term.Y, "sums");
    if (term.difference != nullptr) require_same_layout(term.X, *term.difference, "sums");
    local_columns = std::max(local_columns, term.X.local().cols);
  }
  values_.assign(terms.size() * at(columns), 0.0);
  values_.insert(values_.end(), numbers.begin(), numbers.end());
  if (grid_->is_member()) {
    FailureScope failures;
    failures.run([&] {
      terms_.clear();
      local_.assign(terms.size() * at(local_columns), Accumulator<T>(0));
      const auto sums_of = [&](std::size_t k) {
        return reinterpret_cast<double*>(local_.data() + k * at(local_columns));
      };
      for (std::size_t k = 0; k < terms.size(); ++k) plan(terms[k], sums_of(k));
      compute();
      for (std::size_t k = 0; k < terms.size(); ++k) {
        const Range mine = terms[k].X.local_col_range();
        const Index step = parts_of_sum(terms[k]);
        for (Index j = 0; j < mine.size; ++j)
          values_[k * at(columns) + at(mine.begin + j)] = factor_of_sum(terms[k]) * sums_of(k)[j * step];
      }
    });
    failures.reduce(grid_->comm(), values_, order_);
  }
  auto next = values_.cbegin();
  for (ColumnScalars& of_term : sums) {
    of_term.values().assign(next, next + columns);
    next += columns;
  }
  std::copy(next, values_.cend(), numbers.begin());
}

/// Plans this rank's contribution to a sum.
template <Scalar T>
void ColumnSums<T>::plan(const ColumnSum<T>& term, double* sums) {
  using Kind = typename ColumnSum<T>::Kind;
  MatrixView<const T> X = term.X.local();
  if (term.difference != nullptr) {
    compute();  // an earlier term may be a sum of this difference
    copy(term.X, *term.difference);
    *term.difference -= term.Y;
    X = std::as_const(*term.difference).local();
  }
  if (!term.X.owned() || X.cols == 0) return;
  switch (term.kind) {
    case Kind::norm2:
    case Kind::distance2:
      terms_.push_back({SumKind::norms_squared, X, {}, 2, sums});
      break;
    case Kind::dot:
      terms_.push_back({SumKind::dots, X, term.Y.local(), 0, sums});
      break;
    case Kind::penalty:
      terms_.push_back({SumKind::power_sums, X, {}, penalty_order(term.threshold), sums});
      break;
  }
}

/// Computes the sums that are planned.
template <Scalar T>
void ColumnSums<T>::compute() {
  if (!terms_.empty()) grid_->backend()->template kernels<T>().column_sums(terms_);
  terms_.clear();
}

#define GRIDLOPS_INSTANTIATE(T)                                      \
  template void operator+=(DistMatrix<T>&, ScaledColumns<T>);        \
  template void operator-=(DistMatrix<T>&, ScaledColumns<T>);        \
  template void operator*=(DistMatrix<T>&, ColumnOperand);           \
  template void update(std::span<const ColumnUpdate<T>>);            \
  template void threshold(Threshold, ColumnOperand, DistMatrix<T>&); \
  template class ColumnSums<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
