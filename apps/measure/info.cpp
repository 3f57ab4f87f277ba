// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "build_facts.hpp"
#include "command_line/console.hpp"
#include "command_line/grid.hpp"
#include "command_line/option_parser.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/version.hpp"
#include "gridlops/comm/gpu.hpp"
#include "gridlops/comm/mpi.hpp"
#include "gridlops/io/array_file.hpp"
#include "gridlops/local/backend.hpp"
#include "gridlops/streamed/streamed_matrix.hpp"
#include "subcommands.hpp"

namespace gridlops::program {

namespace {

/// The facts that each rank sends to rank 0.
struct RankFacts {
  std::array<char, 256> host{};
  std::array<char, 64> kernel{};
  Index threads = 1;  // that compute at the same time
  Index cores = 1;
};

struct HostFacts {
  Index ranks = 0, threads = 0, cores = 0;
};

RankFacts facts_of_this_rank(const BlasInfo& blas) {
  RankFacts facts;
  gethostname(facts.host.data(), facts.host.size() - 1);
  blas.kernel.copy(facts.kernel.data(), facts.kernel.size() - 1);
  facts.threads = threads_per_rank() > 1 ? threads_per_rank() : blas.threads;
  facts.cores = std::max<Index>(sysconf(_SC_NPROCESSORS_ONLN), 1);
  return facts;
}

std::vector<RankFacts> gather_facts(Communicator& world, const RankFacts& mine) {
  std::vector<RankFacts> all(world.rank() == 0 ? static_cast<std::size_t>(world.size()) : 0);
  world.gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)), 0);
  return all;
}

std::map<std::string, HostFacts> by_host(const std::vector<RankFacts>& ranks) {
  std::map<std::string, HostFacts> hosts;
  for (const RankFacts& rank : ranks) {
    HostFacts& host = hosts[rank.host.data()];
    ++host.ranks;
    host.threads += rank.threads;
    host.cores = rank.cores;
  }
  return hosts;
}

std::string kernels_text(const std::vector<RankFacts>& ranks) {
  std::map<std::string, Index> kernels;
  for (const RankFacts& rank : ranks) ++kernels[rank.kernel.data()];
  std::string text;
  for (const auto& entry : kernels) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", entry.first.empty() ? "not told" : entry.first);
    if (kernels.size() > 1) text += fmt::format(" on {} ranks", entry.second);
  }
  return text;
}

/// The transport by which MPI carries device memory (collective); empty unless every rank has a GPU.
std::string mpi_way(Communicator& world) {
  std::array<std::int32_t, 1> fewest{gpu_info().devices};
  world.all_reduce(fewest, ReduceOp::min);
  if (fewest[0] == 0) return {};
  return make_gpu_communicator(world, make_gpu_of_rank(world), "mpi")->transport();
}

/// The transports for host memory, saying which of them these ranks cannot use (collective).
std::string transports_text(Communicator& world) {
  std::string refused;
  for (const std::string& transport : host_transports()) {
    try {
      make_host_communicator(world, transport);
    } catch (const Error& error) {
      if (error.known_to() == KnownTo::one_rank) throw;
      refused += fmt::format("\n{:<14}not here: {}: {}", "", transport, error.what());
    }
  }
  const std::string all = fmt::format("{}", fmt::join(host_transports(), " "));
  return refused.empty() ? fmt::format("{}; all work here on {} ranks", all, world.size()) : all + refused;
}

std::string gpu_text(const std::string& mpi) {
  const GpuInfo gpus = gpu_info();
  const std::string versions = gpus.versions.empty() ? "" : gpus.versions + "; ";
  if (gpus.devices == 0) return fmt::format("none: {}{}", versions, gpus.problem);
  std::string text = fmt::format("{}{} on this host, one for each rank in turn; transports {}", versions,
                                 gpus.devices, fmt::join(gpus.transports, " "));
  if (mpi == "mpi-direct") return text + "; MPI takes device memory";
  if (mpi == "mpi-staged") return text + "; MPI gets device memory by way of the host";
  return text;
}

