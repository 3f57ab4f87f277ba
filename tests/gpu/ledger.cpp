// SPDX-License-Identifier: BSD-3-Clause
// Checks the emulation's counts for products and solvers: copies between host and device, launches,
// allocations.
#include "comm/communicator_contract.hpp"
#include "emulation/control.hpp"
#include "gridlops/base/trace.hpp"
#include "gridlops/comm/gpu.hpp"
#include "gridlops/ops/kirchhoff.hpp"
#include "support/agreed_failures.hpp"
#include "support/arrays.hpp"
#include "support/problems.hpp"
#include "support/test_data.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

/// Counts of what this rank did since this object was made.
class LedgerSince {
 public:
  long kernels() const { return emulation::ledger().kernels - before_.kernels; }
  long products() const { return of("cublasDgemm_64"); }
  long allocations() const { return emulation::ledger().allocations - before_.allocations; }
  long bytes_to_host() const { return emulation::ledger().bytes_to_host - before_.bytes_to_host; }
  long bytes_to_device() const { return emulation::ledger().bytes_to_device - before_.bytes_to_device; }
  long copies_to_host() const { return emulation::ledger().copies_to_host - before_.copies_to_host; }
  long copies_to_device() const { return emulation::ledger().copies_to_device - before_.copies_to_device; }
  long collectives() const { return emulation::ledger().collectives - before_.collectives; }
  long launches() const { return emulation::ledger().nccl_launches - before_.nccl_launches; }
  long of(const std::string& function) const {
    return emulation::ledger().of(function) - before_.of(function);
  }

 private:
  emulation::Ledger before_ = emulation::ledger();
};

GridPtr grid_of(GridShape shape) {
  return std::make_shared<const ProcessGrid>(world(), shape, make_backend());
}

/// The cost of some more iterations of CGLS, in which the active columns stay the same.
struct Cost {
  long kernels, products, launches, allocations, bytes_to_host, copies_to_host, bytes_to_device,
      copies_to_device, collectives;
};
Cost cost_of_iterations(Solver solver, const OperatorPtr<double>& A, double damp, bool one_pass, Index nrhs,
                        Index iterations) {
  const auto run = [&](Index count) {
    DistMatrix<double> B(A->range().grid, A->range().layout(nrhs)),
        X(A->domain().grid, A->domain().layout(nrhs));
    // All columns are equal, so that they take all decisions alike.
    B.fill([](Index i, Index) { return counter_random<double>(5, i, 0); });
    SolveOptions options;
    options.tolerance = 0;
    options.damp = damp;
    options.one_pass = one_pass;
    options.max_iterations = count;
    const LedgerSince since;
    const Index before = A->range().grid->backend()->launches();
    solve(solver, *A, B, X, options);
    return Cost{
        since.kernels(),         since.products(),         A->range().grid->backend()->launches() - before,
        since.allocations(),     since.bytes_to_host(),    since.copies_to_host(),
        since.bytes_to_device(), since.copies_to_device(), since.collectives()};
  };
  run(3);
  const Cost few = run(3), many = run(3 + iterations);
  return {many.kernels - few.kernels,
          many.products - few.products,
          many.launches - few.launches,
          many.allocations - few.allocations,
          many.bytes_to_host - few.bytes_to_host,
          many.copies_to_host - few.copies_to_host,
          many.bytes_to_device - few.bytes_to_device,
          many.copies_to_device - few.copies_to_device,
          many.collectives - few.collectives};
}

}  // namespace

