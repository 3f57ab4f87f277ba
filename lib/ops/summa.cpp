// SPDX-License-Identifier: BSD-3-Clause
#include "base/instantiate.hpp"
#include "comm/failure_scope.hpp"
#include "gridlops/communicator.hpp"
#include "ops/algorithms.hpp"
#include "ops/matrix_block.hpp"
#include "ops/panels.hpp"
#include "ops/peer_blocks.hpp"
#include "ops/step_ring.hpp"

namespace gridlops {

namespace {

/// Y stays where it is. Step k takes the columns K of A and the rows K of X:
///   forward  Y(p, q) += A(p, K) X(K, q), A(p, K) broadcast along grid row p, X(K, q) along grid column q;
///   adjoint  X(K, q) = Σ over p of A(p, K)ᴴ Y(p, q), the sum reduced along grid column q to the owner of
///   X(K, q).
/// Panels of the next `lookahead` steps travel, and partial sums of the last ones, while a step multiplies.
/// Where the ranks of a grid row share memory, A(p, K) is multiplied where it is.
template <Scalar T>
class Summa final : public LinearOperator<T> {
 public:
  Summa(DistMatrix<T> A, const MatrixMultOptions& options)
      : LinearOperator<T>(range_in_blocks(A), domain_in_blocks(A)),
        A_(std::move(A)),
        product_(A_.grid()->backend(), options.column_stable),
        order_(reduction_order(options)),
        panels_(summa_panels(A_.layout().cols.partition, this->domain().rows.partition,
                             panel_width(options.panel))),
        ring_(panels_.size(), options.lookahead) {
    const ProcessGrid& grid = *A_.grid();
    if (grid.is_member() && grid.cols() > 1 && can_read_peers(grid.row_comm()))
      neighbours_ = make_peer_blocks<T>(grid.row_comm(), backend());
  }

 private:
  /// What one step needs while it is under way.
  struct Slot {
    Buffer<T> A_memory, X_memory, sum_memory;
    MatrixView<const T> A, X;
    Request A_request, X_request, sum_request;
    void advance() {
      A_request.test();
      X_request.test();
      sum_request.test();
    }
  };
  Slot& slot(std::size_t step) const { return ring_.slot(step); }

  void do_reserve(Op op, const Partition& columns) const override {
    const ProcessGrid& grid = *A_.grid();
    const Index rows = A_.local_row_range().size, cols = this->domain().local_columns(columns);
    KeptFailure failure;
    if (neighbours_) failure.run([&] { neighbours_->connect(); });
    if (neighbours_) failure.run([&] { neighbours_->reserve_copy(local_A()); });
    failure.run([&] {
      for (std::size_t step = 0; step < panels_.size(); ++step) {
        Slot& slot = ring_.slot(step);
        reserve_A(step);
        op == Op::none ? product_.reserve(panels_[step].size, rows)
                       : product_.reserve(rows, panels_[step].size);
        if (grid.col_comm().size() == 1) continue;
        slot.X_memory.reserve(backend(), panels_[step].size * cols);
        if (op == Op::adjoint) slot.sum_memory.reserve(backend(), panels_[step].size * cols);
      }
    });
    failure.rethrow();
  }
  void reserve_A(std::size_t step) const {
    const ProcessGrid& grid = *A_.grid();
    const Index rows = A_.local_row_range().size, size = rows * panels_[step].size;
    const bool mine = grid.my_col() == A_.layout().cols.partition.owner_of(panels_[step].begin);
    if (neighbours_) {
      if (!mine) neighbours_->reserve_part(slot(step).A_memory, size);
    } else if (grid.cols() > 1 && !(mine && local_A().col_block({0, panels_[step].size}).contiguous())) {
      slot(step).A_memory.reserve(backend(), size);
    }
  }

  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    if (neighbours_) neighbours_->show_for_good(local_A());
    const MatrixView<T> Y_local = Y.local();
    const auto send = [&](std::size_t step) {
      CommunicationGroup together(A_.grid()->comm());
      send_A(step);
      send_X(step, X);
      together.close();
    };
    const auto multiply = [&](std::size_t step) {
      Slot& now = slot(step);
      now.A_request.wait();
      now.X_request.wait();
      product_.multiply(Op::none, alpha, now.A, now.X, step == 0 ? beta : T(1), Y_local);
    };
    ring_.run(send, multiply);
    end_round();
  }

  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    if (neighbours_) neighbours_->show_for_good(local_A());
    ring_.run([&](std::size_t step) { send_A(step); },
              [&](std::size_t step) {
                slot(step).A_request.wait();
                multiply_and_send_sum(step, alpha, Y.local(), beta, X);
              },
              [&](std::size_t step) { receive_sum(step, beta, X); });
    end_round();
  }

