// SPDX-License-Identifier: BSD-3-Clause
#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "gridlops/communicator.hpp"
#include "ops/algorithms.hpp"
#include "ops/matrix_block.hpp"
#include "ops/panels.hpp"
#include "ops/stacked_parts.hpp"
#include "ops/step_ring.hpp"

namespace gridlops {

namespace {

/// Y stays where it is. Step k takes columns K of A and rows K of X, of which every rank has some:
///   forward  Y(p, q) += A(p, K) X(K, q), A(p, K) gathered along grid row p, X(K, q) along grid column q;
///   adjoint  X(K, q) = Σ over p of A(p, K)ᴴ Y(p, q), reduce-scattered along grid column q.
/// All ranks of a row and of a column have the indices of K in the same, increasing order. Panels of the next
/// `lookahead` steps travel, and partial sums of the last ones, while a step multiplies.
template <Scalar T>
class GatheringSumma final : public LinearOperator<T> {
 public:
  GatheringSumma(DistMatrix<T> A, const MatrixMultOptions& options)
      : LinearOperator<T>(range_in_blocks(A), domain_in_blocks(A)),
        A_(std::move(A)),
        product_(A_.grid()->backend(), options.column_stable),
        order_(reduction_order(options)),
        steps_(gather_steps(A_.layout().cols.partition, this->domain().rows.partition,
                            panel_width(options.panel))),
        ring_(steps_.size(), options.lookahead) {}

 private:
  /// What one step needs while it is under way.
  struct Slot {
    Buffer<T> A_memory, parts_memory, sum_memory;
    MatrixView<const T> A;
    Request A_request, X_request, sum_request;
    void advance() {
      A_request.test();
      X_request.test();
      sum_request.test();
    }
  };
  Slot& slot(std::size_t step) const { return ring_.slot(step); }

  void do_reserve(Op op, const Partition& columns) const override {
    const bool row_alone = A_.grid()->row_comm().size() == 1, col_alone = A_.grid()->col_comm().size() == 1;
    const Index rows = A_.local_row_range().size, cols = this->domain().local_columns(columns);
    for (std::size_t step = 0; step < steps_.size(); ++step) {
      const GatherStep& what = steps_[step];
      const Index width = what.width();
      const bool in_one_piece = what.slices.size() == 1;
      op == Op::none ? product_.reserve(width, rows) : product_.reserve(rows, width);
      if (!(row_alone && in_one_piece)) slot(step).A_memory.reserve(backend(), rows * width);
      if (!(col_alone && in_one_piece)) panel_memory_.reserve(backend(), width * cols);
      if (col_alone) continue;
      slot(step).parts_memory.reserve(backend(), width * cols);
      if (op == Op::adjoint)
        slot(step).sum_memory.reserve(backend(), what.X_parts.size(A_.grid()->col_comm().rank()) * cols);
    }
  }

  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    const MatrixView<T> Y_local = Y.local();
    const auto gather = [&](std::size_t step) {
      CommunicationGroup together(A_.grid()->comm());
      gather_A(step);
      gather_X(step, X);
      together.close();
    };
    const auto multiply = [&](std::size_t step) {
      slot(step).A_request.wait();
      product_.multiply(Op::none, alpha, slot(step).A, gathered_X(step, X), step == 0 ? beta : T(1), Y_local);
    };
    ring_.run(gather, multiply);
  }

  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    ring_.run([&](std::size_t step) { gather_A(step); },
              [&](std::size_t step) {
                slot(step).A_request.wait();
                multiply_and_send_sum(step, alpha, Y.local(), beta, X);
              },
              [&](std::size_t step) { receive_sum(step, beta, X); });
  }

  /// A(p, K).
  void gather_A(std::size_t step) const {
    Communicator& comm = A_.grid()->row_comm();
    const GatherStep& what = steps_[step];
    Slot& next = slot(step);
    const Range mine = A_.local_col_range();
    if (comm.size() == 1 && what.slices.size() == 1) {
      next.A = local_A().col_block(relative(what.slices.front(), mine));
      return;
    }
    const Index rows = A_.local_row_range().size;
    const MatrixView<T> panel = next.A_memory.matrix(rows, what.width());
    Index place = 0;
    for (const Range& K : what.slices) {
      if (holds(mine, K))
        kernels().copy(local_A().col_block(relative(K, mine)), panel.col_block({place, K.size}));
      place += K.size;
    }
    next.A = panel;
    if (comm.size() == 1) return;
    set_counts(what.A_parts, rows);
    const Range own = what.A_parts.range(comm.rank());
    next.A_request = comm.start_all_gather_v({panel.data + own.begin * rows, own.size * rows},
                                             {panel.data, rows * what.width()}, counts_);
  }

  /// X(K, q), in parts.
  void gather_X(std::size_t step, const ConstDistMatrix<T>& X) const {
    Communicator& comm = A_.grid()->col_comm();
    if (comm.size() == 1) return;
    const GatherStep& what = steps_[step];
    const Index cols = X.local().cols;
    Slot& next = slot(step);
    const Range own = what.X_parts.range(comm.rank());
    T* const part = next.parts_memory.data() + own.begin * cols;
    copy_rows(what, X, MatrixView<T>(part, own.size, cols));
    set_counts(what.X_parts, cols);
    next.X_request = comm.start_all_gather_v({part, own.size * cols},
                                             {next.parts_memory.data(), what.width() * cols}, counts_);
  }

