// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/cost_model.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/message.hpp"
#include "base/numbers.hpp"
#include "dist/redistribution.hpp"
#include "gridlops/error.hpp"
#include "gridlops/matrix_mult.hpp"
#include "local/few_columns.hpp"
#include "local/packed_matrix.hpp"
#include "local/product_times.hpp"
#include "ops/algorithms.hpp"
#include "ops/panels.hpp"

namespace gridlops {

namespace {

constexpr std::array<Algorithm, 4> algorithms{Algorithm::block, Algorithm::summa, Algorithm::stationary_a,
                                              Algorithm::stationary_b};

/// The formulas for the rank at (p, q) of a P × Q grid. A is m × n, and X is n × r. RankCost counts elements
/// here; in_bytes() makes bytes of them.
struct Formulas {
  Index m, n, r;
  int P, Q, p, q;
  Index width;
  int lookahead = MatrixMultOptions{}.lookahead;

  Partition R = Partition::balanced(m, P), C = Partition::balanced(n, Q);  // rows and columns of A
  Partition Rx = Partition::balanced(n, P),
            Cx = Partition::balanced(r, Q);  // rows and columns of X, blocks_2d

  RankCost block(bool adjoint) const {
    const Index m_q = balanced_part(m, Q, q).size;
    const Index r_p = balanced_part(r, P, p).size;
    RankCost cost;
    cost.flops = 2.0 * static_cast<double>(m_q) * static_cast<double>(n) * static_cast<double>(r_p);
    if (adjoint && Q > 1) {
      const Index N = n * r_p;
      const Index own = balanced_part(N, Q, q).size;
      cost.bytes_received = cost.bytes_sent = own * (Q - 1) + (N - own);
      cost.messages = 1;
      cost.workspace_bytes = N;
    }
    return cost;
  }

  RankCost summa(bool adjoint) const {
    const Index m_p = R.size(p), n_q = C.size(q), n_p = Rx.size(p), r_q = Cx.size(q);
    RankCost cost;
    if (m == 0 || n == 0) return cost;  // nothing is done
    cost.flops = 2.0 * static_cast<double>(m_p) * static_cast<double>(n) * static_cast<double>(r_q);
    cost.bytes_received = m_p * (n - n_q);
    cost.bytes_sent = m_p * n_q * (Q - 1);
    if (adjoint) {
      cost.bytes_received += n_p * r_q * (P - 1);
      cost.bytes_sent += (n - n_p) * r_q;
    } else {
      cost.bytes_received += (n - n_p) * r_q;
      cost.bytes_sent += n_p * r_q * (P - 1);
    }
    const Index steps = panel_count(common_refinement(C, Rx), width), widest = std::min(width, n);
    cost.messages = steps * ((Q > 1) + (P > 1));
    cost.workspace_bytes = (lookahead + 1) * widest * (m_p + r_q * (adjoint ? 2 : 1));
    return cost;
  }

  RankCost stationary_a(bool adjoint) const {
    // Forward: X gathered in the grid column, Y reduce-scattered in the grid row. The adjoint exchanges the
    // roles.
    const Index m_p = R.size(p), n_q = C.size(q);
    const Index own_m = balanced_part(m_p, Q, q).size, own_n = balanced_part(n_q, P, p).size;
    RankCost cost;
    cost.flops = 2.0 * static_cast<double>(m_p) * static_cast<double>(n_q) * static_cast<double>(r);
    const Index n_gathered = (n_q - own_n) * r, n_spread = own_n * r * (P - 1);
    const Index m_gathered = (m_p - own_m) * r, m_spread = own_m * r * (Q - 1);
    cost.bytes_received = adjoint ? m_gathered + n_spread : n_gathered + m_spread;
    cost.bytes_sent = adjoint ? m_spread + n_gathered : n_spread + m_gathered;
    cost.messages = (Q > 1) + (P > 1);
    cost.workspace_bytes = ((P > 1 ? 2 * n_q + own_n : 0) + (Q > 1 ? 2 * m_p + own_m : 0)) * r;
    return cost;
  }