TEST_CASE(
    "An iteration writes sums only to the host, copies nothing, and launches the same few kernels for any "
    "number of columns") {
  const GridPtr grid = grid_of(near_square(world().size()));
  // Far from any tolerance: the singular values spread over three decades.
  const KnownSpectrum<double> matrix(40, 30, geometric(30, 1e3));
  const auto A = dense_operator<double>(grid, Algorithm::stationary_a, matrix);
  constexpr Index iterations = 4;
  struct Case {
    Solver solver;
    double damp;
    long kernels;
    bool one_pass = false;
  };
  // Sums at two synchronisation points, and what updates the vectors; now and then the best x is kept. D is
  // small, since columns that converge fast have a better x in each iteration. In one pass, which on a GPU
  // takes two products, four copies put vectors side by side, and apart again.
  for (const auto& [solver, damp, kernels, one_pass] :
       {Case{Solver::cgls, 0, 4}, Case{Solver::lsqr, 0, 5}, Case{Solver::lsmr, 0, 5},
        Case{Solver::cgls, 1e-3, 5}, Case{Solver::lsqr, 1e-3, 6}, Case{Solver::lsmr, 1e-3, 6},
        Case{Solver::cgls, 0, 9, true}}) {
    CAPTURE(name_of(solver), damp, one_pass);
    const Cost one = cost_of_iterations(solver, A, damp, one_pass, 1, iterations);
    // On several ranks, products have kernels of their own.
    if (world().size() == 1) CHECK(one.kernels <= kernels * iterations + 1);
    for (const Index nrhs : {2, 7, 40}) {
      CAPTURE(nrhs);
      const Cost several = cost_of_iterations(solver, A, damp, one_pass, nrhs, iterations);
      CHECK(several.allocations == 0);
      CHECK(several.kernels == one.kernels);
      CHECK(several.products == 2 * iterations);
      CHECK(several.launches == several.kernels + several.products);
      CHECK(several.collectives == one.collectives);
      CHECK(several.copies_to_host == 0);
      CHECK(several.bytes_to_host == nrhs * one.bytes_to_host);
      CHECK(several.copies_to_device == 0);
      // At one synchronisation point ‖q‖² and ‖p‖², at the other ‖s‖², ‖r‖² and ‖x‖².
      if (solver == Solver::cgls) CHECK(several.bytes_to_host == iterations * nrhs * 5 * 8);
    }
  }
}

TEST_CASE("Nothing crosses between host and device inside a product, and the second allocates nothing") {
  for (const GridPtr& grid : all_grids()) {
    for (const Algorithm algorithm : all_algorithms) {
      if (!grid->is_member()) continue;
      INFO(describe(*grid) << ": " << name_of(algorithm));
      const auto A =
          dense_operator<double>(grid, algorithm, 13, 11, random_elements<double>(1), {.panel = 3});
      DistMatrix<double> X(grid, A->domain().layout(5)), Y(grid, A->range().layout(5));
      X.fill(random_elements<double>(2));
      const auto both = [&] {
        A->apply(1, X, 0, Y);
        A->apply_adjoint(1, Y, 0, X);
      };
      both();
      const LedgerSince since;
      both();
      CHECK(since.bytes_to_host() == 0);
      CHECK(since.bytes_to_device() == 0);
      CHECK(since.allocations() == 0);
    }
  }
}

TEST_CASE("Whichever allocation of a first product fails on one rank, all ranks say so together") {
  const int last = world().size() - 1;
  for (const Algorithm algorithm : all_algorithms) {
    for (const bool stable : {false, true}) {
      for (Index n = 1;; ++n) {
        CAPTURE(name_of(algorithm), stable, n);
        // Parts differ in length, so NCCL's gathers pad them, and sums by rank need an array for each rank.
        // New communicators have no memory yet.
        const GridPtr grid = grid_of(near_square(world().size()));
        const auto A = dense_operator<double>(grid, algorithm, 130, 110, random_elements<double>(1),
                                              MatrixMultOptions{.panel = 30, .column_stable = stable});
        DistMatrix<double> X(grid, A->domain().layout(5)), Y(grid, A->range().layout(5));
        X.fill(random_elements<double>(2));
        constexpr Index never = 1000000;
        emulation::fail_call("cudaMallocAsync", world().rank() == last ? n : never);
        const Ending mine = ending_of([&] {
          A->apply(1, X, 0, Y);
          A->apply_adjoint(1, Y, 0, X);
        });
        emulation::fail_call("cudaMallocAsync", never);
        CHECK(all_ended_alike(*grid, mine));
        if (mine.type == nullptr) break;
        CHECK(*mine.type == typeid(OutOfMemory));
        CHECK_NOTHROW(A->apply(1, X, 0, Y));
      }
    }
  }
}

