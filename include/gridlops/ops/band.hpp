// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/base/types.hpp"

namespace gridlops {

/// A real n × n matrix whose elements lie near the diagonal and most of whose rows are alike, such as a
/// derivative or a convolution along one dimension of an array. Element (i, j) is zero unless −lower ≤ j − i
/// ≤ upper. The first `head` and the last `tail` rows have their own weights; in the rows between, element
/// (i, j) depends only on j − i. A value type.
class GRIDLOPS_EXPORT Band {
 public:
  /// Calls element(i, j) for elements within the band and the matrix. All sizes are ≥ 0; otherwise throws
  /// UsageError.
  Band(Index n, Index lower, Index upper, Index head, Index tail,
       const std::function<double(Index i, Index j)>& element);

  Index size() const { return n_; }
  Index lower() const { return lower_; }
  Index upper() const { return upper_; }
  Index head() const { return head_; }
  Index tail() const { return tail_; }
  /// Element (i, j); 0 ≤ i, j < size().
  double operator()(Index i, Index j) const;

  Band transposed() const;

 private:
  Index n_, lower_, upper_, head_, tail_;
  std::vector<double> weights_;  // as in BandWeights
};

/// The product A B of two matrices of the same size. Throws ShapeError if the sizes differ.
GRIDLOPS_EXPORT Band product(const Band& A, const Band& B);

/// How a derivative is formed in the interior. In y = D x / dᵏ, for the first derivative (k = 1):
///   forward   yᵢ = xᵢ₊₁ − xᵢ                                    the last row is 0
///   backward  yᵢ = xᵢ − xᵢ₋₁                                    the first row is 0
///   centered  yᵢ = (xᵢ₊₁ − xᵢ₋₁) / 2, of order 3                the first and the last row are 0
///             yᵢ = (xᵢ₋₂ − 8xᵢ₋₁ + 8xᵢ₊₁ − xᵢ₊₂) / 12, of order 5      two rows at each end are 0
/// and for the second (k = 2):
///   forward   yᵢ = xᵢ₊₂ − 2xᵢ₊₁ + xᵢ                            the last two rows are 0
///   backward  yᵢ = xᵢ − 2xᵢ₋₁ + xᵢ₋₂                            the first two rows are 0
///   centered  yᵢ = xᵢ₊₁ − 2xᵢ + xᵢ₋₁                            the first and the last row are 0
/// With `edge` the rows at the ends of a centered derivative are one-sided instead of 0: y₀ = x₁ − x₀, of
/// order 5 also y₁ = (x₂ − x₀) / 2, for the second derivative y₀ = x₀ − 2x₁ + x₂; the others mirror them.
struct Derivative {
  enum class Kind { forward, backward, centered };
  Kind kind = Kind::centered;
  double sampling = 1;  ///< d ≠ 0
  bool edge = false;
  int order = 3;  ///< of the centered first derivative: 3 or 5
};

/// The matrices of these derivatives for n samples. If n is too small for the order, all rows are zero. Both
/// throw UsageError if the sampling is zero or not finite, or the order is not 3 or 5.
GRIDLOPS_EXPORT Band first_derivative(Index n, const Derivative& how = {});
GRIDLOPS_EXPORT Band second_derivative(Index n, const Derivative& how = {});

/// yᵢ = Σₖ fₖ xᵢ₊c₋ₖ for n samples, where c is the centre: convolution with a filter, with as many outputs as
/// samples in x. Throws UsageError unless the filter has a sample number `centre`.
GRIDLOPS_EXPORT Band convolution(Index n, const std::vector<double>& filter, Index centre);

/// Convolution with a filter that changes from sample to sample: yᵢ = Σⱼ hⱼ[i + c − j] xⱼ, where c is the
/// centre, and hⱼ is interpolated linearly at sample j between the filters at these positions, which increase
/// and are counted in samples; before the first and behind the last it is that filter. All filters have the
/// same length. Throws UsageError if there is none, if positions or lengths do not fit, or unless the filters
/// have a sample number `centre`.
GRIDLOPS_EXPORT Band nonstationary_convolution(Index n, const std::vector<std::vector<double>>& filters,
                                               const std::vector<double>& positions, Index centre);

/// Smoothing without a shift: a running mean of `length` samples, applied forwards and then backwards, to n
/// samples that are continued oddly beyond their ends, x₋ₖ = 2x₀ − xₖ. It equals SciPy's
/// filtfilt(ones(length)/length, 1, x) and preserves straight lines. Throws UsageError unless 1 ≤ length ≤ n.
GRIDLOPS_EXPORT Band box_smoothing(Index n, Index length);

}  // namespace gridlops
