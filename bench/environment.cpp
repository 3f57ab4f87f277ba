// SPDX-License-Identifier: BSD-3-Clause
#include "environment.hpp"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <ctime>
#include <fstream>

#include "bench/commit.hpp"
#include "build_facts.hpp"
#include "gridlops/backend.hpp"
#include "gridlops/gpu.hpp"
#include "gridlops/own_kernels.hpp"
#include "gridlops/version.hpp"
#include "versions.hpp"

namespace gridlops::bench {

namespace {

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos && colon + 2 < line.size())
      return line.substr(colon + 2);
  }
  return "unknown";
}

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string time_text() {
  const std::time_t now = std::time(nullptr);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return text.data();
}

std::string gpu_text() {
  const GpuInfo gpus = gpu_info();
  return gpus.devices > 0 ? gpus.versions + ", " + std::to_string(gpus.devices) + " on the host" : "none";
}

}  // namespace

double load_average() {
  double load = -1;
  return getloadavg(&load, 1) == 1 ? load : -1;
}

nlohmann::ordered_json environment(const Communicator& world) {
  const BlasInfo blas = blas_info();
  return {{"version", version},
          {"commit", commit},
          {"compiler", program::compiler},
          {"build_type", program::build_type},
          {"time", time_text()},
          {"host", host_name()},
          {"cpu", cpu_model()},
          {"cores", sysconf(_SC_NPROCESSORS_ONLN)},
          {"instruction_set", blas.best_kernel},
          {"ranks", world.size()},
          {"mpi", program::mpi_library_text()},
          {"blas", blas.library},
          {"blas_kernel", blas.kernel},
          {"blas_pinned_by", blas.pinned_by},
          {"own_kernels", own_kernels()},
          {"blas_threads", blas.threads},
          {"gpu", gpu_text()},
          {"load_average", load_average()}};
}

}  // namespace gridlops::bench
