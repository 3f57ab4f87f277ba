// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/one_pass_cgls.hpp"

#include "base/instantiate.hpp"
#include "solve/cgls.hpp"

namespace gridlops {

namespace {

template <Scalar T>
class OnePassCgls final : public Cgls<T> {
  using Vectors = typename ConjugateDirections<T>::Vectors;

 public:
  using Cgls<T>::Cgls;

  const char* name() const override { return "one-pass-cgls"; }

  void prepare(ColumnRun<T>& run) override {
    Cgls<T>::prepare(run);
    for (Scratch<T>* memory : {&u_, &w_}) run.matrix(*memory, this->A().domain());
  }

 private:
  void compute_product(Vectors& v) const override {
    DistMatrix<T> u = domain_matrix(u_, v), w = domain_matrix(w_, v);
    this->A().normal_product(v.p, v.r, v.q, u, w);
  }
  void follow_step(ColumnRun<T>& run, const std::vector<double>& minus_alpha, Vectors& v) override {
    run.copy(domain_matrix(u_, v), v.s);
    run.axpy(minus_alpha, domain_matrix(w_, v), v.s);
    this->add_damping(-1, v.x, v.s);
  }
  DistMatrix<T> domain_matrix(Scratch<T>& memory, const Vectors& v) const {
    return memory.matrix(this->A().domain(), v.p.layout().cols.partition);
  }

  mutable Scratch<T> u_, w_;  // Aᴴr, Aᴴq of the last product
};

}  // namespace

template <Scalar T>
SolveReport one_pass_cgls(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                          const SolveOptions& options) {
  OnePassCgls<T> method(A, options.damp);
  return solve_columns(method, B, X, options);
}

#define GRIDLOPS_INSTANTIATE(T)                                                                           \
  template SolveReport one_pass_cgls(const LinearOperator<T>&, const ConstDistMatrix<T>&, DistMatrix<T>&, \
                                     const SolveOptions&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