std::string facts_text(const BlasInfo& blas, const std::vector<RankFacts>& ranks,
                       const std::map<std::string, HostFacts>& hosts, const std::string& transports,
                       const std::string& mpi, const std::string& calibration) {
  const auto line = [](const char* label, const std::string& text) {
    return fmt::format("{:<14}{}\n", label, text);
  };
  std::string text = line("gridlops", fmt::format("{}, built with {} as {}", version, compiler, build_type));
  text += line("MPI", mpi_library_text());
  text +=
      line("ranks", fmt::format("{} on {} host{}", ranks.size(), hosts.size(), hosts.size() == 1 ? "" : "s"));
  for (const auto& entry : hosts) {
    text += line("", fmt::format("{}: {} ranks, {} threads, {} cores", entry.first, entry.second.ranks,
                                 entry.second.threads, entry.second.cores));
  }
  text += line("transports", transports);
  text += line("HDF5", hdf5_text());
  text += line("BLAS", fmt::format("{}, {}", blas.library, blas.path.empty() ? "path unknown" : blas.path));
  text += line("kernel", fmt::format("{}; this CPU has {}", kernels_text(ranks), blas.best_kernel));
  text += line("own kernels", own_kernels());
  text += line("FFT", fft_library());
  text += calibration;
  text += line("threads", threads_per_rank() > 1
                              ? fmt::format("{} per rank, each with one of BLAS", threads_per_rank())
                              : fmt::format("1 per rank, {} of BLAS", blas.threads));
  return text + line("GPU", gpu_text(mpi));
}

void warn_of_slowness(const BlasInfo& blas, const std::map<std::string, HostFacts>& hosts) {
  if (blas.pinned_below_cpu) {
    warn(fmt::format(
        "{} pins a BLAS kernel that leaves {} unused, so that products take longer than they need; "
        "unset {}, where jobs get it from, too",
        blas.pinned_by, blas.best_kernel, blas.pinned_by.substr(0, blas.pinned_by.find('='))));
  }
  for (const auto& entry : hosts) {
    const HostFacts& host = entry.second;
    if (host.threads <= host.cores) continue;
    std::string advice = fmt::format("start {} rank{} at most", host.cores, host.cores == 1 ? "" : "s");
    if (host.threads > host.ranks) {
      const std::string fewer_threads =
          fmt::format("set {}={}", threads_per_rank() > 1 ? "GRIDLOPS_THREADS" : "OPENBLAS_NUM_THREADS",
                      std::max<Index>(host.cores / host.ranks, 1));
      if (host.ranks <= host.cores) advice = "start fewer ranks";
      advice += (host.ranks > host.cores ? ", and " : ", or ") + fewer_threads;
    }
    warn(fmt::format("{} ranks with {} threads in all share the {} cores of {}; {}", host.ranks, host.threads,
                     host.cores, entry.first, advice));
  }
}

/// A line about the disks of all ranks, which read half a GiB each, if there is a directory.
std::string disk_line(Communicator& world, const std::string& scratch) {
  if (scratch.empty()) return {};
  const auto rate =
      static_cast<Index>(measure_disk(world, scratch, world.size() * (Index{1} << 29)).bytes_per_second);
  return fmt::format("{:<14}{} delivers {}/s to all ranks together, {}/s to each\n", "disk", scratch,
                     bytes_text(rate), bytes_text(rate / world.size()));
}

ExitStatus info(Communicator& world, const std::string& scratch) {
  const BlasInfo blas = blas_info();
  const std::vector<RankFacts> ranks = gather_facts(world, facts_of_this_rank(blas));
  const std::string mpi = mpi_way(world);
  const std::string transports = transports_text(world);
  const std::string calibration = calibration_text(world);
  const std::string disk = disk_line(world, scratch);
  if (world.rank() == 0) {
    const auto hosts = by_host(ranks);
    print(facts_text(blas, ranks, hosts, transports, mpi, calibration) + disk);
    warn_of_slowness(blas, hosts);
  }
  return ExitStatus::done;
}

}  // namespace

Action define_info(Options& options) {
  const auto scratch = std::make_shared<std::string>();
  options.text("--scratch", *scratch, "DIR",
               "Also measures the disks of this directory, with half a GiB a rank");
  options.examples({"gridlops info", "mpirun -n 4 gridlops info --scratch /var/tmp"});
  return [scratch](Communicator& world) { return info(world, *scratch); };
}

}  // namespace gridlops::program
