// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/dist/dist_matrix.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "base/instantiate.hpp"
#include "base/lone_error.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "base/square_sum.hpp"
#include "comm/failure/failure.hpp"
#include "dist/column_powers.hpp"
#include "gridlops/base/error.hpp"

namespace gridlops {

template <Scalar T>
ConstDistMatrix<T>::ConstDistMatrix(std::shared_ptr<const ProcessGrid> grid, Layout layout)
    : grid_(std::move(grid)), layout_(std::move(layout)) {
  layout_.check(*grid_);
  if (!grid_->is_member()) return;
  const int row = grid_->my_row();
  const int col = grid_->my_col();
  row_range_ = layout_.row_range(*grid_, row, col);
  col_range_ = layout_.col_range(*grid_, row, col);
  owned_ = layout_.owned_at(*grid_, row, col);
}

template <Scalar T>
ConstDistMatrix<T>::ConstDistMatrix(std::shared_ptr<const ProcessGrid> grid, Layout layout,
                                    MatrixView<const T> local)
    : ConstDistMatrix(std::move(grid), std::move(layout)) {
  require_here<ShapeError>(local.rows == row_range_.size && local.cols == col_range_.size &&
                               (local.stride >= local.rows || local.cols <= 1),
                           "a local block of ", local.rows, " x ", local.cols, " with stride ", local.stride,
                           " cannot be this rank's part of ", layout_.describe(), ", which is ",
                           row_range_.size, " x ", col_range_.size,
                           "; give a block of that shape with a stride of at least its rows");
  local_ = local;
}

template <Scalar T>
auto ConstDistMatrix<T>::find_columns(const std::vector<Index>& first, const Partition& part_sizes) const
    -> ColumnSlice {
  const Partition& whole = layout_.cols.partition;
  require<ShapeError>(
      part_sizes.parts() == whole.parts() && first.size() == static_cast<std::size_t>(whole.parts()),
      "a slice of columns names ", part_sizes.parts(), " parts, the matrix ", layout_.describe(), " has ",
      whole.parts());
  for (int part = 0; part < whole.parts(); ++part) {
    const Index begin = first[at(part)];
    require<ShapeError>(begin >= 0 && begin + part_sizes.size(part) <= whole.size(part), "columns ", begin,
                        " to ", begin + part_sizes.size(part), " are asked of part ", part, ", which has ",
                        whole.size(part));
  }
  Range local_columns;
  if (grid_->is_member()) {
    const int part = grid_->my_part(layout_.cols.axis);
    local_columns = {first[at(part)], part_sizes.size(part)};
  }
  return {{layout_.rows, {layout_.cols.axis, part_sizes}}, local_columns};
}

template <Scalar T>
ConstDistMatrix<T> ConstDistMatrix<T>::column_slice(const std::vector<Index>& first,
                                                    const Partition& part_sizes) const {
  ColumnSlice slice = find_columns(first, part_sizes);
  return {grid_, std::move(slice.layout), local_.col_block(slice.local_columns)};
}

template <Scalar T>
DistMatrix<T> ConstDistMatrix<T>::clone() const {
  DistMatrix<T> result(grid_, layout_);
  copy(*this, result);
  return result;
}

template <Scalar T>
DistMatrix<T>::DistMatrix(std::shared_ptr<const ProcessGrid> grid, Layout layout)
    : ConstDistMatrix<T>(std::move(grid), std::move(layout)) {
  const Index rows = this->local_row_range().size, cols = this->local_col_range().size;
  memory_ = Buffer<T>(this->grid()->backend(), rows * cols);
  local_ = memory_.matrix(rows, cols);
  this->attach(local_);
}

template <Scalar T>
DistMatrix<T>::DistMatrix(std::shared_ptr<const ProcessGrid> grid, Layout layout, MatrixView<T> local)
    : ConstDistMatrix<T>(std::move(grid), std::move(layout), local), local_(local), is_callers_(true) {}

template <Scalar T>
void DistMatrix<T>::fill(const std::function<T(Index i, Index j)>& value) {
  const Index first_row = this->local_row_range().begin, first_col = this->local_col_range().begin;
  std::vector<T> column(static_cast<std::size_t>(local_.rows));
  for (Index j = 0; j < local_.cols; ++j) {
    for (Index i = 0; i < local_.rows; ++i) column[at(i)] = value(first_row + i, first_col + j);
    this->grid()->backend()->upload(column.data(), local_.column(j), local_.rows * Index{sizeof(T)});
  }
}

template <Scalar T>
void DistMatrix<T>::set_zero() {
  this->grid()->backend()->template kernels<T>().fill(T(0), local_);
}

template <Scalar T>
void DistMatrix<T>::discard_local_columns(Index count) {
  if (memory_.size() > 0)
    this->grid()->backend()->discard(memory_.data(), count * local_.rows * Index{sizeof(T)});
}

template <Scalar T>
DistMatrix<T> DistMatrix<T>::column_slice(const std::vector<Index>& first, const Partition& part_sizes) {
  typename ConstDistMatrix<T>::ColumnSlice slice = this->find_columns(first, part_sizes);
  return {this->grid(), std::move(slice.layout), local_.col_block(slice.local_columns)};
}

namespace {

/// Sums the values over the ranks.
template <class Value>
void take_sums(FailureScope& failures, Communicator& comm, std::vector<Value>& values) {
  failures.reduce(comm, values);
}

/// Takes the maximum of numbers ≥ 0 over the ranks; NaN if one is NaN. Such numbers are ordered as their bits
/// are, with NaN above infinity; a maximum of doubles may lose NaN.
void take_largest(FailureScope& failures, Communicator& comm, std::vector<double>& values) {
  std::vector<std::int64_t> bits(values.size());
  const auto bits_of = [](double value) { return std::bit_cast<std::int64_t>(std::abs(value)); };
  std::transform(values.begin(), values.end(), bits.begin(), bits_of);
  failures.reduce(comm, bits, ReductionOrder::any, ReduceOp::max);
  std::transform(bits.begin(), bits.end(), values.begin(), [](auto of) { return std::bit_cast<double>(of); });
}

/// One value per global column, reduced over the canonical owners (collective over the grid). compute()
/// writes the values of this rank's columns.
template <class Value, Scalar T, class Compute>
std::vector<Value> reduced_over_owners(const ConstDistMatrix<T>& X, const Compute& compute,
                                       void (*reduce)(FailureScope&, Communicator&, std::vector<Value>&)) {
  std::vector<Value> values(static_cast<std::size_t>(X.cols()), Value(0));
  const ProcessGrid& grid = *X.grid();
  if (!grid.is_member()) return values;
  FailureScope failures;
  failures.run([&] {
    if (X.owned() && X.local().cols > 0)
      compute(grid.backend()->template kernels<T>(), values.data() + X.local_col_range().begin);
  });
  reduce(failures, grid.comm(), values);
  return values;
}

}  // namespace

template <Scalar T>
DistMatrix<T> allocate_matrix(std::shared_ptr<const ProcessGrid> grid, Layout layout) {
  if (!grid->is_member()) return DistMatrix<T>(std::move(grid), std::move(layout));
  return attempt(grid->comm(), [&] { return DistMatrix<T>(grid, std::move(layout)); });
}

template <Scalar T>
DistMatrix<T> planned_matrix(std::shared_ptr<const ProcessGrid> grid, Layout layout) {
  if (!grid->is_member()) return DistMatrix<T>(std::move(grid), std::move(layout));
  const int row = grid->my_row(), col = grid->my_col();
  const MatrixView<T> block(nullptr, layout.row_range(*grid, row, col).size,
                            layout.col_range(*grid, row, col).size);
  DistMatrix<T> matrix(std::move(grid), std::move(layout), block);
  matrix.is_callers_ = false;
  return matrix;
}

template <Scalar T>
void require_same_layout(const ConstDistMatrix<T>& X, const ConstDistMatrix<T>& Y,
                         std::string_view operation) {
  if (X.grid() == Y.grid() && X.layout() == Y.layout()) return;
  throw ShapeError(message(operation, " of matrices that lie differently: ", X.layout().describe(), " and ",
                           Y.layout().describe(), "; redistribute one of them to the layout of the other"));
}

template <Scalar T>
std::vector<Accumulator<T>> column_dots(const ConstDistMatrix<T>& X, const ConstDistMatrix<T>& Y) {
  require_same_layout(X, Y, "dot products");
  return reduced_over_owners<Accumulator<T>>(
      X,
      [&](const Kernels<T>& kernels, Accumulator<T>* dots) {
        kernels.column_dots(X.local(), Y.local(), dots);
      },
      take_sums<Accumulator<T>>);
}

namespace {

/// The norms of columns whose squares overflow or underflow in double precision, computed from columns scaled
/// by powers of two.
template <Scalar T>
void repair_norms(const ConstDistMatrix<T>& X, std::vector<double>& norms) {
  const auto is_lost = [](double norm) { return norm < 0x1p-480 || (norm > 0x1p480 && !std::isnan(norm)); };
  if (sizeof(Real<T>) < sizeof(double) || std::none_of(norms.begin(), norms.end(), is_lost)) return;
  std::vector<int> powers = powers_of_columns(X);
  for (std::size_t j = 0; j < norms.size(); ++j)
    if (!is_lost(norms[j])) powers[j] = 0;
  if (std::all_of(powers.begin(), powers.end(), [](int power) { return power == 0; })) return;
  DistMatrix<T> scaled = allocate_matrix<T>(X.grid(), X.layout());
  copy(X, scaled);
  for (int& power : powers) power = -power;
  FailureScope().run([&] { multiply_by_powers(scaled, powers); });
  const std::vector<double> of_scaled = column_norms(scaled);
  for (std::size_t j = 0; j < norms.size(); ++j)
    if (powers[j] != 0) norms[j] = std::ldexp(of_scaled[j], -powers[j]);
}

}  // namespace

template <Scalar T>
std::vector<double> column_norms(const ConstDistMatrix<T>& X, double order) {
  require<UsageError>(order >= 0, "norms have an order of at least 0, and not ", order,
                      "; 0 counts the elements that are not 0");
  std::vector<double> norms = reduced_over_owners<double>(
      X,
      [&](const Kernels<T>& kernels, double* sums) {
        if (order == 2) return kernels.column_norms_squared(X.local(), sums);
        kernels.column_power_sums(order, X.local(), sums);
      },
      std::isinf(order) ? take_largest : take_sums<double>);
  if (order == 0 || std::isinf(order)) return norms;
  for (double& norm : norms) norm = order == 2 ? std::sqrt(norm) : std::pow(norm, 1 / order);
  if (order == 2) repair_norms(X, norms);
  return norms;
}

template <Scalar T>
double frobenius_norm(const ConstDistMatrix<T>& X) {
  return norm_of(column_norms(X));
}

template <Scalar T>
void copy(const ConstDistMatrix<T>& X, DistMatrix<T>& Y) {
  require_same_layout(X, Y, "copy");
  X.grid()->backend()->template kernels<T>().copy(X.local(), Y.local());
}

#define GRIDLOPS_INSTANTIATE(T)                                                                              \
  template class ConstDistMatrix<T>;                                                                         \
  template class DistMatrix<T>;                                                                              \
  template DistMatrix<T> allocate_matrix(std::shared_ptr<const ProcessGrid>, Layout);                        \
  template DistMatrix<T> planned_matrix(std::shared_ptr<const ProcessGrid>, Layout);                         \
  template void require_same_layout(const ConstDistMatrix<T>&, const ConstDistMatrix<T>&, std::string_view); \
  template std::vector<Accumulator<T>> column_dots(const ConstDistMatrix<T>&, const ConstDistMatrix<T>&);    \
  template std::vector<double> column_norms(const ConstDistMatrix<T>&, double);                              \
  template double frobenius_norm(const ConstDistMatrix<T>&);                                                 \
  template void copy(const ConstDistMatrix<T>&, DistMatrix<T>&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
