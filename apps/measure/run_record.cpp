// SPDX-License-Identifier: BSD-3-Clause
#include "measure/run_record.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "command_line/console.hpp"
#include "command_line/option_parser.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/comm/mpi.hpp"
#include "gridlops/local/backend.hpp"
#include "measure/file_hash.hpp"

namespace gridlops::program {

namespace {

using Json = nlohmann::ordered_json;

/// The bytes of a file, or of all files in a directory; none if they are not known.
Json bytes_in(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    const auto bytes = fs::file_size(path, error);
    return error ? Json() : Json(bytes);
  }
  std::uintmax_t sum = 0;
  for (fs::recursive_directory_iterator next(path, error), end; !error && next != end; next.increment(error))
    if (next->is_regular_file(error)) sum += next->file_size(error);
  return error ? Json() : Json(sum);
}

/// The file whose hash is that of all that a name means: a manifest has the hashes of its directory's files.
std::string hashed_file(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored) ? path + "/manifest.json" : path;
}

/// The name of this machine's processor; empty if the system does not report it.
std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const std::size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return {};
}

using HostName = std::array<char, 256>;

/// The hosts of all ranks, in the order of their first ranks, each with its number of ranks; on rank 0.
Json hosts_of(Communicator& world) {
  HostName mine{};
  gethostname(mine.data(), mine.size() - 1);
  std::vector<HostName> names(world.rank() == 0 ? static_cast<std::size_t>(world.size()) : 0);
  world.gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(names)), 0);
  std::map<std::string_view, std::size_t> places;
  std::vector<std::pair<const char*, int>> counts;
  for (const HostName& name : names) {
    const auto place = places.try_emplace(name.data(), counts.size()).first->second;
    if (place == counts.size()) counts.emplace_back(name.data(), 0);
    ++counts[place].second;
  }
  Json hosts = Json::array();
  for (const auto& [name, ranks] : counts) hosts.push_back({{"name", name}, {"ranks", ranks}});
  return hosts;
}

}  // namespace

Json json_of(const RunFile& file, bool hashed) {
  Json json{{"option", file.option}, {"path", file.path}};
  const std::string in = place_of_array(file.path).file;
  json["bytes"] = bytes_in(in);
  if (file.header) {
    json["dtype"] = name_of(file.header->type);
    json["shape"] =
        file.header->dimensions == 1 ? Json{file.header->rows} : Json{file.header->rows, file.header->cols};
  }
  if (hashed) json["xxh3"] = hash_of_file(hashed_file(in));
  return json;
}

Json record_of_run(Communicator& world) {
  const Json hosts = hosts_of(world);
  Json environment = Json::object();
  for (const std::string& name : gridlops_variables()) environment[name] = std::getenv(name.c_str());
  const BlasInfo blas = blas_info();
  return {{"command_line", command_words()},
          {"environment", environment},
          {"date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
          {"machine",
           {{"hosts", hosts},
            {"processor", processor_name()},
            {"cores", sysconf(_SC_NPROCESSORS_ONLN)},
            {"mpi", mpi_library_text()},
            {"threads", threads_per_rank()},
            {"blas", blas.library},
            {"blas_kernel", blas.kernel},
            {"blas_threads", blas.threads}}}};
}

}  // namespace gridlops::program
