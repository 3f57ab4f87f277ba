// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/ops/operator_algebra.hpp"

#include <algorithm>
#include <tuple>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "dist/redistribution.hpp"
#include "gridlops/base/error.hpp"
#include "ops/operator/array_products.hpp"
#include "ops/operator/library_operator.hpp"

namespace gridlops {

namespace {

template <Scalar T>
class Adjoint final : public LibraryOperator<T> {
 public:
  explicit Adjoint(OperatorPtr<T> A) : LibraryOperator<T>(A->domain(), A->range()), A_(std::move(A)) {}

  const OperatorPtr<T>& original() const { return A_; }

 private:
  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    A_->apply_adjoint(alpha, X, beta, Y);
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    A_->apply(alpha, Y, beta, X);
  }
  Index do_scratch_bytes(ProductKind kind, const Partition& columns) const override {
    return A_->scratch_bytes(kind == ProductKind::forward ? ProductKind::adjoint : ProductKind::forward,
                             columns);
  }
  void do_add_kept_bytes(KeptBytes& kept, const Partition& columns) const override {
    A_->add_kept_bytes(kept, columns);
  }
  OperatorPtr<T> A_;
};

template <Scalar T>
class Scaled final : public LibraryOperator<T> {
 public:
  Scaled(T factor, OperatorPtr<T> A)
      : LibraryOperator<T>(A->range(), A->domain()), factor_(factor), A_(std::move(A)) {}

  bool has_one_pass() const override { return A_->has_one_pass(); }

 private:
  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    A_->apply(alpha * factor_, X, beta, Y);
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    A_->apply_adjoint(alpha * conjugate(factor_), Y, beta, X);
  }
  Index do_scratch_bytes(ProductKind kind, const Partition& columns) const override {
    return A_->scratch_bytes(kind, columns) +
           (kind == ProductKind::normal ? ScratchMatrix<T>::bytes(this->domain(), columns) : 0);
  }
  void do_add_kept_bytes(KeptBytes& kept, const Partition& columns) const override {
    A_->add_kept_bytes(kept, columns);
  }
  /// Multiplies P before the product, since AᴴA P without the factor may leave the range of T.
  void do_normal_product(const ConstDistMatrix<T>& P, const ConstDistMatrix<T>& R, DistMatrix<T>& Q,
                         DistMatrix<T>& U, DistMatrix<T>& V) const override {
    if (!has_one_pass()) return LinearOperator<T>::do_normal_product(P, R, Q, U, V);
    ScratchMatrix<T> p(this->domain(), P.layout().cols.partition);
    P.grid()->backend()->template kernels<T>().add(factor_, P.local(), T(0), p.matrix().local());
    A_->normal_product(p.matrix(), R, Q, U, V);
    multiply_by(conjugate(factor_), U);
    multiply_by(conjugate(factor_), V);
  }

  T factor_;
  OperatorPtr<T> A_;
};

template <Scalar T>
class Sum final : public LibraryOperator<T> {
 public:
  Sum(OperatorPtr<T> A, OperatorPtr<T> B)
      : LibraryOperator<T>(A->range(), A->domain()), A_(std::move(A)), B_(std::move(B)) {
    for (const auto& [name, of_A, of_B] : {std::tuple{"ranges", &A_->range(), &B_->range()},
                                           std::tuple{"domains", &A_->domain(), &B_->domain()}}) {
      require<ShapeError>(*of_A == *of_B, "operators of ", A_->rows(), " x ", A_->cols(), " and ", B_->rows(),
                          " x ", B_->cols(), " cannot be added: their ", name,
                          " must be the same, layouts included, but are ", of_A->describe_with(*of_B));
    }
  }

 private:
  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    A_->apply(alpha, X, beta, Y);
    B_->apply(alpha, X, T(1), Y);
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    A_->apply_adjoint(alpha, Y, beta, X);
    B_->apply_adjoint(alpha, Y, T(1), X);
  }
  Index do_scratch_bytes(ProductKind kind, const Partition& columns) const override {
    return std::max(A_->scratch_bytes(kind, columns), B_->scratch_bytes(kind, columns));
  }
  void do_add_kept_bytes(KeptBytes& kept, const Partition& columns) const override {
    A_->add_kept_bytes(kept, columns);
    B_->add_kept_bytes(kept, columns);
  }
  OperatorPtr<T> A_, B_;
};

