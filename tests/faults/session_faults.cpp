// SPDX-License-Identifier: BSD-3-Clause
// Fails on rank 1, in the way that its argument names, while all other ranks wait for it. session_faults.py
// runs it.
#include <mpi.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <map>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gridlops/base/error.hpp"
#include "gridlops/comm/mpi.hpp"
#include "gridlops/local/backend.hpp"
#include "gridlops/ops/local_operator.hpp"
#include "gridlops/ops/operator_algebra.hpp"

using namespace gridlops;

namespace {

bool am_faulty(const Communicator& comm) { return comm.rank() == 1; }

/// All ranks communicate once. Then rank 1 runs the given function, and the others wait in vain.
int all_but_one_wait(Communicator& comm, const std::function<void()>& fault) {
  std::vector<double> data(100, 1.0);
  comm.broadcast(data, 2);
  if (am_faulty(comm)) {
    fault();
    return 0;
  }
  comm.barrier();
  return 0;
}

[[noreturn]] void throw_runtime_error() { throw std::runtime_error("the flux is negative"); }

int throw_from_main(int argc, char** argv) {
  MpiSession session(&argc, &argv);
  return all_but_one_wait(session.world(), throw_runtime_error);
}

int throw_from_run(int argc, char** argv) {
  MpiSession session(&argc, &argv);
  return session.run([&] { return all_but_one_wait(session.world(), throw_runtime_error); });
}

int throw_while_a_request_is_open(int argc, char** argv) {
  MpiSession session(&argc, &argv);
  return session.run([&] {
    return all_but_one_wait(session.world(), [&] {
      std::vector<double> data(10);
      const auto abandoned_too = make_mpi_communicator(MPI_COMM_SELF);
      const Request never_sent = session.world().start_receive(data, 0);
      throw InputError("A.npy is damaged");
    });
  });
}

/// No rank can take a broadcast back. The others wait in another communicator, whose messages cannot meet it.
void drop_a_broadcast(Communicator& comm) {
  std::vector<double> data(10);
  const Request never_sent = comm.start_broadcast(data, 0);
  throw InputError("A.npy is damaged");
}

int throw_while_a_broadcast_is_open(int argc, char** argv) {
  MpiSession session(&argc, &argv);
  return session.run([&] {
    const auto other = session.world().split(0, 0);
    return all_but_one_wait(session.world(), [&] { drop_a_broadcast(*other); });
  });
}

int go_on_while_a_broadcast_is_open(int argc, char** argv) {
  MpiSession session(&argc, &argv);
  return session.run([&] {
    const auto other = session.world().split(0, 0);
    return all_but_one_wait(session.world(), [&] {
      try {
        drop_a_broadcast(*other);
      } catch (const InputError&) {
      }
      session.world().barrier();
    });
  });
}

/// Rank 1 alone names a root that is no rank.
int throw_before_waiting(int argc, char** argv) {
  MpiSession session(&argc, &argv);
  return session.run([&] {
    return all_but_one_wait(session.world(), [&] {
      std::vector<double> data(10);
      session.world().broadcast(data, 9);
    });
  });
}

/// Something below this library fails while rank 1 communicates.
int terminate_in_barrier(int argc, char** argv) {
  MpiSession session(&argc, &argv);
  return all_but_one_wait(session.world(), [&] {
    std::thread([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      std::terminate();
    }).detach();
    session.world().barrier();  // the one that the others are in
    session.world().barrier();
  });
}

/// The first function of a product throws, and before rank 1 can tell the others the second fails badly.
int terminate_with_a_kept_failure(int argc, char** argv) {
  MpiSession session(&argc, &argv);
  Communicator& world = session.world();
  const auto grid =
      std::make_shared<const ProcessGrid>(world, GridShape{world.size(), 1}, make_host_backend());
  const auto operator_of = [&](const std::function<void()>& fail) {
    const Space space{grid, Cut::balanced(Axis::all, 8, *grid), Axis::uncut};
    const LocalProduct<double> product = [&world, fail](MatrixView<const double>, MatrixView<double>) {
      if (world.rank() == 1) fail();
    };
    return local_operator<double>(space, space, product, product);
  };
  const OperatorPtr<double> A = gridlops::product(operator_of([] { std::terminate(); }),
                                                  operator_of([] { throw InputError("A.npy is damaged"); }));
  DistMatrix<double> X(grid, A->domain().layout(1)), Y(grid, A->range().layout(1));
  A->apply(1, X, 0, Y);
  return 0;
}

int run_out_of_memory(int argc, char** argv) {
  MpiSession session(&argc, &argv);
  return session.run([&] { return all_but_one_wait(session.world(), [] { throw std::bad_alloc(); }); });
}

int throw_through_noexcept(int argc, char** argv) {
  MpiSession session(&argc, &argv);
  return all_but_one_wait(session.world(), []() noexcept { throw_runtime_error(); });
}

int swallow(int argc, char** argv) {
  MpiSession session(&argc, &argv);
  return all_but_one_wait(session.world(), [] {
    try {
      throw_runtime_error();
    } catch (const std::exception&) {
    }
  });
}

/// An exception leaves the session, and main catches it.
int leave_session(int argc, char** argv) {
  try {
    MpiSession session(&argc, &argv);
    return all_but_one_wait(session.world(), throw_runtime_error);
  } catch (const std::exception&) {
    return 0;
  }
}

int abort_alone(int argc, char** argv) {
  MpiSession session(&argc, &argv);
  return all_but_one_wait(session.world(), [&] { session.world().abort(ExitStatus::bad_output); });
}

int end_well(int argc, char** argv) {
  MpiSession session(&argc, &argv);
  return session.run([&] { return session.world().rank() == 3 ? 3 : 0; });
}

bool finalize_crashes = false;

/// MPI crashes on rank 1 when all is done.
int crash_in_finalize(int argc, char** argv) {
  MpiSession session(&argc, &argv);
  finalize_crashes = am_faulty(session.world());
  return session.run([] { return 0; });
}

/// MPI belongs to the program: after the session it still runs, with its error handler as it was.
int lend_mpi(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  double sum = 0;
  {
    const auto comm = make_mpi_communicator(MPI_COMM_WORLD);
    std::vector<double> one{1.0};
    comm->all_reduce(one, ReduceOp::sum);
    MpiSession session(nullptr, nullptr);
    session.world().all_reduce(one, ReduceOp::sum);
    sum = one[0];
  }
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
  int total = 0;
  MPI_Allreduce(&size, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  const bool good =
      sum == static_cast<double>(size * size) && total == size * size && handler == MPI_ERRORS_ARE_FATAL;
  std::printf("lent %s\n", good ? "well" : "badly");
  return MPI_Finalize() == MPI_SUCCESS && good ? 0 : 1;
}

/// A variable of one rank has a value that it cannot have. The session does not begin on any rank, and one
/// that begins later works.
int refuse_a_setting(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::string text;
  if (rank == 1) setenv("GRIDLOPS_CHECK", "some", 1);
  try {
    const MpiSession session(nullptr, nullptr);
  } catch (const UsageError& error) {
    text = error.what();
  }
  unsetenv("GRIDLOPS_CHECK");
  {
    MpiSession session(nullptr, nullptr);
    session.world().barrier();
  }
  const bool good = text == "rank 1: GRIDLOPS_CHECK is 'some'; it must be entry, off or all";
  std::printf("refused %s: %s\n", good ? "well" : "badly", text.c_str());
  return MPI_Finalize() == MPI_SUCCESS && good ? 0 : 1;
}

}  // namespace

/// The program's own stands before MPI's.
extern "C" int MPI_Finalize() {
  if (finalize_crashes) std::abort();
  return PMPI_Finalize();
}

int main(int argc, char** argv) {
  const std::map<std::string, int (*)(int, char**)> modes{
      {"throw_from_main", throw_from_main},
      {"throw_from_run", throw_from_run},
      {"throw_while_a_request_is_open", throw_while_a_request_is_open},
      {"throw_while_a_broadcast_is_open", throw_while_a_broadcast_is_open},
      {"go_on_while_a_broadcast_is_open", go_on_while_a_broadcast_is_open},
      {"throw_before_waiting", throw_before_waiting},
      {"terminate_in_barrier", terminate_in_barrier},
      {"terminate_with_a_kept_failure", terminate_with_a_kept_failure},
      {"run_out_of_memory", run_out_of_memory},
      {"throw_through_noexcept", throw_through_noexcept},
      {"swallow", swallow},
      {"leave_session", leave_session},
      {"abort_alone", abort_alone},
      {"end_well", end_well},
      {"crash_in_finalize", crash_in_finalize},
      {"lend_mpi", lend_mpi},
      {"refuse_a_setting", refuse_a_setting},
  };
  const auto mode = argc > 1 ? modes.find(argv[1]) : modes.end();
  return mode == modes.end() ? 2 : mode->second(argc, argv);
}
