// SPDX-License-Identifier: BSD-3-Clause
// Ranks that read each other's memory in place.
#include "comm/peer_board.hpp"
#include "gridlops/dot_test.hpp"
#include "gridlops/error.hpp"
#include "gridlops/matrix_mult.hpp"
#include "gridlops/mpi.hpp"
#include "support/grids.hpp"
#include "support/problems.hpp"

using namespace gridlops;
using namespace gridlops::testing;

TEST_CASE("Memory is where it says, and memory that is too small says that it is nowhere") {
  const auto backend = make_shared_host_backend();
  for (const Index bytes : {Index{1} << 12, Index{1} << 20, (Index{1} << 20) + 1}) {
    const Buffer<std::byte> first(backend, bytes), second(backend, bytes);
    for (const Buffer<std::byte>* buffer : {&first, &second}) {
      for (const Index offset : {Index{0}, Index{1}, bytes - 1}) {
        const SharedPlace place = backend->shared_place(buffer->data() + offset);
        CHECK(place.descriptor >= 0);
        CHECK(place.offset == offset);
        CHECK(place.file_bytes == bytes);
      }
      CHECK(backend->shared_place(buffer->data() + bytes + (1 << 12)).serial !=
            backend->shared_place(buffer->data()).serial);
    }
    CHECK(backend->shared_place(first.data()).serial != backend->shared_place(second.data()).serial);
  }
  const int elsewhere = 0;
  CHECK(backend->shared_place(&elsewhere).descriptor < 0);
  const Buffer<std::byte> small(backend, 16);
  CHECK(backend->shared_place(small.data()).descriptor < 0);
  CHECK(make_host_backend()->shared_place(small.data()).descriptor < 0);
}

TEST_CASE("A board shows what the others wrote last, also in memory that was given back and taken anew") {
  const auto backend = make_shared_host_backend();
  const int ranks = world().size(), me = world().rank();
  PeerBoard board(world(), backend);
  for (int round = 0; round < 200; ++round) {
    const Index rows = 1000 + 13 * (round % 7), cols = 1 + round % 3;
    const Buffer<double> memory(backend, rows * cols);
    const MatrixView<double> mine = memory.matrix(rows, cols);
    for (Index k = 0; k < mine.size(); ++k) mine.data[k] = 1000.0 * round + me;
    const PeerBoard::Round shown = board.show(MatrixView<const double>(mine));
    for (int rank = 0; rank < ranks; ++rank) {
      const MatrixView<const double> theirs = board.block_of<double>(rank);
      REQUIRE((theirs.rows == rows && theirs.cols == cols));
      CHECK(theirs(0, 0) == 1000.0 * round + rank);
      CHECK(theirs(rows - 1, cols - 1) == 1000.0 * round + rank);
    }
    board.done_reading();
    for (int rank = 0; rank < ranks; ++rank) board.await_reader(rank, shown);
    for (Index k = 0; k < mine.size(); ++k) mine.data[k] = -1;
  }
}

TEST_CASE("A board needs memory that is shared") {
  CHECK_THROWS_AS(PeerBoard(world(), make_host_backend()), UsageError);
}

TEMPLATE_TEST_CASE("Products that read in place send nothing, and read what the formulas say", "", float,
                   double, std::complex<float>, std::complex<double>) {
  using T = TestType;
  constexpr Index m = 131, n = 97, nrhs = 11, size = sizeof(T);
  const std::unique_ptr<Communicator> neighbours = make_host_communicator(world(), "shared");
  for (const GridShape shape : grid_shapes(world().size())) {
    const auto grid = std::make_shared<const ProcessGrid>(*neighbours, shape, make_shared_host_backend());
    for (const Algorithm algorithm : {Algorithm::summa, Algorithm::stationary_a}) {
      const auto A = dense_operator<T>(grid, algorithm, m, n, random_elements<T>(1));
      DistMatrix<T> X(grid, A->domain().layout(nrhs)), Y(grid, A->range().layout(nrhs));
      X.fill(random_elements<T>(2));
      Y.fill(random_elements<T>(3));
      CAPTURE(describe(*grid), name_of(algorithm));
      CHECK(dot_test(*A, nrhs).passed);  // takes the memory, on which the ranks agree
      if (!grid->is_member()) continue;
      const TrafficSince since(grid->comm());
      A->apply(T(1), X, T(0), Y);
      const Index forward = since.read_in_place();
      A->apply_adjoint(T(1), Y, T(0), X);
      const Index adjoint = since.read_in_place() - forward;
      CHECK(since.nothing());
      const Layout blocks = blocks_2d(*grid, m, n);
      const Index m_p = blocks.row_range(*grid, grid->my_row(), grid->my_col()).size;
      const Index n_q = blocks.col_range(*grid, grid->my_row(), grid->my_col()).size;
      const Index P = grid->rows(), Q = grid->cols();
      if (algorithm == Algorithm::summa) {
        const Range rows_of_X = X.local_row_range(),
                    columns_of_A = blocks.col_range(*grid, 0, grid->my_col());
        const Index r_q = X.local().cols, own = intersect(rows_of_X, columns_of_A).size;
        CHECK(forward == (m_p * (n - n_q) + (n - rows_of_X.size) * r_q) * size);
        CHECK(adjoint == (m * rows_of_X.size - m_p * own + (m - m_p) * r_q) * size);
      } else {
        const Index n_qp = X.local().rows, m_pq = Y.local().rows;
        CHECK(forward == ((n_q - n_qp) * nrhs + m_pq * nrhs * (Q - 1)) * size);
        CHECK(adjoint == ((m_p - m_pq) * nrhs + n_qp * nrhs * (P - 1)) * size);
      }
    }
  }
}