  /// P and R are gathered, Q is summed over the grid row chunk by chunk, and U and V are reduce-scattered
  /// together.
  RankCost normal_product(Index element_bytes) const {
    const Index m_p = R.size(p), n_q = C.size(q);
    const Index own_m = balanced_part(m_p, Q, q).size, own_n = balanced_part(n_q, P, p).size;
    RankCost cost;
    cost.flops = 6.0 * static_cast<double>(m_p) * static_cast<double>(n_q) * static_cast<double>(r);
    cost.workspace_bytes = 2 * n_q * r;
    if (P > 1) {
      cost.bytes_received = (n_q - own_n) * r + own_n * 2 * r * (P - 1);
      cost.bytes_sent = own_n * r * (P - 1) + (n_q - own_n) * 2 * r;
      cost.messages = 2;
      cost.workspace_bytes += (n_q + 2 * own_n) * r;
    }
    if (Q > 1) {
      cost.bytes_received += (m_p - own_m) * r;
      cost.bytes_sent += own_m * r * (Q - 1);
      ++cost.messages;
      const Index chunk = one_pass_chunk(C.largest(), element_bytes);
      const auto add_chunks = [&](Index count, Index rows) {
        const Index N = rows * r, own = balanced_part(N, Q, q).size;
        cost.bytes_received += count * (own * (Q - 1) + N - own);
        cost.bytes_sent += count * (own * (Q - 1) + N - own);
        cost.messages += count;
      };
      add_chunks(m_p / chunk, chunk);
      if (m_p % chunk > 0) add_chunks(1, m_p % chunk);
      cost.workspace_bytes += 3 * m_p * r;
    }
    const Index own = std::max(P > 1 ? 2 * own_n : 0, Q > 1 ? own_m : 0),
                travelling = std::max(P > 1 ? 2 * n_q : 0, Q > 1 ? m_p : 0);
    cost.workspace_bytes += (own + travelling) * r;
    return cost;
  }

  RankCost stationary_b(bool adjoint) const {
    const Index m_p = R.size(p), n_q = C.size(q), n_p = Rx.size(p), r_q = Cx.size(q);
    const Index meet = intersect(C.range(q), Rx.range(p)).size;  // columns of A that are here and needed here
    RankCost cost;
    if (m == 0 || n == 0) return cost;  // nothing is done
    const Index steps = panel_count(blocks_of(R), width);
    cost.flops = 2.0 * static_cast<double>(m) * static_cast<double>(n_p) * static_cast<double>(r_q);
    cost.bytes_received = (m - m_p) * meet + m * (n_p - meet);
    cost.bytes_sent = m_p * (n_q - meet) + m * meet * (Q - 1);
    cost.bytes_received += adjoint ? (m - m_p) * r_q : m_p * r_q * (P - 1);
    cost.bytes_sent += adjoint ? m_p * r_q * (P - 1) : (m - m_p) * r_q;
    cost.messages = steps * (2 * (P > 1) + (Q > 1));
    const Index tallest = std::min(width, R.largest());
    cost.workspace_bytes = (lookahead + 1) * tallest * (n_q + n_p + r_q * (adjoint ? 1 : 2));
    return cost;
  }

