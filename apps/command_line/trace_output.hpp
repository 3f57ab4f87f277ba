// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "gridlops/comm/communicator.hpp"

namespace gridlops::program {

/// FILE of GRIDLOPS_TRACE=chrome:FILE; empty without one.
std::string trace_file();

/// The output that the variable GRIDLOPS_TRACE asks for: off, summary, tree, or chrome:FILE. Recording begins
/// in the constructor.
class TraceOutput {
 public:
  /// Throws UsageError if the variable has another value, and OutputError if the file cannot be written, on
  /// all ranks (collective).
  explicit TraceOutput(Communicator& world);
  TraceOutput(const TraceOutput&) = delete;
  TraceOutput& operator=(const TraceOutput&) = delete;
  ~TraceOutput();

  /// Prints or writes everything recorded so far (collective over the constructor's world).
  void finish();

 private:
  enum class Form { off, summary, tree, chrome };

  Communicator& world_;
  Form form_ = Form::off;
  std::string path_;  // of chrome
};

}  // namespace gridlops::program
