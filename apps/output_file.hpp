// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gridlops/communicator.hpp"

namespace gridlops::program {

/// A text file that appears complete or not at all: written under a temporary name beside its own, which it
/// takes in commit(). Without commit() nothing is left. Throws OutputError.
class OutputText {
 public:
  explicit OutputText(std::string path);
  ~OutputText();
  OutputText(const OutputText&) = delete;
  OutputText& operator=(const OutputText&) = delete;

  void write(std::string_view text);
  void commit();

 private:
  [[noreturn]] void fail(const char* what) const;
  void flush();

  std::string path_, temporary_, pending_;
  int descriptor_ = -1;
};

struct NamedOutput {
  const char* option;
  std::string path;  // empty: not asked for
};

/// Whether all these files can be written, tried before the work that would be lost otherwise (collective).
/// Throws OutputError on all ranks if rank 0 cannot, and UsageError if two options name the same file.
void check_outputs(Communicator& world, const std::vector<NamedOutput>& outputs);

}  // namespace gridlops::program
