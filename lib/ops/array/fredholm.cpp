// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/ops/fredholm.hpp"

#include <memory>
#include <utility>
#include <vector>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/trace.hpp"
#include "gridlops/ops/fourier.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "local/products/packed_matrix.hpp"
#include "ops/operator/library_operator.hpp"

namespace gridlops {

namespace {

/// The space of arrays (slices, elements) with the slices of a kernel.
Space slices_of(const Space& kernel, Index elements, Axis columns) {
  return array_space(kernel.grid, Dims({kernel.dims.cut(0), Partition::balanced(elements, 1)}),
                     kernel.rows.axis, columns);
}

template <Scalar T>
class Fredholm final : public LibraryOperator<T> {
 public:
  Fredholm(const Space& kernel, DistMatrix<T> G, Axis columns)
      : LibraryOperator<T>(slices_of(kernel, kernel.dims.size(2), columns),
                           slices_of(kernel, kernel.dims.size(1), columns)),
        G_(std::move(G)),
        nx_(kernel.dims.size(2)),
        ny_(kernel.dims.size(1)) {
    // Storage must not depend on the columns that come first. With more it is about as fast as columns.
    constexpr Index few = 16;
    const bool is_on_host = backend().memory_space() == MemorySpace::host;
    packs_ =
        !G_.is_callers() && is_on_host && packed_is_faster(scalar_type_of<T>, nx_, ny_, few, kernel_choice());
    constexpr Index in_cache = 1 << 19;
    has_one_pass_ = packs_ || (is_on_host && nx_ * ny_ * Index{sizeof(T)} <= in_cache);
    if (kernel.grid->is_member()) slices_ = kernel.local_box()[0].size;
  }

  bool has_one_pass() const override { return has_one_pass_; }

 private:
  void do_reserve(Op, const Partition&) const override {
    if (packs_) pack();
  }
  void do_add_kept_bytes(KeptBytes& kept, const Partition&) const override {
    if (packs_) {
      kept.add(this, slices_ * PackedMatrix<T>::bytes(nx_, ny_, *kernel_choice().set));
    } else if (!G_.is_callers()) {
      kept.add(this, G_.local().size() * Index{sizeof(T)});
    }
  }
  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    for_each_part(1, X.local().cols,
                  [&](Range part) { multiply(part, Op::none, alpha, model(part, X), beta, data(part, Y)); });
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    for_each_part(1, Y.local().cols, [&](Range part) {
      multiply(part, Op::adjoint, alpha, data(part, Y), beta, model(part, X));
    });
  }
  void do_normal_product(const ConstDistMatrix<T>& P, const ConstDistMatrix<T>& R, DistMatrix<T>& Q,
                         DistMatrix<T>& U, DistMatrix<T>& V) const override {
    if (!has_one_pass()) return LinearOperator<T>::do_normal_product(P, R, Q, U, V);
    for_each_part(3, P.local().cols, [&](Range part) {
      if (!packed_.empty())
        return packed_[at(part.begin)].one_pass(model(part, P).first, data(part, R).first,
                                                data(part, Q).first, model(part, U).first,
                                                model(part, V).first);
      multiply(part, Op::none, T(1), model(part, P), T(0), data(part, Q));
      multiply(part, Op::adjoint, T(1), data(part, R), T(0), model(part, U));
      multiply(part, Op::adjoint, T(1), data(part, Q), T(0), model(part, V));
    });
  }

  Backend& backend() const { return *G_.grid()->backend(); }

  /// Packs the slices and gives up G. If memory does not suffice, the next call goes on.
  void pack() const {
    const TraceRegion region("pack matrix");
    while (static_cast<Index>(packed_.size()) < slices_) {
      const auto done = static_cast<Index>(packed_.size());
      packed_.emplace_back(G_.grid()->backend(), slices({done, 1}).first, *kernel_choice().set, false);
      backend().discard(G_.local().data, (done + 1) * nx_ * ny_ * Index{sizeof(T)});
    }
    G_ = planned_matrix<T>(G_.grid(), G_.layout());
  }

