// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>

#include "bench/benchmarks.hpp"
#include "bench/comm/exchange.hpp"
#include "bench/measure/results.hpp"
#include "command_line/grid.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/comm/gpu.hpp"
#include "gridlops/comm/mpi.hpp"

namespace gridlops::bench {

namespace {

struct CommArguments {
  std::vector<std::string> operations{"broadcast"};
  std::vector<std::string> transports{"mpi"};
  /// Bytes of the whole operand: of all parts together where each rank has a part.
  std::vector<Index> bytes;
  std::vector<std::string> types{"f64"};
  ReduceOp reduction = ReduceOp::sum;
  int root = 0;
  bool in_place = true, out_of_place = true;  ///< at least one
  std::vector<std::string> over{"world"};     ///< "world", "row" or "column" of the grid
  std::optional<GridShape> grid;              ///< none: near-square
  std::string device = "cpu";
  int warm_up = 5;
  int repetitions = 5;
  std::string json;
};

/// The code that carries an operation. Transports with the same text run the same code. Empty: the transport
/// has no such operation.
std::string carrier_of(const Operation& operation, const std::string& transport, Index bytes, int ranks) {
  const bool is_get = operation.kind == Exchanged::get;
  if (operation.is_one_sided()) {
    if (transport == "mpi") return "MPI window, called here";
    if (is_get && transport == "one-sided") return "dynamic window, called here";
    if (is_get && transport == "shared") return "copy in shared memory";
    return "";
  }
  const bool is_message = operation.kind == Exchanged::gather || operation.kind == Exchanged::scatter ||
                          operation.kind == Exchanged::all_to_all ||
                          operation.kind == Exchanged::send_receive;
  if (transport == "nccl") return operation.kind == Exchanged::send_receive ? "messages by the host" : "NCCL";
  if (transport == "mpi-direct" || transport == "mpi-staged")
    return transport == "mpi-staged" || operation.reduces() || operation.kind == Exchanged::all_to_all
               ? "MPI by the host"
               : "MPI on device memory";
  const bool polls = transport == "chain";
  const bool sums_messages =
      bytes > reduce_by_messages_above_bytes && ranks <= reduce_by_messages_most_ranks &&
      (operation.kind == Exchanged::reduce_scatter || (polls && operation.kind == Exchanged::reduce));
  if (is_message || sums_messages) return polls ? "messages, polled" : "messages";
  if (!polls) return "MPI";
  return operation.kind == Exchanged::broadcast && bytes >= chain_least_bytes && ranks >= chain_least_ranks
             ? "chain"
             : "MPI, non-blocking";
}

/// The number of elements of the whole operand: as many as the user asked for, rounded up where ranks have
/// equal parts. Throws UsageError if their bytes exceed an Index.
Index possible_count(const Operation& operation, const TravelType& type, Index bytes, int ranks) {
  const Index unit = type.size() * (operation.has_parts() && !operation.is_uneven ? ranks : 1);
  if (bytes > std::numeric_limits<Index>::max() - unit)
    throw UsageError(fmt::format("--bytes {} is too large", bytes));
  return (bytes / unit + (bytes % unit > 0)) * (unit / type.size());
}

Communicator& communicator_over(const ProcessGrid& grid, const std::string& over) {
  return over == "row" ? grid.row_comm() : over == "column" ? grid.col_comm() : grid.comm();
}

/// The operations of one transport on one grid.
class TransportRun {
 public:
  TransportRun(ResultWriter& writer, const CommArguments& arguments, const ProcessGrid& grid,
               std::map<std::string, std::string>& measured)
      : writer_(writer), arguments_(arguments), grid_(grid), measured_(measured) {}

  void run(const Operation& operation, const std::string& over, MPI_Comm mpi) {
    Communicator& comm = communicator_over(grid_, over);
    for (const TravelType& type : travel_types()) {
      if (std::find(arguments_.types.begin(), arguments_.types.end(), type.name) == arguments_.types.end())
        continue;
      for (const Index bytes : arguments_.bytes) {
        const Operands operands{type, arguments_.reduction, arguments_.root, false,
                                possible_count(operation, type, bytes, comm.size())};
        for (const bool in_place : {false, true}) {
          if (!(in_place ? arguments_.in_place : arguments_.out_of_place)) continue;
          CommResult result{.what = {operation, operands, over, comm.transport()}, .ranks = comm.size()};
          result.what.operands.in_place = in_place;
          if (in_place ? operation.can_be_in_place : operation.can_be_out_of_place) {
            measure(result, comm, mpi);
          } else if (arguments_.in_place && arguments_.out_of_place) {
            continue;  // the loop measures the other place
          } else {
            result.instead = fmt::format("{} only", in_place ? "out of place" : "in place");
          }
          writer_.add(result);
        }
      }
    }
  }

