// SPDX-License-Identifier: BSD-3-Clause
#include "solve/ridge/ridge_batch.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
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
  references_.resize(at(most));
  powers_.resize(at(most));
  sums_.resize(at(most * rows.folds()));
  reference_norms_.resize(at(most));
  residuals_of_columns_.resize(at(most));
  weights_.resize(at(size));
  const Index some = std::min(together, most);
  Y_ = Buffer<T>(backend, rows.rows() * most);
  tested_columns_.resize(at(some));
  tested_ = Buffer<T>(backend, tested * some);
  rotated_ = Buffer<T>(backend, tested * some);
  const Index of_rows = with_coefficients ? std::min(FoldRows<T>::together, rows.rows()) * most : 0;
  residuals_ = Buffer<T>(backend, std::max(tested * some, of_rows));
  weighted_ = Buffer<T>(backend, size * some);
  if (with_coefficients) {
    gradient_ = Buffer<T>(backend, rows.cols() * most);
    if (of_data()) dual_ = Buffer<T>(backend, rows.rows() * most);
    if (of_data()) dual_step_ = Buffer<T>(backend, rows.rows() * most);
  }
  if (of_data() && options.predicts) left_out_ = Buffer<Wide>(backend, size * some);
  in_precision([&]<Scalar S>() { allocate<S>(backend); });
}

template <Scalar T>
template <Scalar S>
void RidgeBatch<T>::allocate(const std::shared_ptr<Backend>& backend) {
  Work<S>& memory = work<S>();
  memory.products = Buffer<S>(backend, parts() * rows_.cols() * most_);
  memory.sum = Buffer<S>(backend, longest() * most_);
  memory.components = Buffer<S>(backend, (of_data() ? rows_.rows() : rows_.cols()) * most_);
  if (std::is_same_v<S, T>) return;
  const Index together_rows = std::min(FoldRows<T>::together, rows_.rows());
  memory.rows = Buffer<S>(backend, together_rows * rows_.cols());
  memory.data = Buffer<S>(backend, together_rows * most_);
}

