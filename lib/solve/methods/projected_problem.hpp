// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/numbers.hpp"
#include "solve/checkpoint/state_archive.hpp"
#include "solve/methods/block_scalars.hpp"

namespace gridlops {

/// The blocks of the bidiagonalisation A V = U B, Aᴴ U = V [Bᴴ, L₊ᴴ…] that block_scalars.hpp shows, and what
/// follows from them for the x = V y that minimise ‖A x − b‖² + D²‖x‖² for b = U₁ β and any D.
template <Scalar S>
class ProjectedProblem {
 public:
  using Small = SmallMatrix<S>;

  void begin(Small beta, Small L) {
    beta_ = std::move(beta);
    L_ = {std::move(L)};
    K_.clear();
  }
  /// Appends the columns [Lᴴ; K] of the last L to B, and keeps the L that follows.
  void extend(Small K, Small L) {
    K_.push_back(std::move(K));
    L_.push_back(std::move(L));
  }

  /// Saves or loads the blocks. columns: of β.
  void visit(StateArchive& archive, Index columns) {
    archive.visit(beta_);
    archive.visit_list(L_);
    archive.visit_list(K_);
    if (!archive.loading()) return;
    archive.require(L_.size() == K_.size() + 1 && beta_.cols() == columns && beta_.rows() <= columns &&
                    L_.front().cols() == beta_.rows() && L_.front().rows() <= L_.front().cols());
    for (std::size_t i = 0; i < K_.size(); ++i)
      archive.require(K_[i].cols() == L_[i].rows() && K_[i].rows() <= K_[i].cols() &&
                      L_[i + 1].cols() == K_[i].rows() && L_[i + 1].rows() <= L_[i + 1].cols());
  }
  /// The last L.
  const Small& last() const { return L_.back(); }

  /// Lets a factorisation that knows all but the last K and L follow.
  void follow(BlockScalars<S>& scalars, double smallest) const {
    scalars.eliminate(K_.back(), smallest);
    scalars.extend(L_.back());
  }

  Index steps() const { return std::ssize(K_); }
  /// The number of columns of B.
  Index dimension() const {
    Index columns = 0;
    for (const Small& K : K_) columns += K.cols();
    return columns;
  }

  /// The QR factorisation of [B; D·I] so far, for the next blocks to go on with.
  BlockScalars<S> factored(double damp, double smallest) const {
    BlockScalars<S> scalars;
    factor(damp, smallest, scalars);
    return scalars;
  }

  /// One column for each of β, and the norms of x, b − Ax and Aᴴ(b − Ax) − D²x.
  struct Solution {
    Small y;
    std::vector<double> x, residual, gradient;
  };

  /// The solutions for one D. Does not use directions that A maps to vectors of length at most `smallest`.
  Solution solve(double damp, double smallest) const {
    BlockScalars<S> scalars;
    const std::vector<Step> R = factor(damp, smallest, scalars);
    std::vector<Small> phi;
    for (const Step& step : R) phi.push_back(step.phi);
    const std::vector<Small> y = substitute(R, std::move(phi));
    Solution solution{joined(y), {}, {}, {}};
    const std::vector<double> residual = residual_squares(y);
    for (Index j = 0; j < beta_.cols(); ++j) {
      double length = 0;  // of large dampings its square vanishes
      for (Index i = 0; i < solution.y.rows(); ++i) length = std::hypot(length, std::abs(solution.y(i, j)));
      solution.x.push_back(length);
      solution.residual.push_back(std::sqrt(residual[at(j)]));
      solution.gradient.push_back(std::sqrt(scalars.gradient_squared(j)));
    }
    return solution;
  }

  /// A block of the factor R of [B; D·I], ρᵢ and θᵢ₊₁ beside it, and of QᴴE₁β.
  struct Step {
    Small rho_inverse, theta, phi;
  };
  /// The factor R of BᴴB + D²I = RᴴR.
  class NormalFactor {
   public:
    explicit NormalFactor(std::vector<Step> steps) : steps_(std::move(steps)) {}
    /// The least diagonal element of the last block that has one.
    double least_of_last() const {
      double largest = 0;  // of the inverse
      for (auto step = steps_.rbegin(); step != steps_.rend() && largest == 0; ++step)
        for (Index i = 0; i < step->rho_inverse.cols(); ++i)
          largest = std::max(largest, std::abs(step->rho_inverse(i, i)));
      return largest > 0 ? 1 / largest : 0;
    }

   private:
    friend class ProjectedProblem;
    std::vector<Step> steps_;
  };
  NormalFactor normal_factor(double damp, double smallest) const {
    BlockScalars<S> scalars;
    return NormalFactor(factor(damp, smallest, scalars));
  }

  /// The y with (BᴴB + D²I) y = C: for data other than b the solution in the space, if C = VᴴAᴴ of the data.
  /// It is less accurate than solve(), since it squares the condition of [B; D·I].
  Small solve_normal_equations(const Small& C, const NormalFactor& factor) const {
    const std::vector<Step>& R = factor.steps_;
    std::vector<Small> z;
    Index first = 0;
    for (std::size_t i = 0; i < R.size(); ++i) {  // ρᵢᴴ zᵢ = cᵢ − θᵢᴴ zᵢ₋₁
      Small right = C.row_block({first, K_[i].cols()});
      first += K_[i].cols();
      if (i > 0) subtract(product(adjoint(R[i - 1].theta), z[i - 1]), right);
      z.push_back(product(adjoint(R[i].rho_inverse), right));
    }
    return joined(substitute(R, std::move(z)));
  }