 private:
  void measure(CommResult& result, Communicator& comm, MPI_Comm mpi) {
    const CommCase& what = result.what;
    result.carrier = carrier_of(what.operation, what.transport, what.bytes(), comm.size());
    if (result.carrier.empty()) {
      result.instead = "none of its own";
      return;
    }
    const auto [first, is_new] = measured_.emplace(what.key() + result.carrier, what.transport);
    if (!is_new) {
      result.instead = "as " + first->second;
      return;
    }
    std::optional<Exchange> exchange;
    try {
      attempt(grid_.comm(), [&] { exchange.emplace(comm, grid_.backend(), what.operation, what.operands); });
      if (what.operation.is_one_sided()) attempt(grid_.comm(), [&] { exchange->open_window(mpi); });
    } catch (const Error& error) {
      // Memory ran out, or MPI refused the window. Another transport may still work.
      const bool is_refusal = error.status() == ExitStatus::out_of_memory ||
                              dynamic_cast<const CommunicationError*>(&error) != nullptr;
      if (error.known_to() == KnownTo::one_rank || !is_refusal) throw;
      measured_.erase(first);
      result.instead = fmt::format("not here: {}", error.what());
      return;
    }
    measure(result, *exchange);
  }

  void measure(CommResult& result, Exchange& exchange) {
    result.wrong = sum(grid_, exchange.wrong(1));
    exchange.prepare();
    const Index before = grid_.comm().traffic().bytes_sent;
    exchange.run();
    exchange.synchronize();
    result.bytes_sent = sum(grid_, grid_.comm().traffic().bytes_sent - before);
    const ExchangeTimes times = time_exchange(grid_, exchange, arguments_.warm_up, arguments_.repetitions);
    result.in_a_row = times.in_a_row;
    result.seconds = times.seconds;
    result.wrong += sum(grid_, exchange.wrong(2));
  }