template <Scalar T>
void RidgeBatch<T>::load(MatrixView<const T> B) {
  const Index m = rows_.rows();
  columns_ = B.cols;
  std::fill(references_.begin(), references_.end(), Wide(0));
  std::fill(sums_.begin(), sums_.end(), Wide(0));
  std::fill(reference_norms_.begin(), reference_norms_.end(), 0.0);
  const std::vector<Index>& numbers = rows_.numbers();
  for (Index j = 0; j < columns_; ++j) {
    const T *const from = B.column(j), *const end = from + m;
    T* const to = data().column(j);
    Wide sum(0);
    for (Index i = 0; i < m; ++i) sum += Wide(from[i]) * rows_.weights()[at(i)];
    const bool is_constant = std::all_of(from, end, [&](T b) { return b == *from; });
    if (options_.centred && m > 0)
      references_[at(j)] =
          is_constant ? Wide(*from) : Wide(T(sum / rows_.weight_of_others(RidgeModel<T>::all)));
    const auto reference = T(references_[at(j)]);
    double largest = 0;
    for (Index i = 0; i < m; ++i)
      largest = std::max(largest, std::abs(from[numbers[at(i)]] - reference) * rows_.roots()[at(i)]);
    powers_[at(j)] = power_of<T>(largest);
    for (Index i = 0; i < m; ++i)
      to[i] = (from[numbers[at(i)]] - reference) *
              static_cast<Real<T>>(std::ldexp(rows_.roots()[at(i)], powers_[at(j)]));
    for (Index f = 0; f < rows_.folds(); ++f) {
      const Range fold = rows_.fold(f);
      for (Index i = fold.begin; i < fold.end(); ++i)
        sums_[at(f * columns_ + j)] += Wide(to[i]) * rows_.roots()[at(i)];
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
  return sum / model.weight;
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
    const Wide sum = mean_of(model, j) * model.weight;
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

template <Scalar T>
void RidgeBatch<T>::score(const RidgeModel<T>& model, double* scores) {
  if (columns_ == 0) return;
  const AtWork at_work;
  if (of_data() && model.fold == RidgeModel<T>::all) return score_left_out(model, scores);
  in_precision([&]<Scalar S>() { score_columns<S>(model, scores); });
}

/// The data that a model predicts, and what is known of them.
template <Scalar T>
MatrixView<T> RidgeBatch<T>::tested(const RidgeModel<T>& model, Range some) {
  const Index rows = model.tested.size;
  const MatrixView<T> Y = tested_.matrix(rows, some.size);
  for (Index j = 0; j < some.size; ++j)
    tested_columns_[at(j)] = {data().column(some.begin + j) + model.tested.begin,
                              rows_,
                              model.tested,
                              model.fold == RidgeModel<T>::all ? model.weight : rows_.weight_of(model.fold),
                              powers_[at(some.begin + j)],
                              mean_of(model, some.begin + j),
                              Y.column(j)};
  return Y;
}

template <Scalar T>
template <Scalar S>
void RidgeBatch<T>::score_columns(const RidgeModel<T>& model, double* scores) {
  const MatrixView<S> W = components<S>(model);
  const TraceRegion region("scores");
  const bool divides = model.fold == RidgeModel<T>::all, correlates = score_ == RidgeScore::correlation;
  const Index dampings = std::ssize(options_.alphas);
  for (Index first = 0; first < columns_; first += together) {
    const Range some{first, std::min(together, columns_ - first)};
    const MatrixView<T> Y = tested(model, some), data = model.is_rotated ? rotated(model, Y) : Y,
                        E = residuals_.matrix(model.rows_of_R, some.size);
    for (Index d = 0; d < dampings; ++d) {
      predict<S>(model, W.col_block(some), options_.alphas[at(d)], data, E);
      const double rest = divides ? divide_residuals(model, d, E) : 1;
      for (Index j = 0; j < some.size; ++j) {
        TestedColumn<T> column = tested_columns_[at(j)];
        column.rest *= rest;
        if (correlates && !model.is_rotated)
          std::transform(data.column(j), data.column(j) + E.rows, E.column(j), E.column(j), std::minus<>());
        scores[d + (first + j) * dampings] =
            std::isnan(rest) ? rest
            : correlates     ? column.correlation(model, data.column(j), E.column(j))
                             : column.score_of(norm_of_column(E.column(j), E.rows), score_);
      }
    }
  }
}

/// QᴴY. What it lacks of Y, predictions cannot reach.
template <Scalar T>
MatrixView<T> RidgeBatch<T>::rotated(const RidgeModel<T>& model, MatrixView<T> Y) {
  const MatrixView<T> rotated = rotated_.matrix(model.rows_of_R, Y.cols);
  multiply<T>(Op::adjoint, T(1), model.rotation(), Y, T(0), rotated);
  if (model.rows_of_R == Y.rows) return rotated;
  multiply<T>(Op::none, T(-1), model.rotation(), rotated, T(1), Y);
  for (Index j = 0; j < Y.cols; ++j) tested_columns_[at(j)].rest = norm_of_column(Y.column(j), Y.rows);
  return rotated;
}

/// E ← data − R w, the residuals of predictions by the components W. For correlations within a fold E is a
/// multiple of R w, which a large damping leaves no digits in the residuals.
template <Scalar T>
template <Scalar S>
void RidgeBatch<T>::predict(const RidgeModel<T>& model, MatrixView<const S> W, double alpha,
                            MatrixView<const T> data, MatrixView<T> E) {
  const bool predictions = score_ == RidgeScore::correlation && model.is_rotated;
  const Index size = model.size();
  const double unit = predictions && size > 0 ? model.values.back() + alpha : 1;
  for (Index k = 0; k < size; ++k) weights_[at(k)] = model.inverse(k, alpha) * (unit > 0 ? unit : 1);
  const MatrixView<T> U = weighted_.matrix(size, W.cols);
  for (Index j = 0; j < W.cols; ++j) {
    for (Index k = 0; k < size; ++k) U(k, j) = T(W(k, j) * static_cast<Real<S>>(weights_[at(k)]));
    if (predictions) {
      std::fill_n(E.column(j), E.rows, T(0));
    } else {
      std::copy_n(data.column(j), E.rows, E.column(j));
    }
  }
  // A few rows of the triangle at a time, so that most of its zeros are not multiplied.
  const Index strip = std::max<Index>(64, (E.rows + 7) / 8);
  for (Index row = 0; row < E.rows; row += strip) {
    const Index height = std::min(strip, E.rows - row), begin = model.is_rotated ? row : 0;
    multiply<T>(Op::none, T(predictions ? 1 : -1),
                model.triangle().block({row, height}, {begin, size - begin}),
                U.row_block({begin, size - begin}), T(1), E.row_block({row, height}));
  }
}

/// The scores of a model of data of the rows that it is trained with.
template <Scalar T>
void RidgeBatch<T>::score_left_out(const RidgeModel<T>& model, double* scores) {
  const MatrixView<Wide> W = components<Wide>(model);
  const TraceRegion region("scores");
  const Index m = rows_.rows(), size = model.size(), dampings = std::ssize(options_.alphas);
  for (Index first = 0; first < columns_; first += together) {
    const Range some{first, std::min(together, columns_ - first)};
    const MatrixView<T> Y = tested(model, some), E = residuals_.matrix(m, some.size);
    const MatrixView<Wide> U = left_out_.matrix(size, some.size), made = wide_.sum.matrix(m, some.size);
    for (Index d = 0; d < dampings; ++d) {
      double sum = 0;
      for (Index k = 0; k < size; ++k) {
        const double weight = model.residual_weight(k, options_.alphas[at(d)]);
        sum += weight;
        for (Index j = 0; j < some.size; ++j) U(k, j) = W(k, first + j) * weight;
      }
      if (options_.by_rows)
        multiply<Wide>(Op::none, Wide(1), model.template basis_in<Wide>(), U, Wide(0), made);
      const double* const of_rows = model.leverage.data() + d * m;
      for (Index j = 0; j < some.size; ++j) {
        const TestedColumn<T>& column = tested_columns_[at(j)];
        double& score = scores[d + (first + j) * dampings];
        if (!options_.by_rows) {
          score = column.score_of(norm_of_column(U.column(j), size) / (sum / static_cast<double>(m)), score_);
          continue;
        }
        const bool correlates = score_ == RidgeScore::correlation;
        for (Index i = 0; i < m; ++i)
          E(i, j) = correlates ? T(Wide(Y(i, j)) - made(i, j) / of_rows[i]) : T(made(i, j) / of_rows[i]);
        score = correlates ? column.correlation(model, Y.column(j), E.column(j))
                           : column.score_of(norm_of_column(E.column(j), m), score_);
      }
    }
  }
}

template <Scalar T>
double RidgeBatch<T>::mean_leverage(const RidgeModel<T>& model, double alpha) const {
  double trace = options_.centred ? 1 : 0;
  for (Index k = 0; k < model.size(); ++k) trace += model.values[at(k)] * model.inverse(k, alpha);
  return trace / static_cast<double>(model.tested.size);
}

/// Makes residuals of predictions from all rows those of predictions from all others. Returns what the rest
/// of the data is multiplied by; NaN if a row decides its own prediction.
template <Scalar T>
double RidgeBatch<T>::divide_residuals(const RidgeModel<T>& model, Index d, MatrixView<T> E) const {
  constexpr double least = RidgeModel<T>::least_left, none = std::numeric_limits<double>::quiet_NaN();
  if (model.is_rotated) {
    const double left = 1 - mean_leverage(model, options_.alphas[at(d)]);
    for (Index j = 0; j < E.cols; ++j)
      for (Index i = 0; i < E.rows; ++i) E(i, j) *= static_cast<Real<T>>(1 / left);
    return left > least ? 1 / left : none;
  }
  const double* const leverage = &model.leverage[at(d * E.rows)];
  for (Index j = 0; j < E.cols; ++j)
    for (Index i = 0; i < E.rows; ++i) E(i, j) *= static_cast<Real<T>>(1 / (1 - leverage[i]));
  return std::all_of(leverage, leverage + E.rows, [](double h) { return 1 - h > least; }) ? 1 : none;
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
  const MatrixView<T> rounded = dual_step_.matrix(made.rows, columns_),
                      dual = dual_.matrix(made.rows, columns_), products = gradient_.matrix(X.rows, columns_);
  convert<S, T>(made, rounded);
  for (Index j = 0; j < columns_; ++j)
    for (Index i = 0; i < made.rows; ++i) dual(i, j) = (beta == T(0) ? T(0) : dual(i, j)) + rounded(i, j);
  std::fill_n(products.data, products.size(), T(0));
  rows_.for_each([&](Index, Range places, MatrixView<const T> A) {
    const AtWork while_multiplying;
    if (columns_ > 0) multiply<T>(Op::adjoint, T(1), A, rounded.row_block(places), T(1), products);
  });
  for (Index j = 0; j < columns_; ++j) {
    Wide sum(0);
    for (Index i = 0; i < made.rows; ++i) sum += Wide(rounded(i, j)) * rows_.roots()[at(i)];
    for (Index i = 0; i < X.rows; ++i) {
      const double scale = model.scale[at(i)];
      const Wide step = (Wide(products(i, j)) - product(conjugate(model.mean[at(i)]), sum)) * scale * scale;
      X(i, j) = T((beta == T(0) ? Wide(0) : Wide(X(i, j))) + step);
    }
  }
}

template <Scalar T>
void RidgeBatch<T>::fit(const RidgeModel<T>& model, std::span<const double> alphas, MatrixView<T> X,
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
      for (Index k = 0; k < W.rows; ++k) W(k, j) *= static_cast<Real<S>>(model.inverse(k, alphas[at(j)]));
    std::fill_n(X.data, X.size(), T(0));
    expand<S>(model, W, T(0), X);
  });
  constexpr int most_corrections = 2;
  for (int corrections = 0;; ++corrections) {
    find_gradient(model, alphas, X);
    std::array<double, 1> unsolved{judge_columns(model, alphas, X, columns) ? 0.0 : 1.0};
    comm_.all_reduce(unsolved, ReduceOp::max);
    if (unsolved[0] == 0 || corrections == most_corrections) break;
    in_precision([&]<Scalar S>() {
      const MatrixView<S> G = work<S>().sum.matrix(of_data() ? rows_.rows() : rows_.cols(), columns_),
                          W = work<S>().components.matrix(model.size(), columns_);
      if (of_data()) {
        // The residuals of (A S²Aᴴ + α) u = y are in the place of Y.
        convert<T, S>(dual_step_.matrix(G.rows, columns_), G);
      } else {
        // S⁻¹ times the gradient takes the place of Aᴴ Y.
        for (Index j = 0; j < columns_; ++j)
          for (Index i = 0; i < G.rows; ++i)
            G(i, j) = S(gradient_.data()[i + j * G.rows]) / static_cast<Real<S>>(model.scale[at(i)]);
      }
      multiply<S>(Op::adjoint, S(1), model.template basis_in<S>(), G, S(0), W);
      for (Index j = 0; j < columns_; ++j)
        for (Index k = 0; k < W.rows; ++k) W(k, j) *= static_cast<Real<S>>(model.inverse(k, alphas[at(j)]));
      expand<S>(model, W, T(1), X);
    });
  }
  for (Index j = 0; j < columns_; ++j) {
    RidgeColumn& column = columns[j];
    column.residual_norm = std::ldexp(column.residual_norm, -powers_[at(j)]);
    column.normal_residual_norm = std::ldexp(column.normal_residual_norm,
                                             -powers_[at(j)] - (options_.standardized ? 0 : rows_.power()));
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
void RidgeBatch<T>::find_gradient(const RidgeModel<T>& model, std::span<const double> alphas,
                                  MatrixView<const T> X) {
  const TraceRegion region("gradients");
  const Index n = rows_.cols();
  const MatrixView<T> G = gradient_.matrix(n, columns_);
  std::fill_n(G.data, G.size(), T(0));
  for (Index j = 0; j < columns_; ++j) {
    Residual& residual = residuals_of_columns_[at(j)] = {};
    residual.shift = -mean_of(model, j);
    for (Index i = 0; i < n; ++i) residual.shift += product(model.mean[at(i)], Wide(X(i, j)));
  }
  rows_.for_each([&](Index, Range places, MatrixView<const T> A) {
    const AtWork at_work;
    if (columns_ == 0) return;
    const MatrixView<T> E = residuals_.matrix(places.size, columns_);
    for (Index j = 0; j < columns_; ++j) {
      const T* const y = data().column(j) + places.begin;
      for (Index i = 0; i < places.size; ++i)
        E(i, j) = T(Wide(y[i]) + rows_.roots()[at(places.begin + i)] * residuals_of_columns_[at(j)].shift);
    }
    multiply<T>(Op::none, T(-1), A, X, T(1), E);
    for (Index j = 0; j < columns_; ++j) {
      Residual& residual = residuals_of_columns_[at(j)];
      for (Index i = 0; i < places.size; ++i)
        residual.sum += Wide(E(i, j)) * rows_.roots()[at(places.begin + i)];
      residual.squares.add(reinterpret_cast<const Real<T>*>(E.column(j)),
                           places.size * (is_complex<T> ? 2 : 1));
      for (Index i = 0; of_data() && i < places.size; ++i) {
        const Index place = places.begin + i + j * rows_.rows();
        dual_step_.data()[place] = T(Wide(E(i, j)) - alphas[at(j)] * Wide(dual_.data()[place]));
      }
    }
    multiply<T>(Op::adjoint, T(1), A, E, T(1), G);
  });
  for (Index j = 0; j < columns_; ++j) {
    for (Index i = 0; i < n; ++i) {
      const double scale = model.scale[at(i)];
      const Wide gradient =
          Wide(G(i, j)) - product(conjugate(model.mean[at(i)]), residuals_of_columns_[at(j)].sum);
      G(i, j) = T(gradient * scale - Wide(X(i, j)) * (alphas[at(j)] / scale));
    }
  }
}

/// Sets the verdicts and norms of the columns. Returns whether all are solved.
template <Scalar T>
bool RidgeBatch<T>::judge_columns(const RidgeModel<T>& model, std::span<const double> alphas,
                                  MatrixView<const T> X, RidgeColumn* columns) const {
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
    norms.residual_norm = residuals_of_columns_[at(j)].squares.root();
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
Index RidgeBatch<T>::bytes_of_column(Index rows, Index cols, Index folds, bool of_data, bool is_narrow,
                                     bool with_coefficients) {
  const Index narrow = sizeof(T), wide = is_narrow ? narrow : Index{sizeof(Wide)};
  const Index parts = of_data ? (with_coefficients ? 1 : 0) : folds;
  // B and X in the order of the batch, Y, the gradient, of data what it is made of, and twice what is sent.
  return (2 * rows + 2 * std::max(rows, cols) +
          (with_coefficients ? 2 * cols + (of_data ? 2 * rows : 0) : 0)) *
             narrow +
         (parts * cols + std::max(rows, cols) + (of_data ? rows : cols)) * wide;
}

#define GRIDLOPS_INSTANTIATE(T) template class RidgeBatch<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
