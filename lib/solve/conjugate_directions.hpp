// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/message.hpp"
#include "solve/column_method.hpp"

namespace gridlops {

/// What CGLS and CG share, for many right-hand sides at once, with α, γ, δ of its own for each column:
///
///   q = A p (CG: + D² p)    δ = ‖q‖² + D²‖p‖² (CG: pᴴq)    α = γ/δ    x += α p,  r −= α q
///   s = Aᴴ r − D² x (CG: s is r)    z = M s    γ' = sᴴz    p = z + (γ'/γ) p
///
/// Without a preconditioner M z is s. Two reductions an iteration: of what makes δ, and of γ', ‖s‖², ‖r‖²,
/// ‖x‖².
template <Scalar T>
class ConjugateDirections : public ColumnMethod<T> {
 public:
  const LinearOperator<T>& A() const final { return A_; }

  void prepare(ColumnRun<T>& run) override { vectors(run); }
  void start(ColumnRun<T>& run, bool from_zero) final;
  bool iterate(ColumnRun<T>& run) final;
  std::vector<NamedMatrix<T>> lasting(const Partition& columns) final;
  void visit(StateArchive& archive) final { archive.visit_list(gamma_); }
  std::string parameters() const final { return message("damping ", damp_); }
  void add_final_norms(ColumnRun<T>& run) final;
  void restart(ColumnRun<T>& run) final;

 protected:
  /// M: may be null, for I.
  ConjugateDirections(const LinearOperator<T>& A, double damp, const LinearOperator<T>* M = nullptr)
      : A_(A), M_(M), damp_(damp) {}

  /// The vectors of the active columns: x, p, s, z in the domain, r, q in the range.
  struct Vectors {
    DistMatrix<T> x, r, p, q, s, z;
  };
  double damp() const { return damp_; }
  /// y ← y + factor · D² x.
  void add_damping(int factor, const DistMatrix<T>& x, DistMatrix<T>& y) const;

 private:
  /// Whether s is r; then both share their memory.
  virtual bool tests_residual() const = 0;
  /// s from r, without damping.
  virtual void compute_gradient(Vectors& v) const = 0;
  /// s after x and r have moved.
  virtual void update_gradient(Vectors& v) const = 0;
  /// The same in an iteration, where r ← r − α q has been; −α per active column.
  virtual void follow_step(ColumnRun<T>&, const std::vector<double>& /*minus_alpha*/, Vectors& v) {
    update_gradient(v);
  }
  /// q from p.
  virtual void compute_product(Vectors& v) const = 0;
  /// Aᴴ r − D² x for r = b − A x, in s or q, whichever is returned; r stays.
  virtual const DistMatrix<T>& compute_normal_residual(Vectors& v) const = 0;
  /// Adds what δ needs to the sums; kinds 0 and 1 are ‖q‖² and ‖p‖² already.
  virtual void add_denominator(const Vectors& v, ColumnSums<T>& sums) const = 0;
  virtual double denominator(const ColumnSums<T>& sums, Index k) const = 0;

  Vectors vectors(ColumnRun<T>& run);
  /// z from s; then the norms, and γ.
  void reduce_norms(ColumnRun<T>& run, Vectors& v);
  double gamma(ColumnRun<T>& run, Index k) const;
  void raise_references(ColumnRun<T>& run);
  void find_steps(ColumnRun<T>& run);
  void take_norms(ColumnRun<T>& run, Index k);

  const LinearOperator<T>& A_;
  const LinearOperator<T>* M_;
  const double damp_;
  Scratch<T> r_, p_, q_, s_, z_;
  std::vector<double> gamma_;    // per column of the batch
  std::vector<double> scalars_;  // α or β, per active column
};

}  // namespace gridlops
