// SPDX-License-Identifier: BSD-3-Clause
#include "solve/run/batch_scale.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "solve/problem_scale.hpp"

namespace gridlops {

template <Scalar T>
void BatchScale<T>::scale_data() {
  const std::vector<int> powers = powers_of_columns(batch_.B);
  std::vector<ColumnScale> scales(powers.size());
  for (std::size_t j = 0; j < powers.size(); ++j)
    if (std::abs(powers[j]) > unscaled_powers<T>) scales[j].b = -powers[j];
  set(scales);
}

template <Scalar T>
bool BatchScale<T>::scale_operator(int tries) {
  const bool adds_D2_to_A = batch_.solve.method.traits().test == ToleranceTest::residual;
  double norm = 0;
  bool has_data = false;
  for (const ColumnState& column : batch_.verdicts.all()) {
    if (!std::isfinite(column.data_norm)) continue;
    // A guess is damped, data or not.
    norm = std::max(norm, adds_D2_to_A ? column.damp * column.damp : column.damp);
    // Nor does an exact guess for A x = b, without a residual to multiply, tell how large A is.
    if (column.data_norm == 0 || (adds_D2_to_A && column.tested_norm == 0)) continue;
    has_data = true;
    norm = std::max(norm, std::isnan(column.operator_norm) ? std::numeric_limits<double>::infinity()
                                                           : column.operator_norm);
  }
  const int before = batch_.operator_power();
  const int change = has_data || norm > 0 ? change_of_power<T>(norm, before, tries) : 0;
  if (change == 0) return false;
  std::vector<ColumnScale> scales;
  for (const ColumnState& column : batch_.verdicts.all()) {
    const int power = before + change;
    scales.push_back({.A = power, .b = column.scale.b, .damp = adds_D2_to_A ? power / 2 : power});
  }
  set(scales);
  return true;
}

/// Sets these scales for the columns, which are all in their places.
template <Scalar T>
void BatchScale<T>::set(const std::vector<ColumnScale>& scales) {
  std::vector<int> changes;
  for (std::size_t j = 0; j < scales.size(); ++j) {
    const auto column = static_cast<Index>(j);
    changes.push_back(scales[j].x() - batch_.verdicts[column].scale.x());
    batch_.verdicts.set_scale(column, scales[j]);
  }
  if (batch_.begins_from_x) multiply_by_powers(batch_.solve.state.x(), changes);
  batch_.solve.method.scale_operator(batch_.operator_power(), batch_.columns.sizes);
}

template <Scalar T>
void BatchScale<T>::undo(DistMatrix<T>& whole_X, const ActiveColumns& places) const {
  std::vector<int> powers;
  for (int part = 0; part < batch_.columns.sizes.parts(); ++part)
    for (const Index column : places.order(part))
      powers.push_back(-batch_.verdicts[batch_.columns.sizes.begin(part) + column].scale.x());
  DistMatrix<T> of_batch = whole_X.column_slice(batch_.columns.first, batch_.columns.sizes);
  multiply_by_powers(of_batch, powers);
}

template <Scalar T>
void BatchScale<T>::resume() {
  for (Index j = 0; j < batch_.columns.sizes.total(); ++j)
    batch_.verdicts.set_scale(j, batch_.verdicts[j].scale);
  batch_.solve.method.scale_operator(batch_.operator_power(), batch_.columns.sizes);
}

template <Scalar T>
bool BatchScale<T>::is_on() const {
  const std::vector<ColumnState>& all = batch_.verdicts.all();
  return std::any_of(all.begin(), all.end(), [](const ColumnState& column) { return column.scale.x() != 0; });
}

#define GRIDLOPS_INSTANTIATE(T) template class BatchScale<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
