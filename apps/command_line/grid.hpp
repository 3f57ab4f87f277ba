// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "command_line/machine_file.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/dist/dist_matrix.hpp"
#include "gridlops/ops/cost_model.hpp"

namespace gridlops::program {

/// All ranks with what carries their data, before they form a grid.
struct Ranks {
  std::shared_ptr<Communicator> comm;
  std::shared_ptr<Backend> backend;
};

/// All ranks of world (collective). device: "cpu", or "gpu" where the ranks of a host take its GPUs in turn.
/// transport: one of make_host_communicator(), or of make_gpu_communicator(), for which "auto" is NCCL.
/// Throws UsageError on all ranks if there is no such transport or device.
Ranks make_ranks(Communicator& world, const std::string& device, const std::string& transport);

/// A process grid of them (collective). Throws UsageError on all ranks if the shape needs more ranks.
std::shared_ptr<const ProcessGrid> make_grid(const Ranks& ranks, GridShape shape);

/// Both at once; without a shape a near-square grid of all ranks.
std::shared_ptr<const ProcessGrid> make_grid(Communicator& world, std::optional<GridShape> shape = {},
                                             const std::string& device = "cpu",
                                             const std::string& transport = "auto");

/// What the machine's file says of the transport of these ranks (collective over them).
MachineModel model_of(const Machine& machine, const Ranks& ranks);

/// The GPU of this rank, for a device "gpu" (collective over comm). Throws UsageError on all ranks if one of
/// them has none.
std::shared_ptr<Backend> make_gpu_of_rank(Communicator& comm);

/// The transport that carries the grid's data; empty on idle ranks.
std::string transport_of(const ProcessGrid& grid);

/// Runs work on the ranks of the grid; idle ranks sleep meanwhile (collective over world). If work throws
/// alike on the ranks of the grid, the idle ranks throw what attempt() throws of it. An error that one rank
/// may have met alone passes through unchanged, to end the job.
void run_on_grid(Communicator& world, const ProcessGrid& grid, const std::function<void()>& work);

}  // namespace gridlops::program
