// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/ops/fourier.hpp"

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"
#include "local/arrays/array_kernels.hpp"
#include "ops/operator/library_operator.hpp"

namespace gridlops {

namespace {

template <Scalar T>
class Fourier final : public LibraryOperator<T> {
 public:
  Fourier(Space range, Space domain, const FourierLines& lines)
      : LibraryOperator<T>(std::move(range), std::move(domain)), lines_(lines) {}

 private:
  void do_reserve(Op, const Partition&) const override {
    if (transform_ != nullptr) return;
    const std::shared_ptr<Backend>& backend = this->domain().grid->backend();
    transform_ = backend->template kernels<T>().arrays().line_transform(backend, lines_);
  }
  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    transform_->forward(alpha, X.local(), beta, Y.local());
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    transform_->adjoint(alpha, Y.local(), beta, X.local());
  }

  FourierLines lines_;
  mutable std::unique_ptr<LineTransform<T>> transform_;
};

/// The lines along a dimension of this rank's block, without their scale.
FourierLines lines_along(const Space& space, int dim, Index time_zero) {
  const Dims& dims = space.dims;
  require<ShapeError>(0 <= dim && dim < dims.count(), "a Fourier transform along dimension ", dim, " of ",
                      space.describe(),
                      " is impossible: there is no such dimension; they are numbered from 0");
  require<ShapeError>(
      dims.cut(dim).parts() == 1, "a Fourier transform along dimension ", dim, " of an array of ",
      dims.describe(),
      " is impossible: that dimension is cut; cut another one, and redistribute with identity()");
  const Index n = dims.size(dim);
  require<ShapeError>(n > 0, "a Fourier transform along dimension ", dim, " of an array of ", dims.describe(),
                      " is impossible: it needs at least one sample");
  FourierLines lines;
  lines.samples = n;
  lines.time_zero = ((time_zero % n) + n) % n;
  if (!space.grid->is_member()) return lines;
  const Box box = space.local_box();
  for (std::size_t d = 0; d < box.size(); ++d)
    if (d != at(dim)) (d < at(dim) ? lines.outer : lines.inner) *= box[d].size;
  return lines;
}

}  // namespace

template <std::floating_point R>
OperatorPtr<std::complex<R>> fourier(const Space& space, int dim, const FourierOptions& options) {
  FourierLines lines = lines_along(space, dim, options.time_zero);
  const Index n = lines.samples;
  lines.frequencies = n;
  lines.frequency_zero = ((options.frequency_zero % n) + n) % n;
  if (options.norm != FourierNorm::none) lines.scale = 1 / static_cast<double>(n);
  if (options.norm == FourierNorm::ortho) lines.scale = std::sqrt(lines.scale);
  return std::make_shared<Fourier<std::complex<R>>>(space, space, lines);
}

template <std::floating_point R>
OperatorPtr<R> real_fourier(const Space& space, int dim, Index frequencies, Index time_zero) {
  FourierLines lines = lines_along(space, dim, time_zero);
  const Index all = lines.samples / 2 + 1;
  require<UsageError>(0 <= frequencies && frequencies <= all, "a real Fourier transform of ", lines.samples,
                      " samples has frequencies 0 … ", all - 1, ": it cannot give ", frequencies, " of them");
  lines.frequencies = frequencies == 0 ? all : frequencies;
  lines.scale = std::sqrt(1 / static_cast<double>(lines.samples));
  lines.one_sided = true;
  std::vector<Partition> cuts = space.dims.cuts();
  cuts[at(dim)] = Partition::balanced(lines.frequencies, 1);
  Space range = paired_space(array_space(space.grid, Dims(std::move(cuts)), space.rows.axis, space.columns));
  return std::make_shared<Fourier<R>>(std::move(range), space, lines);
}

template OperatorPtr<std::complex<float>> fourier<float>(const Space&, int, const FourierOptions&);
template OperatorPtr<std::complex<double>> fourier<double>(const Space&, int, const FourierOptions&);
template OperatorPtr<float> real_fourier(const Space&, int, Index, Index);
template OperatorPtr<double> real_fourier(const Space&, int, Index, Index);

}  // namespace gridlops
