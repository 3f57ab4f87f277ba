// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "gridlops/comm/communicator.hpp"
#include "gridlops/ops/cost_model.hpp"

namespace gridlops::program {

/// Describes --machine in the help.
inline constexpr const char* about_machine =
    "What gridlops-bench calibrate measured [GRIDLOPS_MACHINE, or a common cluster core]";

/// The figures that `gridlops-bench calibrate` measured, or the constants of MachineModel, and their source.
struct Machine {
  using Links = std::array<LinkModel, comm_operation_count>;

  std::string source = "built in";
  MachineModel rates;                  ///< without links
  std::map<std::string, Links> links;  ///< by transport

  /// The model for a transport, with its links; with those of mpi if it was not measured; or with the
  /// constants. in_place: ranks read each other's memory in place, in the rows and in the columns of any
  /// grid.
  MachineModel model(const std::string& transport, bool in_place) const;
};

/// The operations whose links a machine's file has: those of products and of solvers.
const std::vector<CommOperation>& linked_operations();
/// "all-gather", as gridlops-bench comm calls it.
std::string name_of_link(CommOperation operation);

/// Parses the text of a machine's file. Throws InputError with the wrong key and its value.
Machine parse_machine(const std::string& text);
/// The machine as one JSON object, with schema and source: {"schema": "gridlops.machine/1", …}.
nlohmann::ordered_json json_of(const Machine& machine);

/// Reads the machine from a file (collective over world): `path`, or else the file that GRIDLOPS_MACHINE
/// names. Without either, returns the constants. Throws InputError, on all ranks, with the wrong key and its
/// value.
Machine read_machine(Communicator& world, const std::string& path);

}  // namespace gridlops::program
