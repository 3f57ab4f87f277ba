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
    "What gridlops calibrate measured [GRIDLOPS_CALIBRATION, or a common cluster core]";

/// The rates that `gridlops calibrate` measured, or the constants of MachineModel, and where that is from.
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

/// The operations whose links a file has: those of products and of solvers.
const std::vector<CommOperation>& linked_operations();
/// "all-gather", as gridlops-bench comm calls it.
std::string name_of_link(CommOperation operation);

/// The machine in the text of a calibration. Throws InputError with the key and the value that is wrong.
Machine parse_machine(const std::string& text);
/// The machine as the calibration has it, under "rates".
nlohmann::ordered_json json_of(const Machine& machine);

/// The machine in a calibration (collective over world): `path`, or else the file that GRIDLOPS_CALIBRATION
/// names, if it has rates, or else the constants. Throws InputError, on all ranks, with the key and the value
/// that is wrong in `path`.
Machine read_machine(Communicator& world, const std::string& path);

}  // namespace gridlops::program
