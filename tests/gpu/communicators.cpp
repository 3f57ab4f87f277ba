// SPDX-License-Identifier: BSD-3-Clause
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "comm/communicator_contract.hpp"
#include "cuda/communicators/nccl_communicator.hpp"
#include "cuda/communicators/staged_communicator.hpp"
#include "cuda/gpu_backend.hpp"
#include "gridlops/base/trace.hpp"
#include "gridlops/comm/communicator.hpp"
#include "gridlops/comm/gpu.hpp"
#include "gridlops/io/trace_report.hpp"
#include "support/programs/mpi_main.hpp"

using namespace gridlops;
using gridlops::testing::Subject;
using gridlops::testing::world;

namespace {

std::shared_ptr<cuda::CudaBackend> gpu() { return std::make_shared<cuda::CudaBackend>(0); }

std::unique_ptr<Communicator> own_world() { return world().split(0, world().rank()); }

Subject on_gpu(const std::string& transport) {
  const auto backend = gpu();
  return {make_gpu_communicator(world(), backend, transport), backend};
}

}  // namespace

TEST_CASE("The NCCL communicator keeps the contract") {
  testing::check_communicator_contract([] { return on_gpu("nccl"); });
}

TEST_CASE("A group that was split off by NCCL keeps the contract, its ranks in another order") {
  const auto backend = gpu();
  const auto whole = make_gpu_communicator(world(), backend, "nccl");
  testing::check_communicator_contract([&] {
    return Subject{whole->split(world().rank() % 2, -world().rank()), backend};
  });
}

TEST_CASE("A group that was split off without NCCL's help keeps the contract") {
  const auto backend = gpu();
  cuda::NcclCommunicator whole(own_world(), backend->context(), cuda::NcclFormation::unique_id);
  testing::check_communicator_contract([&] {
    return Subject{whole.split(world().rank() % 2, -world().rank()), backend};
  });
}

TEST_CASE("Device operands over MPI keep the contract") {
  testing::check_communicator_contract([] { return on_gpu("mpi"); });
}

TEST_CASE("Device operands over MPI in many chunks keep the contract") {
  const auto backend = gpu();
  backend->context()->staging_chunk_bytes = 24;
  testing::check_communicator_contract([&] {
    return Subject{make_gpu_communicator(world(), backend, "mpi"), backend};
  });
}

TEST_CASE("Communicators of GPUs keep the contract for host operands") {
  for (const char* transport : {"nccl", "mpi"}) {
    const auto backend = gpu();
    testing::check_communicator_contract([&] {
      return Subject{make_gpu_communicator(world(), backend, transport), make_host_backend()};
    });
  }
}

TEST_CASE("A region of a stream that an exception leaves without an end hides no other from the timeline") {
  if (world().size() == 1) return;  // without a region
  // With NCCL_COMM_BLOCKING=0 a group that is abandoned takes its communicator with it.
  if (std::getenv("NCCL_COMM_BLOCKING") != nullptr) return;
  const Subject subject = on_gpu("nccl");
  testing::Operand<double> data(subject, testing::values<double>(world().rank(), 9));
  const auto abandoned = [&] {
    const CommunicationGroup group(*subject.comm);
    subject.comm->broadcast(data, 0);  // waits, which a group forbids
  };
  start_trace({.timeline = true});
  CHECK_THROWS_AS(abandoned(), UsageError);
  for (int k = 0; k < 2; ++k) subject.comm->broadcast(data, 0);
  CHECK_THROWS_AS(abandoned(), UsageError);  // no region comes after this one
  const std::string path =
      std::filesystem::temp_directory_path() / ("gridlops_timeline_" + std::to_string(getpid()) + ".json");
  write_trace_events(world(), path);
  stop_trace();
  subject.comm->broadcast(data, 0);  // those that were abandoned are over then, too
  if (world().rank() != 0) return;
  std::ifstream file(path);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  std::filesystem::remove(path);
  int broadcasts = 0;
  const std::string wanted = "\"ph\":\"X\",\"name\":\"broadcast\"";
  for (auto at = text.find(wanted); at != std::string::npos; at = text.find(wanted, at + 1)) ++broadcasts;
  // All four of every host, and two of its stream.
  CHECK(broadcasts == 6 * world().size());
}

TEST_CASE("What NCCL holds back in a group cannot be waited for, and groups do not nest") {
  if (world().size() == 1) return;
  const Subject subject = on_gpu("nccl");
  testing::Operand<double> data(subject, testing::values<double>(world().rank(), 9));
  testing::Operand<double> sums(subject, testing::values<double>(world().rank(), 9));
  CommunicationGroup group(*subject.comm);
  CHECK_THROWS_AS(CommunicationGroup(*subject.comm), UsageError);
  Request request = subject.comm->start_broadcast(data, 0);
  CHECK_FALSE(request.test());
  CHECK_THROWS_AS(request.wait(), UsageError);
  // Each of them needs the one scratch array of the communicator.
  Request sum = subject.comm->start_all_reduce(sums, ReduceOp::sum, ReductionOrder::by_rank);
  CHECK_THROWS_AS(subject.comm->start_all_reduce(sums, ReduceOp::sum, ReductionOrder::by_rank), UsageError);
  group.close();
  request.wait();
  sum.wait();
  CHECK(data.values() == testing::values<double>(0, 9));
}

TEST_CASE("Only GPUs' memory makes a GPU communicator") {
  CHECK_THROWS_AS(make_gpu_communicator(world(), make_host_backend(), "nccl"), UsageError);
  CHECK_THROWS_AS(make_gpu_communicator(world(), gpu(), "chain"), UsageError);
}
