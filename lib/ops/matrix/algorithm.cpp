// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/ops/algorithm.hpp"

#include "base/message.hpp"
#include "gridlops/base/error.hpp"

namespace gridlops {

const char* name_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::automatic:
      return "auto";
    case Algorithm::block:
      return "block";
    case Algorithm::summa:
      return "summa";
    case Algorithm::stationary_a:
      return "stationary-a";
    case Algorithm::stationary_b:
      break;
  }
  return "stationary-b";
}

Algorithm parse_algorithm(const std::string& name) {
  for (const Algorithm algorithm : {Algorithm::automatic, Algorithm::block, Algorithm::summa,
                                    Algorithm::stationary_a, Algorithm::stationary_b})
    if (name == name_of(algorithm)) return algorithm;
  throw UsageError(message("there is no algorithm '", name,
                           "'; there are auto, block, summa, stationary-a, stationary-b"));
}

Storage parse_storage(const std::string& name) {
  std::string names;
  for (const StorageRow& row : storage_table) {
    if (name == row.name) return row.storage;
    names += message(names.empty() ? "" : ", ", row.name);
  }
  throw UsageError(message("A is not stored as '", name, "'; there are ", names,
                           ", and stream_matrix() for a matrix on disks"));
}

}  // namespace gridlops
