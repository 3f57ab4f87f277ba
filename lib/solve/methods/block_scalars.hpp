// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/numbers.hpp"
#include "solve/checkpoint/state_archive.hpp"
#include "solve/methods/small_dense.hpp"

namespace gridlops {

/// Solves the least-squares problems min ‖B y − E₁β‖ for the block bidiagonal matrix
///
///   B = ⎡ L₁ᴴ          ⎤
///       ⎢ K₂  L₂ᴴ      ⎥
///       ⎣     K₃  L₃ᴴ …⎦
///
/// as its QR factorisation grows, with one column of β per right-hand side: LSQR with matrices in place of
/// scalars (Paige, Saunders: LSQR, ACM TOMS 8, 1982, §4; Karimi, Toutounian: The block least squares method
/// for solving nonsymmetric linear systems with multiple right-hand sides, Appl. Math. Comput. 177, 2006).
/// With damping, ‖B y − E₁β‖² + D²‖y‖².
template <Scalar S>
class BlockScalars {
 public:
  using Small = SmallMatrix<S>;

  void begin(const Small& L, Small beta, double damp = 0) {
    damp_ = damp;
    rho_bar_ = adjoint(L);
    phi_bar_ = std::move(beta);
    theta_ = Small();
    settled_.assign(static_cast<std::size_t>(phi_bar_.cols()), 0.0);
    compress();
  }

  /// Eliminates Kᵢ₊₁. Does not use directions of Vᵢ that A maps to vectors of length at most `smallest`.
  void eliminate(const Small& K, double smallest) {
    // extend() applies the reflections to Lᵢ₊₁, which is not yet known here.
    step_rows_ = rho_bar_.cols();
    upper_rows_ = rho_bar_.rows();
    Small below = K;
    if (damp_ != 0) {
      Small D = Small::identity(step_rows_);
      for (Index i = 0; i < step_rows_; ++i) D(i, i) = damp_;
      below = stacked(K, D);
    }
    damped_rows_ = below.rows() - K.rows();
    reflections_.emplace(stacked(rho_bar_, below));
    rho_inverse_ = inverse_upper(reflections_->upper(), smallest);
    turned_ = reflections_->apply_adjoint(stacked(phi_bar_, Small(below.rows(), phi_bar_.cols())));
    phi_ = turned_.row_block({0, step_rows_});
  }
  // Then Pᵢ = (Vᵢ − Pᵢ₋₁ θᵢ) ρᵢ⁻¹, x += Pᵢ φᵢ.

  const Small& theta() const { return theta_; }
  const Small& rho_inverse() const { return rho_inverse_; }
  const Small& phi() const { return phi_; }

  /// Appends Lᵢ₊₁.
  void extend(const Small& L) {
    const Small of_next =
        stacked(stacked(Small(upper_rows_, L.rows()), adjoint(L)), Small(damped_rows_, L.rows()));
    const Small below = reflections_->apply_adjoint(of_next);
    const Range rest{step_rows_, below.rows() - step_rows_};
    theta_ = below.row_block({0, step_rows_});
    rho_bar_ = below.row_block(rest);
    phi_bar_ = turned_.row_block(rest);
    compress();
  }

  /// Visits what must be kept after extend().
  void visit(StateArchive& archive) {
    archive.visit(rho_bar_, phi_bar_, theta_, gradient_);
    archive.visit_list(settled_);
  }
  /// Whether what was visited has this many columns, and goes on with blocks of this width, after one of the
  /// width before; 0: the first block.
  bool fits(Index columns, Index width, Index width_before) const {
    return rho_bar_.cols() == width && rho_bar_.rows() == width && phi_bar_.rows() == width &&
           phi_bar_.cols() == columns && gradient_.rows() == width && gradient_.cols() == columns &&
           std::ssize(settled_) == columns &&
           (width_before == 0 || (theta_.rows() == width_before && theta_.cols() == width));
  }

  /// ‖b − Ax‖² + D²‖x‖² and ‖Aᴴ(b − Ax) − D²x‖² of right-hand side j.
  double residual_squared(Index j) const { return settled_[at(j)] + phi_bar_.column_norm_squared(j); }
  double gradient_squared(Index j) const { return gradient_.column_norm_squared(j); }

 private:
  /// Makes ρ̄ square. Later steps do not change the residuals in the other rows, so this keeps only their
  /// squares.
  void compress() {
    const Index rows = rho_bar_.rows(), cols = rho_bar_.cols();
    if (rows > cols) {
      const HouseholderQr<S> qr(rho_bar_);
      rho_bar_ = qr.upper();
      const Small turned = qr.apply_adjoint(phi_bar_);
      const Small settled = turned.row_block({cols, rows - cols});
      for (Index j = 0; j < settled.cols(); ++j) settled_[at(j)] += settled.column_norm_squared(j);
      phi_bar_ = turned.row_block({0, cols});
    }
    gradient_ = product(adjoint(rho_bar_), phi_bar_);
  }

  Small rho_bar_, phi_bar_, theta_, rho_inverse_, phi_, turned_, gradient_;
  double damp_ = 0;  // D
  Index step_rows_ = 0, upper_rows_ = 0, damped_rows_ = 0;
  std::optional<HouseholderQr<S>> reflections_;
  std::vector<double> settled_;  // the final part of the squared residuals
};

}  // namespace gridlops
