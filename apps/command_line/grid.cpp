// SPDX-License-Identifier: BSD-3-Clause
#include "command_line/grid.hpp"

#include <array>
#include <chrono>
#include <exception>
#include <thread>

#include "gridlops/comm/failure.hpp"
#include "gridlops/comm/gpu.hpp"
#include "gridlops/comm/mpi.hpp"

namespace gridlops::program {

namespace {

/// A grid, with the communicator from which its own were split off.
struct GridOfRanks {
  GridOfRanks(Ranks of, GridShape shape) : ranks(std::move(of)), grid(*ranks.comm, shape, ranks.backend) {}

  Ranks ranks;
  ProcessGrid grid;
};

/// Waits as request.wait() does, but leaves the processor to others.
void sleep_until_done(Request request) {
  while (!request.test()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

}  // namespace

Ranks make_ranks(Communicator& world, const std::string& device, const std::string& transport) {
  if (device != "gpu") return {make_host_communicator(world, transport), make_host_backend()};
  const std::shared_ptr<Backend> gpu = make_gpu_of_rank(world);
  return {make_gpu_communicator(world, gpu, transport), gpu};
}

std::shared_ptr<const ProcessGrid> make_grid(const Ranks& ranks, GridShape shape) {
  const auto owner = std::make_shared<GridOfRanks>(ranks, shape);
  return {owner, &owner->grid};
}

std::shared_ptr<const ProcessGrid> make_grid(Communicator& world, std::optional<GridShape> shape,
                                             const std::string& device, const std::string& transport) {
  return make_grid(make_ranks(world, device, transport), shape.value_or(near_square(world.size())));
}

MachineModel model_of(const Machine& machine, Communicator& comm) {
  std::array<std::int32_t, 1> in_place{comm.peer_access() == PeerAccess::in_place};
  comm.all_reduce(in_place, ReduceOp::min);
  return machine.model(comm.transport(), in_place[0] != 0);
}

std::string transport_of(const ProcessGrid& grid) { return grid.is_member() ? grid.comm().transport() : ""; }

void run_on_grid(Communicator& world, const ProcessGrid& grid, const std::function<void()>& work) {
  std::exception_ptr failure;
  try {
    if (grid.is_member()) work();
  } catch (const Error& error) {
    if (error.known_to() == KnownTo::one_rank) throw;
    failure = std::current_exception();
  }
  std::array<std::int32_t, 1> has_failed{failure != nullptr};
  sleep_until_done(world.start_broadcast(has_failed, 0));
  if (has_failed[0] == 0) return;
  try {
    attempt(world, [&failure] {
      if (failure != nullptr) std::rethrow_exception(failure);
    });
  } catch (const Error&) {
    if (failure != nullptr) std::rethrow_exception(failure);
    throw;
  }
}

}  // namespace gridlops::program
