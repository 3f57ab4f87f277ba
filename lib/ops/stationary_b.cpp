// SPDX-License-Identifier: BSD-3-Clause
#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "ops/algorithms.hpp"
#include "ops/matrix_block.hpp"
#include "ops/panels.hpp"
#include "ops/step_ring.hpp"

namespace gridlops {

namespace {

/// X stays where it is. Rank (p, q) owns the rows K(p) of X(:, q) and needs the columns K(p) of A, all rows
/// of them. Step s takes some rows S of A, which lie in one grid row, its owner. A(S, K(p)) reaches grid row
/// p in two moves:
///   scatter  within grid column q the owner sends every grid row the columns of C(q) ∩ K(p) that it needs,
///   gather   within grid row p these pieces are gathered, in column order, to A(S, K(p)).
/// Then, with X(p, q) and Y(S, q):
///   forward  Y(S, q) = Σ over p of A(S, K(p)) X(p, q), the sum reduced along grid column q to the owner of
///   S; adjoint  X(p, q) += A(S, K(p))ᴴ Y(S, q), Y(S, q) broadcast along grid column q from the owner.
template <Scalar T>
class StationaryB final : public LinearOperator<T> {
 public:
  StationaryB(DistMatrix<T> A, const MatrixMultOptions& options)
      : LinearOperator<T>(range_in_blocks(A), domain_in_blocks(A)),
        A_(std::move(A)),
        product_(A_.grid()->backend(), options.column_stable),
        order_(reduction_order(options)),
        panels_(cut_into_panels(blocks_of(A_.layout().rows.partition), panel_width(options.panel))),
        ring_(panels_.size(), options.lookahead) {
    if (!A_.grid()->is_member()) return;
    const ProcessGrid& grid = *A_.grid();
    const Partition& C = A_.layout().cols.partition;
    const Partition& K = this->domain().rows.partition;
    for (int p = 0; p < grid.rows(); ++p)
      columns_to_grid_row_.push_back(intersect(C.range(grid.my_col()), K.range(p)).size);
    for (int q = 0; q < grid.cols(); ++q)
      columns_from_grid_col_.push_back(intersect(C.range(q), K.range(grid.my_row())).size);
  }

 private:
  struct Slot {
    Buffer<T> packed, A_memory, part_memory, sum_memory;
    std::vector<Index> scatter_counts, gather_counts;
    Request scatter_request, gather_request, Y_request, sum_request;
    void advance() {
      scatter_request.test();
      gather_request.test();
      Y_request.test();
      sum_request.test();
    }
  };
  Slot& slot(std::size_t step) const { return ring_.slot(step); }

  void do_reserve(Op op, const Partition& columns) const override {
    const Index rows_of_X = this->domain().local_rows(), cols = this->domain().local_columns(columns);
    const bool col_alone = A_.grid()->col_comm().size() == 1;
    for (std::size_t step = 0; step < panels_.size(); ++step) {
      const Index height = panels_[step].size;
      Slot& slot = ring_.slot(step);
      op == Op::none ? product_.reserve(rows_of_X, height) : product_.reserve(height, rows_of_X);
      slot.A_memory.reserve(backend(), height * rows_of_X);
      if (owned(step) && !local_A().row_block(local_rows(step)).contiguous())
        slot.packed.reserve(backend(), height * local_A().cols);
      if (op == Op::adjoint || !col_alone) slot.part_memory.reserve(backend(), height * cols);
      if (op == Op::none && !col_alone) slot.sum_memory.reserve(backend(), height * cols);
    }
  }

  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    ring_.run(
        [&](std::size_t step) { scatter_A(step); },
        [&](std::size_t step) { multiply_and_send_sum(step, alpha, gather_A(step), X.local(), beta, Y); },
        [&](std::size_t step) { receive_sum(step, beta, Y); });
  }

  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    const MatrixView<T> X_local = X.local();
    const auto send = [&](std::size_t step) {
      scatter_A(step);
      send_Y(step, Y);
    };
    const auto multiply = [&](std::size_t step) {
      const MatrixView<const T> A = gather_A(step);
      Slot& now = slot(step);
      now.Y_request.wait();
      product_.multiply(Op::adjoint, alpha, A, now.part_memory.matrix(panels_[step].size, X_local.cols),
                        step == 0 ? beta : T(1), X_local);
    };
    ring_.run(send, multiply);
  }

  int owner(std::size_t step) const { return A_.layout().rows.partition.owner_of(panels_[step].begin); }
  bool owned(std::size_t step) const { return A_.grid()->my_row() == owner(step); }
  Range local_rows(std::size_t step) const {
    return {panels_[step].begin - A_.local_row_range().begin, panels_[step].size};
  }
  /// Elements of A(S, K(p)) that lie before this rank's own piece of it.
  Index offset_of_own_piece(std::size_t step) const {
    Index columns = 0;
    for (int q = 0; q < A_.grid()->my_col(); ++q) columns += columns_from_grid_col_[at(q)];
    return columns * panels_[step].size;
  }

