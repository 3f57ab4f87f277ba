// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "gridlops/communicator.hpp"

namespace gridlops::program {

/// A file that an option names; of a directory of checkpoints its manifest.
struct NamedFile {
  const char* option;
  std::string path;  // empty: not asked for
};
NamedFile manifest_in(const char* option, const std::string& directory);

/// Before anything is computed (collective): that no output replaces another one or an input, by whatever
/// name or link, and that all outputs can be written. Throws on all ranks what rank 0 finds: UsageError, or
/// OutputError.
void check_outputs(Communicator& world, const std::vector<NamedFile>& inputs,
                   const std::vector<NamedFile>& outputs);

}  // namespace gridlops::program
