// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <vector>

#include "gridlops/solve/ridge.hpp"
#include "support/lapack.hpp"

namespace gridlops::testing {

/// A ridge by its definition: each training set is copied, centred, standardised, and solved for each damping
/// by LAPACK's QR of [A; D·I], with rows times the roots of their weights.
template <Scalar T>
class ReferenceRidge {
  using Wide = Accumulator<T>;

 public:
  ReferenceRidge(Index m, Index n, Element<T> A, Element<T> B, const RidgeOptions& options)
      : m_(m), n_(n), A_(std::move(A)), B_(std::move(B)), options_(options) {}

  /// Coefficients and the intercept of column j, from these rows.
  struct Fit {
    std::vector<Wide> x;
    Wide intercept;
    Wide predicted(const Element<T>& A, Index i) const {
      Wide p = intercept;
      for (std::size_t k = 0; k < x.size(); ++k) p += Wide(A(i, static_cast<Index>(k))) * x[k];
      return p;
    }
  };
  Fit fit(const std::vector<Index>& rows, Index j, double alpha) const {
    double count = 0;
    for (const Index i : rows) count += weight(i);
    std::vector<Wide> mean(static_cast<std::size_t>(n_), Wide(0));
    std::vector<double> scale(mean.size(), 1.0);
    Wide of_b(0);
    for (const Index i : rows) of_b += Wide(B_(i, j)) * (weight(i) / count);
    for (std::size_t k = 0; k < mean.size(); ++k) {
      for (const Index i : rows) mean[k] += Wide(A_(i, static_cast<Index>(k))) * (weight(i) / count);
      double variance = 0;
      for (const Index i : rows)
        variance += std::norm(Wide(A_(i, static_cast<Index>(k))) - mean[k]) * weight(i) / count;
      if (options_.standardize && variance > 1e-20) scale[k] = std::sqrt(variance);
      if (!options_.intercept) mean[k] = 0;
    }
    if (!options_.intercept) of_b = 0;
    Fit fit{lapack_solution<Wide>(
                static_cast<Index>(rows.size()), n_,
                [&](Index i, Index k) {
                  const auto column = static_cast<std::size_t>(k);
                  const Index row = rows[static_cast<std::size_t>(i)];
                  return (Wide(A_(row, k)) - mean[column]) * (std::sqrt(weight(row)) / scale[column]);
                },
                [&](Index i, Index) {
                  const Index row = rows[static_cast<std::size_t>(i)];
                  return (Wide(B_(row, j)) - of_b) * std::sqrt(weight(row));
                },
                0, std::sqrt(alpha)),
            of_b};
    for (std::size_t k = 0; k < mean.size(); ++k) {
      fit.x[k] /= scale[k];
      fit.intercept -= mean[k] * fit.x[k];
    }
    return fit;
  }
  std::vector<Index> all_rows() const {
    std::vector<Index> rows;
    for (Index i = 0; i < m_; ++i) rows.push_back(i);
    return rows;
  }

  /// w: the weights of the rows.
  double score(const std::vector<Wide>& y, const std::vector<Wide>& p, const std::vector<double>& w) const {
    double count = 0;
    for (const double weight : w) count += weight;
    Wide mean_y(0), mean_p(0), both(0);
    double error = 0, of_y = 0, of_p = 0;
    for (std::size_t i = 0; i < y.size(); ++i) mean_y += y[i] * (w[i] / count);
    for (std::size_t i = 0; i < y.size(); ++i) mean_p += p[i] * (w[i] / count);
    for (std::size_t i = 0; i < y.size(); ++i) {
      error += w[i] * std::norm(y[i] - p[i]);
      of_y += w[i] * std::norm(y[i] - mean_y);
      of_p += w[i] * std::norm(p[i] - mean_p);
      both += conjugate(p[i] - mean_p) * (y[i] - mean_y) * w[i];
    }
    if (options_.score == RidgeScore::negative_mse) return -error / count;
    if (options_.score == RidgeScore::r2) return of_y == 0 ? (error == 0 ? 1 : 0) : 1 - error / of_y;
    return std::real(both) / std::sqrt(of_p * of_y);
  }
  /// The mean score over the folds, or of all rows, each predicted from the others.
  double score(Index j, double alpha) const {
    if (options_.validation == RidgeValidation::leave_one_out) {
      std::vector<Wide> y, p;
      std::vector<double> w;
      for (Index i = 0; i < m_; ++i) {
        std::vector<Index> others = all_rows();
        others.erase(others.begin() + i);
        y.push_back(B_(i, j));
        w.push_back(weight(i));
        p.push_back(fit(others, j, alpha).predicted(A_, i));
      }
      return score(y, p, w);
    }
    std::vector<Index> labels = options_.folds;
    std::sort(labels.begin(), labels.end());
    labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
    double sum = 0, folds = 0;
    for (const Index label : labels) {
      if (label < 0) continue;
      std::vector<Index> training;
      std::vector<Wide> y, p;
      std::vector<double> w;
      for (Index i = 0; i < m_; ++i)
        if (options_.folds[static_cast<std::size_t>(i)] != label) training.push_back(i);
      const Fit of_others = fit(training, j, alpha);
      for (Index i = 0; i < m_; ++i) {
        if (options_.folds[static_cast<std::size_t>(i)] != label) continue;
        y.push_back(B_(i, j));
        w.push_back(weight(i));
        p.push_back(of_others.predicted(A_, i));
      }
      sum += score(y, p, w);
      ++folds;
    }
    return sum / folds;
  }

 private:
  double weight(Index i) const {
    return options_.weights.empty() ? 1 : options_.weights[static_cast<std::size_t>(i)];
  }

  const Index m_, n_;
  const Element<T> A_, B_;
  const RidgeOptions options_;
};

}  // namespace gridlops::testing