TEST_CASE(
    "While a trace is recorded, regions are ranges of a profiler, and only a timeline has events of its "
    "own") {
  const GridPtr grid = grid_of({1, 1});
  if (!grid->is_member()) return;
  const auto A = dense_operator<double>(grid, Algorithm::block, 14, 26, random_elements<double>(1));
  DistMatrix<double> X(grid, A->domain().layout(3)), Y(grid, A->range().layout(3));
  X.fill(random_elements<double>(2));
  A->apply(1, X, 0, Y);
  const auto count = [&] {
    const LedgerSince since;
    A->apply(1, X, 0, Y);
    CHECK(since.of("nvtxRangePushA") == since.of("nvtxRangePop"));
    return std::pair(since.of("nvtxRangePushA"), since.of("cudaEventRecord"));
  };
  const auto without = count();
  CHECK(without.first == 0);
  start_trace();
  const auto [ranges, events] = count();
  CHECK(ranges == 2);  // apply, local product
  CHECK(events == without.second);
  start_trace({.timeline = true});
  count();  // begins the timeline
  CHECK(count() == std::pair(2L, without.second + 2));
  stop_trace();
}

TEST_CASE("Where NCCL scatters, gathers and exchanges device memory, no message of MPI keeps ranks in step") {
  const std::shared_ptr<Backend> backend = make_backend();
  const Subject subject{make_gpu_communicator(world(), backend, "nccl"), backend};
  Communicator& comm = *subject.comm;
  const int me = comm.rank(), size = comm.size();
  for (int pattern = 1; pattern < count_patterns; ++pattern) {
    const std::vector<Index> counts = uneven_counts(size, pattern);  // mostly, some rank has none
    CAPTURE(counts);
    const Index total = sum(counts), own = count_of(counts, me);
    const auto of_rank = [&](int rank) { return values<double>(rank, count_of(counts, rank)); };
    const std::vector<double> expected = concatenate<double>(size, of_rank);
    Operand<double> mine(subject, of_rank(me)), all(subject, untouched<double>(total)),
        back(subject, untouched<double>(own));
    // Every rank sends each other one as many numbers as it has.
    const std::vector<Index> outgoing(counts.size(), own);
    Operand<double> copies(subject, concatenate<double>(size, [&](int) { return of_rank(me); })),
        received(subject, untouched<double>(total));
    // Where ranks send to themselves alone, some have nothing at all.
    std::vector<Index> to_itself(counts.size());
    to_itself[static_cast<std::size_t>(me)] = own;
    Operand<double> again(subject, untouched<double>(own));
    const LedgerSince since;
    comm.gather_v(mine, all, counts, 0);
    comm.scatter_v(all, counts, back, 0);
    comm.all_to_all_v(copies, outgoing, received, counts);
    comm.all_to_all_v(mine, to_itself, again, to_itself);
    CHECK(since.of("MPI_Isend") + since.of("MPI_Irecv") == 0);
    if (me == 0) CHECK(all.values() == expected);
    CHECK(back.values() == of_rank(me));
    CHECK(again.values() == of_rank(me));
    CHECK(received.values() == expected);
    // Ranks with and without elements have taken the same number of tags.
    std::vector<double> of_hosts(static_cast<std::size_t>(size));
    const std::vector<double> of_host{static_cast<double>(me)};
    comm.gather(of_host, of_hosts, 0);
    if (me == 0) CHECK(of_hosts.back() == size - 1);
  }
  // Messages are counted.
  const double sent = 1;
  double here = 0;
  const LedgerSince since;
  comm.send_receive({&sent, 1}, (me + 1) % size, {&here, 1}, (me + size - 1) % size);
  CHECK(since.of("MPI_Isend") == 1);
  CHECK(since.of("MPI_Irecv") == 1);
}

