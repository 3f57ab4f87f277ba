// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <optional>
#include <vector>

#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/trace.hpp"
#include "ops/matrix/algorithms.hpp"
#include "ops/panels/panel_mult.hpp"

namespace gridlops {

namespace {

template <Scalar T>
void start_travelling(const PanelPlan<T>& by, std::size_t step, Index cols) {
  const Panel K = by.panel(step);
  std::optional<CommunicationGroup> together;
  if (by.family != nullptr) together.emplace(*by.family);
  by.A->start(step, K.A);
  by.B->start(step, K.B.all_of(cols));
  if (together) together->close();
}

}  // namespace

/// Each step multiplies a panel of op(A) with a panel of B (van de Geijn, Watts: SUMMA, Concurrency 9, 1997).
/// Meanwhile the panels of the next `lookahead` steps travel, and so do the sums of the last lookahead + 1.
template <Scalar T>
void multiply_in_panels(const PanelPlan<T>& by, const BlockProduct<T>& product, Op op, T alpha,
                        MatrixView<const T> A, MatrixView<const T> B, T beta, MatrixView<T> C) {
  const std::size_t steps = by.steps, ahead = by.lookahead;
  by.A->begin(A);
  by.B->begin(B);
  by.C->begin(beta, C);
  for (std::size_t step = 0; step < std::min(ahead, steps); ++step) start_travelling(by, step, B.cols);
  for (std::size_t step = 0; step < steps; ++step) {
    if (step + ahead < steps) start_travelling(by, step + ahead, B.cols);
    if (step > ahead) by.C->finish(by.panel(step - ahead - 1));
    by.A->advance();
    by.B->advance();
    by.C->advance();
    const Panel K = by.panel(step);
    {
      const TraceRegion region("panel");
      const MatrixView<const T> A_K = by.A->arrived(step), B_K = by.B->arrived(step);
      product.multiply(op, alpha, A_K, B_K, by.C->beta(K), by.C->rows(K));
    }
    by.C->start(K);
  }
  for (std::size_t step = steps - std::min(ahead + 1, steps); step < steps; ++step)
    by.C->finish(by.panel(step));
  by.A->end();
  by.B->end();
}

namespace {

/// The steps of SUMMA on rank (p, q). A step with K takes the columns K of A and the rows K of X. In a grid
/// row or column, one rank owns them:
///
///   forward  Y(p, q) += A(p, K) X(K, q);
///   adjoint  X(K, q) += A(i, K)ᴴ Y(i, q), for i = p and, if this rank reads from all ranks, for all other i
///   too.
struct SummaSteps {
  Op op;
  const ProcessGrid* grid;
  Partition rows_of_A, cols_of_A, rows_of_X;
  bool reads_all;         ///< from every rank of the grid; otherwise panels of A come from this grid row
  std::vector<Range> Ks;  ///< in the order of the steps

  std::size_t count() const {
    return Ks.size() * (op == Op::adjoint && reads_all ? static_cast<std::size_t>(grid->rows()) : 1);
  }
  Panel operator()(std::size_t step) const {
    const std::size_t turn = step / Ks.size();
    const Range K = Ks[step % Ks.size()];
    const int i = (grid->my_row() + static_cast<int>(turn)) % grid->rows();
    const int A_owner = cols_of_A.owner_of(K.begin), X_owner = rows_of_X.owner_of(K.begin);
    const PanelPart A{reads_all ? i * grid->cols() + A_owner : A_owner,
                      {0, rows_of_A.size(i)},
                      {K.begin - cols_of_A.begin(A_owner), K.size}};
    const PanelPart X_K{X_owner, {K.begin - rows_of_X.begin(X_owner), K.size}, {}};
    const PanelPart Y_i{i, {0, rows_of_A.size(i)}, {}};
    return op == Op::none ? Panel{step, A, X_K, Y_i, step == 0} : Panel{step, A, Y_i, X_K, turn == 0};
  }
};

/// The steps of products with A and with Aᴴ, and how far panels travel ahead of them.
struct SummaOrder {
  SummaSteps forward, adjoint;
  std::size_t lookahead;

