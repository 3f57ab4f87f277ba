// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "base/instantiate.hpp"
#include "comm/failure_scope.hpp"
#include "ops/algorithms.hpp"
#include "ops/matrix_block.hpp"
#include "ops/panels.hpp"
#include "ops/peer_blocks.hpp"

namespace gridlops {

namespace {

/// Y stays where it is, and each rank reads from the blocks of the others what it multiplies:
///   forward  Y(p, q) = Σ over K of A(p, K) X(K, q), the inner dimension cut where the owner of A's columns
///            or of X's rows changes; each rank begins with its own columns of A, so that not all read one
///            rank's block at a time;
///   adjoint  X(i, q) = Σ over p of A(p, K)ᴴ Y(p, q) for the rows K of X that the rank at (i, q) owns. There
///            are no partial sums of others.
/// Where parts travel, K is also cut at the panel width, and the parts of the next `lookahead` steps are on
/// their way while a step multiplies.
template <Scalar T>
class PeerSumma final : public LinearOperator<T> {
 public:
  PeerSumma(DistMatrix<T> A, const MatrixMultOptions& options)
      : LinearOperator<T>(range_in_blocks(A), domain_in_blocks(A)),
        A_(std::move(A)),
        product_(grid().backend(), options.column_stable),
        column_stable_(options.column_stable),
        A_blocks_(make_peer_blocks<T>(grid().comm(), grid().backend())),
        operands_(make_peer_blocks<T>(grid().col_comm(), grid().backend())),
        inner_(summa_panels(cols_of_A(), rows_of_X(),
                            A_blocks_->in_place() ? cols_of_A().total() : panel_width(options.panel))),
        lookahead_(A_blocks_->in_place() ? 0 : static_cast<std::size_t>(options.lookahead)),
        A_slots_(lookahead_ + 1),
        operand_slots_(lookahead_ + 1) {}

 private:
  /// What is read of the operand's block at (row, my column) of the grid; consecutive steps may share it.
  struct Operand {
    int row;
    Range rows;
  };
  /// out_rows of the result += a part of A, or its adjoint, times an operand.
  struct Step {
    int A_row, A_col;  // of the rank that has it
    Range A_cols;
    std::size_t operand;
    Range out_rows;
    bool is_first;  // of those rows
  };
  struct Plan {
    std::vector<Operand> operands;
    std::vector<Step> steps;
  };
  struct Slot {
    Buffer<T> memory;
    PeerPart<T> part;
  };

  void do_reserve(Op op, const Partition& columns) const override {
    const Plan plan = op == Op::none ? forward_plan() : adjoint_plan();
    const Index cols = this->domain().local_columns(columns);
    KeptFailure failure;
    failure.run([&] { A_blocks_->connect(); });
    failure.run([&] { operands_->connect(); });
    failure.run([&] {
      A_blocks_->reserve_copy(A_.local());
      operands_->reserve_copy(
          {nullptr, (op == Op::none ? this->domain() : this->range()).local_rows(), cols});
      for (std::size_t k = 0; k < plan.steps.size(); ++k) {
        const Step& step = plan.steps[k];
        const Index rows = A_.layout().rows.partition.size(step.A_row);
        op == Op::none ? product_.reserve(step.A_cols.size, rows) : product_.reserve(rows, step.A_cols.size);
        if (step.A_row * grid().cols() + step.A_col != grid().comm().rank())
          A_blocks_->reserve_part(A_slots_[k % A_slots_.size()].memory, rows * step.A_cols.size);
      }
      for (std::size_t k = 0; k < plan.operands.size(); ++k)
        if (plan.operands[k].row != grid().my_row())
          operands_->reserve_part(operand_slot(k).memory, plan.operands[k].rows.size * cols);
    });
    failure.rethrow();
  }

  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    run(Op::none, forward_plan(), alpha, X.local(), beta, Y.local());
  }

  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    run(Op::adjoint, adjoint_plan(), alpha, Y.local(), beta, X.local());
  }

  Plan forward_plan() const {
    Plan plan;
    const std::size_t first = first_panel();
    for (std::size_t step = 0; step < inner_.size(); ++step) {
      const Range K = inner_[(first + step) % inner_.size()];
      const int q = cols_of_A().owner_of(K.begin), i = rows_of_X().owner_of(K.begin);
      plan.operands.push_back({i, relative(K, rows_of_X().begin(i))});
      plan.steps.push_back({grid().my_row(), q, relative(K, cols_of_A().begin(q)), step,
                            Range{0, A_.local().rows}, step == 0});
    }
    return plan;
  }

