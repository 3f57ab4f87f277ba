// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/solve/weights.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <span>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "dist/matrix_checks.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/comm/failure.hpp"

namespace gridlops {

namespace {

/// Calls change(i, j, from, to) for pieces of columns of both blocks, in host memory, where i and j are the
/// local indices of the first element, and stores what becomes of `to`.
template <Scalar T, class Change>
void change_block(const ConstDistMatrix<T>& from, DistMatrix<T>& to, const Change& change) {
  constexpr Index most = 1 << 14;
  Backend& backend = *to.grid()->backend();
  const MatrixView<T> block = to.local();
  std::vector<T> read(at(std::min(block.rows, most))), written = read;
  for (Index j = 0; j < block.cols; ++j)
    for (Index i = 0; i < block.rows; i += most) {
      const Index count = std::min(most, block.rows - i), bytes = count * Index{sizeof(T)};
      backend.download(from.local().column(j) + i, read.data(), bytes);
      backend.download(block.column(j) + i, written.data(), bytes);
      change(i, j, std::span<const T>(read.data(), at(count)), std::span<T>(written.data(), at(count)));
      backend.upload(written.data(), block.column(j) + i, bytes);
    }
}

template <Scalar T>
double weight_of(T value, Index row, Index col) {
  const auto weight = static_cast<double>(std::real(value)),
             imaginary = static_cast<double>(std::imag(value));
  if (weight >= 0 && std::isfinite(weight) && imaginary == 0) return weight;
  throw UsageError(message("the weight of row ", row, " of column ", col, " is ", weight,
                           imaginary == 0 ? "" : message(" + ", imaginary, "i"),
                           "; a weight multiplies a residual, and is a finite real number ≥ 0"),
                   KnownTo::one_rank);
}

/// floor(log₂|b|) of the larger part of b, which is neither 0 nor infinite nor NaN; else nothing.
template <Scalar T>
std::optional<int> power_of(T b) {
  const auto larger = std::max(std::abs(std::real(b)), std::abs(std::imag(b)));
  if (!(larger > 0) || !std::isfinite(larger)) return std::nullopt;
  return std::ilogb(larger);
}

/// Maxima over a column. The first are those of weights, and of weights times −1.
enum Maximum : std::size_t {
  of_weights,
  of_negative_weights,
  of_powers,      // of two, in products of a weight and a number
  of_multiplied,  // 1 if a weight is neither 0 nor 1
  maxima
};

/// Throws unless the largest number of a column of W∘B keeps all its digits.
template <Scalar T>
void require_range(std::span<const double> largest, std::size_t column) {
  using Limits = std::numeric_limits<Real<T>>;
  const double power = largest[of_powers];
  if (!(largest[of_multiplied] > 0) || !std::isfinite(power)) return;
  require<UsageError>(power >= Limits::min_exponent + Limits::digits && power + 2 <= Limits::max_exponent,
                      "the numbers of column ", column, " of B, times their weights, are at most about 1e",
                      std::lround(power * std::log10(2.0)), ", which is too near the end of the range of ",
                      name_of(scalar_type_of<T>), "; multiply the weights or B by a constant");
}

}  // namespace

template <Scalar T>
std::vector<WeightRange> weigh(const ConstDistMatrix<T>& W, DistMatrix<T>& B) {
  require_same_layout<T>(W, B, "weights");
  if (!B.grid()->is_member()) return {};
  const std::size_t columns = at(B.cols());
  std::vector<double> found;
  const auto of_column = [&](std::size_t j) { return std::span(found).subspan(maxima * j, maxima); };
  attempt(B.grid()->comm(), [&] {
    require_apart<T>(W, B, "weigh", "the weights and the data");
    found.assign(maxima * columns, -std::numeric_limits<double>::infinity());
    const Index row = B.local_row_range().begin, col = B.local_col_range().begin;
    change_block<T>(W, B, [&](Index i, Index j, std::span<const T> w, std::span<T> b) {
      const std::span<double> largest = of_column(at(col + j));
      const auto raise = [&](Maximum which, double value) {
        largest[which] = std::max(largest[which], value);
      };
      for (std::size_t k = 0; k < w.size(); ++k) {
        const double weight = weight_of(w[k], row + i + static_cast<Index>(k), col + j);
        raise(of_weights, weight);
        raise(of_negative_weights, -weight);
        if (weight != 0 && weight != 1) raise(of_multiplied, 1);
        if (const auto power = power_of(b[k]); power && weight != 0)
          raise(of_powers, std::ilogb(weight) + *power);
        b[k] = weight == 0 ? T(0) : w[k] * b[k];
      }
    });
  });
  B.grid()->comm().all_reduce(found, ReduceOp::max);
  std::vector<WeightRange> ranges;
  for (std::size_t j = 0; j < columns; ++j) {
    require_range<T>(of_column(j), j);
    ranges.push_back(B.rows() == 0
                         ? WeightRange()
                         : WeightRange{-of_column(j)[of_negative_weights], of_column(j)[of_weights]});
  }
  return ranges;
}

template <Scalar T>
Index mark_holes(const ConstDistMatrix<T>& B, DistMatrix<T>& W) {
  require_same_layout<T>(B, W, "weights");
  if (!B.grid()->is_member()) return 0;
  std::array<Index, 1> holes{0};
  attempt(B.grid()->comm(), [&] {
    change_block<T>(B, W, [&](Index, Index, std::span<const T> b, std::span<T> w) {
      for (std::size_t k = 0; k < w.size(); ++k) {
        if (!std::isnan(std::real(b[k])) && !std::isnan(std::imag(b[k]))) continue;
        w[k] = 0;
        holes[0] += B.owned() ? 1 : 0;
      }
    });
  });
  B.grid()->comm().all_reduce(holes, ReduceOp::sum);
  return holes[0];
}

#define GRIDLOPS_INSTANTIATE(T)                                                       \
  template std::vector<WeightRange> weigh(const ConstDistMatrix<T>&, DistMatrix<T>&); \
  template Index mark_holes(const ConstDistMatrix<T>&, DistMatrix<T>&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
