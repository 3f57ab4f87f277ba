// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/ops/matrix_mult.hpp"

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "ops/matrix/algorithms.hpp"
#include "ops/operator/library_operator.hpp"
#include "ops/operator/stored_matrix.hpp"
#include "ops/stationary/matrix_block.hpp"

namespace gridlops {

Layout matrix_layout(Algorithm algorithm, const ProcessGrid& grid, Index rows, Index cols) {
  require<UsageError>(algorithm != Algorithm::automatic,
                      "'auto' has no layout of its own; choose_algorithm() finds an algorithm that has");
  if (algorithm == Algorithm::block) return {Cut::balanced(Axis::grid_cols, rows, grid), Cut::uncut(cols)};
  return blocks_2d(grid, rows, cols);
}

void require_layout(const std::string& who, Algorithm algorithm, const ProcessGrid& grid,
                    const Layout& layout) {
  const Layout needed =
      matrix_layout(algorithm, grid, layout.rows.partition.total(), layout.cols.partition.total());
  require<ShapeError>(layout.rows.axis == needed.rows.axis && layout.cols.axis == needed.cols.axis, who,
                      " needs its matrix as ", needed.describe(), ", not as ", layout.describe(),
                      "; read or redistribute it to matrix_layout()");
}

std::shared_ptr<const ProcessGrid> matrix_grid(Algorithm algorithm, std::shared_ptr<const ProcessGrid> grid) {
  if (algorithm != Algorithm::summa || !grid->is_member() || grid->backend()->shared_memory() != nullptr)
    return grid;
  const Communicator& readers_of_A = grid->cols() > 1 ? grid->row_comm() : grid->comm();
  if (readers_of_A.peer_access() != PeerAccess::in_place) return grid;
  return std::make_shared<const ProcessGrid>(*grid, make_shared_host_backend());
}

template <Scalar T>
OperatorPtr<T> matrix_mult(Algorithm algorithm, DistMatrix<T> A, const MatrixMultOptions& options) {
  require<UsageError>(options.panel >= 0, "panels cannot be ", options.panel, " wide; 0 chooses a width");
  require<UsageError>(options.lookahead >= 1, "a lookahead of ", options.lookahead,
                      " steps is impossible; it is at least 1");
  require_layout(message("the algorithm ", name_of(algorithm)), algorithm, *A.grid(), A.layout());
  require<UsageError>(row_of(options.storage).is_as_given || never_moves_A(algorithm), "the algorithm ",
                      name_of(algorithm), " moves A, so that A cannot be ", name_of(options.storage),
                      "; block and stationary-a never move it");
  require_storage_possible(options.storage, scalar_type_of<T>, A.grid()->backend()->memory_space());
  // Even if A has no elements, it may be so long that the list of its panels does not fit in memory.
  if (!never_moves_A(algorithm) && (A.rows() == 0 || A.cols() == 0))
    return zero<T>(range_in_blocks(A), domain_in_blocks(A));
  switch (algorithm) {
    case Algorithm::block:
      return make_block_mult(std::move(A), options);
    case Algorithm::summa:
      return make_summa(std::move(A), options);
    case Algorithm::stationary_a:
      return make_stationary_a(std::move(A), options);
    default:
      return make_stationary_b(std::move(A), options);
  }
}

template <Scalar T>
std::optional<std::uint64_t> block_hash(const LinearOperator<T>& A) {
  const auto* const stored = dynamic_cast<const StoredMatrix*>(&A);
  if (stored == nullptr || !A.domain().grid->is_member()) return {};
  return stored->hash();
}

template <Scalar T>
void matrix_changed(const LinearOperator<T>& A) {
  const auto* const stored = dynamic_cast<const StoredMatrix*>(&A);
  const auto note = [&](Agreement& agreement) {
    describe_operator(agreement, A);
    require<UsageError>(stored != nullptr || A.rows() == 0 || A.cols() == 0, "an operator of ", A.rows(),
                        " x ", A.cols(),
                        " that matrix_mult() has not made has no matrix that could have changed; call "
                        "matrix_changed() on the one that matrix_mult() returned, of which others are made");
    if (stored != nullptr && A.domain().grid->is_member()) stored->note_change();
  };
  const ProcessGrid& grid = *A.domain().grid;
  if (!grid.is_member()) {
    Agreement alone("matrix_changed");
    return note(alone);
  }
  agree(grid.comm(), "matrix_changed", note);
  if (stored != nullptr) stored->renew_copies();
}

#define GRIDLOPS_INSTANTIATE(T)                                                            \
  template void matrix_changed(const LinearOperator<T>&);                                  \
  template OperatorPtr<T> matrix_mult(Algorithm, DistMatrix<T>, const MatrixMultOptions&); \
  template std::optional<std::uint64_t> block_hash(const LinearOperator<T>&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
