// SPDX-License-Identifier: BSD-3-Clause
#include "command_line/console.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <span>

#include "gridlops/base/version.hpp"
#include "gridlops/comm/mpi.hpp"
#include "gridlops/local/backend.hpp"

namespace gridlops::program {

namespace {

bool lost = false;

spdlog::logger& logger() {
  static spdlog::logger the_logger = [] {
    spdlog::logger made("gridlops", std::make_shared<spdlog::sinks::stderr_sink_st>());
    made.set_pattern("%n: %l: %v");
    return made;
  }();
  return the_logger;
}

}  // namespace

void print(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) lost = true;
}

bool output_is_lost() { return lost; }

void warn(std::string_view text) { logger().warn("{}", text); }
void complain(std::string_view text) { logger().error("{}", text); }

void warn_of_no_data(const char* column, const std::vector<Index>& numbers, const char* solution) {
  constexpr std::size_t most = 10;
  if (numbers.empty()) return;
  warn(fmt::format("the weights of {} {}{} are all 0, so that {} is 0 there: {}{}", numbers.size(), column,
                   numbers.size() == 1 ? "" : "s", solution,
                   fmt::join(std::span(numbers).first(std::min(most, numbers.size())), ", "),
                   numbers.size() > most ? ", ..." : ""));
}

std::string bytes_text(Index bytes) {
  constexpr std::array<const char*, 6> units{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < units.size(); ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, units[unit]);
}

std::string duration_text(double seconds) {
  if (seconds < 10) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<Index>(std::llround(std::min(seconds, 1e15)));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
}

std::string version_text() {
  const BlasInfo blas = blas_info();
  const std::string kernel = blas.kernel.empty() ? "" : fmt::format(" ({})", blas.kernel);
  return fmt::format("gridlops {}\n{}\n{}{}", version, mpi_library_text(), blas.library, kernel);
}

std::string mpi_library_text() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);  // MPI allows this at any time
  const std::string whole(text.data());
  // The rest is the builder's name in Open MPI and the configuration in MPICH.
  return whole.substr(0, whole.find_first_of(",\n"));
}

}  // namespace gridlops::program
