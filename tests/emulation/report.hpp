// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sstream>
#include <string>

#include "emulation/control.hpp"

namespace emulation {

inline constexpr int violation_status = 42;
inline constexpr int leak_status = 43;

/// Writes one line and ends the process; the launcher ends the other ranks.
[[noreturn]] void end_with_report(const std::string& text, int status = violation_status);
/// Writes one line.
void report(const std::string& text);

template <class... Parts>
std::string text_of(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

/// Ends the process with the text unless the detector is off.
template <class... Parts>
void violation(Detector detector, const Parts&... parts) {
  if (is_on(detector)) end_with_report(text_of(parts...));
}

/// Counts a call; true if it is to fail.
bool enter(const char* function);
/// The counts so far; hold the lock of the device to change them.
Ledger& running_ledger();
/// The rank in the job, once MPI runs; -1 before.
int rank_in_job();

/// The number in a variable of the environment.
double setting(const char* name, double otherwise);
/// The seconds after which waiting for peers is a hang: longer than a shared machine may stop a processor.
double hang_seconds();

}  // namespace emulation
