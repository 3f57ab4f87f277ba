// SPDX-License-Identifier: BSD-3-Clause
// Matrices in host memory travel by each transport.
#include <chrono>
#include <cstdlib>
#include <thread>

#include "gridlops/base/error.hpp"
#include "gridlops/comm/mpi.hpp"
#include "gridlops/ops/dot_test.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "support/catch.hpp"
#include "support/grids.hpp"
#include "support/problems.hpp"
#include "support/variable.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

/// Until the result dies, ranks seem to be on machines of this many each, in rank order.
Variable pretended_machines(int ranks_of_each, int ranks) {
  std::string machine_of_ranks;
  for (int rank = 0; rank < ranks; ++rank) machine_of_ranks += static_cast<char>('0' + rank / ranks_of_each);
  return {"GRIDLOPS_TEST_MACHINES", machine_of_ranks.c_str()};
}

}  // namespace

TEST_CASE("A transport has its name, auto that of the one it has become, and others are refused") {
  for (const std::string& transport : host_transports())
    CHECK(make_host_communicator(world(), transport)->transport() == transport);
  CHECK(make_host_communicator(world(), "auto")->transport() == (world().size() > 1 ? "shared" : "mpi"));
  CHECK_THROWS_AS(make_host_communicator(world(), "nccl"), UsageError);
  CHECK_THROWS_AS(make_host_communicator(world(), ""), UsageError);
}

TEST_CASE("Ranks part with a communicator, and its window, at different times") {
  for (const std::string& transport : host_transports()) {
    auto base = world().split(0, 0);
    auto comm = make_host_communicator(*base, transport);
    const auto part = [&] {
      comm.reset();
      base.reset();
    };
    if (world().rank() == 1) part();
    world().barrier();
    part();
  }
}

TEST_CASE("What descends from a communicator has its transport") {
  for (const std::string& transport : host_transports()) {
    const auto comm = make_host_communicator(world(), transport);
    const auto half = comm->split(comm->rank() % 2, 0);
    CHECK(half->transport() == (transport == "mixed" ? "shared" : transport));
  }
}

TEST_CASE("Ranks of several machines share memory with their neighbours only") {
  const int ranks = world().size(), me = world().rank();
  {
    const Variable alone = pretended_machines(1, ranks);
    CHECK(make_host_communicator(world(), "auto")->transport() == "mpi");
  }
  if (ranks < 4) return;
  const Variable pairs = pretended_machines(2, ranks);
  const auto comm = make_host_communicator(world(), "auto");
  CHECK(comm->transport() == "mixed");
  CHECK(comm->split(me / 2, me)->transport() == "shared");
  CHECK(comm->split(me % 2, me)->transport() == "mixed");
  CHECK(comm->split(me / 4, -me)->transport() == (me < 4 ? "mixed" : "shared"));
  CHECK(contains(message_of<UsageError>([] { make_host_communicator(world(), "shared"); }),
                 "several machines"));
}

TEMPLATE_TEST_CASE("Products of several machines read in grid rows that are on one, and send in columns", "",
                   float, std::complex<double>) {
  using T = TestType;
  constexpr Index m = 131, n = 97, nrhs = 11, size = sizeof(T);
  for (const GridShape shape : all_shapes(world().size())) {
    if (shape.rows == 1 || shape.size() != world().size()) continue;
    const Variable machines = pretended_machines(shape.cols, world().size());
    const auto comm = make_host_communicator(world(), "mixed");
    const auto grid = std::make_shared<const ProcessGrid>(*comm, shape, make_shared_host_backend());
    const Layout blocks = blocks_2d(*grid, m, n);
    const Index m_p = blocks.row_range(*grid, grid->my_row(), grid->my_col()).size;
    const Index n_q = blocks.col_range(*grid, grid->my_row(), grid->my_col()).size;
    for (const Algorithm algorithm : {Algorithm::summa, Algorithm::stationary_a}) {
      const auto A = dense_operator<T>(grid, algorithm, m, n, random_elements<T>(1));
      DistMatrix<T> X(grid, A->domain().layout(nrhs)), Y(grid, A->range().layout(nrhs));
      X.fill(random_elements<T>(2));
      Y.fill(random_elements<T>(3));
      CAPTURE(describe(*grid), name_of(algorithm));
      CHECK(dot_test(*A, nrhs).passed);  // takes the memory, on which the ranks agree
      const TrafficSince since(grid->comm());
      A->apply(T(1), X, T(0), Y);
      const Index forward = since.read_in_place(), received = since.received();
      A->apply_adjoint(T(1), Y, T(0), X);
      const Index adjoint = since.read_in_place() - forward;
      if (algorithm == Algorithm::summa) {
        CHECK(forward == m_p * (n - n_q) * size);
        CHECK(adjoint == m_p * (n - n_q) * size);
        CHECK(received == (n - X.local().rows) * X.local().cols * size);
      } else {
        CHECK(forward == Y.local().rows * nrhs * (grid->cols() - 1) * size);
        CHECK(adjoint == (m_p - Y.local().rows) * nrhs * size);
        CHECK(received == (n_q - X.local().rows) * nrhs * size);
      }
    }
  }
}

