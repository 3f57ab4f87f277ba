// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "gridlops/base/error.hpp"
#include "gridlops/dist/dist_matrix.hpp"
#include "gridlops/ops/cost_model.hpp"
#include "machine/machine_file.hpp"

namespace gridlops::program {

/// All ranks, and what carries their data, before they form a grid.
struct Ranks {
  std::shared_ptr<Communicator> comm;
  std::shared_ptr<Backend> backend;
};

/// Takes all ranks of world (collective). device: "cpu", or "gpu", with which the ranks of a host take its
/// GPUs in turn. transport: one that make_host_communicator() or make_gpu_communicator() takes; with the
/// latter, "auto" means NCCL. Throws UsageError on all ranks if there is no such transport or device.
Ranks make_ranks(Communicator& world, const std::string& device, const std::string& transport);

/// Makes a process grid of these ranks (collective). Throws UsageError on all ranks if the shape needs more.
std::shared_ptr<const ProcessGrid> make_grid(const Ranks& ranks, GridShape shape);

/// Does both; without a shape, makes a near-square grid of all ranks.
std::shared_ptr<const ProcessGrid> make_grid(Communicator& world, std::optional<GridShape> shape = {},
                                             const std::string& device = "cpu",
                                             const std::string& transport = "auto");

/// Returns the figures of the machine's file for the transport of these ranks (collective over them).
MachineModel model_of(const Machine& machine, Communicator& comm);

/// The transport that carries the grid's data; empty on idle ranks.
std::string transport_of(const ProcessGrid& grid);

/// Runs work on the ranks of the grid; idle ranks sleep meanwhile (collective over world). If work throws
/// alike on the ranks of the grid, the idle ranks throw what attempt() throws of it. An error that one rank
/// may have met alone passes through unchanged, to end the job.
void run_on_grid(Communicator& world, const ProcessGrid& grid, const std::function<void()>& work);

}  // namespace gridlops::program