template <Scalar T>
class Product final : public LibraryOperator<T> {
 public:
  Product(OperatorPtr<T> A, OperatorPtr<T> B)
      : LibraryOperator<T>(A->range(), B->domain()), A_(std::move(A)), B_(std::move(B)) {
    require<ShapeError>(A_->domain() == B_->range(), "operators of ", A_->rows(), " x ", A_->cols(), " and ",
                        B_->rows(), " x ", B_->cols(),
                        " cannot be multiplied: the domain of the first must be the range of "
                        "the second, layouts included, but they are ",
                        A_->domain().describe_with(B_->range()));
  }

  bool has_one_pass() const override { return A_->has_one_pass(); }

 private:
  Index do_scratch_bytes(ProductKind kind, const Partition& columns) const override {
    const Index between = ScratchMatrix<T>::bytes(B_->range(), columns),
                of_A = A_->scratch_bytes(kind, columns);
    if (kind != ProductKind::normal) return between + std::max(of_A, B_->scratch_bytes(kind, columns));
    return 3 * between + std::max({B_->scratch_bytes(ProductKind::forward, columns), of_A,
                                   B_->scratch_bytes(ProductKind::adjoint, columns)});
  }
  void do_add_kept_bytes(KeptBytes& kept, const Partition& columns) const override {
    A_->add_kept_bytes(kept, columns);
    B_->add_kept_bytes(kept, columns);
  }
  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    ScratchMatrix<T> between(B_->range(), X.layout().cols.partition);
    B_->apply(T(1), X, T(0), between.matrix());
    A_->apply(alpha, between.matrix(), beta, Y);
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    ScratchMatrix<T> between(B_->range(), Y.layout().cols.partition);
    A_->apply_adjoint(T(1), Y, T(0), between.matrix());
    B_->apply_adjoint(alpha, between.matrix(), beta, X);
  }
  void do_normal_product(const ConstDistMatrix<T>& P, const ConstDistMatrix<T>& R, DistMatrix<T>& Q,
                         DistMatrix<T>& U, DistMatrix<T>& V) const override {
    if (!has_one_pass()) return LinearOperator<T>::do_normal_product(P, R, Q, U, V);
    const Partition& columns = P.layout().cols.partition;
    ScratchMatrix<T> p(B_->range(), columns), u(B_->range(), columns), v(B_->range(), columns);
    B_->apply(T(1), P, T(0), p.matrix());
    A_->normal_product(p.matrix(), R, Q, u.matrix(), v.matrix());
    B_->apply_adjoint(T(1), u.matrix(), T(0), U);
    B_->apply_adjoint(T(1), v.matrix(), T(0), V);
  }

  OperatorPtr<T> A_, B_;
};

template <Scalar T>
class Identity final : public LibraryOperator<T> {
 public:
  Identity(Space range, Space domain) : LibraryOperator<T>(std::move(range), std::move(domain)) {
    require<ShapeError>(this->rows() == this->cols(), "an identity from dimension ", this->cols(), " to ",
                        this->rows(), " is impossible; the two must be equal");
  }

 private:
  Index do_scratch_bytes(ProductKind kind, const Partition& columns) const override {
    const Layout data = this->range().layout(columns), model = this->domain().layout(columns);
    if (data == model) return 0;
    const bool forward = kind == ProductKind::forward;
    const RedistributionSizes sizes =
        own_redistribution_sizes(*this->range().grid, forward ? model : data, forward ? data : model);
    return ScratchStack::bytes_of<T>(sizes.outgoing) + ScratchStack::bytes_of<T>(sizes.incoming);
  }
  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    move(alpha, X, beta, Y);
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    move(alpha, Y, beta, X);
  }
  void move(T alpha, const ConstDistMatrix<T>& from, T beta, DistMatrix<T>& to) const {
    if (from.layout() == to.layout()) {
      to.grid()->backend()->template kernels<T>().add(alpha, from.local(), beta, to.local());
    } else {
      const ProcessGrid& grid = *to.grid();
      const RedistributionSizes sizes = own_redistribution_sizes(grid, from.layout(), to.layout());
      const ScratchArray<T> outgoing(grid, sizes.outgoing), incoming(grid, sizes.incoming);
      redistribute(alpha, from, beta, to, {outgoing.data(), incoming.data()});
    }
  }
};

