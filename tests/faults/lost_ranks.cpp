// SPDX-License-Identifier: BSD-3-Clause
// Computes products and sums in turn, and fails on one rank as GRIDLOPS_FAULT says (docs/faults.md): the
// operations are `grid`, which makes a communicator, `product`, `sum`, and those that the library begins
// within others: `call` of MPI_Allreduce, `gemm` of BLAS, `flush` of a file. lost_ranks.py runs it:
// lost_ranks TRANSPORT. With the transport "tests" the ranks wait for sums by testing them. With "lent" the
// program starts MPI, the session has all ranks but the last, and errors are caught. With "restless" nothing
// fails, but all ranks are slow for GRIDLOPS_TEST_SECONDS.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gridlops/comm/mpi.hpp"
#include "gridlops/io/text_file.hpp"
#include "gridlops/local/backend.hpp"
#include "gridlops/local/buffer.hpp"
#include "gridlops/ops/local_operator.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "support/planned_fault.hpp"

using namespace gridlops;

namespace {

void work(std::chrono::seconds time) {
  using Clock = std::chrono::steady_clock;
  for (const auto end = Clock::now() + time; Clock::now() < end; keep_alive())
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

/// The fault of this rank.
class Fault {
 public:
  explicit Fault(int rank) : rank_(rank) {}

  /// Whether the operation is to be carried out.
  bool allows(const std::string& operation) {
    if (!planned_.befalls(rank_, operation)) return true;
    planned_.befall_process();
    if (planned_.kind == "work") work(std::chrono::seconds(6));
    if (planned_.kind == "suspend") work(std::chrono::seconds(12));
    if (planned_.kind == "block") std::this_thread::sleep_for(std::chrono::seconds(7));
    return planned_.kind != "skip";
  }

 private:
  int rank_;
  PlannedFault planned_ = PlannedFault::from_environment();
};

Fault* fault_of_calls = nullptr;

void begin_call(const char* operation) {
  if (fault_of_calls != nullptr) fault_of_calls->allows(operation);
}

template <class Function>
Function* next_of(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" int MPI_Allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op,
                             MPI_Comm comm) {
  begin_call("call");
  return PMPI_Allreduce(in, out, count, type, op, comm);
}

extern "C" void cblas_dgemm(int order, int op_a, int op_b, int m, int n, int k, double alpha, const double* A,
                            int lda, const double* B, int ldb, double beta, double* C, int ldc) {
  begin_call("gemm");
  next_of<decltype(cblas_dgemm)>("cblas_dgemm")(order, op_a, op_b, m, n, k, alpha, A, lda, B, ldb, beta, C,
                                                ldc);
}

extern "C" int fsync(int descriptor) {
  begin_call("flush");
  return next_of<decltype(fsync)>("fsync")(descriptor);
}

namespace {

/// Each rank writes a file of its own.
void write_file() {
  const std::string path = "/tmp/lost_ranks." + std::to_string(getpid());
  write_text_file(path, [is_written = false]() mutable {
    return std::exchange(is_written, true) ? std::string() : std::string("text");
  });
  unlink(path.c_str());
}

int compute(Communicator& world, MPI_Comm ranks, const std::string& transport) {
  const bool tests = transport == "tests";
  Fault fault(world.rank());
  const auto comm = make_host_communicator(world, tests ? "mpi" : transport);
  const auto backend = make_shared_host_backend();
  const auto grid = std::make_shared<const ProcessGrid>(*comm, near_square(comm->size()), backend);
  DistMatrix<double> A(grid, matrix_layout(Algorithm::summa, *grid, 12, 9));
  A.fill([](Index i, Index j) { return static_cast<double>(i - j); });
  const auto op = matrix_mult(Algorithm::summa, std::move(A), {.panel = 2});
  DistMatrix<double> X(grid, op->domain().layout(8)), Y(grid, op->range().layout(8));
  X.fill([](Index i, Index j) { return static_cast<double>(i + j); });
  if (fault.allows("grid")) make_mpi_communicator(ranks);
  fault_of_calls = &fault;
  std::vector<double> sum(1), long_sum(20'000);
  for (int k = 1; k <= 100; ++k) {
    if (fault.allows("product")) op->apply(1, X, 0, Y);
    sum[0] = 1;
    if (fault.allows("sum")) {
      Request request = comm->start_all_reduce(sum, ReduceOp::sum);
      while (tests && !request.test()) continue;
      request.wait();
    }
    if (k % 50 == 0) write_file();
    if (k % 10 == 0) comm->all_reduce(long_sum, ReduceOp::sum);
  }
  fault_of_calls = nullptr;
  if (sum[0] != comm->size()) return 1;
  std::printf("done\n");
  return 0;
}

/// Between operations each rank sleeps for up to 200 ms. In every tenth product one rank works for four
/// seconds, and says so.
int be_slow(Communicator& world) {
  using Clock = std::chrono::steady_clock;
  const char* const text = std::getenv("GRIDLOPS_TEST_SECONDS");
  const auto end = Clock::now() + std::chrono::seconds(text == nullptr ? 10 : std::atoi(text));
  const auto grid =
      std::make_shared<const ProcessGrid>(world, GridShape{world.size(), 1}, make_host_backend());
  const Space space{grid, Cut::balanced(Axis::all, 16, *grid), Axis::uncut};
  std::minstd_rand random(static_cast<unsigned>(world.rank()) + 1);
  const auto sleep = [&] { std::this_thread::sleep_for(std::chrono::milliseconds(random() % 200)); };
  int products = 0;
  const LocalProduct<double> copy = [&](MatrixView<const double> x, MatrixView<double> y) {
    sleep();
    if (++products % 10 == 0 && products / 10 % world.size() == world.rank()) work(std::chrono::seconds(4));
    for (Index j = 0; j < x.cols; ++j) std::copy_n(x.data + j * x.stride, x.rows, y.data + j * y.stride);
  };
  const OperatorPtr<double> A = local_operator<double>(space, space, copy, copy);
  DistMatrix<double> X(grid, A->domain().layout(2)), Y(grid, A->range().layout(2));
  X.fill([](Index i, Index j) { return static_cast<double>(i + j); });
  std::vector<int> is_over(1);
  std::vector<double> long_sum(20'000);
  while (is_over[0] == 0) {
    A->apply(1, X, 0, Y);
    sleep();
    world.all_reduce(long_sum, ReduceOp::sum);
    sleep();
    world.barrier();
    is_over[0] = Clock::now() > end ? 1 : 0;
    world.broadcast(is_over, 0);
  }
  return 0;
}

/// MPI belongs to the program, and so do its ranks that have nothing to do with the library.
int lend() {
  MPI_Init(nullptr, nullptr);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank == size - 1, size - rank, &part);
  if (rank < size - 1) {
    try {
      MpiSession session(part);
      compute(session.world(), part, "mpi");
    } catch (const CommunicationError& error) {
      std::fprintf(stderr, "rank %d caught %d: %s\n", rank, static_cast<int>(error.status()), error.what());
    }
  }
  std::printf("lent\n");
  MPI_Comm_free(&part);
  return MPI_Finalize();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string transport = argc > 1 ? argv[1] : "mpi";
  if (transport == "lent") return lend();
  MpiSession session(&argc, &argv);
  return session.run([&] {
    return transport == "restless" ? be_slow(session.world())
                                   : compute(session.world(), MPI_COMM_WORLD, transport);
  });
}
