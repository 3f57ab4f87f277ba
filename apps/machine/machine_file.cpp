// SPDX-License-Identifier: BSD-3-Clause
#include "machine/machine_file.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>

#include "gridlops/base/error.hpp"

namespace gridlops::program {

namespace {

std::string text_of_file(const std::string& path) {
  constexpr std::size_t most = 1 << 20;
  std::ifstream file(path, std::ios::binary);
  std::string text(most + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  // Reading a folder fails, too; reading to the end of a file is what is hoped for.
  if (!file.is_open() || file.bad()) throw InputError("it cannot be read");
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > most) throw InputError("it has more than a megabyte, which no calibration has");
  return text;
}

}  // namespace

MachineModel Machine::model(const std::string& transport, bool in_place) const {
  MachineModel model = rates;
  auto found = links.find(transport);
  if (found == links.end()) found = links.find("mpi");
  if (found != links.end()) model.links = found->second;
  model.rows_share_memory = model.columns_share_memory = in_place;
  return model;
}

Machine read_machine(Communicator& world, const std::string& path) {
  const char* const variable = std::getenv("GRIDLOPS_CALIBRATION");
  const std::string named = !path.empty() ? path : variable == nullptr ? "off" : variable;
  if (path.empty() && (named.empty() || named == "off")) return {};
  std::string text, problem;
  if (world.rank() == 0) {
    try {
      text = text_of_file(named);
      parse_machine(text);
    } catch (const InputError& error) {
      problem = fmt::format("{}: {}; gridlops calibrate writes such files", named, error.what());
    }
  }
  problem = broadcast_text(world, problem, 0);
  if (!problem.empty() && path.empty()) return {};  // as the choices of products leave it out of account
  if (!problem.empty()) throw InputError(problem);
  Machine machine = parse_machine(broadcast_text(world, text, 0));
  machine.source = named;
  return machine;
}

}  // namespace gridlops::program
