// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <complex>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "base/numbers.hpp"
#include "gridlops/solve_observer.hpp"
#include "gridlops/solver.hpp"
#include "ops/scratch.hpp"
#include "solve/active_columns.hpp"
#include "solve/batches.hpp"
#include "solve/checkpoints.hpp"
#include "solve/column_state.hpp"
#include "solve/column_sums.hpp"

namespace gridlops {

template <Scalar T>
class ColumnMethod;

template <Scalar T>
inline constexpr double default_tolerance = sizeof(Real<T>) == 4 ? 1e-4 : 1e-8;

/// What all batches of one solve share.
struct SolveProgress {
  Index batch = 0;  // the one being solved
  SolveReport report;
  std::vector<double> residual_norms, tested_norms, x_norms;  // the last known, per column of B
  std::complex<double> first_element = std::numeric_limits<double>::quiet_NaN();  // of X, where it is held
  bool stop_wished = false;  // by a callback or an observer on this rank, which others learn in a reduction
  bool stop_asked = false;   // on any rank, as all ranks know

  void visit(StateArchive& archive);
};

/// The right-hand sides that are solved together by one method: which of them still take part, their
/// verdicts, and what a method needs to work on all active columns at once. A column that ends is frozen at
/// once and leaves the products. When all have ended the norms are recomputed from their definitions; columns
/// that claimed to have converged and have not are restarted from there as long as that helps.
///
/// Blocks are as wide as the batch, and the active columns come first in them. Entry k of what is per active
/// column belongs to column(k).
template <Scalar T>
class ColumnRun {
 public:
  ColumnRun(ColumnMethod<T>& method, const SolveOptions& options, SolveProgress& progress,
            Checkpoints<T>& checkpoints, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
            const ColumnBatch& columns);
  void solve();

  // For methods.

  const SolveOptions& options() const { return options_; }
  double tolerance() const { return tolerance_; }
  Index active_count() const { return active_.count(); }
  /// The number of active column k within the batch, and its state.
  Index number(Index k) const { return active_.column(k); }
  /// And its number in the whole B.
  Index right_hand_side(Index k) const { return numbers_[at(number(k))]; }
  ColumnState& column(Index k) { return columns_[at(number(k))]; }
  /// All columns of the batch, in their own places: for the start, when all are active.
  const ConstDistMatrix<T>& B() const { return B_; }

  /// The batch's columns of a matrix with the columns of B.
  DistMatrix<T> in_batch(DistMatrix<T>& whole) const {
    return whole.column_slice(batch_.first, batch_.sizes);
  }
  /// The active columns of a matrix of the batch, of x, and of matrices kept in scratch memory.
  DistMatrix<T> active(DistMatrix<T>& of_batch) const {
    const auto parts = static_cast<std::size_t>(active_.partition().parts());
    return of_batch.column_slice(std::vector<Index>(parts, 0), active_.partition());
  }
  DistMatrix<T> x() { return active(X_); }
  DistMatrix<T> matrix(Scratch<T>& memory, const Space& space) const {
    return memory.matrix(space, active_.partition());
  }

  ColumnSums<T>& sums() { return sums_; }
  /// Sums over the ranks what was added to sums(); true if a callback has asked for the end, which any rank
  /// learns here.
  bool reduce();

  const Kernels<T>& kernels() const { return grid_.backend()->template kernels<T>(); }
  void copy(const ConstDistMatrix<T>& X, DistMatrix<T>& Y) const { kernels().copy(X.local(), Y.local()); }
  /// Y ← Y + X diag(α), Y ← X + Y diag(β), X ← X diag(α), with one entry per active column.
  void axpy(const std::vector<double>& alpha, const ConstDistMatrix<T>& X, DistMatrix<T>& Y);
  void xpby(const ConstDistMatrix<T>& X, const std::vector<double>& beta, DistMatrix<T>& Y);
  void scale(const std::vector<double>& alpha, DistMatrix<T>& X);
  /// Thresholds X, with one t per active column, for which prepare() has reserved memory.
  void reserve_thresholds() { device_thresholds_.reserve(grid_.backend(), X_.local().cols); }
  void threshold(Threshold kind, const std::vector<double>& t, DistMatrix<T>& X);
  /// This rank's block of active column k of a matrix: without columns if another part has it.
  MatrixView<T> column_block(DistMatrix<T>& X, Index k) const;
  /// yₖ ← xₖ for the active columns k with chosen[k].
  void copy_columns(const std::vector<char>& chosen, const ConstDistMatrix<T>& X, DistMatrix<T>& Y) const;

 private:
  void reserve();
  void judge(ColumnState& state) const;
  void judge_active();
  void begin_descents();
  void keep_best();
  void iterate();
  void end_iteration();
  bool is_to_be_saved() const;
  void retire(const std::function<bool(StopReason)>& which);
  void retire_ended();
  void swap_columns(const ActiveColumns::Swaps& swaps);
  void start();
  void give_up_lost_columns();
  bool is_lost(Index j);
  void resume();
  void save();
  void visit(StateArchive& archive);
  std::vector<NamedMatrix<T>> lasting_matrices();
  bool verify();
  bool conclude(ColumnState& state, double tested);
  void record();
  IterationInfo information();
  void note_first_element();
  void tell_observers();
  void write_report();
  const T* local_scalars(const std::vector<double>& scalars);

  ColumnMethod<T>& method_;
  const SolveOptions& options_;
  const double tolerance_;
  SolveProgress& progress_;
  Checkpoints<T>& checkpoints_;
  const ProcessGrid& grid_;
  const int part_;
  const ColumnBatch batch_;
  const ConstDistMatrix<T> B_;
  DistMatrix<T> X_;
  ColumnSums<T> sums_;
  ActiveColumns active_;
  std::vector<ColumnState> columns_;
  std::vector<Index> numbers_;  // of the batch's columns in B
  Scratch<T> best_;
  Buffer<T> spare_;  // one column
  std::vector<T> host_scalars_;
  Buffer<T> device_scalars_;
  Buffer<double> device_thresholds_;
  Index iteration_ = 0;
};

}  // namespace gridlops
