// SPDX-License-Identifier: BSD-3-Clause
#include "bench/measure/results.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <map>
#include <span>
#include <string_view>
#include <vector>

namespace gridlops::bench {

namespace {

using Json = nlohmann::ordered_json;

struct Place {
  std::array<char, 256> host{};
  std::array<char, 128> cores{};  // "0-3,8"
};

/// "0-3,8"
std::string allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return "unknown";
  std::string text;
  for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &set)) continue;
    const std::size_t first = core;
    while (core + 1 < CPU_SETSIZE && CPU_ISSET(core + 1, &set)) ++core;
    text += fmt::format("{}{}", text.empty() ? "" : ",", first);
    if (core > first) text += fmt::format("-{}", core);
  }
  return text;
}

}  // namespace

Json placement(Communicator& world) {
  Place mine;
  gethostname(mine.host.data(), mine.host.size() - 1);
  allowed_cores().copy(mine.cores.data(), mine.cores.size() - 1);
  std::vector<Place> all(world.rank() == 0 ? static_cast<std::size_t>(world.size()) : 0);
  world.gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)), 0);
  Json places = Json::array();
  std::map<std::string, std::size_t> number;  // of a host and cores
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const std::string host = all[rank].host.data(), cores = all[rank].cores.data();
    const auto [known, is_new] = number.emplace(fmt::format("{} {}", host, cores), places.size());
    if (is_new) places.push_back({{"host", host}, {"cores", cores}, {"ranks", Json::array()}});
    places[known->second]["ranks"].push_back(rank);
  }
  return places;
}

Json settings() {
  constexpr std::array<std::string_view, 15> beginnings{"OMPI_MCA_btl",
                                                        "OMPI_MCA_coll",
                                                        "OMPI_MCA_mpi_",
                                                        "OMPI_MCA_mtl",
                                                        "OMPI_MCA_osc",
                                                        "OMPI_MCA_pml",
                                                        "OMPI_MCA_smsc",
                                                        "OMPI_MCA_hwloc_base",
                                                        "MPICH_",
                                                        "MPIR_CVAR_",
                                                        "I_MPI_",
                                                        "UCX_",
                                                        "FI_",
                                                        "NCCL_",
                                                        "GRIDLOPS_DEVICE_MPI"};
  Json found = Json::object();
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    for (const std::string_view beginning : beginnings)
      if (text.substr(0, beginning.size()) == beginning)
        found[std::string(text.substr(0, text.find('=')))] = std::string(text.substr(text.find('=') + 1));
  }
  return found;
}

}  // namespace gridlops::bench
