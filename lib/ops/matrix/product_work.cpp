// SPDX-License-Identifier: BSD-3-Clause
#include "ops/matrix/product_work.hpp"

#include <algorithm>

#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "ops/panels/panels.hpp"

namespace gridlops {

namespace {

constexpr int lookahead = MatrixMultOptions{}.lookahead;

/// An all-gather of `all` elements over s ranks; this rank has `own` of them.
Exchange gathered(bool in_row, Index all, Index own, int s) {
  return {CommOperation::all_gather, in_row, s > 1, all - own, own * (s - 1), all - own};
}

/// A reduce-scatter of `all` elements over s ranks; this rank gets `own` of them.
Exchange spread(bool in_row, Index all, Index own, int s) {
  return {CommOperation::reduce_scatter, in_row, s > 1, own * (s - 1), all - own, own * (s - 1)};
}

/// All-reductions of N elements each over the s ranks of a grid row, on rank q.
Exchange summed(Index calls, Index N, int s, int q) {
  const Index own = balanced_part(N, s, q).size, each = own * (s - 1) + N - own;
  return {CommOperation::all_reduce, true, calls, calls * each, calls * each, calls * each};
}

/// Broadcasts of panels over s ranks, `all` elements in total; this rank owns `own` of them.
Exchange broadcast(bool in_row, Index steps, Index all, Index own, int s) {
  return {CommOperation::broadcast, in_row, s > 1 ? steps : 0, all - own, own * (s - 1), s > 1 ? all : 0};
}

/// The reverse: panels summed to their owners.
Exchange reduced(bool in_row, Index steps, Index all, Index own, int s) {
  return {CommOperation::reduce, in_row, s > 1 ? steps : 0, own * (s - 1), all - own, s > 1 ? all : 0};
}

}  // namespace

ProductFormulas::ProductFormulas(const ProductShape& shape, GridShape grid, Index panel)
    : m_(shape.rows),
      n_(shape.cols),
      r_(shape.nrhs),
      P_(grid.rows),
      Q_(grid.cols),
      type_(shape.type),
      width_(panel_width(panel)),
      rows_(Partition::balanced(m_, P_)),
      cols_(Partition::balanced(n_, Q_)),
      model_rows_(Partition::balanced(n_, P_)),
      model_cols_(Partition::balanced(r_, Q_)) {
  const std::vector<Range> blocks = common_refinement(cols_, model_rows_);
  summa_blocks_ = static_cast<Index>(blocks.size());
  summa_steps_ = panel_count(blocks, width_);
  stationary_b_steps_ = panel_count(blocks_of(rows_), width_);
}

/// A complex multiplication and addition takes four real ones of each kind.
double ProductFormulas::flops(Index rows, Index cols, Index columns) const {
  const bool is_complex = type_ == ScalarType::c64 || type_ == ScalarType::c128;
  return (is_complex ? 8.0 : 2.0) * static_cast<double>(rows) * static_cast<double>(cols) *
         static_cast<double>(columns);
}

RankWork ProductFormulas::product(Algorithm algorithm, bool adjoint, int p, int q) const {
  switch (algorithm) {
    case Algorithm::block:
      return block(adjoint, p, q);
    case Algorithm::summa:
      return summa(adjoint, p, q);
    case Algorithm::stationary_a:
      return stationary_a(adjoint, p, q);
    case Algorithm::stationary_b:
      return stationary_b(adjoint, p, q);
    case Algorithm::automatic:
      break;
  }
  throw UsageError("'auto' is not an algorithm that has a cost; choose_algorithm() finds one that has");
}

Index ProductFormulas::workspace_of_both(Algorithm algorithm, int p, int q) const {
  const Index workspace =
      std::max(product(algorithm, false, p, q).workspace, product(algorithm, true, p, q).workspace);
  // In stationary-a what is gathered shares memory in both directions, but sums do not.
  if (algorithm != Algorithm::stationary_a) return workspace;
  return workspace + std::max(P_ > 1 ? cols_.size(q) : 0, Q_ > 1 ? rows_.size(p) : 0) * r_;
}

RankWork ProductFormulas::block(bool adjoint, int p, int q) const {
  const Index m_q = balanced_part(m_, Q_, q).size, r_p = balanced_part(r_, P_, p).size;
  RankWork work;
  work.flops = flops(m_q, n_, r_p);
  work.read = m_q * n_;
  if (adjoint && Q_ > 1) {
    work.exchanges[0] = summed(1, n_ * r_p, Q_, q);
    work.workspace = n_ * r_p;
  }
  return work;
}

RankWork ProductFormulas::summa(bool adjoint, int p, int q) const {
  const Index m_p = rows_.size(p), n_q = cols_.size(q), n_p = model_rows_.size(p), r_q = model_cols_.size(q);
  RankWork work;
  if (m_ == 0 || n_ == 0) return work;  // nothing to do
  work.flops = flops(m_p, n_, r_q);
  work.read = m_p * n_;
  work.exchanges[0] = broadcast(true, summa_steps_, m_p * n_, m_p * n_q, Q_);
  work.exchanges[1] = adjoint ? reduced(false, summa_steps_, n_ * r_q, n_p * r_q, P_)
                              : broadcast(false, summa_steps_, n_ * r_q, n_p * r_q, P_);
  work.workspace = (lookahead + 1) * std::min(width_, n_) * (m_p + r_q * (adjoint ? 2 : 1));
  return work;
}

/// Forward: X is gathered in the grid column, Y is reduce-scattered in the grid row. The adjoint swaps the
/// roles.
RankWork ProductFormulas::stationary_a(bool adjoint, int p, int q) const {
  const Index m_p = rows_.size(p), n_q = cols_.size(q);
  const Index own_m = balanced_part(m_p, Q_, q).size, own_n = balanced_part(n_q, P_, p).size;
  RankWork work;
  work.flops = flops(m_p, n_q, r_);
  work.read = m_p * n_q;
  if (adjoint) {
    work.exchanges[0] = gathered(true, m_p * r_, own_m * r_, Q_);
    work.exchanges[1] = spread(false, n_q * r_, own_n * r_, P_);
  } else {
    work.exchanges[0] = gathered(false, n_q * r_, own_n * r_, P_);
    work.exchanges[1] = spread(true, m_p * r_, own_m * r_, Q_);
  }
  work.workspace = ((P_ > 1 ? 2 * n_q + own_n : 0) + (Q_ > 1 ? 2 * m_p + own_m : 0)) * r_;
  return work;
}

/// P and R are gathered, Q is summed over the grid row chunk by chunk, and U and V are reduce-scattered
/// together.
RankWork ProductFormulas::normal_product(int p, int q) const {
  const Index m_p = rows_.size(p), n_q = cols_.size(q);
  const Index own_m = balanced_part(m_p, Q_, q).size, own_n = balanced_part(n_q, P_, p).size;
  RankWork work;
  work.flops = 3 * flops(m_p, n_q, r_);
  work.read = m_p * n_q;
  work.workspace = 2 * n_q * r_;
  if (P_ > 1) {
    work.exchanges[0] = gathered(false, n_q * r_, own_n * r_, P_);
    work.exchanges[1] = spread(false, n_q * 2 * r_, own_n * 2 * r_, P_);
    work.workspace += (n_q + 2 * own_n) * r_;
  }
  if (Q_ > 1) {
    work.exchanges[2] = gathered(true, m_p * r_, own_m * r_, Q_);
    const Index chunk = one_pass_chunk(cols_.largest(), size_of(type_));
    Exchange& chunks = work.exchanges[3] = summed(m_p / chunk, chunk * r_, Q_, q);
    if (m_p % chunk > 0) {
      const Exchange last = summed(1, m_p % chunk * r_, Q_, q);
      chunks.calls += 1;
      chunks.received += last.received;
      chunks.sent += last.sent;
      chunks.moved += last.moved;
    }
    work.workspace += 3 * m_p * r_;
  }
  const Index own = std::max(P_ > 1 ? 2 * own_n : 0, Q_ > 1 ? own_m : 0),
              travelling = std::max(P_ > 1 ? 2 * n_q : 0, Q_ > 1 ? m_p : 0);
  work.workspace += (own + travelling) * r_;
  return work;
}

RankWork ProductFormulas::stationary_b(bool adjoint, int p, int q) const {
  const Index m_p = rows_.size(p), n_q = cols_.size(q), n_p = model_rows_.size(p), r_q = model_cols_.size(q);
  // The columns of A that this rank has and needs.
  const Index meet = intersect(cols_.range(q), model_rows_.range(p)).size;
  RankWork work;
  if (m_ == 0 || n_ == 0) return work;  // nothing to do
  const Index steps = stationary_b_steps_;
  work.flops = flops(m_, n_p, r_q);
  work.read = m_ * n_p;
  work.exchanges[0] = {CommOperation::scatter, false,
                       P_ > 1 ? steps : 0,     (m_ - m_p) * meet,
                       m_p * (n_q - meet),     P_ > 1 ? m_ * n_q / P_ * (P_ - 1) : 0};
  work.exchanges[1] = {CommOperation::all_gather, true,
                       Q_ > 1 ? steps : 0,        m_ * (n_p - meet),
                       m_ * meet * (Q_ - 1),      m_ * (n_p - meet)};
  work.exchanges[2] = adjoint ? broadcast(false, steps, m_ * r_q, m_p * r_q, P_)
                              : reduced(false, steps, m_ * r_q, m_p * r_q, P_);
  const Index tallest = std::min(width_, rows_.largest());
  work.workspace = (lookahead + 1) * tallest * (n_q + n_p + r_q * (adjoint ? 1 : 2));
  return work;
}

bool ProductFormulas::reads_in_place(Algorithm algorithm, const Exchange& exchange, bool rows_share,
                                     bool columns_share) {
  if (algorithm == Algorithm::stationary_a) return exchange.in_row ? rows_share : columns_share;
  if (algorithm == Algorithm::summa) return rows_share && (exchange.in_row || columns_share);
  return false;
}

Index ProductFormulas::copied(Algorithm algorithm, bool adjoint, int p, int q, bool rows_share,
                              bool columns_share) const {
  const Index m_p = rows_.size(p), n_q = cols_.size(q), n_p = model_rows_.size(p), r_q = model_cols_.size(q);
  switch (algorithm) {
    case Algorithm::block:
      return adjoint && Q_ > 1 ? n_ * balanced_part(r_, P_, p).size : 0;
    case Algorithm::stationary_a: {
      // The rank copies what it gathers or sums, including its own part unless others read that in place.
      const Index models = n_q + (columns_share ? 0 : balanced_part(n_q, P_, p).size);
      const Index data = m_p + (rows_share ? 0 : balanced_part(m_p, Q_, q).size);
      return ((P_ > 1 ? models : 0) + (Q_ > 1 ? data : 0)) * r_;
    }
    // BLAS packs the stationary matrix again for each panel of A: Y in the adjoint of summa, X in the forward
    // product of stationary-b.
    case Algorithm::summa: {
      const bool in_place = rows_share && columns_share;
      const Index panels = in_place ? summa_blocks_ : summa_steps_;
      return (P_ > 1 && !in_place ? n_p * r_q : 0) +
             (adjoint ? std::max<Index>(panels - 1, 0) * m_p * r_q / 2 : 0);
    }
    case Algorithm::stationary_b:
      if (adjoint) return m_p * r_q;
      return m_ * r_q + std::max<Index>(stationary_b_steps_ - 1, 0) * n_p * r_q / 2;
    case Algorithm::automatic:
      break;
  }
  return 0;
}

Index ProductFormulas::copied_in_normal_product(int p, int q) const {
  const Index n_q = cols_.size(q), m_p = rows_.size(p);
  const Index own_n = balanced_part(n_q, P_, p).size, own_m = balanced_part(m_p, Q_, q).size;
  return ((P_ > 1 ? 3 * (n_q + own_n) : 2 * own_n) + (Q_ > 1 ? 3 * m_p + own_m : 0)) * r_;
}

}  // namespace gridlops
