// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cases.hpp"
#include "measurement.hpp"

namespace gridlops::bench {

/// The measurement of a product or of a solver.
struct Result {
  Case what;
  bool adjoint = false;
  std::string solver{};  ///< empty for products
  std::string peer{};    ///< the routine of another library, if that was timed
  std::vector<Sample> samples{};
  Work work{};  ///< of one product, or of one iteration
  double error = 0;
  Index bytes_sent = -1;     ///< by all ranks together, in one product or iteration; negative: unknown
  Index launches = 0;        ///< of an iteration on a GPU: kernels and products
  double total_seconds = 0;  ///< of a whole solve: median
};

struct KernelCase {
  std::string kernel;
  Index rows = 0, cols = 0;  ///< on a rank
  ScalarType type = ScalarType::f64;
  std::string device;
};

struct KernelResult {
  KernelCase what;
  double bytes = 0;  ///< read and written, by all ranks together
  std::vector<Sample> samples;
};

/// The measurement of an operator on arrays in one direction.
struct OperatorResult {
  std::string operation, sizes;
  Index nrhs = 1;
  bool adjoint = false;
  std::vector<Sample> samples;
  Work work;  ///< of one product, of all ranks together
};

struct CommCase {
  std::string operation, transport;
  Index bytes = 0;  ///< as in CommArguments, but as large as the operation really is
};

struct CommResult {
  CommCase what;
  int ranks = 1;
  Index bytes_sent = 0;         ///< by all ranks together, in one operation
  std::vector<double> seconds;  ///< of one operation, of the slowest rank
};

/// Prints a row of a table for every result at once, and writes a JSON file with all of them; both on rank 0.
class ResultWriter {
 public:
  /// Collective over world. Throws OutputError on all ranks if the file cannot be made.
  ResultWriter(Communicator& world, std::string json_path);

  /// Call it on every rank of the result's grid.
  void add(const Result& result);
  /// Call these on every rank.
  void add(const CommResult& result);
  void add(const KernelResult& result);
  void add(const OperatorResult& result);
  /// Writes the file (collective over world). Throws OutputError on all ranks.
  void close();

 private:
  void print(const std::string& title, const std::string& row);

  Communicator& world_;
  std::string path_;
  nlohmann::ordered_json document_;
  bool has_title_ = false;
};

}  // namespace gridlops::bench
