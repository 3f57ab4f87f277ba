// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/ops/band.hpp"

#include <algorithm>
#include <cmath>

#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"
#include "local/arrays/array_kernels.hpp"

namespace gridlops {

namespace {

BandWeights<double> weights_of(const Band& A, const double* data = nullptr) {
  const Index n = A.size(), width = A.lower() + 1 + A.upper();
  return {data, n, -A.lower(), width, {0, n}, {A.head(), n - A.head() - A.tail()}};
}

}  // namespace

Band::Band(Index n, Index lower, Index upper, Index head, Index tail,
           const std::function<double(Index i, Index j)>& element)
    : n_(n), lower_(lower), upper_(upper), head_(std::min(head, n)), tail_(std::min(tail, n - head_)) {
  require<UsageError>(n >= 0 && lower >= 0 && upper >= 0 && head >= 0 && tail >= 0, "a band of order ", n,
                      " with ", lower, " and ", upper, " diagonals beside the main one and ", head, " and ",
                      tail, " rows at its ends has a negative size");
  const BandWeights<double> own = weights_of(*this);
  weights_.resize(at(own.count(1)));
  own.fill(weights_.data(), element);
}

double Band::operator()(Index i, Index j) const {
  if (j - i < -lower_ || j - i > upper_) return 0;
  return weights_of(*this, weights_.data()).weights(0, i, 0)[j - i + lower_];
}

Band Band::transposed() const {
  const Index head = head_ == 0 ? 0 : head_ + upper_, tail = tail_ == 0 ? 0 : tail_ + lower_;
  return {n_, upper_, lower_, head, tail, [this](Index i, Index j) { return (*this)(j, i); }};
}

Band product(const Band& A, const Band& B) {
  const Index n = A.size();
  require<ShapeError>(B.size() == n, "bands of order ", n, " and ", B.size(), " have no product");
  // An inner row of the product combines an inner row of A with the inner rows of B that A's weights reach.
  const Index head = std::max(A.head(), A.lower() + B.head()),
              tail = std::max(A.tail(), A.upper() + B.tail());
  return {n, A.lower() + B.lower(), A.upper() + B.upper(), head, tail, [&](Index i, Index j) {
            double sum = 0;
            for (Index k = std::max<Index>(0, i - A.lower()); k <= std::min(n - 1, i + A.upper()); ++k)
              sum += A(i, k) * B(k, j);
            return sum;
          }};
}

namespace {

/// One row of a derivative: weights of x from column `first` on.
struct Stencil {
  Index first = 0;
  std::vector<double> weights;
};

/// The band with this stencil, relative to the row, in the interior, and with these stencils at the ends. The
/// last rows mirror the first ones, with this sign.
Band band_of(Index n, const Stencil& interior, Index head, Index tail, double factor,
             const std::vector<Stencil>& first_rows, double mirror_sign) {
  const auto reach = static_cast<Index>(interior.weights.size()) - 1 + interior.first;
  Index lower = std::max<Index>(0, -interior.first), upper = std::max<Index>(0, reach);
  for (const Stencil& row : first_rows) {
    const Index size = static_cast<Index>(row.weights.size());
    upper = std::max(upper, size - 1);
    lower = std::max(lower, size - 1);
  }
  const auto weight = [](const Stencil& stencil, Index from_first) {
    return 0 <= from_first && from_first < static_cast<Index>(stencil.weights.size())
               ? stencil.weights[at(from_first)]
               : 0.0;
  };
  const auto ends = static_cast<Index>(first_rows.size());
  return {n, lower, upper, head, tail, [=](Index i, Index j) {
            if (head <= i && i < n - tail) return factor * weight(interior, j - i - interior.first);
            if (i < std::min(head, ends)) return factor * weight(first_rows[at(i)], j);
            if (n - 1 - i < std::min(tail, ends))
              return factor * mirror_sign * weight(first_rows[at(n - 1 - i)], n - 1 - j);
            return 0.0;
          }};
}

void check(const Derivative& how) {
  require<UsageError>(std::isfinite(how.sampling) && how.sampling != 0, "the sampling of a derivative is ",
                      how.sampling, "; it must be finite and not 0");
  require<UsageError>(how.order == 3 || how.order == 5, "the order of a derivative is ", how.order,
                      "; it must be 3 or 5");
}

}  // namespace

Band first_derivative(Index n, const Derivative& how) {
  check(how);
  const double factor = 1 / how.sampling;
  switch (how.kind) {
    case Derivative::Kind::forward:
      return band_of(n, {0, {-1, 1}}, 0, 1, factor, {}, 1);
    case Derivative::Kind::backward:
      return band_of(n, {-1, {-1, 1}}, 1, 0, factor, {}, 1);
    case Derivative::Kind::centered:
      break;
  }
  std::vector<Stencil> ends;
  if (how.edge && n > 1) ends.push_back({0, {-1, 1}});
  if (how.order == 3) return band_of(n, {-1, {-0.5, 0, 0.5}}, 1, 1, factor, ends, -1);
  if (how.edge && n > 2) ends.push_back({0, {-0.5, 0, 0.5}});
  return band_of(n, {-2, {1.0 / 12, -2.0 / 3, 0, 2.0 / 3, -1.0 / 12}}, 2, 2, factor, ends, -1);
}

Band second_derivative(Index n, const Derivative& how) {
  check(how);
  const double factor = 1 / (how.sampling * how.sampling);
  switch (how.kind) {
    case Derivative::Kind::forward:
      return band_of(n, {0, {1, -2, 1}}, 0, 2, factor, {}, 1);
    case Derivative::Kind::backward:
      return band_of(n, {-2, {1, -2, 1}}, 2, 0, factor, {}, 1);
    case Derivative::Kind::centered:
      break;
  }
  std::vector<Stencil> ends;
  if (how.edge && n > 2) ends.push_back({0, {1, -2, 1}});
  return band_of(n, {-1, {1, -2, 1}}, 1, 1, factor, ends, 1);
}

namespace {

void require_centre(Index length, Index centre) {
  require<UsageError>(0 <= centre && centre < length, "a filter of ", length,
                      " samples has no sample number ", centre,
                      " to be its centre; samples are numbered from 0");
}

}  // namespace

Band convolution(Index n, const std::vector<double>& filter, Index centre) {
  const auto length = static_cast<Index>(filter.size());
  require_centre(length, centre);
  return {n, length - 1 - centre, centre, 0, 0, [&](Index i, Index j) { return filter[at(i + centre - j)]; }};
}

Band nonstationary_convolution(Index n, const std::vector<std::vector<double>>& filters,
                               const std::vector<double>& positions, Index centre) {
  require<UsageError>(!filters.empty() && filters.size() == positions.size(), filters.size(), " filters at ",
                      positions.size(),
                      " positions make no convolution; it needs at least one, and each has a position");
  const auto length = static_cast<Index>(filters.front().size());
  for (std::size_t k = 0; k < filters.size(); ++k) {
    require<UsageError>(static_cast<Index>(filters[k].size()) == length, "filter number ", k, " has ",
                        filters[k].size(), " samples, and the first one ", length,
                        "; they must be equally long, so add zeros at both ends");
    require<UsageError>(std::isfinite(positions[k]) && (k == 0 || positions[k - 1] < positions[k]),
                        "filter number ", k, " is at position ", positions[k],
                        "; positions must be finite and increase");
  }
  require_centre(length, centre);
  const auto element = [&](Index i, Index j) {
    const std::size_t k = at(i + centre - j);
    const auto sample = static_cast<double>(j);
    const auto next = std::upper_bound(positions.begin(), positions.end(), sample);
    if (next == positions.begin()) return filters.front()[k];
    if (next == positions.end()) return filters.back()[k];
    const auto behind = static_cast<std::size_t>(next - positions.begin());
    const double weight = (sample - next[-1]) / (*next - next[-1]);
    return (1 - weight) * filters[behind - 1][k] + weight * filters[behind][k];
  };
  return {n, length - 1 - centre, centre, n, 0, element};
}

Band box_smoothing(Index n, Index length) {
  require<UsageError>(1 <= length && length <= n, "the mean of ", length, " neighbours of ", n,
                      " samples is impossible: there must be at least one, and no more than samples");
  const auto triangle = [length](Index k) {
    const auto L = static_cast<double>(length);
    return std::max(0.0, (L - static_cast<double>(std::abs(k))) / (L * L));
  };
  // For a row at this distance from an end: the weight of the end's sample, which stands for all samples
  // beyond it.
  const auto beyond = [&](Index distance) {
    double sum = 0;
    for (Index k = distance + 1; k < length; ++k) sum += 2 * triangle(k);
    return sum;
  };
  const Index last = n - 1;
  return {n, length - 1, length - 1, length - 1, length - 1, [&](Index i, Index j) {
            double weight = triangle(j - i);
            weight += j == 0 ? beyond(i) : -triangle(-j - i);
            weight += j == last ? beyond(last - i) : -triangle(2 * last - j - i);
            return weight;
          }};
}

}  // namespace gridlops