  Plan adjoint_plan() const {
    const int my_row = grid().my_row();
    Plan plan;
    for (int turn = 0; turn < grid().rows(); ++turn) {
      const int p = (my_row + turn) % grid().rows();
      plan.operands.push_back({p, Range{0, this->range().rows.partition.size(p)}});
      for (const Range& K : inner_) {
        if (rows_of_X().owner_of(K.begin) != my_row) continue;
        const int q = cols_of_A().owner_of(K.begin);
        plan.steps.push_back({p, q, relative(K, cols_of_A().begin(q)), plan.operands.size() - 1,
                              relative(K, rows_of_X().begin(my_row)), turn == 0});
      }
    }
    return plan;
  }

  void run(Op op, const Plan& plan, T alpha, MatrixView<const T> mine, T beta, MatrixView<T> out) const {
    A_blocks_->show_for_good(A_.local());
    operands_->show(mine);
    std::size_t parts_started = 0, operands_started = 0;
    for (std::size_t k = 0; k < plan.steps.size(); ++k) {
      const Step& step = plan.steps[k];
      for (; parts_started < std::min(k + lookahead_ + 1, plan.steps.size()); ++parts_started) {
        const Step& next = plan.steps[parts_started];
        Slot& slot = A_slots_[parts_started % A_slots_.size()];
        slot.part = A_blocks_->start_reading(next.A_row * grid().cols() + next.A_col,
                                             {0, A_.layout().rows.partition.size(next.A_row)}, next.A_cols,
                                             slot.memory);
        for (; operands_started <= next.operand; ++operands_started)
          start_reading(plan.operands[operands_started], mine.cols, operand_slot(operands_started));
      }
      PeerPart<T>& A = A_slots_[k % A_slots_.size()].part;
      PeerPart<T>& operand = operand_slot(step.operand).part;
      A.arrival.wait();
      operand.arrival.wait();
      make_progress();
      product_.multiply(op, alpha, A.block, operand.block, step.is_first ? beta : T(1),
                        out.row_block(step.out_rows));
    }
    A_blocks_->done_reading();
    operands_->done_reading();
    operands_->await_readers();
    A_blocks_->await_readers();
  }

  void start_reading(const Operand& operand, Index cols, Slot& slot) const {
    slot.part = operands_->start_reading(operand.row, operand.rows, {0, cols}, slot.memory);
  }
  Slot& operand_slot(std::size_t operand) const { return operand_slots_[operand % operand_slots_.size()]; }

  /// Lets parts under way advance: many MPI libraries move data only while they are called.
  void make_progress() const {
    for (auto* const slots : {&A_slots_, &operand_slots_})
      for (Slot& slot : *slots) slot.part.arrival.test();
  }

  /// Column-stable, all grid columns sum in one order.
  std::size_t first_panel() const {
    std::size_t panel = 0;
    while (!column_stable_ && panel < inner_.size() &&
           cols_of_A().owner_of(inner_[panel].begin) != grid().my_col())
      ++panel;
    return panel;
  }

  static Range relative(Range range, Index origin) { return {range.begin - origin, range.size}; }
  const ProcessGrid& grid() const { return *A_.grid(); }
  const Partition& cols_of_A() const { return A_.layout().cols.partition; }
  const Partition& rows_of_X() const { return this->domain().rows.partition; }

  DistMatrix<T> A_;
  LocalProduct<T> product_;
  bool column_stable_;
  std::unique_ptr<PeerBlocks<T>> A_blocks_, operands_;
  std::vector<Range> inner_;
  std::size_t lookahead_;
  mutable std::vector<Slot> A_slots_, operand_slots_;
};

}  // namespace

template <Scalar T>
OperatorPtr<T> make_peer_summa(DistMatrix<T> A, const MatrixMultOptions& options) {
  return std::make_shared<PeerSumma<T>>(std::move(A), options);
}

#define GRIDLOPS_INSTANTIATE(T) \
  template OperatorPtr<T> make_peer_summa(DistMatrix<T>, const MatrixMultOptions&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
