// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <numeric>

#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "ops/matrix/algorithms.hpp"
#include "ops/panels/panel_mult.hpp"

namespace gridlops {

namespace {

/// Rows S of A, which one grid row owns, reach grid row p as A(S, K(p)) in two moves, where K(p) are its rows
/// of X and C(q) the columns of A in grid column q:
///
///   scatter  within grid column q the owner sends every grid row the columns of C(q) ∩ K(p) that it needs;
///   gather   within grid row p these pieces are gathered, in column order, to A(S, K(p)).
template <Scalar T>
class TwoMovePanels final : public PanelSource<T> {
 public:
  TwoMovePanels(const ProcessGrid& grid, const Partition& C, const Partition& K, std::size_t slots)
      : PanelSource<T>(slots), grid_(grid), width_(K.size(grid.my_row())), moves_(slots) {
    for (int p = 0; p < grid.rows(); ++p)
      columns_to_grid_row_.push_back(intersect(C.range(grid.my_col()), K.range(p)).size);
    for (int q = 0; q < grid.cols(); ++q)
      columns_from_grid_col_.push_back(intersect(C.range(q), K.range(grid.my_row())).size);
  }

  void reserve(std::size_t step, const PanelPart& part) override {
    move(step).whole.reserve(grid_.backend(), part.rows.size * width_);
    if (owns(part) && !this->own(part).contiguous())
      move(step).packed.reserve(grid_.backend(), this->own(part).size());
    std::vector<Index> counts;
    multiply_counts(columns_from_grid_col_, part.rows.size, counts);
    grid_.row_comm().reserve(CommOperation::all_gather, counts, sizeof(T));
  }

  void start(std::size_t step, const PanelPart& part) override {
    Move& next = move(step);
    next.rows = part.rows.size;
    multiply_counts(columns_to_grid_row_, next.rows, next.scatter_counts);
    multiply_counts(columns_from_grid_col_, next.rows, next.gather_counts);
    MatrixView<const T> mine;
    if (owns(part)) {
      mine = this->own(part);
      if (!mine.contiguous()) {
        const MatrixView<T> packed = next.packed.matrix(mine.rows, mine.cols);
        grid_.backend()->template kernels<T>().copy(mine, packed);
        mine = packed;
      }
    }
    next.scatter = grid_.col_comm().start_scatter_v({mine.data, mine.size()}, next.scatter_counts,
                                                    own_piece(next), part.owner);
    started_ = step + 1;
  }

  /// The second move begins one step ahead of its use.
  MatrixView<const T> arrived(std::size_t step) override {
    if (step == 0) start_gather(0);
    if (step + 1 < started_) start_gather(step + 1);
    return PanelSource<T>::arrived(step);
  }

  void advance() override {
    for (Move& move : moves_) move.scatter.test();
    PanelSource<T>::advance();
  }

 private:
  struct Move {
    Buffer<T> packed, whole;
    Index rows = 0;
    std::vector<Index> scatter_counts, gather_counts;
    Request scatter;
  };
  Move& move(std::size_t step) { return moves_[step % moves_.size()]; }
  bool owns(const PanelPart& part) const { return grid_.my_row() == part.owner; }

  void start_gather(std::size_t step) {
    Move& next = move(step);
    next.scatter.wait();
    const MatrixView<T> whole = next.whole.matrix(next.rows, width_);
    this->slot(step) = {whole, grid_.row_comm().start_all_gather_v(
                                   own_piece(next), {whole.data, whole.size()}, next.gather_counts)};
  }
  /// This rank's piece of A(S, K(p)), at its position in the whole.
  Elements own_piece(const Move& move) const {
    const auto mine = move.gather_counts.begin() + grid_.my_col();
    return {move.whole.data() + std::accumulate(move.gather_counts.begin(), mine, Index{0}), *mine};
  }
  static void multiply_counts(const std::vector<Index>& columns, Index rows, std::vector<Index>& counts) {
    counts.resize(columns.size());
    std::transform(columns.begin(), columns.end(), counts.begin(), [rows](Index n) { return n * rows; });
  }

  const ProcessGrid& grid_;
  Index width_;                               // of K(p)
  std::vector<Index> columns_to_grid_row_;    // of A on this rank, needed by grid row p
  std::vector<Index> columns_from_grid_col_;  // of A in grid column q, needed by this grid row
  std::vector<Move> moves_;
  std::size_t started_ = 0;
};

/// The steps of stationary-b on rank (p, q). Each step takes rows S of A, which lie in one grid row, and of
/// Y:
///
///   forward  Y(S, q) = Σ over p of A(S, K(p)) X(p, q);
///   adjoint  X(p, q) += A(S, K(p))ᴴ Y(S, q).
struct StationaryBSteps {
  Op op;
  Partition rows_of_A;
  Range cols_of_A, rows_of_X;  // of this rank's blocks
  std::vector<Range> Ss;

  Panel operator()(std::size_t step) const {
    const Range S = Ss[step];
    const int owner = rows_of_A.owner_of(S.begin);
    const Range rows{S.begin - rows_of_A.begin(owner), S.size};
    const PanelPart A{owner, rows, {0, cols_of_A.size}}, Y_S{owner, rows, {}},
        X_p{0, {0, rows_of_X.size}, {}};
    return op == Op::none ? Panel{step, A, X_p, Y_S, true} : Panel{step, A, Y_S, X_p, step == 0};
  }
};

}  // namespace

/// X stays in place. The forward product reduces sums along grid column q to the owner of Y(S, q). In the
/// adjoint the owner broadcasts Y(S, q) along the grid column.
template <Scalar T>
OperatorPtr<T> make_stationary_b(DistMatrix<T> A, const MatrixMultOptions& options) {
  const ProcessGrid& grid = *A.grid();
  if (!grid.is_member())
    return std::make_shared<PanelMult<T>>(Algorithm::stationary_b, std::move(A), options);
  const std::shared_ptr<Backend>& backend = grid.backend();
  const Partition& R = A.layout().rows.partition;
  const Partition K = domain_in_blocks(A).rows.partition;
  StationaryBSteps forward{Op::none, R, A.local_col_range(), K.range(grid.my_row()),
                           cut_into_panels(blocks_of(R), panel_width(options.panel))};
  StationaryBSteps adjoint = forward;
  adjoint.op = Op::adjoint;
  const std::size_t steps = forward.Ss.size();
  const std::size_t lookahead = steps_ahead(options.lookahead, steps), slots = lookahead + 1;

  const auto A_panels = std::make_shared<TwoMovePanels<T>>(grid, A.layout().cols.partition, K, slots);
  const auto memory = slot_memory<T>(slots);  // for what travels in the grid column, in either direction
  const auto X_panels = std::make_shared<PanelSource<T>>(slots);
  const auto Y_panels = broadcast_panels<T>(grid.col_comm(), backend, memory);
  const auto in_C = std::make_shared<PanelSum<T>>();
  const auto sum_of_Y =
      grid.rows() == 1 ? in_C : reduced_sum<T>(grid.col_comm(), backend, memory, reduction_order(options));
  return std::make_shared<PanelMult<T>>(Algorithm::stationary_b, std::move(A), options,
                                        PanelPlan<T>{steps, lookahead, forward, A_panels, X_panels, sum_of_Y},
                                        PanelPlan<T>{steps, lookahead, adjoint, A_panels, Y_panels, in_C});
}

#define GRIDLOPS_INSTANTIATE(T) \
  template OperatorPtr<T> make_stationary_b(DistMatrix<T>, const MatrixMultOptions&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
