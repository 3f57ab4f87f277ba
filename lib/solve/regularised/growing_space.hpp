// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "gridlops/solve/solution_space.hpp"
#include "solve/checkpoint/checkpoints.hpp"
#include "solve/methods/block_bidiagonalisation.hpp"

namespace gridlops {

/// The space of a SolutionSpace: how it grows, and is kept in files. Its norms are those of A and the columns
/// of B times powers of two, which blocks() has. Dampings are the given ones. Idle ranks have none of it.
template <Scalar T>
class GrowingSpace {
 public:
  /// Grows from B, or from what options.checkpoint.restart names (collective over the grid).
  GrowingSpace(OperatorPtr<T> A, const ConstDistMatrix<T>& B, const SpaceOptions& options);
  /// Takes what was saved in a directory as it is (collective over A's grid).
  GrowingSpace(OperatorPtr<T> A, const std::string& directory);

  /// Collective over the grid.
  void save(const std::string& directory);
  /// As of SolutionSpace.
  const std::string& save_failure() const { return saves_.failure(); }

  /// The norms of x, of the residual and of the gradient, and whether x is solved, for each pair of D and
  /// column, D by D.
  struct Pairs {
    std::vector<double> x, residual, gradient;
    std::vector<StopReason> reason;

    void visit(StateArchive& archive) {
      archive.visit_list(x);
      archive.visit_list(residual);
      archive.visit_list(gradient);
      archive.visit_list(reason);
    }
  };
  using Projected = ProjectedProblem<Accumulator<T>>;

  const OperatorPtr<T>& A() const { return A_; }
  BlockBidiagonalisation<T>& blocks() { return blocks_; }
  const Projected& projected() const { return blocks_.projected(); }
  /// The solution of the small problem for this D.
  typename Projected::Solution solution(double damp) const;
  typename Projected::NormalFactor normal_factor(double damp) const {
    return projected().normal_factor(scaled(damp), smallest());
  }
  /// D times the power of A, but not so large that its square would be infinite.
  double scaled(double damp) const;
  /// The power of two by which x of a column is to be multiplied.
  int power_of_x(Index column) const { return blocks_.powers()[at(column)] + blocks_.power(); }
  const std::vector<double>& damps() const { return options_.damps; }
  bool has_probe() const { return options_.has_probe; }
  double tolerance() const { return tolerance_; }
  SpaceEnd end() const { return end_; }
  Pairs& pairs() { return pairs_; }
  const Pairs& pairs() const { return pairs_; }
  /// The places of those that are not solved, though their data are finite.
  std::vector<std::size_t> unsolved() const;
  const std::vector<double>& fingerprint_of_B() const { return fingerprint_of_B_; }
  /// Whether the preconditioner of the space saves more than it costs, given the iterations that CGLS takes
  /// to this tolerance for the space alone.
  bool is_worth_preconditioning(double damp, double tolerance) const;
  /// The columns of B, and the probe.
  Index columns() const { return std::ssize(blocks_.powers()); }

 private:
  using S = Accumulator<T>;
  using Clock = std::chrono::steady_clock;
  static constexpr double epsilon = static_cast<double>(std::numeric_limits<Real<T>>::epsilon());

  Communicator& comm() const { return A_->domain().grid->comm(); }
  /// Vectors that A makes no longer than this are rounding.
  double smallest() const { return epsilon * blocks_.norm(); }
  void require_uncut_columns() const;
  std::string description() const;
  void begin(const ConstDistMatrix<T>& B);
  void go_on(const std::string& directory);
  void grow();
  std::optional<SpaceEnd> step(BlockScalars<S>& scalars);
  bool answer_requests();
  bool is_finite(Index column) const { return std::isfinite(blocks_.data_norms()[at(column)]); }
  /// Whether the gradient is within half the tolerance, which leaves the rest to rounding, or is rounding.
  bool is_solved(Index column, double damped_residual, double gradient) const;
  bool is_solved(const BlockScalars<S>& scalars) const;
  bool pays();
  double cost_of_step() const;
  double cost_of_cgls() const;
  std::vector<Index> unknown_columns() const;
  double cost_of_product() const;
  void evaluate();
  void visit(StateArchive& archive);
  void load(const std::string& directory);
  std::vector<double> fingerprint_of_A() const;
  void write(const std::string& directory);

  const OperatorPtr<T> A_;
  SpaceOptions options_;
  double tolerance_ = 0;
  BlockBidiagonalisation<T> blocks_;
  std::vector<double> fingerprint_of_B_;
  std::vector<double> references_;  // ‖Aᴴb‖
  SpaceEnd end_ = SpaceEnd::user_stop;
  Pairs pairs_;
  double cost_ = 0, affordable_ = 0;  // multiplications on a rank: of the space, and of CGLS at least
  PatientSaves saves_;
  Clock::time_point last_save_ = Clock::now();
};

}  // namespace gridlops