  /// The iterations of CGLS for one column of β until the gradient is no longer than this, but `most` at
  /// most. CGLS with A takes as many if they are fewer than the steps, and otherwise, by experience, no
  /// fewer. If the x of the last one is not solved with A, they are more than the steps.
  Index cgls_iterations(Index column, double damp, double gradient, Index most) const {
    std::vector<Small> x, r;
    for (const Small& K : K_) x.push_back(Small(K.cols(), 1));
    r.push_back(Small(beta_.rows(), 1));
    std::copy_n(beta_.column(column), beta_.rows(), r.front().column(0));
    for (const Small& K : K_) r.push_back(Small(K.rows(), 1));
    std::vector<Small> s = adjoint_applied(r), p = s;
    double gamma = norm_squared(s);
    Index iterations = 0;
    while (iterations < most && std::sqrt(gamma) > gradient) {
      const std::vector<Small> q = applied(p);
      const double alpha = gamma / (norm_squared(q) + damp * damp * norm_squared(p));
      add(alpha, p, x);
      add(-alpha, q, r);
      s = adjoint_applied(r);
      add(-damp * damp, x, s);
      const double before = std::exchange(gamma, norm_squared(s));
      for (std::size_t i = 0; i < p.size(); ++i) {  // p = s + (γ/γ₋) p
        Small next = s[i];
        add(gamma / before, p[i], next);
        p[i] = std::move(next);
      }
      ++iterations;
    }
    const double beyond = product(L_.back(), r.back()).column_norm_squared(0);  // along V₊
    const bool is_solved = std::sqrt(gamma + beyond) <= gradient;
    return std::min(is_solved ? iterations : std::max(iterations, steps() + 1), most);
  }

 private:
  std::vector<Step> factor(double damp, double smallest, BlockScalars<S>& scalars) const {
    std::vector<Step> R;
    scalars.begin(L_.front(), beta_, damp);
    for (std::size_t i = 0; i < K_.size(); ++i) {
      scalars.eliminate(K_[i], smallest);
      R.push_back({scalars.rho_inverse(), {}, scalars.phi()});
      scalars.extend(L_[i + 1]);
      R.back().theta = scalars.theta();
    }
    return R;
  }

  /// Solves ρᵢ yᵢ = rightᵢ − θᵢ₊₁ yᵢ₊₁.
  static std::vector<Small> substitute(const std::vector<Step>& R, std::vector<Small> right) {
    std::vector<Small> y(R.size());
    for (std::size_t i = R.size(); i-- > 0;) {
      if (i + 1 < R.size()) subtract(product(R[i].theta, y[i + 1]), right[i]);
      y[i] = product(R[i].rho_inverse, right[i]);
    }
    return y;
  }

  Small joined(const std::vector<Small>& blocks) const {
    Small all(dimension(), blocks.empty() ? beta_.cols() : blocks.front().cols());
    Index first = 0;
    for (const Small& block : blocks) {
      for (Index j = 0; j < block.cols(); ++j)
        std::copy_n(block.column(j), block.rows(), all.column(j) + first);
      first += block.rows();
    }
    return all;
  }

  static void add(double a, const Small& A, Small& B) {
    for (Index j = 0; j < B.cols(); ++j)
      for (Index i = 0; i < B.rows(); ++i) B(i, j) += a * A(i, j);
  }
  static void subtract(const Small& A, Small& B) { add(-1, A, B); }
  static void add(double a, const std::vector<Small>& x, std::vector<Small>& y) {
    for (std::size_t i = 0; i < y.size(); ++i) add(a, x[i], y[i]);
  }
  static double norm_squared(const std::vector<Small>& x) {
    double sum = 0;
    for (const Small& block : x) sum += block.column_norm_squared(0);
    return sum;
  }

  /// The squared lengths of the columns of E₁β − B y.
  std::vector<double> residual_squares(const std::vector<Small>& y) const {
    std::vector<double> squares(at(beta_.cols()), 0.0);
    std::vector<Small> u = applied(y);
    subtract(beta_, u.front());
    for (const Small& part : u)
      for (Index j = 0; j < part.cols(); ++j) squares[at(j)] += part.column_norm_squared(j);
    return squares;
  }

  /// B y, whose blocks are L₁ᴴ y₁ and Kᵢ yᵢ + Lᵢ₊₁ᴴ yᵢ₊₁.
  std::vector<Small> applied(const std::vector<Small>& y) const {
    std::vector<Small> u;
    for (std::size_t i = 0; i <= y.size(); ++i) {
      const Index rows = i == 0 ? beta_.rows() : K_[i - 1].rows();
      u.push_back(i < y.size() ? product(adjoint(L_[i]), y[i])
                               : Small(rows, y.empty() ? beta_.cols() : y.front().cols()));
      if (i > 0) add(1, product(K_[i - 1], y[i - 1]), u.back());
    }
    return u;
  }

  /// Bᴴ u.
  std::vector<Small> adjoint_applied(const std::vector<Small>& u) const {
    std::vector<Small> y;
    for (std::size_t i = 0; i < K_.size(); ++i) {
      y.push_back(product(L_[i], u[i]));
      add(1, product(adjoint(K_[i]), u[i + 1]), y.back());
    }
    return y;
  }

  Small beta_;
  std::vector<Small> L_, K_;
};

}  // namespace gridlops