  /// Calls work(part) for ranges of slices. On the host a slice is a part, so that all its products find it
  /// in cache; a device takes all slices at once.
  template <class Work>
  void for_each_part(int products, Index columns, Work&& work) const {
    const double flops = products * product_flops<T>(slices_ * nx_, ny_, columns);
    trace_flops(flops);
    if (backend().memory_space() == MemorySpace::device) return work(Range{0, slices_});
    backend().for_each(slices_, flops, [&](Index slice) { work(Range{slice, 1}); });
  }
  /// Y ← α op(G) X + β Y for each slice of a part.
  void multiply(Range part, Op op, T alpha, MatrixBatch<const T> X, T beta, MatrixBatch<T> Y) const {
    if (!packed_.empty()) return packed_[at(part.begin)].multiply(op, alpha, X.first, beta, Y.first);
    backend().template kernels<T>().gemm_batched(part.size, op, Op::none, alpha, slices(part), X, beta, Y);
  }
  MatrixBatch<const T> slices(Range part) const {
    const T* const G = std::as_const(G_).local().data;
    return {{G + part.begin * nx_ * ny_, nx_, ny_}, nx_ * ny_};
  }
  /// The rows of models and of data that belong to a part.
  template <class Matrix>
  auto model(Range part, Matrix& X) const {
    return blocks(part, ny_, X.local());
  }
  template <class Matrix>
  auto data(Range part, Matrix& X) const {
    return blocks(part, nx_, X.local());
  }
  template <class E>
  static MatrixBatch<E> blocks(Range part, Index rows, MatrixView<E> X) {
    return {X.row_block({part.begin * rows, rows}), rows};
  }

  mutable DistMatrix<T> G_;  // without a block once the slices are packed
  mutable std::vector<PackedMatrix<T>> packed_;
  Index nx_, ny_, slices_ = 0;
  bool packs_ = false, has_one_pass_ = false;
};

}  // namespace

template <Scalar T>
OperatorPtr<T> fredholm(const Space& kernel, DistMatrix<T> G, Axis columns) {
  const Dims& dims = kernel.dims;
  require<ShapeError>(dims.count() == 3 && dims.cut(1).parts() == 1 && dims.cut(2).parts() == 1,
                      "the kernel of a Fredholm integral is an array (slices, ny, nx) that is cut along the "
                      "slices only, but this space has ",
                      kernel.describe());
  kernel.require_contains(G, "the kernel of a Fredholm integral");
  require<ShapeError>(G.cols() == 1 && G.layout().cols.axis == Axis::uncut,
                      "the kernel of a Fredholm integral is one uncut column, not ", G.layout().describe());
  return std::make_shared<Fredholm<T>>(kernel, std::move(G), columns);
}

template <std::floating_point R>
OperatorPtr<R> trace_spectra(const Space& spectra, Index samples, Index time_zero) {
  require<ShapeError>(spectra.dims.count() == 2,
                      "the spectra of traces are arrays (frequencies, traces), but this space has ",
                      spectra.describe());
  const Space traces =
      array_space(spectra.grid, {samples, spectra.dims.size(1)}, 1, spectra.rows.axis, spectra.columns);
  const OperatorPtr<R> F = real_fourier<R>(traces, 0, spectra.dims.size(0), time_zero);
  const Space pairs = paired_space(spectra);
  return pairs == F->range() ? F : product(identity<R>(pairs, F->range()), F);
}

template <std::floating_point R>
OperatorPtr<R> multidimensional_convolution(OperatorPtr<std::complex<R>> G, const ConvolutionTimes& times) {
  const OperatorPtr<R> model = trace_spectra<R>(G->domain(), times.samples, times.model_zero);
  const OperatorPtr<R> data = trace_spectra<R>(G->range(), times.samples, times.data_zero);
  return product(adjoint(data), product(on_pairs(std::move(G)), model));
}

#define GRIDLOPS_INSTANTIATE(T) template OperatorPtr<T> fredholm(const Space&, DistMatrix<T>, Axis);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE
template OperatorPtr<float> trace_spectra(const Space&, Index, Index);
template OperatorPtr<double> trace_spectra(const Space&, Index, Index);
template OperatorPtr<float> multidimensional_convolution(OperatorPtr<std::complex<float>>,
                                                         const ConvolutionTimes&);
template OperatorPtr<double> multidimensional_convolution(OperatorPtr<std::complex<double>>,
                                                          const ConvolutionTimes&);

}  // namespace gridlops
