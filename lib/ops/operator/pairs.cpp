// SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "gridlops/ops/fourier.hpp"
#include "ops/operator/library_operator.hpp"

namespace gridlops {

namespace {

/// A complex operator whose operands are pairs in the same memory, or copies if columns begin in the middle
/// of a complex number.
template <std::floating_point R>
class OnPairs final : public LibraryOperator<R> {
 public:
  using Complex = std::complex<R>;

  explicit OnPairs(OperatorPtr<Complex> A)
      : LibraryOperator<R>(paired_space(A->range()), paired_space(A->domain())), A_(std::move(A)) {}

  bool has_one_pass() const override { return A_->has_one_pass(); }

 private:
  template <class Value>
  static bool fits(MatrixView<Value> X) {
    return X.stride % 2 == 0 && reinterpret_cast<std::uintptr_t>(X.data) % sizeof(Complex) == 0;
  }
  static MatrixView<Complex> complex_view(MatrixView<const R> X) {
    // Operands that are only read reach the operator as read-only operands again.
    return {reinterpret_cast<Complex*>(const_cast<R*>(X.data)), X.rows / 2, X.cols, X.stride / 2};
  }

  /// With room for copies of all operands: whether they fit is known in a product only.
  Index do_scratch_bytes(ProductKind kind, const Partition& columns) const override {
    const bool is_normal = kind == ProductKind::normal;
    return (is_normal ? 3 : 1) * ScratchMatrix<R>::bytes(this->domain(), columns) +
           (is_normal ? 2 : 1) * ScratchMatrix<R>::bytes(this->range(), columns) +
           A_->scratch_bytes(kind, columns);
  }
  void do_add_kept_bytes(KeptBytes& kept, const Partition& columns) const override {
    A_->add_kept_bytes(kept, columns);
  }

  /// An operand as a complex matrix in `space`: in place, or a copy if it does not fit.
  class Operand {
   public:
    /// With `reads`, a copy has the operand's elements from the beginning.
    Operand(const Space& space, const ConstDistMatrix<R>& X, bool reads) {
      MatrixView<const R> block = X.local();
      if (!fits(block)) {
        copy_.emplace(*space.grid, block.size());
        const MatrixView<R> copy(copy_->data(), block.rows, block.cols);
        if (reads) space.grid->backend()->template kernels<R>().copy(block, copy);
        block = copy;
      }
      matrix_ = DistMatrix<Complex>(space.grid, space.layout(X.layout().cols.partition), complex_view(block));
    }
    DistMatrix<Complex>& matrix() { return matrix_; }
    /// Copies a result to its place unless it was computed there.
    void copy_back(DistMatrix<R>& Y) const {
      const MatrixView<R> block = Y.local();
      if (copy_)
        Y.grid()->backend()->template kernels<R>().copy(
            MatrixView<const R>(copy_->data(), block.rows, block.cols), block);
    }

   private:
    std::optional<ScratchArray<R>> copy_;
    DistMatrix<Complex> matrix_;
  };

  template <class Apply>
  void through(const Space& from, const ConstDistMatrix<R>& X, const Space& to, DistMatrix<R>& Y, R beta,
               Apply&& apply) const {
    Operand x(from, X, true), y(to, Y, beta != R(0));
    apply(x.matrix(), y.matrix());
    y.copy_back(Y);
  }

  void do_apply(R alpha, const ConstDistMatrix<R>& X, R beta, DistMatrix<R>& Y) const override {
    through(A_->domain(), X, A_->range(), Y, beta,
            [&](const auto& x, auto& y) { A_->apply(Complex(alpha), x, Complex(beta), y); });
  }
  void do_apply_adjoint(R alpha, const ConstDistMatrix<R>& Y, R beta, DistMatrix<R>& X) const override {
    through(A_->range(), Y, A_->domain(), X, beta,
            [&](const auto& y, auto& x) { A_->apply_adjoint(Complex(alpha), y, Complex(beta), x); });
  }
  void do_normal_product(const ConstDistMatrix<R>& P, const ConstDistMatrix<R>& T, DistMatrix<R>& Q,
                         DistMatrix<R>& U, DistMatrix<R>& V) const override {
    if (!has_one_pass()) return LinearOperator<R>::do_normal_product(P, T, Q, U, V);
    const Space &model = A_->domain(), &data = A_->range();
    Operand p(model, P, true), t(data, T, true), q(data, Q, false), u(model, U, false), v(model, V, false);
    A_->normal_product(p.matrix(), t.matrix(), q.matrix(), u.matrix(), v.matrix());
    q.copy_back(Q);
    u.copy_back(U);
    v.copy_back(V);
  }

  OperatorPtr<Complex> A_;
};

}  // namespace

Space paired_space(const Space& space) {
  if (space.dims.count() > 0) {
    std::vector<Partition> cuts = space.dims.cuts();
    cuts.push_back(Partition::balanced(2, 1));
    return array_space(space.grid, Dims(std::move(cuts)), space.rows.axis, space.columns);
  }
  Space paired = space;
  std::vector<Index> sizes;
  for (int part = 0; part < space.rows.partition.parts(); ++part)
    sizes.push_back(2 * space.rows.partition.size(part));
  paired.rows.partition = Partition::with_sizes(sizes);
  return paired;
}

template <std::floating_point R>
DistMatrix<R> pairs_of(const Space& space, DistMatrix<std::complex<R>>& X) {
  space.require_contains(X, "a complex matrix");
  const MatrixView<std::complex<R>> block = X.local();
  return DistMatrix<R>(space.grid, paired_space(space).layout(X.layout().cols.partition),
                       {reinterpret_cast<R*>(block.data), 2 * block.rows, block.cols, 2 * block.stride});
}

template <std::floating_point R>
OperatorPtr<R> on_pairs(OperatorPtr<std::complex<R>> A) {
  return std::make_shared<OnPairs<R>>(std::move(A));
}

template DistMatrix<float> pairs_of(const Space&, DistMatrix<std::complex<float>>&);
template DistMatrix<double> pairs_of(const Space&, DistMatrix<std::complex<double>>&);
template OperatorPtr<float> on_pairs(OperatorPtr<std::complex<float>>);
template OperatorPtr<double> on_pairs(OperatorPtr<std::complex<double>>);

}  // namespace gridlops
