// SPDX-License-Identifier: BSD-3-Clause
#include "solve/ridge/ridge_batch.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "base/at_work.hpp"
#include "base/instantiate.hpp"
#include "base/square_sum.hpp"
#include "gridlops/base/trace.hpp"
#include "solve/ridge/views.hpp"
#include "solve/run/verdict.hpp"

namespace gridlops {

namespace {

template <Scalar T>
double norm_of_column(const T* column, Index rows) {
  SquareSum sum;
  sum.add(reinterpret_cast<const Real<T>*>(column), rows * (is_complex<T> ? 2 : 1));
  return sum.root();
}

/// x · 2^power, for a power that may be too large for one number of T.
template <Scalar T>
T scaled(T x, int power) {
  if constexpr (is_complex<T>) {
    return T(std::ldexp(x.real(), power), std::ldexp(x.imag(), power));
  } else {
    return std::ldexp(x, power);
  }
}

/// The power of two that brings the largest of these numbers near 1, as far as it is a number of T.
template <Scalar T>
int power_of(double largest) {
  constexpr int most = std::numeric_limits<Real<T>>::max_exponent - 2;
  return largest > 0 ? std::clamp(-std::ilogb(largest), -most, most) : 0;
}

}  // namespace

template <Scalar T>
RidgeBatch<T>::RidgeBatch(Communicator& comm, const std::shared_ptr<Backend>& backend,
                          const FoldRows<T>& rows, const std::vector<RidgeModel<T>>& models, RidgeScore score,
                          const ModelOptions& options, bool with_coefficients, Index most)
    : comm_(comm),
      rows_(rows),
      score_(score),
      options_(options),
      with_coefficients_(with_coefficients),
      is_narrow_(models.front().is_narrow()),
      most_(most) {
  Index tested = 0, size = 0;
  for (const RidgeModel<T>& model : models) {
    tested = std::max(tested, model.tested.size);
    size = std::max(size, model.size());
  }
  const Index some = std::min(together, most);
  Y_ = Buffer<T>(backend, rows.rows() * most);
  tested_ = Buffer<T>(backend, tested * some);
  rotated_ = Buffer<T>(backend, tested * some);
  const Index of_rows = with_coefficients ? std::min(FoldRows<T>::together, rows.rows()) * most : 0;
  residuals_ = Buffer<T>(backend, std::max(tested * some, of_rows));
  weighted_ = Buffer<T>(backend, size * some);
  if (with_coefficients) {
    gradient_ = Buffer<T>(backend, rows.cols() * most);
    if (of_data()) dual_ = Buffer<T>(backend, rows.rows() * most);
  }
  in_precision([&]<Scalar S>() { allocate<S>(backend); });
}

template <Scalar T>
template <Scalar S>
void RidgeBatch<T>::allocate(const std::shared_ptr<Backend>& backend) {
  Work<S>& memory = work<S>();
  memory.products = Buffer<S>(backend, parts() * rows_.cols() * most_);
  memory.sum = Buffer<S>(backend, longest() * most_);
  memory.components = Buffer<S>(backend, std::min(rows_.rows(), rows_.cols()) * most_);
  if (std::is_same_v<S, T>) return;
  const Index together_rows = std::min(FoldRows<T>::together, rows_.rows());
  memory.rows = Buffer<S>(backend, together_rows * rows_.cols());
  memory.data = Buffer<S>(backend, together_rows * most_);
}

template <Scalar T>
void RidgeBatch<T>::load(MatrixView<const T> B) {
  const Index m = rows_.rows();
  columns_ = B.cols;
  references_.assign(at(columns_), Wide(0));
  powers_.assign(at(columns_), 0);
  sums_.assign(at(columns_ * rows_.folds()), Wide(0));
  reference_norms_.assign(at(columns_), 0.0);
  const std::vector<Index>& numbers = rows_.numbers();
  for (Index j = 0; j < columns_; ++j) {
    const T *const from = B.column(j), *const end = from + m;
    T* const to = data().column(j);
    Wide sum(0);
    for (Index i = 0; i < m; ++i) sum += Wide(from[i]);
    const bool is_constant = std::all_of(from, end, [&](T b) { return b == *from; });
    if (options_.centred && m > 0)
      references_[at(j)] = is_constant ? Wide(*from) : Wide(T(sum / static_cast<double>(m)));
    const auto reference = T(references_[at(j)]);
    double largest = 0;
    for (Index i = 0; i < m; ++i) largest = std::max<double>(largest, std::abs(from[i] - reference));
    powers_[at(j)] = power_of<T>(largest);
    const Real<T> scale = static_cast<Real<T>>(std::ldexp(1.0, powers_[at(j)]));
    for (Index i = 0; i < m; ++i) to[i] = (from[numbers[at(i)]] - reference) * scale;
    for (Index f = 0; f < rows_.folds(); ++f) {
      const Range fold = rows_.fold(f);
      for (Index i = fold.begin; i < fold.end(); ++i) sums_[at(f * columns_ + j)] += Wide(to[i]);
    }
  }
  if (parts() > 0) in_precision([&]<Scalar S>() { sum_products<S>(); });
}

template <Scalar T>
template <Scalar S>
void RidgeBatch<T>::sum_products() {
  const TraceRegion region("products of A and B");
  Work<S>& memory = work<S>();
  const Index n = rows_.cols();
  std::fill_n(memory.products.data(), parts() * n * columns_, S(0));
  rows_.for_each([&](Index f, Range places, MatrixView<const T> A) {
    const AtWork at_work;
    if (columns_ == 0) return;
    const MatrixView<S> C(memory.products.data() + (parts() == 1 ? 0 : f) * n * columns_, n, columns_);
    if constexpr (std::is_same_v<S, T>) {
      multiply<T>(Op::adjoint, T(1), A, data().row_block(places), T(1), C);
    } else {
      const MatrixView<S> wide_A = memory.rows.matrix(A.rows, n), Y = memory.data.matrix(A.rows, columns_);
      convert<T, S>(A, wide_A);
      convert<T, S>(data().row_block(places), Y);
      multiply<S>(Op::adjoint, S(1), wide_A, Y, S(1), C);
    }
  });
}

template <Scalar T>
auto RidgeBatch<T>::mean_of(const RidgeModel<T>& model, Index j) const -> Wide {
  if (!options_.centred || model.trained == 0) return Wide(0);
  Wide sum(0);
  for (Index f = 0; f < rows_.folds(); ++f)
    if (f != model.fold) sum += sums_[at(f * columns_ + j)];
  return sum / static_cast<double>(model.trained);
}

/// Aᴴ Y of the training rows, without the means of both.
template <Scalar T>
template <Scalar S>
MatrixView<S> RidgeBatch<T>::centred_products(const RidgeModel<T>& model) {
  Work<S>& memory = work<S>();
  const Index n = rows_.cols();
  const MatrixView<S> C = memory.sum.matrix(n, columns_);
  std::fill_n(C.data, C.size(), S(0));
  for (Index part = 0; part < parts(); ++part) {
    if (parts() > 1 && part == model.fold) continue;
    const S* const of_part = memory.products.data() + part * C.size();
    std::transform(C.data, C.data + C.size(), of_part, C.data, std::plus<>());
  }
  for (Index j = 0; options_.centred && j < columns_; ++j) {
    const Wide sum = mean_of(model, j) * static_cast<double>(model.trained);
    for (Index i = 0; i < n; ++i) C(i, j) -= S(product(conjugate(model.mean[at(i)]), sum));
  }
  return C;
}

template <Scalar T>
template <Scalar S>
MatrixView<S> RidgeBatch<T>::components(const RidgeModel<T>& model) {
  const TraceRegion region("components");
  Work<S>& memory = work<S>();
  const MatrixView<S> W = memory.components.matrix(model.size(), columns_);
  const MatrixView<const S> basis = model.template basis_in<S>();
  if (!of_data()) {
    multiply<S>(Op::adjoint, S(1), basis, centred_products<S>(model), S(0), W);
    return W;
  }
  // The training rows are those before the fold, and those behind it.
  const MatrixView<S> Y = memory.sum.matrix(rows_.rows(), columns_);
  convert<T, S>(data(), Y);
  const Index before = model.fold == RidgeModel<T>::all ? model.trained : model.tested.begin;
  multiply<S>(Op::adjoint, S(1), basis.row_block({0, before}), Y.row_block({0, before}), S(0), W);
  multiply<S>(Op::adjoint, S(1), basis.row_block({before, model.trained - before}),
              Y.row_block({rows_.rows() - (model.trained - before), model.trained - before}), S(1), W);
  return W;
}

/// Of one column of data to be predicted.
template <Scalar T>
struct RidgeBatch<T>::Figures {
  Index rows = 0;
  int power = 0;
  double deviation = 0;  ///< ‖y − ȳ‖, 0 if y is constant
  double rest = 0;       ///< the norm of the part that predictions have no share in
  Wide sum{};            ///< of the data without their training mean
};

/// y ← column j of the tested rows, without the mean of the training rows.
template <Scalar T>
auto RidgeBatch<T>::centre(const RidgeModel<T>& model, Index j, T* y) const -> Figures {
  Figures figures;
  const Index rows = figures.rows = model.tested.size;
  figures.power = powers_[at(j)];
  const T* const from = data().column(j) + model.tested.begin;
  Wide sum(0);
  for (Index i = 0; i < rows; ++i) sum += Wide(from[i]);
  const Wide mean = sum / static_cast<double>(rows), training = mean_of(model, j);
  SquareSum deviation;
  for (Index i = 0; i < rows; ++i) {
    y[i] = T(Wide(from[i]) - training);
    deviation.add(std::abs(Wide(from[i]) - mean));
  }
  figures.sum = sum - training * static_cast<double>(rows);
  const double rounding = 8 * std::numeric_limits<double>::epsilon() * std::abs(mean);
  if (deviation.root() > rounding * std::sqrt(static_cast<double>(rows)))
    figures.deviation = deviation.root();
  return figures;
}

template <Scalar T>
double RidgeBatch<T>::score_of(const RidgeModel<T>& model, const Figures& y, const T* rotated,
                               const T* residual) const {
  const Index count = model.rows_of_R;
  if (score_ == RidgeScore::correlation) {
    SquareSum of_p;
    Wide sum(0);
    double with_y = 0;
    for (Index i = 0; i < count; ++i) {
      const Wide p = Wide(rotated[i]) - Wide(residual[i]);
      of_p.add(std::real(p));
      if constexpr (is_complex<T>) of_p.add(p.imag());
      sum += model.is_rotated ? product(conjugate(Wide(model.ones[at(i)])), p) : p;
      with_y += std::real(product(conjugate(p), Wide(rotated[i])));
    }
    const double rows = static_cast<double>(y.rows), norm = of_p.root(),
                 mean = std::abs(sum) / std::sqrt(rows),
                 deviation = std::sqrt(std::max((norm - mean) * (norm + mean), 0.0)),
                 both = with_y - std::real(product(conjugate(sum), y.sum)) / rows;
    const bool is_constant = deviation <= 1e-6 * norm || y.deviation == 0;
    return is_constant ? 0 : both / deviation / y.deviation;
  }
  const double error = std::hypot(norm_of_column(residual, count), y.rest);
  if (score_ == RidgeScore::negative_mse) {
    const double rms = std::ldexp(error / std::sqrt(static_cast<double>(y.rows)), -y.power);
    return -rms * rms;
  }
  if (y.deviation == 0) return error == 0 ? 1 : 0;
  const double ratio = error / y.deviation;
  return 1 - ratio * ratio;
}

template <Scalar T>
void RidgeBatch<T>::score(const RidgeModel<T>& model, double* scores) {
  if (columns_ == 0) return;
  in_precision([&]<Scalar S>() { score_columns<S>(model, scores); });
}

template <Scalar T>
template <Scalar S>
void RidgeBatch<T>::score_columns(const RidgeModel<T>& model, double* scores) {
  const AtWork at_work;
  const MatrixView<S> W = components<S>(model);
  const Index rows = model.tested.size, size = model.size(), dampings = std::ssize(options_.alphas);
  const TraceRegion region("scores");
  // A few rows of the triangle at a time, so that most of its zeros are not multiplied.
  const Index strip = std::max<Index>(64, (model.rows_of_R + 7) / 8);
  for (Index first = 0; first < columns_; first += together) {
    const Range some{first, std::min(together, columns_ - first)};
    const MatrixView<T> Y = tested_.matrix(rows, some.size),
                        E = residuals_.matrix(model.rows_of_R, some.size),
                        U = weighted_.matrix(size, some.size);
    std::vector<Figures> figures;
    for (Index j = 0; j < some.size; ++j) figures.push_back(centre(model, first + j, Y.column(j)));
    MatrixView<T> rotated = Y;
    if (model.is_rotated) {
      rotated = rotated_.matrix(model.rows_of_R, some.size);
      multiply<T>(Op::adjoint, T(1), model.rotation(), Y, T(0), rotated);
      if (model.rows_of_R < rows) {
        multiply<T>(Op::none, T(-1), model.rotation(), rotated, T(1), Y);
        for (Index j = 0; j < some.size; ++j) figures[at(j)].rest = norm_of_column(Y.column(j), rows);
      }
    }
    for (Index d = 0; d < dampings; ++d) {
      const double alpha = options_.alphas[at(d)];
      std::vector<double> weights(at(size));
      for (Index k = 0; k < size; ++k) weights[at(k)] = model.weight(k, alpha);
      for (Index j = 0; j < some.size; ++j) {
        const S* const w = W.column(first + j);
        T* const u = U.column(j);
        for (Index k = 0; k < size; ++k) u[k] = T(w[k] * static_cast<Real<S>>(weights[at(k)]));
      }
      for (Index j = 0; j < some.size; ++j) std::copy_n(rotated.column(j), model.rows_of_R, E.column(j));
      for (Index row = 0; row < model.rows_of_R; row += strip) {
        const Index height = std::min(strip, model.rows_of_R - row), begin = model.is_rotated ? row : 0;
        multiply<T>(Op::none, T(-1), model.triangle().block({row, height}, {begin, size - begin}),
                    U.row_block({begin, size - begin}), T(1), E.row_block({row, height}));
      }
      const bool divides = model.fold == RidgeModel<T>::all;
      const bool has_score = !divides || divide_residuals(model, d, E);
      for (Index j = 0; j < some.size; ++j) {
        Figures of_column = figures[at(j)];
        if (divides && model.is_rotated) of_column.rest /= 1 - mean_leverage(model, alpha);
        scores[d + (first + j) * dampings] = has_score
                                                 ? score_of(model, of_column, rotated.column(j), E.column(j))
                                                 : std::numeric_limits<double>::quiet_NaN();
      }
    }
  }
}

template <Scalar T>
double RidgeBatch<T>::mean_leverage(const RidgeModel<T>& model, double alpha) const {
  double trace = options_.centred ? 1 : 0;
  for (Index k = 0; k < model.size(); ++k) trace += model.values[at(k)] * model.weight(k, alpha);
  return trace / static_cast<double>(model.tested.size);
}

/// Makes residuals of predictions from all rows those of predictions from all others. Returns false if a row
/// decides its own prediction.
template <Scalar T>
bool RidgeBatch<T>::divide_residuals(const RidgeModel<T>& model, Index d, MatrixView<T> E) const {
  constexpr double least = 1e-10;
  if (model.is_rotated) {
    const double left = 1 - mean_leverage(model, options_.alphas[at(d)]);
    for (Index j = 0; j < E.cols; ++j)
      for (Index i = 0; i < E.rows; ++i) E(i, j) *= static_cast<Real<T>>(1 / left);
    return left > least;
  }
  const double* const leverage = &model.leverage[at(d * E.rows)];
  for (Index j = 0; j < E.cols; ++j)
    for (Index i = 0; i < E.rows; ++i) E(i, j) *= static_cast<Real<T>>(1 / (1 - leverage[i]));
  return std::all_of(leverage, leverage + E.rows, [](double h) { return 1 - h > least; });
}

/// X ← the basis times these numbers, which in_precision() has, or of A what AᴴV gives, + β X.
template <Scalar T>
template <Scalar S>
void RidgeBatch<T>::expand(const RidgeModel<T>& model, MatrixView<const S> weighted, T beta,
                           MatrixView<T> X) {
  const AtWork at_work;
  const MatrixView<const S> basis = model.template basis_in<S>();
  const MatrixView<S> made = work<S>().sum.matrix(basis.rows, columns_);
  multiply<S>(Op::none, S(1), basis, weighted, S(0), made);
  if (!of_data()) {
    for (Index j = 0; j < columns_; ++j)
      for (Index i = 0; i < X.rows; ++i) X(i, j) = T(S(beta) * S(X(i, j)) + made(i, j));
    return;
  }
  // Aᴴ of it, without the mean.
  std::vector<Wide> sums(at(columns_), Wide(0));
  for (Index j = 0; j < columns_; ++j) {
    for (Index i = 0; i < made.rows; ++i) sums[at(j)] += Wide(made(i, j));
    for (Index i = 0; i < X.rows; ++i) X(i, j) = beta == T(0) ? T(0) : T(beta * X(i, j));
  }
  const MatrixView<T> rounded = dual_.matrix(made.rows, columns_);
  convert<S, T>(made, rounded);
  rows_.for_each([&](Index, Range places, MatrixView<const T> A) {
    const AtWork while_multiplying;
    if (columns_ > 0) multiply<T>(Op::adjoint, T(1), A, rounded.row_block(places), T(1), X);
  });
  for (Index j = 0; j < columns_; ++j)
    for (Index i = 0; i < X.rows; ++i) {
      const double scale = model.scale[at(i)];
      X(i, j) = T((Wide(X(i, j)) - product(conjugate(model.mean[at(i)]), sums[at(j)])) * scale * scale);
    }
}

template <Scalar T>
void RidgeBatch<T>::fit(const RidgeModel<T>& model, const std::vector<double>& alphas, MatrixView<T> X,
                        RidgeColumn* columns) {
  in_precision([&]<Scalar S>() {
    if (of_data() || columns_ > 0) {
      const MatrixView<S> C = centred_products<S>(model);
      for (Index j = 0; j < columns_; ++j) {
        SquareSum sum;
        for (Index i = 0; i < C.rows; ++i) sum.add(std::abs(C(i, j)) * model.scale[at(i)]);
        reference_norms_[at(j)] = sum.root();
      }
    }
    const MatrixView<S> W = components<S>(model);
    for (Index j = 0; j < columns_; ++j)
      for (Index k = 0; k < W.rows; ++k) W(k, j) *= static_cast<Real<S>>(model.weight(k, alphas[at(j)]));
    std::fill_n(X.data, X.size(), T(0));
    expand<S>(model, W, T(0), X);
  });
  constexpr int most_corrections = 2;
  std::vector<double> residual_norms;
  for (int corrections = 0;; ++corrections) {
    find_gradient(model, alphas, X, residual_norms);
    std::array<double, 1> unsolved{judge_columns(model, alphas, X, residual_norms, columns) ? 0.0 : 1.0};
    comm_.all_reduce(unsolved, ReduceOp::max);
    if (unsolved[0] == 0 || corrections == most_corrections || of_data()) break;
    in_precision([&]<Scalar S>() {
      // What S⁻¹ makes of the gradient is in the place of Aᴴ Y.
      const MatrixView<S> G = work<S>().sum.matrix(rows_.cols(), columns_),
                          W = work<S>().components.matrix(model.size(), columns_);
      for (Index j = 0; j < columns_; ++j)
        for (Index i = 0; i < G.rows; ++i)
          G(i, j) = S(gradient_.data()[i + j * G.rows]) / static_cast<Real<S>>(model.scale[at(i)]);
      multiply<S>(Op::adjoint, S(1), model.template basis_in<S>(), G, S(0), W);
      for (Index j = 0; j < columns_; ++j)
        for (Index k = 0; k < W.rows; ++k) W(k, j) *= static_cast<Real<S>>(model.weight(k, alphas[at(j)]));
      expand<S>(model, W, T(1), X);
    });
  }
  for (Index j = 0; j < columns_; ++j) {
    RidgeColumn& column = columns[j];
    column.residual_norm = std::ldexp(column.residual_norm, -powers_[at(j)]);
    column.normal_residual_norm = std::ldexp(column.normal_residual_norm, -powers_[at(j)] - rows_.power());
    Wide intercept = references_[at(j)] + scaled(mean_of(model, j), -powers_[at(j)]);
    for (Index i = 0; i < X.rows; ++i) {
      X(i, j) = scaled(X(i, j), rows_.power() - powers_[at(j)]);
      if (options_.centred)
        intercept -=
            product(rows_.reference()[at(i)] + scaled(model.mean[at(i)], -rows_.power()), Wide(X(i, j)));
    }
    column.intercept = intercept;
  }
}

/// The gradient S (Aᴴ(Y − A X) − α S⁻² X) with the centred A and Y, and the norms of residuals.
template <Scalar T>
void RidgeBatch<T>::find_gradient(const RidgeModel<T>& model, const std::vector<double>& alphas,
                                  MatrixView<const T> X, std::vector<double>& residual_norms) {
  const TraceRegion region("gradients");
  const Index n = rows_.cols();
  const MatrixView<T> G = gradient_.matrix(n, columns_);
  std::fill_n(G.data, G.size(), T(0));
  // The mean of each residual, and its sum.
  std::vector<Wide> shifts(at(columns_)), sums(at(columns_), Wide(0));
  std::vector<SquareSum> squares(at(columns_));
  for (Index j = 0; j < columns_; ++j) {
    shifts[at(j)] = -mean_of(model, j);
    for (Index i = 0; i < n; ++i) shifts[at(j)] += product(model.mean[at(i)], Wide(X(i, j)));
  }
  rows_.for_each([&](Index, Range places, MatrixView<const T> A) {
    const AtWork at_work;
    if (columns_ == 0) return;
    const MatrixView<T> E = residuals_.matrix(places.size, columns_);
    for (Index j = 0; j < columns_; ++j) {
      const T* const y = data().column(j) + places.begin;
      for (Index i = 0; i < places.size; ++i) E(i, j) = T(Wide(y[i]) + shifts[at(j)]);
    }
    multiply<T>(Op::none, T(-1), A, X, T(1), E);
    for (Index j = 0; j < columns_; ++j) {
      for (Index i = 0; i < places.size; ++i) sums[at(j)] += Wide(E(i, j));
      squares[at(j)].add(reinterpret_cast<const Real<T>*>(E.column(j)),
                         places.size * (is_complex<T> ? 2 : 1));
    }
    multiply<T>(Op::adjoint, T(1), A, E, T(1), G);
  });
  residual_norms.assign(at(columns_), 0.0);
  for (Index j = 0; j < columns_; ++j) {
    residual_norms[at(j)] = squares[at(j)].root();
    for (Index i = 0; i < n; ++i) {
      const double scale = model.scale[at(i)];
      const Wide gradient = Wide(G(i, j)) - product(conjugate(model.mean[at(i)]), sums[at(j)]);
      G(i, j) = T(gradient * scale - Wide(X(i, j)) * (alphas[at(j)] / scale));
    }
  }
}

/// Sets the verdicts and norms of the columns. Returns whether all are solved.
template <Scalar T>
bool RidgeBatch<T>::judge_columns(const RidgeModel<T>& model, const std::vector<double>& alphas,
                                  MatrixView<const T> X, const std::vector<double>& residual_norms,
                                  RidgeColumn* columns) const {
  constexpr double epsilon = std::numeric_limits<Real<T>>::epsilon();
  const Index n = rows_.cols(), m = rows_.rows();
  const double of_sums = epsilon * std::sqrt(static_cast<double>(longest()));
  bool all_solved = true;
  for (Index j = 0; j < columns_; ++j) {
    SquareSum x;
    for (Index i = 0; i < n; ++i) x.add(std::abs(X(i, j)) / model.scale[at(i)]);
    ColumnNorms norms;
    norms.tested_norm = norm_of_column(gradient_.data() + j * n, n);
    norms.reference = reference_norms_[at(j)];
    norms.residual_norm = residual_norms[at(j)];
    norms.data_norm = norm_of_column(data().column(j), m);
    norms.x_norm = x.root();
    norms.operator_norm = model.values.empty() ? 0 : std::sqrt(model.values.back());
    norms.damp = std::sqrt(alphas[at(j)]);
    const VerdictLimits limits{.tolerance = default_tolerance(scalar_type_of<T>), .epsilon = epsilon};
    std::optional<StopReason> reason = judge(norms, limits, {epsilon});
    if (!reason) reason = judge(norms, limits, {of_sums, of_sums});
    columns[j].reason = reason.value_or(StopReason::iteration_limit);
    columns[j].residual_norm = norms.residual_norm;
    columns[j].normal_residual_norm = norms.tested_norm;
    all_solved = all_solved && reason.has_value();
  }
  return all_solved;
}

template <Scalar T>
Index RidgeBatch<T>::bytes_of_column(Index rows, Index cols, Index folds, bool is_narrow,
                                     bool with_coefficients) {
  const Index narrow = sizeof(T), wide = is_narrow ? narrow : Index{sizeof(Wide)};
  const Index parts = rows < cols ? (with_coefficients ? 1 : 0) : folds;
  return (2 * rows + (with_coefficients ? 2 * cols : 0)) * narrow +
         (parts * cols + std::max(rows, cols) + std::min(rows, cols)) * wide;
}

#define GRIDLOPS_INSTANTIATE(T) template class RidgeBatch<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