TEST_CASE("SUMMA broadcasts every panel once in the rows and once in the columns of the grid") {
  for (const GridPtr& grid : all_grids()) {
    if (!grid->is_member()) continue;
    INFO(describe(*grid));
    const Index width = 4, inner = 26;
    const auto A = dense_operator<double>(grid, Algorithm::summa, 14, inner, random_elements<double>(1),
                                          {.panel = width});
    // Cut where the owner of A's columns or of X's rows changes, and at the panel width.
    std::vector<Index> cuts{0, inner};
    for (const int parts : {grid->rows(), grid->cols()})
      for (int part = 1; part < parts; ++part) cuts.push_back(Partition::balanced(inner, parts).begin(part));
    std::sort(cuts.begin(), cuts.end());
    long panels = 0;
    for (std::size_t k = 1; k < cuts.size(); ++k) panels += (cuts[k] - cuts[k - 1] + width - 1) / width;

    DistMatrix<double> X(grid, A->domain().layout(6)), Y(grid, A->range().layout(6));
    X.fill(random_elements<double>(2));
    const LedgerSince since;
    A->apply(1, X, 0, Y);
    const long directions = (grid->cols() > 1 ? 1 : 0) + (grid->rows() > 1 ? 1 : 0);
    CHECK(since.of("ncclBroadcast") == directions * panels);
    CHECK(since.collectives() == directions * panels);
    // The operations of a step go out in one group. NCCL launches a kernel for each communicator.
    CHECK(since.of("ncclGroupEnd") == panels);
    CHECK(since.launches() == directions * panels);
    CHECK(since.products() == panels);
  }
}

TEST_CASE(
    "Migration launches for four columns what it launches for one, and gives each what it gives it alone") {
  const GridPtr grid = grid_of({1, 1});
  if (!grid->is_member()) return;
  // 5000 traces are two batches, of which the first has four shares of the image: enough threads that four
  // columns make a group.
  constexpr Index points = 7, sources = 5000, samples = 6;
  const auto table = [](std::uint64_t seed, Index ends) {
    std::vector<double> times;
    for (Index k = 0; k < points * ends; ++k) times.push_back(1.5 + counter_uniform(seed, k, 0));
    return times;
  };
  const Space data = array_space(grid, {sources, 1, samples}, 0),
              image = array_space(grid, dims_along(*grid, {points}, 0, Axis::uncut, 0), Axis::uncut);
  const auto K = kirchhoff<double>(data, image, tabulated_rays(points, table(1, sources), table(2, 1)),
                                   {.interval = 0.7, .wavelet = {3, -1, 2}, .centre = 1});
  const auto of_columns = [&](Index begin, Index count) {
    const auto elements = [=](Index i, Index j) { return random_elements<double>(1)(i, begin + j); };
    DistMatrix<double> X = filled(grid, K->domain().layout(count), elements),
                       Y(grid, K->range().layout(count));
    const LedgerSince since;
    K->apply(1, X, 0, Y);
    K->apply_adjoint(1, Y, 0, X);
    std::vector<long> launches;
    for (const char* kernel :
         {"spread_image", "collect_shares", "convolve_traces", "correlate_traces", "gather_image"})
      launches.push_back(since.of(kernel));
    return std::tuple(launches, gather(Y, 0), gather(X, 0));
  };
  for (const Index count : {1, 4, 5}) {
    const auto [launches, Y, X] = of_columns(5 - count, count);
    CHECK(launches == std::vector<long>(5, count == 5 ? 4 : 2));
    const auto [of_one, last_Y, last_X] = of_columns(4, 1);
    CHECK(std::equal(last_Y.rbegin(), last_Y.rend(), Y.rbegin()));
    CHECK(std::equal(last_X.rbegin(), last_X.rend(), X.rbegin()));
  }
}
