// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "result.hpp"

namespace gridlops::bench {

/// What rank 0 tells of the results: a row of a table for each at once, and a JSON file with all of them.
class Journal {
 public:
  /// Collective over world. Throws OutputError on all ranks if the file cannot be made.
  Journal(Communicator& world, std::string json_path);

  /// On every member of the result's grid.
  void add(const Result& result);
  /// On every rank.
  void add(const CommResult& result);
  void add(const KernelResult& result);
  /// Writes the file (collective over world). Throws OutputError on all ranks.
  void close();

 private:
  Communicator& world_;
  std::string path_;
  nlohmann::ordered_json document_;
  void print(const std::string& title, const std::string& row);

  bool has_title_ = false;
};

}  // namespace gridlops::bench
