// SPDX-License-Identifier: BSD-3-Clause
#include "emulation/report.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "emulation/device.hpp"
#include "support/planned_fault.hpp"

namespace emulation {

namespace {

PlannedFault planned;

constexpr std::array names{"races",  "ranges",        "alignment",  "devices", "host_access", "pageable",
                           "copies", "uninitialised", "signatures", "orders",  "hangs",       "leaks"};

std::string environment(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

}  // namespace

bool is_on(Detector detector) {
  static const auto on = [] {
    const std::string off = text_of(",", environment("GRIDLOPS_EMULATION_OFF"), ",");
    std::array<bool, names.size()> result{};
    for (std::size_t k = 0; k < names.size(); ++k)
      result[k] = off.find(text_of(",", names[k], ",")) == std::string::npos;
    return result;
  }();
  return on[static_cast<std::size_t>(detector)];
}

void report(const std::string& text) {
  std::fprintf(stderr, "[emulation] rank %d, process %d: %s\n", rank_in_job(), static_cast<int>(getpid()),
               text.c_str());
  std::fflush(stderr);
}

void end_with_report(const std::string& text, int status) {
  report(text);
  // Other ranks get the time to report what they see of it.
  usleep(200000);
  _exit(status);
}

Ledger& running_ledger() {
  static Ledger account;
  return account;
}

Ledger ledger() {
  const Lock lock(device().mutex);
  return running_ledger();
}

void fail_call(const std::string& function, long n) {
  const Lock lock(device().mutex);
  planned = {rank_in_job(), function, "fail", n};
}

bool enter(const char* function) {
  static const bool asked [[maybe_unused]] = [] {
    if (planned.operation.empty()) planned = PlannedFault::from_environment();
    return true;
  }();
  const Lock lock(device().mutex);
  auto& calls = running_ledger().calls;
  const auto found = calls.find(std::string_view(function));
  ++(found == calls.end() ? calls[function] : found->second);
  if (!planned.befalls(rank_in_job(), function)) return false;
  planned.befall_process();
  return planned.kind == "fail";
}

double setting(const char* name, double otherwise) {
  const std::string text = environment(name);
  return text.empty() ? otherwise : std::atof(text.c_str());
}

double hang_seconds() { return setting("GRIDLOPS_EMULATION_HANG_SECONDS", 120); }

}  // namespace emulation
