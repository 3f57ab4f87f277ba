// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/comm/exchange.hpp"
#include "bench/measure/cases.hpp"
#include "bench/measure/measurement.hpp"

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
  /// Whatever else there is to tell rows apart, but not the transport.
  std::string key() const;
};

struct CommResult {
  CommCase what;
  int ranks = 1;
  std::string instead{};          ///< why nothing was measured; otherwise empty
  std::string carrier{};          ///< the code that carries it
  Index bytes_sent = 0;           ///< by all ranks together, in one operation
  Index wrong = 0;                ///< numbers, on all ranks
  Index in_a_row = 1;             ///< operations in a sample
  std::vector<double> seconds{};  ///< samples of one operation, of the slowest rank
};

/// What figures depend on besides the work: the machine, libraries, and its load, as this rank sees them, and
/// where all ranks are (collective).
nlohmann::ordered_json environment(Communicator& world);

/// Prints a row of a table for every result at once, and writes a JSON file with all of them; both on rank 0.
/// It counts what is wrong, and says in the end what the run is worth.
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
  /// Prints a row of a table with this title, and puts it in a list of the file. `wrong` says what is wrong
  /// with it: empty if nothing is, none if nobody verified it, so that it is no result.
  void add_row(const std::string& list, const std::string& title, const std::string& row,
               const nlohmann::ordered_json& json, const std::optional<std::string>& wrong = {});
  /// Says that a transport cannot run here.
  void add_absent(const std::string& transport, const std::string& reason);
  /// Prints what figures depend on, in lines that begin with #.
  void print_header(const std::string& subcommand);
  /// Writes the file and, after anything wrong or a header, a verdict (collective over world). Returns
  /// check_failed on all ranks if a result was wrong, or if after a header there is none. Throws OutputError
  /// on all ranks.
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
  std::vector<std::string> wrong_;  ///< what is
};

/// Which ranks share a host and the cores that they may run on: [{"host", "cores", "ranks"}, …] (collective;
/// the result is rank 0's).
nlohmann::ordered_json placement(Communicator& world);

/// The variables of this process that set how MPI and NCCL carry data: {name: value}.
nlohmann::ordered_json settings();

}  // namespace gridlops::bench