  std::size_t slots() const { return lookahead + 1; }
};

template <Scalar T>
SummaOrder order_of_summa(const DistMatrix<T>& A, const MatrixMultOptions& options) {
  const ProcessGrid& grid = *A.grid();
  const bool in_place = grid.comm().peer_access() == PeerAccess::in_place;
  SummaSteps forward{Op::none,
                     &grid,
                     A.layout().rows.partition,
                     A.layout().cols.partition,
                     domain_in_blocks(A).rows.partition,
                     grid.comm().can_read_peers(),
                     {}};
  // Panels read in place need not be narrow, and need not travel ahead of their use.
  forward.Ks =
      summa_panels(forward.cols_of_A, forward.rows_of_X, in_place ? A.cols() : panel_width(options.panel));
  SummaSteps adjoint = forward;
  adjoint.op = Op::adjoint;
  if (forward.reads_all) {
    std::erase_if(adjoint.Ks,
                  [&](const Range& K) { return adjoint.rows_of_X.owner_of(K.begin) != grid.my_row(); });
    // Each rank begins with its own columns of A, so that the ranks do not all read from one rank at the same
    // time. With stable columns all grid columns sum in the same order instead.
    const auto own = std::find_if(forward.Ks.begin(), forward.Ks.end(), [&](const Range& K) {
      return forward.cols_of_A.owner_of(K.begin) == grid.my_col();
    });
    if (!options.column_stable) std::rotate(forward.Ks.begin(), own, forward.Ks.end());
  }
  const std::size_t lookahead =
      in_place ? 0 : steps_ahead(options.lookahead, std::max(forward.count(), adjoint.count()));
  return {std::move(forward), std::move(adjoint), lookahead};
}

template <Scalar T>
struct SummaPlans {
  PanelPlan<T> forward, adjoint;
};

/// All ranks read A, X and Y where they lie, and each rank sums its own rows of X.
template <Scalar T>
SummaPlans<T> summa_by_reads(const ProcessGrid& grid, const SummaOrder& order, SourceBlock of_A) {
  const auto A = peer_panels<T>(grid.comm(), grid.backend(), order.slots(), of_A);
  const auto panels = peer_panels<T>(grid.col_comm(), grid.backend(), order.slots(), SourceBlock::of_product);
  const auto in_C = std::make_shared<PanelSum<T>>();
  return {{order.forward.count(), order.lookahead, order.forward, A, panels, in_C},
          {order.adjoint.count(), order.lookahead, order.adjoint, A, panels, in_C}};
}

/// X(K, q) is broadcast along grid column q, and the adjoint's products are reduced along it to the owner of
/// X(K, q). A: whence panels of A come.
template <Scalar T>
SummaPlans<T> summa_with_messages(const ProcessGrid& grid, const SummaOrder& order,
                                  const std::shared_ptr<PanelSource<T>>& A, ReductionOrder sums) {
  const auto memory =
      slot_memory<T>(order.slots());  // for what travels in the grid column, in either direction
  const auto X = broadcast_panels<T>(grid.col_comm(), grid.backend(), memory);
  const auto Y = std::make_shared<PanelSource<T>>(order.slots());
  const auto in_C = std::make_shared<PanelSum<T>>();
  const auto sum_of_X =
      grid.rows() == 1 ? in_C : reduced_sum<T>(grid.col_comm(), grid.backend(), memory, sums);
  return {{order.forward.count(), order.lookahead, order.forward, A, X, in_C, &grid.comm()},
          {order.adjoint.count(), order.lookahead, order.adjoint, A, Y, sum_of_X}};
}

/// A(p, K) is broadcast along grid row p.
template <Scalar T>
SummaPlans<T> summa_by_messages(const ProcessGrid& grid, const SummaOrder& order,
                                const MatrixMultOptions& options) {
  // A GPU's BLAS may round by the alignment of A, and then a column by the rank that has it.
  const PanelCopies copies = options.column_stable && grid.backend()->memory_space() == MemorySpace::device
                                 ? PanelCopies::everywhere
                                 : PanelCopies::where_needed;
  return summa_with_messages<T>(
      grid, order,
      broadcast_panels<T>(grid.row_comm(), grid.backend(), slot_memory<T>(order.slots()), copies),
      reduction_order(options));
}

/// The ranks of a grid row read A(p, K) from its owner.
template <Scalar T>
SummaPlans<T> summa_by_reads_in_rows(const ProcessGrid& grid, const SummaOrder& order, SourceBlock of_A,
                                     const MatrixMultOptions& options) {
  return summa_with_messages<T>(grid, order,
                                peer_panels<T>(grid.row_comm(), grid.backend(), order.slots(), of_A),
                                reduction_order(options));
}

}  // namespace

/// Y stays in place (van de Geijn and Watts; the adjoint: Schatz, van de Geijn, Poulson, SIAM J. Sci. Comput.
/// 38, 2016).
template <Scalar T>
OperatorPtr<T> make_summa(DistMatrix<T> A, const MatrixMultOptions& options) {
  const ProcessGrid& grid = *A.grid();
  if (!grid.is_member()) return std::make_shared<PanelMult<T>>(Algorithm::summa, std::move(A), options);
  const SummaOrder order = order_of_summa(A, options);
  const SourceBlock of_A = A.is_callers() ? SourceBlock::of_caller : SourceBlock::of_operator;
  const auto multiply = [&](SummaPlans<T> by) {
    return std::make_shared<PanelMult<T>>(Algorithm::summa, std::move(A), options, std::move(by.forward),
                                          std::move(by.adjoint));
  };
  if (grid.comm().can_read_peers()) return multiply(summa_by_reads<T>(grid, order, of_A));
  if (grid.cols() > 1 && grid.row_comm().can_read_peers())
    return multiply(summa_by_reads_in_rows<T>(grid, order, of_A, options));
  return multiply(summa_by_messages<T>(grid, order, options));
}

#define GRIDLOPS_INSTANTIATE(T)                                                                             \
  template void multiply_in_panels(const PanelPlan<T>&, const BlockProduct<T>&, Op, T, MatrixView<const T>, \
                                   MatrixView<const T>, T, MatrixView<T>);                                  \
  template OperatorPtr<T> make_summa(DistMatrix<T>, const MatrixMultOptions&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
