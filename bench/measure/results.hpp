// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/benchmarks.hpp"
#include "bench/comm/exchange.hpp"
#include "bench/measure/cases.hpp"
#include "bench/measure/measurement.hpp"

namespace gridlops::bench {

/// The measurement of a product or of a solver.
struct Result {
  Case what;
  bool adjoint = false;
  bool high_plane = false;  ///< of products: A in planes, of which the high one is read
  std::string solver{};     ///< empty for products
  std::string peer{};       ///< the routine of another library; empty: ours
  std::vector<Sample> samples{};
  Work work{};  ///< of one product, or of one iteration
  double error = 0;
  double allowed_error = 0;  ///< by rounding
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
  Operation operation;
  Operands operands;
  std::string over, transport;

  Index bytes() const { return operands.count * operands.type.size(); }
  std::string reduction() const;  ///< "-" without one
  std::string root() const;       ///< the same
  /// Everything that tells rows apart, except the transport.
  std::string key() const;
};

struct CommResult {
  CommCase what;
  int ranks = 1;
  std::string instead{};          ///< why nothing was measured; otherwise empty
  std::string carrier{};          ///< the code that carries the operation
  Index bytes_sent = 0;           ///< by all ranks together, in one operation
  Index wrong = 0;                ///< numbers, on all ranks
  Index in_a_row = 1;             ///< operations in a sample
  std::vector<double> seconds{};  ///< samples of one operation, of the slowest rank
};

/// The conditions that figures depend on besides the work: this rank's machine, its load and libraries, and
/// the placement of all ranks (collective).
nlohmann::ordered_json environment(Communicator& world);

/// Says in the help of a subcommand what the columns of its table mean. A line begins with the titles of the
/// columns that it is about, each as it is printed, separated by commas; two spaces end them.
void explain_columns(Options& options, const std::vector<std::string>& lines);
void explain_columns_of_products(Options& options);
void explain_columns_of_kernels(Options& options);
void explain_columns_of_operators(Options& options);
void explain_columns_of_collectives(Options& options);

/// On rank 0, prints a table row for each result as it comes, and writes all results to a JSON file. Counts
/// wrong results, and ends with a verdict.
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
  /// Prints a row of the table with this title, and adds it to a list of the file. `wrong` says what is wrong
  /// with the row; empty: nothing is. Without `wrong` nobody has verified the row, and it does not count as a
  /// result.
  void add_row(const std::string& list, const std::string& title, const std::string& row,
               const nlohmann::ordered_json& json, const std::optional<std::string>& wrong = {});
  /// Records that a transport cannot run here.
  void add_absent(const std::string& transport, const std::string& reason);
  /// Prints environment() in lines that begin with #.
  void print_header(const std::string& subcommand);
  /// Writes the file. Prints a verdict if a result was wrong or print_header() was called (collective over
  /// world). Returns check_failed on all ranks if a result was wrong, or if there is a header but no result.
  /// Throws OutputError on all ranks.
  ExitStatus close();

 private:
  void print(const std::string& title, const std::string& row);
  void count(bool is_wrong, const std::string& what);
  bool measured_nothing() const { return has_header_ && results_ == 0; }  ///< on rank 0
  void print_verdict() const;
  void add_unmeasured(const CommResult& result);

  Communicator& world_;
  std::string path_;
  nlohmann::ordered_json document_;
  bool has_header_ = false;
  std::string title_;  ///< of the last row
  Index results_ = 0;
  std::vector<std::string> wrong_;  ///< descriptions of wrong results
};

/// The ranks that share a host and the cores on which they may run: [{"host", "cores", "ranks"}, …]
/// (collective; only rank 0 gets it).
nlohmann::ordered_json placement(Communicator& world);

/// The variables of this process that set how MPI and NCCL carry data: {name: value}.
nlohmann::ordered_json settings();

}  // namespace gridlops::bench