TEST_CASE("The time that ranks wait for a late one is in their accounts") {
  using namespace std::chrono_literals;
  for (const std::string& transport : host_transports()) {
    const auto comm = make_host_communicator(world(), transport);
    const bool is_late = comm->rank() == comm->size() - 1;
    const auto waited_in = [&](auto&& action) {
      comm->barrier();
      const double before = comm->traffic().seconds_waiting;
      if (is_late) std::this_thread::sleep_for(60ms);
      action();
      return comm->traffic().seconds_waiting - before;
    };
    CAPTURE(transport);
    if (comm->size() == 1) continue;
    const double blocking = waited_in([&] { comm->barrier(); });
    const double requested = waited_in([&] { comm->start_barrier().wait(); });
    if (!is_late) CHECK((blocking >= 0.05 && requested >= 0.05));
  }
}

TEMPLATE_TEST_CASE("Products through windows get what the formulas say, and send where their operands are",
                   "", float, std::complex<double>) {
  using T = TestType;
  constexpr Index m = 131, n = 97, nrhs = 11, size = sizeof(T), place = 2 * sizeof(Index);
  const auto comm = make_host_communicator(world(), "one-sided");
  for (const GridShape shape : all_shapes(world().size())) {
    const auto grid = std::make_shared<const ProcessGrid>(*comm, shape, make_host_backend());
    for (const Algorithm algorithm : {Algorithm::summa, Algorithm::stationary_a}) {
      const auto A = dense_operator<T>(grid, algorithm, m, n, random_elements<T>(1));
      DistMatrix<T> X(grid, A->domain().layout(nrhs)), Y(grid, A->range().layout(nrhs));
      X.fill(random_elements<T>(2));
      Y.fill(random_elements<T>(3));
      CAPTURE(describe(*grid), name_of(algorithm));
      if (!grid->is_member()) continue;
      A->apply(T(1), X, T(0), Y);  // tells all ranks where A is
      A->apply_adjoint(T(1), Y, T(0), X);
      const TrafficSince forward(grid->comm());
      A->apply(T(1), X, T(0), Y);
      const Index got_forward = forward.received(), sent = forward.sent();
      const TrafficSince adjoint(grid->comm());
      A->apply_adjoint(T(1), Y, T(0), X);
      const Layout blocks = blocks_2d(*grid, m, n);
      const Index m_p = blocks.row_range(*grid, grid->my_row(), grid->my_col()).size;
      const Index n_q = blocks.col_range(*grid, grid->my_row(), grid->my_col()).size;
      const Index P = grid->rows(), Q = grid->cols();
      if (algorithm == Algorithm::summa) {
        const Range rows_of_X = X.local_row_range(),
                    columns_of_A = blocks.col_range(*grid, 0, grid->my_col());
        const Index r_q = X.local().cols, own = intersect(rows_of_X, columns_of_A).size;
        CHECK(got_forward == (m_p * (n - n_q) + (n - rows_of_X.size) * r_q) * size + (P - 1) * place);
        CHECK(adjoint.received() ==
              (m * rows_of_X.size - m_p * own + (m - m_p) * r_q) * size + (P - 1) * place);
        CHECK(sent == (P - 1) * place);
      } else {
        const Index n_qp = X.local().rows, m_pq = Y.local().rows;
        CHECK(got_forward == ((n_q - n_qp) * nrhs + m_pq * nrhs * (Q - 1)) * size + (P + Q - 2) * place);
        CHECK(adjoint.received() ==
              ((m_p - m_pq) * nrhs + n_qp * nrhs * (P - 1)) * size + (P + Q - 2) * place);
        CHECK(sent == (P + Q - 2) * place);
      }
    }
  }
}

TEST_CASE("Operators that share a matrix go through one window, and are gone in any order") {
  const auto comm = make_host_communicator(world(), "one-sided");
  const auto grid =
      std::make_shared<const ProcessGrid>(*comm, GridShape{1, comm->size()}, make_host_backend());
  const Layout layout = matrix_layout(Algorithm::summa, *grid, 40, 30);
  DistMatrix<double> A(grid, layout);
  A.fill(random_elements<double>(1));
  const auto view = [&] { return DistMatrix<double>(grid, layout, A.local()); };
  OperatorPtr<double> first = matrix_mult(Algorithm::summa, view()),
                      second = matrix_mult(Algorithm::summa, view());
  CHECK(dot_test(*first).passed);
  CHECK(dot_test(*second).passed);
  first.reset();
  CHECK(dot_test(*second).passed);
}