  /// X(K, q), when it has come.
  MatrixView<const T> gathered_X(std::size_t step, const ConstDistMatrix<T>& X) const {
    const GatherStep& what = steps_[step];
    const bool alone = A_.grid()->col_comm().size() == 1;
    if (alone && what.slices.size() == 1)
      return X.local().row_block(relative(what.slices.front(), X.local_row_range()));
    const MatrixView<T> panel = whole_panel(step, X.local().cols);
    if (alone) {
      copy_rows(what, X, panel);
      return panel;
    }
    Slot& now = slot(step);
    now.X_request.wait();
    set_counts(what.X_parts, panel.cols);
    unstack<T>(kernels(), now.parts_memory.data(), counts_, panel);
    return panel;
  }

  void multiply_and_send_sum(std::size_t step, T alpha, MatrixView<const T> Y, T beta,
                             DistMatrix<T>& X) const {
    Communicator& comm = A_.grid()->col_comm();
    const GatherStep& what = steps_[step];
    Slot& now = slot(step);
    if (comm.size() == 1 && what.slices.size() == 1) {
      product_.multiply(Op::adjoint, alpha, now.A, Y, beta,
                        X.local().row_block(relative(what.slices.front(), X.local_row_range())));
      return;
    }
    const MatrixView<T> panel = whole_panel(step, Y.cols);
    product_.multiply(Op::adjoint, alpha, now.A, Y, T(0), panel);
    if (comm.size() == 1) {
      add_rows(what, panel, beta, X);
      return;
    }
    const Index own = what.X_parts.size(comm.rank()) * Y.cols;
    set_counts(what.X_parts, Y.cols);
    stack<T>(kernels(), panel, counts_, now.parts_memory.data());
    now.sum_request = comm.start_reduce_scatter_v({now.parts_memory.data(), panel.size()}, counts_,
                                                  {now.sum_memory.data(), own}, ReduceOp::sum, order_);
  }

  void receive_sum(std::size_t step, T beta, DistMatrix<T>& X) const {
    Communicator& comm = A_.grid()->col_comm();
    if (comm.size() == 1) return;
    const GatherStep& what = steps_[step];
    Slot& done = slot(step);
    done.sum_request.wait();
    add_rows(what, done.sum_memory.matrix(what.X_parts.size(comm.rank()), X.local().cols), beta, X);
  }

  /// The rows of X of this rank's that the step takes, one below the other.
  void copy_rows(const GatherStep& what, const ConstDistMatrix<T>& X, MatrixView<T> part) const {
    Index place = 0;
    for (const Range& K : what.slices) {
      if (!holds(X.local_row_range(), K)) continue;
      kernels().copy(X.local().row_block(relative(K, X.local_row_range())), part.row_block({place, K.size}));
      place += K.size;
    }
  }

  /// The same rows ← part + β the same rows.
  void add_rows(const GatherStep& what, MatrixView<const T> part, T beta, DistMatrix<T>& X) const {
    Index place = 0;
    for (const Range& K : what.slices) {
      if (!holds(X.local_row_range(), K)) continue;
      kernels().add(T(1), part.row_block({place, K.size}), beta,
                    X.local().row_block(relative(K, X.local_row_range())));
      place += K.size;
    }
  }

  /// For the step that multiplies.
  MatrixView<T> whole_panel(std::size_t step, Index cols) const {
    return panel_memory_.matrix(steps_[step].width(), cols);
  }

  void set_counts(const Partition& parts, Index elements) const {
    counts_.resize(static_cast<std::size_t>(parts.parts()));
    for (int part = 0; part < parts.parts(); ++part) counts_[at(part)] = parts.size(part) * elements;
  }
  static bool holds(Range block, Range slice) {
    return block.begin <= slice.begin && slice.end() <= block.end();
  }
  static Range relative(Range slice, Range block) { return {slice.begin - block.begin, slice.size}; }

  MatrixView<const T> local_A() const { return A_.local(); }
  const std::shared_ptr<Backend>& backend() const { return A_.grid()->backend(); }
  const Kernels<T>& kernels() const { return backend()->template kernels<T>(); }

  DistMatrix<T> A_;
  LocalProduct<T> product_;
  ReductionOrder order_;
  std::vector<GatherStep> steps_;
  mutable StepRing<Slot> ring_;
  mutable Buffer<T> panel_memory_;
  mutable std::vector<Index> counts_;
};

}  // namespace

template <Scalar T>
OperatorPtr<T> make_gathering_summa(DistMatrix<T> A, const MatrixMultOptions& options) {
  return std::make_shared<GatheringSumma<T>>(std::move(A), options);
}

#define GRIDLOPS_INSTANTIATE(T) \
  template OperatorPtr<T> make_gathering_summa(DistMatrix<T>, const MatrixMultOptions&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
