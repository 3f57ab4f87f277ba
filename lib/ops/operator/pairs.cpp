// SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "gridlops/ops/fourier.hpp"
#include "ops/operator/library_operator.hpp"

namespace gridlops {

namespace {

/// A complex operator whose operands are pairs in the same memory, or copies in its own memory if columns
/// begin in the middle of a complex number.
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

  static void reserve(Buffer<R>& memory, const Space& space, const Partition& columns) {
    memory.reserve(space.grid->backend(), space.local_rows() * space.local_columns(columns));
  }
  void do_reserve(Op, const Partition& columns) const override {
    reserve(model_, this->domain(), columns);
    reserve(data_, this->range(), columns);
  }
  void do_reserve_normal_product(const Partition& columns) const override {
    do_reserve(Op::none, columns);
    if (!has_one_pass()) return;
    reserve(q_, this->range(), columns);
    reserve(u_, this->domain(), columns);
    reserve(v_, this->domain(), columns);
  }

  /// X as a complex matrix in `space`, copied into `memory` if necessary.
  DistMatrix<Complex> complex_matrix(const Space& space, const ConstDistMatrix<R>& X, const Buffer<R>& memory,
                                     bool is_read) const {
    MatrixView<const R> block = X.local();
    if (!fits(block)) {
      const MatrixView<R> copy = memory.matrix(block.rows, block.cols);
      if (is_read) space.grid->backend()->template kernels<R>().copy(block, copy);
      block = copy;
    }
    return DistMatrix<Complex>(space.grid, space.layout(X.layout().cols.partition), complex_view(block));
  }

  /// Copies a result to its place unless it was computed there.
  static void copy_back(const Buffer<R>& memory, DistMatrix<R>& Y) {
    if (const MatrixView<R> block = Y.local(); !fits(block))
      Y.grid()->backend()->template kernels<R>().copy(memory.matrix(block.rows, block.cols), block);
  }

  template <class Apply>
  void through(const Space& from, const ConstDistMatrix<R>& X, const Buffer<R>& x_memory, const Space& to,
               DistMatrix<R>& Y, const Buffer<R>& y_memory, R beta, Apply&& apply) const {
    const DistMatrix<Complex> x = complex_matrix(from, X, x_memory, true);
    DistMatrix<Complex> y = complex_matrix(to, Y, y_memory, beta != R(0));
    apply(x, y);
    copy_back(y_memory, Y);
  }

  void do_apply(R alpha, const ConstDistMatrix<R>& X, R beta, DistMatrix<R>& Y) const override {
    through(A_->domain(), X, model_, A_->range(), Y, data_, beta,
            [&](const auto& x, auto& y) { A_->apply(Complex(alpha), x, Complex(beta), y); });
  }
  void do_apply_adjoint(R alpha, const ConstDistMatrix<R>& Y, R beta, DistMatrix<R>& X) const override {
    through(A_->range(), Y, data_, A_->domain(), X, model_, beta,
            [&](const auto& y, auto& x) { A_->apply_adjoint(Complex(alpha), y, Complex(beta), x); });
  }
  void do_normal_product(const ConstDistMatrix<R>& P, const ConstDistMatrix<R>& T, DistMatrix<R>& Q,
                         DistMatrix<R>& U, DistMatrix<R>& V) const override {
    if (!has_one_pass()) return LinearOperator<R>::do_normal_product(P, T, Q, U, V);
    const Space &model = A_->domain(), &data = A_->range();
    const DistMatrix<Complex> p = complex_matrix(model, P, model_, true),
                              t = complex_matrix(data, T, data_, true);
    DistMatrix<Complex> q = complex_matrix(data, Q, q_, false), u = complex_matrix(model, U, u_, false),
                        v = complex_matrix(model, V, v_, false);
    A_->normal_product(p, t, q, u, v);
    copy_back(q_, Q);
    copy_back(u_, U);
    copy_back(v_, V);
  }

  OperatorPtr<Complex> A_;
  mutable Buffer<R> model_, data_, q_, u_, v_;
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
