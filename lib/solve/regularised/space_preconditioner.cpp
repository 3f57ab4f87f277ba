// SPDX-License-Identifier: BSD-3-Clause
#include "solve/regularised/space_preconditioner.hpp"

#include "base/instantiate.hpp"
#include "comm/failure/failure.hpp"
#include "ops/operator/library_operator.hpp"

namespace gridlops {

namespace {

template <Scalar T>
class SpacePreconditioner final : public LibraryOperator<T> {
 public:
  SpacePreconditioner(GrowingSpace<T>& space, double damp)
      : LibraryOperator<T>(space.A()->domain(), space.A()->domain()),
        space_(space),
        R_(space.normal_factor(damp)),
        sigma_squared_(R_.least_of_last() * R_.least_of_last()) {}

 private:
  void do_reserve(Op, const Partition& columns) const override {
    space_.blocks().v().reserve_products(columns.total());
  }
  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    BlockBasis<T>& V = space_.blocks().v();
    const auto C = V.products_with(
        X, [&](std::vector<double>& numbers) { FailureScope().reduce(X.grid()->comm(), numbers); });
    auto S = space_.projected().solve_normal_equations(C, R_);
    for (Index j = 0; j < S.cols(); ++j)
      for (Index i = 0; i < S.rows(); ++i)
        S(i, j) = Accumulator<T>(alpha) * (sigma_squared_ * S(i, j) - C(i, j));
    X.grid()->backend()->template kernels<T>().add(alpha, X.local(), beta, Y.local());
    V.add_combination(S, Y);
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    do_apply(alpha, Y, beta, X);
  }

  GrowingSpace<T>& space_;
  const typename ProjectedProblem<Accumulator<T>>::NormalFactor R_;
  const double sigma_squared_;
};

}  // namespace

template <Scalar T>
OperatorPtr<T> space_preconditioner(GrowingSpace<T>& space, double damp) {
  return std::make_shared<SpacePreconditioner<T>>(space, damp);
}

#define GRIDLOPS_INSTANTIATE(T) template OperatorPtr<T> space_preconditioner(GrowingSpace<T>&, double);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
