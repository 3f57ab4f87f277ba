// SPDX-License-Identifier: BSD-3-Clause
// There are more operators than a process may have open files, and than MPI has places for attached memory.
#include <mpi.h>
#include <sys/resource.h>

#include <filesystem>
#include <iterator>

#include "gridlops/ops/matrix_mult.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "support/grids.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

constexpr Index operators = 1000;

double element(Index k, Index i, Index j) { return static_cast<double>((k + 2 * i + 3 * j) % 7 - 3); }
double entry(Index k, Index i) { return static_cast<double>((k + i) % 5 - 2); }

/// Calls action(k, global row, local row) for the blocks that a vector of the block diagonal has on this
/// rank.
void for_each_local_row(const std::vector<Space>& members, auto&& action) {
  Index local = 0;
  for (std::size_t k = 0; k < members.size(); ++k) {
    const int part = members[k].grid->my_part(members[k].rows.axis);
    const Partition& rows = members[k].rows.partition;
    for (Index i = 0; i < rows.size(part); ++i) action(static_cast<Index>(k), rows.begin(part) + i, local++);
  }
}

void fill(MatrixView<double> X, const std::vector<Space>& members) {
  for_each_local_row(members, [&](Index k, Index i, Index local) {
    for (Index c = 0; c < X.cols; ++c) X(local, c) = entry(k, i);
  });
}

/// The number of wrong elements.
Index wrong(MatrixView<double> Y, const std::vector<Space>& members, Index inner, auto&& element_of) {
  Index count = 0;
  for_each_local_row(members, [&](Index k, Index i, Index local) {
    double sum = 0;
    for (Index j = 0; j < inner; ++j) sum += element_of(k, i, j) * entry(k, j);
    for (Index c = 0; c < Y.cols; ++c) count += Y(local, c) == sum ? 0 : 1;
  });
  return count;
}

Index open_files() { return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}); }

int attached = 0, gets = 0;

}  // namespace

// These make an MPI with few places for attached memory, as Open MPI may be configured.
extern "C" int MPI_Win_attach(MPI_Win window, void* memory, MPI_Aint bytes) {
  if (attached == 32) return MPI_ERR_RMA_ATTACH;
  ++attached;
  return PMPI_Win_attach(window, memory, bytes);
}
extern "C" int MPI_Win_detach(MPI_Win window, const void* memory) {
  --attached;
  return PMPI_Win_detach(window, memory);
}
// At times a get misses memory that is attached, as in Open MPI 5 while the owner attaches other memory.
extern "C" int MPI_Rget(void* to, int count, MPI_Datatype type, int rank, MPI_Aint from, int items,
                        MPI_Datatype item, MPI_Win window, MPI_Request* request) {
  if (++gets % 50 == 0) return MPI_ERR_RMA_RANGE;
  return PMPI_Rget(to, count, type, rank, from, items, item, window, request);
}

TEST_CASE("A block diagonal of a thousand operators works on the usual limits, and takes few descriptors") {
  rlimit limit{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 1024);
  REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  const GridShape shape =
      world().size() % 2 == 0 ? GridShape{world().size() / 2, 2} : GridShape{1, world().size()};
  const auto grid = std::make_shared<const ProcessGrid>(world(), shape, make_backend());
  constexpr Index m = 67, n = 61, nrhs = 3;
  for (const Algorithm algorithm : {Algorithm::stationary_a, Algorithm::summa}) {
    CAPTURE(describe(*grid), name_of(algorithm));
    const Index before = open_files();
    std::vector<OperatorPtr<double>> members;
    std::vector<Space> ranges, domains;
    for (Index k = 0; k < operators; ++k) {
      DistMatrix<double> A(grid, matrix_layout(algorithm, *grid, m, n));
      A.fill([k](Index i, Index j) { return element(k, i, j); });
      members.push_back(matrix_mult(algorithm, std::move(A)));
      ranges.push_back(members.back()->range());
      domains.push_back(members.back()->domain());
    }
    const OperatorPtr<double> all = block_diagonal<double>(members);
    DistMatrix<double> X(grid, all->domain().layout(nrhs)), Y(grid, all->range().layout(nrhs));
    for (int repetition = 0; repetition < 2; ++repetition) {
      fill(X.local(), domains);
      all->apply(1, X, 0, Y);
      CHECK(wrong(Y.local(), ranges, n, element) == 0);
      fill(Y.local(), ranges);
      all->apply_adjoint(1, Y, 0, X);
      CHECK(wrong(X.local(), domains, m, [](Index k, Index i, Index j) { return element(k, j, i); }) == 0);
    }
    CHECK(open_files() - before <= 2);
  }
}
