// SPDX-License-Identifier: BSD-3-Clause
// Transforms along several dimensions: products of transforms along one, with the array recut where its
// dimension is not whole.
#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "base/message.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/ops/fourier.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "ops/array/padding.hpp"

namespace gridlops {

namespace {

using Axes = std::vector<FourierAxis>;

void check_axes(const Space& space, const Axes& axes) {
  require<UsageError>(!axes.empty(), "a Fourier transform of ", space.describe(),
                      " along no dimension at all is ", "impossible: name at least one");
  std::set<int> dims;
  for (const FourierAxis& axis : axes) {
    require<ShapeError>(0 <= axis.dim && axis.dim < space.dims.count(),
                        "a Fourier transform along dimension ", axis.dim, " of ", space.describe(),
                        " is impossible: there is no such dimension; they are numbered from 0");
    require<UsageError>(dims.insert(axis.dim).second, "a Fourier transform twice along dimension ", axis.dim,
                        " is impossible: name each dimension once");
    const Index size = space.dims.size(axis.dim);
    require<UsageError>(axis.length == 0 || axis.length >= size, "a Fourier transform of ", axis.length,
                        " samples along dimension ", axis.dim, ", which has ", size,
                        ", is impossible: zeros are added, and no samples left out; give a larger length");
  }
}

/// Operators that follow each other, on the arrays of a space.
template <Scalar T>
class Chain {
 public:
  explicit Chain(Space space) : space_(std::move(space)) {}
  const Space& space() const { return space_; }
  OperatorPtr<T> whole() const { return whole_; }
  void append(OperatorPtr<T> next) {
    space_ = next->range();
    whole_ = whole_ == nullptr ? std::move(next) : product(std::move(next), whole_);
  }

  /// Makes the axis whole, and as long as its transform. If it is cut, the array is cut instead along a
  /// dimension that no axis `to_come` needs whole, if there is one; of those along the longest.
  void prepare(const FourierAxis& axis, const Axes& to_come) {
    const Dims dims = space_.dims;
    if (dims.cut(axis.dim).parts() > 1) {
      const auto worth = [&](int dim) {
        const bool is_free = std::none_of(to_come.begin(), to_come.end(),
                                          [dim](const FourierAxis& later) { return later.dim == dim; });
        return std::pair(is_free, dims.size(dim));
      };
      int best = -1;
      for (int dim = 0; dim < dims.count(); ++dim)
        if (dim != axis.dim && (best < 0 || worth(dim) > worth(best))) best = dim;
      require<ShapeError>(
          best >= 0, "a Fourier transform of ", space_.describe(),
          " is impossible: its only dimension is cut, and there is no other to cut instead; keep it "
          "whole on every rank");
      append(identity<T>(array_space(space_.grid, dims.sizes(), best, space_.rows.axis, space_.columns),
                         space_));
    }
    if (axis.length > dims.size(axis.dim)) append(zero_padding<T>(space_, axis.dim, axis.length));
  }

 private:
  Space space_;
  OperatorPtr<T> whole_;
};

}  // namespace

template <std::floating_point R>
OperatorPtr<std::complex<R>> fourier(const Space& space, Axes axes, FourierNorm norm) {
  check_axes(space, axes);
  // The dimensions that are whole come first, so that the array is recut as late and as seldom as possible.
  std::stable_partition(axes.begin(), axes.end(),
                        [&](const FourierAxis& axis) { return space.dims.cut(axis.dim).parts() == 1; });
  Chain<std::complex<R>> chain(space);
  while (!axes.empty()) {
    const FourierAxis axis = axes.front();
    axes.erase(axes.begin());
    chain.prepare(axis, axes);
    chain.append(fourier<R>(chain.space(), axis.dim, {norm, axis.time_zero, axis.frequency_zero}));
  }
  return chain.whole();
}

template <std::floating_point R>
OperatorPtr<R> real_fourier(const Space& space, Axes axes, FourierNorm norm) {
  check_axes(space, axes);
  const FourierAxis last = axes.back();
  axes.pop_back();
  require<UsageError>(last.frequency_zero == 0,
                      "a real Fourier transform cannot have its frequency 0 at place ", last.frequency_zero,
                      " of its last axis, which has no negative frequencies; leave it at 0");
  Chain<R> chain(space);
  chain.prepare(last, axes);
  const Index n = chain.space().dims.size(last.dim);
  const Space spectra = with_samples(chain.space(), last.dim, n / 2 + 1);
  const OperatorPtr<R> F = real_fourier<R>(chain.space(), last.dim, 0, last.time_zero);
  const double root = std::sqrt(static_cast<double>(n));
  chain.append(
      norm == FourierNorm::ortho ? F : scale(static_cast<R>(norm == FourierNorm::none ? root : 1 / root), F));
  if (!axes.empty()) chain.append(on_pairs(fourier<R>(spectra, std::move(axes), norm)));
  return chain.whole();
}

template OperatorPtr<std::complex<float>> fourier<float>(const Space&, Axes, FourierNorm);
template OperatorPtr<std::complex<double>> fourier<double>(const Space&, Axes, FourierNorm);
template OperatorPtr<float> real_fourier(const Space&, Axes, FourierNorm);
template OperatorPtr<double> real_fourier(const Space&, Axes, FourierNorm);

}  // namespace gridlops