  void end_round() const {
    if (!neighbours_) return;
    neighbours_->done_reading();
    neighbours_->await_readers();
  }

  /// A(p, K), from the owner's own memory where that has no gaps.
  void send_A(std::size_t step) const {
    const ProcessGrid& grid = *A_.grid();
    const Range K = panels_[step];
    const int owner = A_.layout().cols.partition.owner_of(K.begin);
    const Range cols{K.begin - A_.layout().cols.partition.begin(owner), K.size};
    Slot& next = slot(step);
    if (neighbours_) {
      PeerPart<T> part =
          neighbours_->start_reading(owner, {0, A_.local_row_range().size}, cols, next.A_memory);
      next.A = part.block;
      next.A_request = std::move(part.arrival);
      return;
    }
    MatrixView<const T> mine;
    if (grid.my_col() == owner) mine = local_A().col_block(cols);
    next.A =
        send(grid.row_comm(), owner, mine, A_.local_row_range().size, K.size, next.A_memory, next.A_request);
  }

  /// X(K, q).
  void send_X(std::size_t step, const ConstDistMatrix<T>& X) const {
    const ProcessGrid& grid = *A_.grid();
    const Range K = panels_[step];
    const int owner = this->domain().rows.partition.owner_of(K.begin);
    MatrixView<const T> mine;
    if (grid.my_row() == owner) mine = X.local().row_block({K.begin - X.local_row_range().begin, K.size});
    Slot& next = slot(step);
    next.X = send(grid.col_comm(), owner, mine, K.size, X.local().cols, next.X_memory, next.X_request);
  }

  /// Starts the broadcast of a rows × cols panel, `mine` on its owner; returns where it will be.
  MatrixView<const T> send(Communicator& comm, int owner, MatrixView<const T> mine, Index rows, Index cols,
                           Buffer<T>& memory, Request& request) const {
    const bool is_owner = comm.rank() == owner;
    if (is_owner && comm.size() == 1) return mine;
    MatrixView<const T> panel = mine;
    if (!is_owner || !mine.contiguous()) {
      if (is_owner) kernels().copy(mine, memory.matrix(rows, cols));
      panel = memory.matrix(rows, cols);
    }
    // The owner's memory is only read.
    request = comm.start_broadcast({const_cast<T*>(panel.data), rows * cols}, owner);
    return panel;
  }

  void multiply_and_send_sum(std::size_t step, T alpha, MatrixView<const T> Y, T beta,
                             DistMatrix<T>& X) const {
    Communicator& comm = A_.grid()->col_comm();
    Slot& now = slot(step);
    const Range K = panels_[step];
    if (comm.size() == 1) {
      product_.multiply(Op::adjoint, alpha, now.A, Y, beta, rows_of(X, K));
      return;
    }
    const Index size = K.size * Y.cols;
    product_.multiply(Op::adjoint, alpha, now.A, Y, T(0), now.X_memory.matrix(K.size, Y.cols));
    const int owner = this->domain().rows.partition.owner_of(K.begin);
    now.sum_request = comm.start_reduce({now.X_memory.data(), size}, {now.sum_memory.data(), size},
                                        ReduceOp::sum, owner, order_);
  }

  void receive_sum(std::size_t step, T beta, DistMatrix<T>& X) const {
    const ProcessGrid& grid = *A_.grid();
    if (grid.col_comm().size() == 1) return;
    Slot& done = slot(step);
    done.sum_request.wait();
    const Range K = panels_[step];
    if (grid.my_row() != this->domain().rows.partition.owner_of(K.begin)) return;
    kernels().add(T(1), done.sum_memory.matrix(K.size, X.local().cols), beta, rows_of(X, K));
  }

  static MatrixView<T> rows_of(DistMatrix<T>& X, Range K) {
    return X.local().row_block({K.begin - X.local_row_range().begin, K.size});
  }

  MatrixView<const T> local_A() const { return A_.local(); }
  const std::shared_ptr<Backend>& backend() const { return A_.grid()->backend(); }
  const Kernels<T>& kernels() const { return backend()->template kernels<T>(); }

  DistMatrix<T> A_;
  LocalProduct<T> product_;
  ReductionOrder order_;
  std::vector<Range> panels_;
  std::unique_ptr<PeerBlocks<T>> neighbours_;  // in the grid row, if their blocks can be read
  mutable StepRing<Slot> ring_;
};

}  // namespace

template <Scalar T>
OperatorPtr<T> make_summa(DistMatrix<T> A, const MatrixMultOptions& options) {
  return std::make_shared<Summa<T>>(std::move(A), options);
}

#define GRIDLOPS_INSTANTIATE(T) template OperatorPtr<T> make_summa(DistMatrix<T>, const MatrixMultOptions&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