template <Scalar T>
class Zero final : public LibraryOperator<T> {
 public:
  Zero(Space range, Space domain) : LibraryOperator<T>(std::move(range), std::move(domain)) {}

 private:
  void do_apply(T, const ConstDistMatrix<T>&, T beta, DistMatrix<T>& Y) const override {
    multiply_by(beta, Y);
  }
  void do_apply_adjoint(T, const ConstDistMatrix<T>&, T beta, DistMatrix<T>& X) const override {
    multiply_by(beta, X);
  }
};

template <Scalar T>
class Diagonal final : public LibraryOperator<T> {
 public:
  Diagonal(DistMatrix<T> d, const Space& space) : LibraryOperator<T>(space, space), d_(std::move(d)) {}

 private:
  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    multiply(alpha, false, X, beta, Y);
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    multiply(alpha, true, Y, beta, X);
  }
  void multiply(T alpha, bool conjugate_d, const ConstDistMatrix<T>& in, T beta, DistMatrix<T>& out) const {
    out.grid()->backend()->template kernels<T>().diagonal_multiply(alpha, d_.local().data, conjugate_d,
                                                                   in.local(), beta, out.local());
  }
  void do_add_kept_bytes(KeptBytes& kept, const Partition&) const override {
    if (!d_.is_callers()) kept.add(this, d_.local().size() * Index{sizeof(T)});
  }
  DistMatrix<T> d_;
};

}  // namespace

template <Scalar T>
OperatorPtr<T> adjoint(OperatorPtr<T> A) {
  if (const auto* const of = dynamic_cast<const Adjoint<T>*>(A.get())) return of->original();
  return std::make_shared<Adjoint<T>>(std::move(A));
}

template <Scalar T>
OperatorPtr<T> scale(T factor, OperatorPtr<T> A) {
  return std::make_shared<Scaled<T>>(factor, std::move(A));
}

template <Scalar T>
OperatorPtr<T> sum(OperatorPtr<T> A, OperatorPtr<T> B) {
  return std::make_shared<Sum<T>>(std::move(A), std::move(B));
}

template <Scalar T>
OperatorPtr<T> product(OperatorPtr<T> A, OperatorPtr<T> B) {
  return std::make_shared<Product<T>>(std::move(A), std::move(B));
}

template <Scalar T>
OperatorPtr<T> identity(Space range, Space domain) {
  if (!range.dims.ordered_as(domain.dims)) return recut<T>(std::move(range), std::move(domain));
  return std::make_shared<Identity<T>>(std::move(range), std::move(domain));
}

template <Scalar T>
OperatorPtr<T> zero(Space range, Space domain) {
  return std::make_shared<Zero<T>>(std::move(range), std::move(domain));
}

template <Scalar T>
OperatorPtr<T> diagonal(DistMatrix<T> d, Axis columns) {
  const Space space{d.grid(), d.layout().rows, columns};
  return diagonal(space, std::move(d));
}

template <Scalar T>
OperatorPtr<T> diagonal(const Space& space, DistMatrix<T> d) {
  require<ShapeError>(d.grid() == space.grid && d.layout().rows == space.rows, "a diagonal that is ",
                      d.layout().describe(), " is none of ", space.describe());
  require<ShapeError>(d.cols() == 1 && d.layout().cols.axis == Axis::uncut,
                      "a diagonal is one uncut column, not ", d.layout().describe(),
                      "; all columns of X share it, so give columns with other weights an operator, and a "
                      "solve, of their own");
  return std::make_shared<Diagonal<T>>(std::move(d), space);
}

#define GRIDLOPS_INSTANTIATE(T)                                    \
  template OperatorPtr<T> adjoint(OperatorPtr<T>);                 \
  template OperatorPtr<T> scale(T, OperatorPtr<T>);                \
  template OperatorPtr<T> sum(OperatorPtr<T>, OperatorPtr<T>);     \
  template OperatorPtr<T> product(OperatorPtr<T>, OperatorPtr<T>); \
  template OperatorPtr<T> identity(Space, Space);                  \
  template OperatorPtr<T> zero(Space, Space);                      \
  template OperatorPtr<T> diagonal(DistMatrix<T>, Axis);           \
  template OperatorPtr<T> diagonal(const Space&, DistMatrix<T>);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