  RankCost of(Algorithm algorithm, bool adjoint) const {
    switch (algorithm) {
      case Algorithm::block:
        return block(adjoint);
      case Algorithm::summa:
        return summa(adjoint);
      case Algorithm::stationary_a:
        return stationary_a(adjoint);
      case Algorithm::stationary_b:
        return stationary_b(adjoint);
      case Algorithm::automatic:
        break;
    }
    throw UsageError("'auto' is not an algorithm that has a cost; choose_algorithm() finds one that has");
  }
};

Formulas formulas_of(const ProductShape& shape, GridShape grid, int row, int col, Index panel = 0) {
  return {shape.rows, shape.cols, shape.nrhs, grid.rows, grid.cols, row, col, panel_width(panel)};
}

/// The cost in bytes of a cost in elements.
RankCost in_bytes(RankCost cost, const ProductShape& shape) {
  // Without columns an operator returns at once.
  if (shape.nrhs == 0) return {};
  const Index bytes = size_of(shape.type);
  cost.bytes_received *= bytes;
  cost.bytes_sent *= bytes;
  cost.workspace_bytes *= bytes;
  // A complex multiplication and addition takes four real ones of each kind.
  if (shape.type == ScalarType::c64 || shape.type == ScalarType::c128) cost.flops *= 4;
  return cost;
}

}  // namespace

RankCost product_cost(Algorithm algorithm, const ProductShape& shape, GridShape grid, int row, int col,
                      bool adjoint, Index panel) {
  return in_bytes(formulas_of(shape, grid, row, col, panel).of(algorithm, adjoint), shape);
}

RankCost normal_product_cost(const ProductShape& shape, GridShape grid, int row, int col) {
  const Formulas formulas = formulas_of(shape, grid, row, col);
  return in_bytes(formulas.normal_product(size_of(shape.type)), shape);
}

RankCost redistribution_cost(const ProcessGrid& grid, const Layout& from, const Layout& to, ScalarType type,
                             int row, int col) {
  const RedistributionSizes sizes = redistribution_sizes(grid, from, to, row, col);
  const Index bytes = size_of(type);
  RankCost cost;
  cost.bytes_received = (sizes.incoming - sizes.kept) * bytes;
  cost.bytes_sent = (sizes.outgoing - sizes.kept) * bytes;
  cost.messages = 1;
  cost.workspace_bytes = (sizes.incoming + sizes.outgoing) * bytes;
  return cost;
}

namespace {

constexpr Index caches = Index{32} << 20;  // more than the caches of one rank hold

struct BlockSize {
  Index rows, cols, bytes;
};

/// Of the largest block of A.
BlockSize largest_block(Algorithm algorithm, const ProductShape& shape, GridShape grid) {
  const bool has_rows = algorithm == Algorithm::block;
  const Index rows = Partition::balanced(shape.rows, has_rows ? grid.cols : grid.rows).largest();
  const Index cols = Partition::balanced(shape.cols, has_rows ? 1 : grid.cols).largest();
  return {rows, cols, rows * cols * size_of(shape.type)};
}

}  // namespace

Storage faster_storage(Algorithm algorithm, const ProductShape& shape, GridShape grid) {
  const Index columns =
      algorithm == Algorithm::block ? Partition::balanced(shape.nrhs, grid.rows).largest() : shape.nrhs;
  const BlockSize block = largest_block(algorithm, shape, grid);
  const bool pays = never_moves_A(algorithm) && block.bytes > caches &&
                    packed_is_faster(shape.type, block.rows, block.cols, columns, kernel_choice());
  return pays ? Storage::packed : Storage::columns;
}

bool one_pass_is_faster(const ProductShape& shape, GridShape grid) {
  const bool is_complex = shape.type == ScalarType::c64 || shape.type == ScalarType::c128;
  // More columns do not pay where the ranks of a grid row wait for each other within a pass. That is not in
  // the measurements, which may only speak against one pass there.
  const bool waits = grid.cols > 1;
  const Index most_columns = waits ? (is_complex ? 0 : 3) : (is_complex ? 1 : 4);
  const bool usual = shape.nrhs > 0 && shape.nrhs <= most_columns;
  return largest_block(Algorithm::stationary_a, shape, grid).bytes > caches && (usual || !waits) &&
         one_pass_pays(usual, shape.type, shape.nrhs);
}

ProductChoices product_choices(ScalarType type) {
  constexpr Index large = 1 << 14, most = 128;
  // "1-16, 64" for the numbers of columns that it holds for.
  const auto ranges = [](const auto& holds) {
    std::string text;
    for (Index begin = 1, end = 0; begin <= most; begin = end + 1) {
      for (end = begin; end <= most && holds(end); ++end) continue;
      if (end == begin) continue;
      text += message(text.empty() ? "" : ", ", begin);
      if (end - 1 > begin) text += message("-", end - 1);
    }
    return text.empty() ? std::string("none") : text;
  };
  const auto own = [&](Op op) {
    return ranges([&](Index columns) {
      return with_scalar_type(type, [&]<Scalar T>() {
        return few_columns_gemm_is_faster<T>(op, large, large, columns, kernel_choice().set);
      });
    });
  };
  return {own(Op::none), own(Op::adjoint), ranges([&](Index columns) {
            return packed_is_faster(type, large, large, columns, kernel_choice());
          }),
          ranges([&](Index columns) {
            return one_pass_is_faster({large, large, columns, type}, {1, 1});
          })};
}

namespace {

/// The received elements that nobody sends, because this rank reads them where they are.
Index read_in_place(const Formulas& f, Algorithm algorithm, bool adjoint, const MachineModel& machine) {
  const Index m_p = f.R.size(f.p), n_q = f.C.size(f.q);
  const bool rows = machine.rows_share_memory, columns = machine.columns_share_memory;
  if (algorithm == Algorithm::stationary_a) {
    const RankCost all = f.stationary_a(adjoint);
    const Index own_m = balanced_part(m_p, f.Q, f.q).size;
    const Index in_row = adjoint ? (m_p - own_m) * f.r : own_m * f.r * (f.Q - 1);
    return (rows ? in_row : 0) + (columns ? all.bytes_received - in_row : 0);
  }
  if (algorithm == Algorithm::summa) {
    const Index in_row = m_p * (f.n - n_q);
    if (rows && columns) return f.summa(adjoint).bytes_received;
    return rows ? in_row : 0;
  }
  return 0;
}

/// The elements that a rank copies, packs or adds up besides its product.
Index copied(const Formulas& f, Algorithm algorithm, bool adjoint, const MachineModel& machine) {
  const Index m_p = f.R.size(f.p), n_q = f.C.size(f.q), n_p = f.Rx.size(f.p), r_q = f.Cx.size(f.q);
  switch (algorithm) {
    case Algorithm::block:
      return adjoint && f.Q > 1 ? f.n * balanced_part(f.r, f.P, f.p).size : 0;
    case Algorithm::stationary_a: {
      // The rank copies what it gathers or sums, and its own part, too, unless others read that in place.
      const Index models = n_q + (machine.columns_share_memory ? 0 : balanced_part(n_q, f.P, f.p).size);
      const Index data = m_p + (machine.rows_share_memory ? 0 : balanced_part(m_p, f.Q, f.q).size);
      return ((f.P > 1 ? models : 0) + (f.Q > 1 ? data : 0)) * f.r;
    }
    // BLAS packs the matrix that stays anew for each panel of A: Y in the adjoint of summa, X in the forward
    // product of stationary-b.
    case Algorithm::summa: {
      const bool in_place = machine.rows_share_memory && machine.columns_share_memory;
      const Index panels =
          panel_count(common_refinement(f.C, f.Rx), in_place ? std::max<Index>(f.n, 1) : f.width);
      return (f.P > 1 && !in_place ? n_p * r_q : 0) +
             (adjoint ? std::max<Index>(panels - 1, 0) * m_p * r_q / 2 : 0);
    }
    case Algorithm::stationary_b:
      if (adjoint) return m_p * r_q;
      return f.m * r_q + std::max<Index>(panel_count(blocks_of(f.R), f.width) - 1, 0) * n_p * r_q / 2;
    case Algorithm::automatic:
      break;
  }
  return 0;
}

double seconds_of_rank(const Formulas& formulas, Algorithm algorithm, const ProductShape& shape, bool adjoint,
                       const MachineModel& machine) {
  if (shape.nrhs == 0) return 0;
  const RankCost cost = in_bytes(formulas.of(algorithm, adjoint), shape);
  const auto bytes = [&](Index elements) { return static_cast<double>(elements * size_of(shape.type)); };
  const double received =
      static_cast<double>(cost.bytes_received) - bytes(read_in_place(formulas, algorithm, adjoint, machine));
  return cost.flops * machine.seconds_per_flop + received * machine.seconds_per_byte +
         static_cast<double>(cost.messages) * machine.seconds_per_message +
         bytes(copied(formulas, algorithm, adjoint, machine)) * machine.seconds_per_copied_byte;
}

}  // namespace

MachineModel machine_model(const ProcessGrid& grid) {
  MachineModel machine;
  if (!grid.is_member()) return machine;
  // Where ranks are on several machines some rows or columns may share memory, and others not.
  const auto shares = [](const Communicator& comm) { return comm.peer_access() == PeerAccess::in_place; };
  std::array<std::int32_t, 2> all{shares(grid.row_comm()), shares(grid.col_comm())};
  grid.comm().all_reduce(all, ReduceOp::min);
  machine.rows_share_memory = all[0] != 0;
  machine.columns_share_memory = all[1] != 0;
  return machine;
}

double modelled_seconds(Algorithm algorithm, const ProductShape& shape, GridShape grid,
                        const MachineModel& machine) {
  double both = 0;
  for (const bool adjoint : {false, true}) {
    double slowest = 0;
    for (int row = 0; row < grid.rows; ++row) {
      for (int col = 0; col < grid.cols; ++col) {
        const Formulas formulas = formulas_of(shape, grid, row, col);
        slowest = std::max(slowest, seconds_of_rank(formulas, algorithm, shape, adjoint, machine));
      }
    }
    both += slowest;
  }
  return both;
}

Algorithm choose_algorithm(const ProductShape& shape, GridShape grid, const MachineModel& machine) {
  std::vector<std::pair<Algorithm, double>> candidates;
  double least = std::numeric_limits<double>::infinity();
  for (const Algorithm algorithm : algorithms) {
    if (algorithm == Algorithm::block && grid.rows > 1) continue;
    candidates.emplace_back(algorithm, modelled_seconds(algorithm, shape, grid, machine));
    least = std::min(least, candidates.back().second);
  }
  const bool few_columns = shape.nrhs <= std::min(shape.rows, shape.cols) / 4;
  const double enough = (few_columns ? 1.10 : 1.01) * least;
  std::erase_if(candidates, [enough](const auto& candidate) { return candidate.second > enough; });
  const auto still = std::find_if(candidates.begin(), candidates.end(),
                                  [](const auto& candidate) { return never_moves_A(candidate.first); });
  return (still == candidates.end() ? candidates.front() : *still).first;
}

}  // namespace gridlops
