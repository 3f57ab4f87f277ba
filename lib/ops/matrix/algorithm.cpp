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

const char* name_of(Storage storage) {
  switch (storage) {
    case Storage::columns:
      return "columns";
    case Storage::packed:
      return "packed";
    case Storage::planes:
      break;
  }
  return "planes";
}

Storage parse_storage(const std::string& name) {
  for (const Storage storage : {Storage::columns, Storage::packed, Storage::planes})
    if (name == name_of(storage)) return storage;
  throw UsageError(
      message("A is not stored as '", name,
              "'; there are columns, packed and planes, and stream_matrix() for a matrix on disks"));
}

}  // namespace gridlops