  ResultWriter& writer_;
  const CommArguments& arguments_;
  const ProcessGrid& grid_;
  std::map<std::string, std::string>& measured_;
};

/// The library cuts data that is too long for one MPI call. One-sided operations call MPI directly, so they
/// have a limit.
void check_size(const Operation& operation, const TravelType& type, Index bytes, int ranks) {
  const Index count = possible_count(operation, type, bytes, ranks);
  if (operation.is_one_sided() && count > std::numeric_limits<int>::max() / type.reals)
    throw UsageError(fmt::format("{} of {} bytes of {} is more than one call of MPI takes", operation.name,
                                 bytes, type.name));
}

void check(const Communicator& world, const CommArguments& arguments, GridShape shape) {
  if (shape.size() > world.size())
    throw UsageError(fmt::format("--grid {}x{} needs {} ranks, but there are {}", shape.rows, shape.cols,
                                 shape.size(), world.size()));
  for (const std::string& over : arguments.over) {
    const int ranks = over == "row" ? shape.cols : over == "column" ? shape.rows : shape.size();
    if (arguments.root >= ranks)
      throw UsageError(fmt::format("--root {} is no rank of a {} of {} ranks", arguments.root, over, ranks));
  }
  for (const std::string& type : arguments.types)
    if (arguments.reduction != ReduceOp::sum && (type == "c64" || type == "c128"))
      throw UsageError(fmt::format("complex numbers ({}) are summed only; choose --reduction sum", type));
  const auto is_asked_for = [](const std::vector<std::string>& names, const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const Operation& operation : all_operations()) {
    if (!is_asked_for(arguments.operations, operation.name)) continue;
    for (const TravelType& type : travel_types())
      if (is_asked_for(arguments.types, type.name))
        for (const Index bytes : arguments.bytes) check_size(operation, type, bytes, shape.size());
  }
}

ExitStatus comm(Communicator& world, const CommArguments& arguments) {
  const GridShape shape = arguments.grid.value_or(near_square(world.size()));
  check(world, arguments, shape);
  ResultWriter writer(world, arguments.json);
  writer.print_header("comm");
  const bool is_member = world.rank() < shape.size();
  std::vector<MpiRanks> mpi;
  for (const std::string& over : arguments.over) {
    const int line = over == "row"      ? world.rank() / shape.cols
                     : over == "column" ? world.rank() % shape.cols
                                        : 0;
    mpi.emplace_back(is_member ? std::optional(line) : std::nullopt);
  }
  std::map<std::string, std::string> measured;
  for (const std::string& transport : arguments.transports) {
    std::shared_ptr<const ProcessGrid> grid;
    try {
      grid = program::make_grid(world, shape, arguments.device, transport);
    } catch (const Error& error) {
      if (error.known_to() == KnownTo::one_rank) throw;
      writer.add_absent(transport, error.what());
      continue;
    }
    program::run_on_grid(world, *grid, [&] {
      TransportRun run(writer, arguments, *grid, measured);
      for (std::size_t k = 0; k < arguments.over.size(); ++k)
        for (const Operation& operation : all_operations())
          if (std::find(arguments.operations.begin(), arguments.operations.end(), operation.name) !=
              arguments.operations.end())
            run.run(operation, arguments.over[k], mpi[k].get());
    });
  }
  return writer.close();
}

}  // namespace

Action define_comm(Options& options) {
  const auto arguments = std::make_shared<CommArguments>();
  options
      .numbers("--bytes", arguments->bytes, "N[,...]",
               "Size of the whole operand: where ranks have parts of one, of all parts together; 64K, 1M, "
               "8..16M*4. Rounded up to whole elements, and to equal parts")
      ->required();
  program::Names<std::vector<std::string>> operations{{"all", {}}};
  for (const Operation& operation : all_operations()) {
    operations.front().second.emplace_back(operation.name);
    operations.push_back({operation.name, {operation.name}});
  }
  const auto take_operations = [&values = *arguments, operations](const std::string& text) {
    values.operations.clear();
    for (const std::string& item : program::items(text))
      for (const std::string& name : program::value_of(item, operations)) values.operations.push_back(name);
  };
  options.parsed("--operation", take_operations, program::joined(operations, "|") + "[,...]",
                 "Operations [broadcast]");
  options.choices("--transport", arguments->transports, program::transports(), "What carries the data [mpi]");
  std::vector<std::string> types;
  for (const TravelType& type : travel_types()) types.emplace_back(type.name);
  options.choices("--dtype", arguments->types, words(types), "Types of the elements [f64]");
  options.choice(
      "--reduction", arguments->reduction,
      program::Names<ReduceOp>{
          {"sum", ReduceOp::sum}, {"prod", ReduceOp::prod}, {"min", ReduceOp::min}, {"max", ReduceOp::max}},
      "How operands are reduced [sum]");
  options.whole("--root", arguments->root, "R", 0, "The rank that has or gets the whole operand [0]");
  const auto take_places = [&values = *arguments](const std::string& text) {
    const std::string place = program::value_of(text, words({"in", "out", "both"}));
    values.in_place = place != "out";
    values.out_of_place = place != "in";
  };
  options.parsed("--place", take_places, "in|out|both", "Whether a rank's part lies in the whole [both]");
  options.parsed(
      "--grid", [&values = *arguments](const std::string& text) { values.grid = parse_grid_shape(text); },
      "PxQ", "Process grid [near-square]");
  options.choices("--over", arguments->over, words({"world", "row", "column"}),
                  "All ranks of the grid, or all its rows or columns at once [world]");
  options.choice("--device", arguments->device, words({"cpu", "gpu"}), "Where operands live [cpu]");
  options.whole("--warm-up", arguments->warm_up, "W", 0, "Operations before the first that is timed [5]");
  options.whole("--reps", arguments->repetitions, "K", 1, "Repetitions; the median counts [5]");
  options.text("--json", arguments->json, "F", "Writes the figures as JSON");
  explain_columns_of_collectives(options);
  return [arguments](Communicator& world) { return comm(world, *arguments); };
}

}  // namespace gridlops::bench
