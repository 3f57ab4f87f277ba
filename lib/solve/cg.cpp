// SPDX-License-Identifier: BSD-3-Clause
#include <limits>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "gridlops/error.hpp"
#include "solve/conjugate_directions.hpp"

namespace gridlops {

namespace {

template <Scalar T>
class Cg final : public ConjugateDirections<T> {
  using Vectors = typename ConjugateDirections<T>::Vectors;

 public:
  Cg(const LinearOperator<T>& A, double damp, const LinearOperator<T>* M = nullptr)
      : ConjugateDirections<T>(A, damp, M), preconditioned_(M != nullptr) {
    require<ShapeError>(
        A.domain() == A.range(), "conjugate gradients need an operator from a space to itself; this one is ",
        A.rows(), " x ", A.cols(),
        A.rows() == A.cols()
            ? ", and its models and data lie differently: multiply it with an identity() that redistributes"
            : ": use cgls() for least squares");
    require<ShapeError>(M == nullptr || (M->domain() == A.domain() && M->range() == A.domain()),
                        "a preconditioner must be an operator from the space of the ", A.rows(), " x ",
                        A.cols(), " operator to itself, layouts included; this one is ",
                        M == nullptr ? 0 : M->rows(), " x ", M == nullptr ? 0 : M->cols());
  }

  const char* name() const override { return preconditioned_ ? "pcg" : "cg"; }

 private:
  bool tests_residual() const override { return true; }
  void compute_gradient(Vectors&) const override {}
  void update_gradient(Vectors&) const override {}
  void compute_product(Vectors& v) const override {
    this->A().apply(T(1), v.p, T(0), v.q);
    this->add_damping(+1, v.p, v.q);
  }
  const DistMatrix<T>& compute_normal_residual(Vectors& v) const override {
    this->A().apply_adjoint(T(1), v.r, T(0), v.q);
    this->add_damping(-1, v.x, v.q);
    return v.q;
  }

  void add_denominator(const Vectors& v, ColumnSums<T>& sums) const override { sums.add_real_dots(v.p, v.q); }
  double denominator(const ColumnSums<T>& sums, Index k) const override { return sums.of(2, k); }

  // The recurrence for r falls for ever; the true residual stays at a few ε‖A‖‖x‖ (Greenbaum: Estimating the
  // attainable accuracy of recursively computed residual methods, SIAM J. Matrix Anal. Appl. 18, 1997).
  // ‖q‖/‖p‖ includes the damping.
  bool at_rounding_level(const ColumnState& column) const override {
    const double unit = 10 * static_cast<double>(std::numeric_limits<Real<T>>::epsilon());
    return column.residual_norm <= unit * column.operator_norm * column.x_norm;
  }

  const bool preconditioned_;
};

}  // namespace

template <Scalar T>
SolveReport cg(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
               const SolveOptions& options) {
  Cg<T> method(A, options.damp);
  return solve_columns(method, B, X, options);
}

template <Scalar T>
SolveReport cg(const LinearOperator<T>& A, const LinearOperator<T>& M, const ConstDistMatrix<T>& B,
               DistMatrix<T>& X, const SolveOptions& options) {
  Cg<T> method(A, options.damp, &M);
  return solve_columns(method, B, X, options);
}

#define GRIDLOPS_INSTANTIATE(T)                                                                          \
  template SolveReport cg(const LinearOperator<T>&, const LinearOperator<T>&, const ConstDistMatrix<T>&, \
                          DistMatrix<T>&, const SolveOptions&);                                          \
  template SolveReport cg(const LinearOperator<T>&, const ConstDistMatrix<T>&, DistMatrix<T>&,           \
                          const SolveOptions&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
