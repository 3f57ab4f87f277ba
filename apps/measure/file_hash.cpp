// SPDX-License-Identifier: BSD-3-Clause
#include "measure/file_hash.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <cstddef>
#include <fstream>
#include <ios>
#include <memory>
#include <vector>

#include "gridlops/base/error.hpp"
#include "gridlops/comm/mpi.hpp"

namespace gridlops::program {

std::string hash_of_file(const std::string& path) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), &XXH3_freeState);
  std::ifstream file(path, std::ios::binary);
  std::vector<char> piece(std::size_t{4} << 20);
  XXH3_64bits_reset(state.get());
  while (file.read(piece.data(), static_cast<std::streamsize>(piece.size())) || file.gcount() > 0) {
    keep_alive();
    XXH3_64bits_update(state.get(), piece.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (!file.eof()) throw OutputError(fmt::format("{}: cannot read the file for its hash", path));
  return fmt::format("{:016x}", XXH3_64bits_digest(state.get()));
}

}  // namespace gridlops::program