  /// First move: this rank's piece of A(S, K(p)), into its place in the whole.
  void scatter_A(std::size_t step) const {
    const ProcessGrid& grid = *A_.grid();
    const Range S = panels_[step];
    Slot& next = slot(step);
    multiply_counts(columns_to_grid_row_, S.size, next.scatter_counts);
    MatrixView<const T> mine;
    if (owned(step)) {
      mine = local_A().row_block(local_rows(step));
      if (!mine.contiguous()) {
        kernels().copy(mine, next.packed.matrix(mine.rows, mine.cols));
        mine = next.packed.matrix(mine.rows, mine.cols);
      }
    }
    const Index piece = next.scatter_counts[at(grid.my_row())];
    next.scatter_request = grid.col_comm().start_scatter_v(
        {mine.data, mine.size()}, next.scatter_counts,
        {next.A_memory.data() + offset_of_own_piece(step), piece}, owner(step));
    multiply_counts(columns_from_grid_col_, S.size, next.gather_counts);
  }

  /// Second move, begun one step ahead of its use; returns A(S, K(p)).
  MatrixView<const T> gather_A(std::size_t step) const {
    if (step == 0) start_gather(0);
    if (step + 1 < panels_.size()) start_gather(step + 1);
    Slot& now = slot(step);
    now.gather_request.wait();
    return now.A_memory.matrix(panels_[step].size, this->domain().rows.partition.size(A_.grid()->my_row()));
  }

  void start_gather(std::size_t step) const {
    const ProcessGrid& grid = *A_.grid();
    Slot& next = slot(step);
    next.scatter_request.wait();
    const Index piece = next.gather_counts[at(grid.my_col())];
    const Index whole = panels_[step].size * this->domain().rows.partition.size(grid.my_row());
    next.gather_request =
        grid.row_comm().start_all_gather_v({next.A_memory.data() + offset_of_own_piece(step), piece},
                                           {next.A_memory.data(), whole}, next.gather_counts);
  }

  void send_Y(std::size_t step, const ConstDistMatrix<T>& Y) const {
    const Index size = panels_[step].size * Y.local().cols;
    Slot& next = slot(step);
    if (owned(step))
      kernels().copy(Y.local().row_block(local_rows(step)),
                     next.part_memory.matrix(panels_[step].size, Y.local().cols));
    next.Y_request = A_.grid()->col_comm().start_broadcast({next.part_memory.data(), size}, owner(step));
  }

  void multiply_and_send_sum(std::size_t step, T alpha, MatrixView<const T> A, MatrixView<const T> X, T beta,
                             DistMatrix<T>& Y) const {
    Communicator& comm = A_.grid()->col_comm();
    if (comm.size() == 1) {
      product_.multiply(Op::none, alpha, A, X, beta, Y.local().row_block(local_rows(step)));
      return;
    }
    Slot& now = slot(step);
    const Index size = A.rows * X.cols;
    product_.multiply(Op::none, alpha, A, X, T(0), now.part_memory.matrix(A.rows, X.cols));
    now.sum_request = comm.start_reduce({now.part_memory.data(), size}, {now.sum_memory.data(), size},
                                        ReduceOp::sum, owner(step), order_);
  }

  void receive_sum(std::size_t step, T beta, DistMatrix<T>& Y) const {
    if (A_.grid()->col_comm().size() == 1) return;
    Slot& done = slot(step);
    done.sum_request.wait();
    if (!owned(step)) return;
    kernels().add(T(1), done.sum_memory.matrix(panels_[step].size, Y.local().cols), beta,
                  Y.local().row_block(local_rows(step)));
  }

  static void multiply_counts(const std::vector<Index>& columns, Index rows, std::vector<Index>& counts) {
    counts.resize(columns.size());
    for (std::size_t k = 0; k < columns.size(); ++k) counts[k] = columns[k] * rows;
  }
  MatrixView<const T> local_A() const { return A_.local(); }
  const std::shared_ptr<Backend>& backend() const { return A_.grid()->backend(); }
  const Kernels<T>& kernels() const { return backend()->template kernels<T>(); }

  DistMatrix<T> A_;
  LocalProduct<T> product_;
  ReductionOrder order_;
  std::vector<Range> panels_;
  std::vector<Index> columns_to_grid_row_;    // of A here, that grid row p needs
  std::vector<Index> columns_from_grid_col_;  // of A that this grid row needs, from grid column q
  mutable StepRing<Slot> ring_;
};

}  // namespace

template <Scalar T>
OperatorPtr<T> make_stationary_b(DistMatrix<T> A, const MatrixMultOptions& options) {
  return std::make_shared<StationaryB<T>>(std::move(A), options);
}

#define GRIDLOPS_INSTANTIATE(T) \
  template OperatorPtr<T> make_stationary_b(DistMatrix<T>, const MatrixMultOptions&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
