// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/square_sum.hpp"
#include "gridlops/solve/ridge.hpp"
#include "solve/ridge/ridge_models.hpp"

namespace gridlops {

template <Scalar T>
double norm_of_column(const T* column, Index rows) {
  SquareSum sum;
  sum.add(reinterpret_cast<const Real<T>*>(column), rows * (is_complex<T> ? 2 : 1));
  return sum.root();
}

/// One column of data to be predicted, in rows times the roots of their weights.
template <Scalar T>
struct TestedColumn {
  using Wide = Accumulator<T>;

  Index rows = 0;
  const double* roots = nullptr;  ///< of their weights
  double weight = 0;              ///< the sum of these
  int power = 0;                  ///< it is 2^power times the caller's
  double deviation = 0;           ///< ‖y − ȳ‖, 0 if y is constant
  double rest = 0;                ///< the norm of the part that predictions have no share in
  Wide sum{};                     ///< the weighted sum of the data without their training mean

  TestedColumn() = default;
  /// y ← the data without their training mean.
  TestedColumn(const T* data, const FoldRows<T>& of, Range places, double weight_of_places, int power_of_data,
               Wide training, T* y)
      : rows(places.size),
        roots(of.roots().data() + places.begin),
        weight(weight_of_places),
        power(power_of_data) {
    // The rounding of the first sum grows with the rows, and would be a deviation of constant data.
    Wide mean(0);
    for (int pass = 0; pass < 2; ++pass) {
      Wide lacking(0);
      for (Index i = 0; i < rows; ++i) lacking += (Wide(data[i]) - roots[i] * mean) * roots[i];
      mean += lacking / weight;
    }
    SquareSum squares;
    for (Index i = 0; i < rows; ++i) {
      y[i] = T(Wide(data[i]) - roots[i] * training);
      squares.add(std::abs(Wide(data[i]) - roots[i] * mean));
    }
    sum = (mean - training) * weight;
    // Equal data are equal still, unless each has been rounded with another weight.
    const double epsilon = of.is_weighted() ? static_cast<double>(std::numeric_limits<Real<T>>::epsilon())
                                            : std::numeric_limits<double>::epsilon();
    if (squares.root() > 8 * epsilon * std::abs(mean) * std::sqrt(weight)) deviation = squares.root();
  }

  /// r2 or negative_mse of a prediction, of whose residual this is the norm.
  double score_of(double residual_norm, RidgeScore score) const {
    const double error = std::hypot(residual_norm, rest);
    if (score == RidgeScore::negative_mse) {
      const double rms = std::ldexp(error / std::sqrt(weight), -power);
      return -rms * rms;
    }
    if (deviation == 0) return error == 0 ? 1 : 0;
    const double ratio = error / deviation;
    return 1 - ratio * ratio;
  }
  /// Between the data and a prediction p, which may be multiplied by any number, both without the training
  /// mean and, if the model rotates its rows, rotated.
  double correlation(const RidgeModel<T>& model, const T* data, const T* p) const {
    const Index count = model.is_rotated ? model.rows_of_R : rows;
    Wide of_p(0);
    double with_y = 0;
    for (Index i = 0; i < count; ++i) {
      of_p +=
          model.is_rotated ? product(conjugate(Wide(model.ones[at(i)])), Wide(p[i])) : Wide(p[i]) * roots[i];
      with_y += std::real(product(conjugate(Wide(p[i])), Wide(data[i])));
    }
    const double norm = norm_of_column(p, count), mean = std::abs(of_p) / std::sqrt(weight),
                 deviation_of_p = std::sqrt(std::max((norm - mean) * (norm + mean), 0.0)),
                 both = with_y - std::real(product(conjugate(of_p), sum)) / weight;
    const bool is_constant = deviation_of_p <= 1e-6 * norm || deviation == 0;
    return is_constant ? 0 : both / deviation_of_p / deviation;
  }
};

}  // namespace gridlops
