// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "bench/benchmarks.hpp"
#include "bench/comm/message_ways.hpp"
#include "bench/measure/results.hpp"
#include "command_line/grid.hpp"
#include "gridlops/comm/failure.hpp"

namespace gridlops::bench {

namespace {

struct MessageArguments {
  std::vector<Index> bytes{8, 64, 512, 4096, Index{32} << 10, Index{256} << 10, Index{2} << 20};
  std::vector<Index> messages{1, 4, 16, 64};  ///< between two synchronisations
  Index up_to = Index{16} << 20;              ///< the largest operand for which ways are compared
  std::string device = "cpu";
  int repetitions = 5;
  std::string json;
};

using Json = nlohmann::ordered_json;

/// The most bytes between two synchronisations.
constexpr Index most_bytes = Index{64} << 20;

/// One size and number of messages.
struct MessageTime {
  Index bytes, messages;
  std::vector<double> seconds;  ///< samples, of all messages and their synchronisation
  double beginning;             ///< seconds that rank 0 took to begin the messages
};

/// T = L + k g + k n G for k messages of n bytes between two synchronisations.
struct LogGp {
  std::array<double, 3> terms{};  ///< L, g, G
  double misfit = 0;              ///< the median of |T − measured| / measured
};

std::array<double, 3> terms_of(const MessageTime& time) {
  const auto messages = static_cast<double>(time.messages);
  return {1, messages, messages * static_cast<double>(time.bytes)};
}

/// Solves the normal equations of the chosen terms by elimination; the other terms are zero.
std::array<double, 3> least_squares(const std::vector<MessageTime>& times, unsigned chosen) {
  std::array<std::array<double, 4>, 3> rows{};
  for (const MessageTime& time : times) {
    const std::array<double, 3> terms = terms_of(time);
    const double seconds = median(time.seconds);
    for (unsigned i = 0; i < 3; ++i) {
      if ((chosen >> i & 1) == 0) continue;
      for (unsigned j = 0; j < 3; ++j)
        if ((chosen >> j & 1) != 0) rows[i][j] += terms[i] * terms[j] / (seconds * seconds);
      rows[i][3] += terms[i] / seconds;
    }
  }
  for (unsigned i = 0; i < 3; ++i)
    if ((chosen >> i & 1) == 0) rows[i][i] = 1;
  for (unsigned i = 0; i < 3; ++i) {
    for (unsigned k = 0; k < 3; ++k) {
      if (k == i) continue;
      const double factor = rows[k][i] / rows[i][i];
      for (unsigned j = i; j < 4; ++j) rows[k][j] -= factor * rows[i][j];
    }
  }
  return {rows[0][3] / rows[0][0], rows[1][3] / rows[1][1], rows[2][3] / rows[2][2]};
}

/// The non-negative terms with the least sum of squared relative errors.
LogGp fit(const std::vector<MessageTime>& times) {
  LogGp best;
  double least = std::numeric_limits<double>::infinity();
  for (unsigned chosen = 1; chosen < 8; ++chosen) {
    const std::array<double, 3> terms = least_squares(times, chosen);
    std::vector<double> errors;
    double sum = 0;
    for (const MessageTime& time : times) {
      const std::array<double, 3> factors = terms_of(time);
      const double modelled = terms[0] * factors[0] + terms[1] * factors[1] + terms[2] * factors[2];
      errors.push_back(std::abs(modelled / median(time.seconds) - 1));
      sum += errors.back() * errors.back();
    }
    const bool is_possible = *std::min_element(terms.begin(), terms.end()) >= 0;
    if (!is_possible || !(sum < least)) continue;
    least = sum;
    best = {terms, median(errors)};
  }
  return best;
}

/// Sends such messages once, and counts the wrong numbers on this rank.
Index wrong_numbers(MessageWay& way, const ProcessGrid& pair, Index messages, Index doubles) {
  std::vector<double> numbers(static_cast<std::size_t>(messages * doubles));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i % 1009 + 1);
  const bool gives = (pair.comm().rank() == 0) != way.is_read();
  way.write(gives ? numbers : std::vector<double>(numbers.size()));
  pair.comm().barrier();
  way.run(1, messages, doubles);
  pair.comm().barrier();
  if (gives) return 0;
  const std::vector<double> found = way.read(messages * doubles);
  Index wrong = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) wrong += found[i] == numbers[i] ? 0 : 1;
  return wrong;
}

MessageTime time_of(MessageWay& way, const ProcessGrid& pair, Index messages, Index bytes, int repetitions) {
  const Index doubles = bytes / Index{sizeof(double)};
  std::vector<double> beginnings;
  const auto seconds = [&](Index often) {
    pair.comm().barrier();
    const double begin = now();
    beginnings.push_back(way.run(often, messages, doubles));
    return maximum(pair, (now() - begin) / static_cast<double>(often));
  };
  MessageTime time{bytes, messages, {}, 0};
  const auto often = static_cast<Index>(std::clamp(1e-3 / seconds(3), 1.0, 200.0));
  beginnings.clear();
  for (int repetition = 0; repetition < repetitions; ++repetition) time.seconds.push_back(seconds(often));
  time.beginning = median(beginnings);
  return time;
}

std::string title_of_messages() {
  return fmt::format("{:<28} {:>9} {:>9} {:>11} {:>11} {:>11} {:>9} {:>7}\n", "way", "bytes", "messages",
                     "time us", "min", "max", "GB/s", "#wrong");
}

void add_too_long(ResultWriter& writer, const std::string& way, Index bytes, Index messages) {
  const std::string instead = fmt::format("more than {} bytes together", most_bytes);
  writer.add_row("not_measured", title_of_messages(),
                 fmt::format("{:<28} {:>9} {:>9} {}\n", way, bytes, messages, instead),
                 {{"way", way}, {"bytes", bytes}, {"messages", messages}, {"instead", instead}});
}

void add(ResultWriter& writer, const std::string& way, const MessageTime& time, Index wrong) {
  const double seconds = median(time.seconds);
  const double rate = static_cast<double>(time.messages * time.bytes) / seconds / 1e9;
  const auto [least, most] = std::minmax_element(time.seconds.begin(), time.seconds.end());
  writer.add_row(
      "results", title_of_messages(),
      fmt::format("{:<28} {:>9} {:>9} {:>11.2f} {:>11.2f} {:>11.2f} {:>9.3f} {:>7}\n", way, time.bytes,
                  time.messages, 1e6 * seconds, 1e6 * *least, 1e6 * *most, rate, wrong),
      {{"way", way},
       {"bytes", time.bytes},
       {"messages", time.messages},
       {"seconds", seconds},
       {"seconds_min", *least},
       {"seconds_max", *most},
       {"samples", time.seconds},
       {"gbs", rate},
       {"wrong", wrong}},
      wrong == 0 ? "" : fmt::format("{} numbers by {}", wrong, way));
}

void add_fit(ResultWriter& writer, const std::string& way, const std::vector<MessageTime>& times) {
  const LogGp model = fit(times);
  const auto smallest = std::min_element(times.begin(), times.end(), [](const auto& a, const auto& b) {
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.messages > b.messages;
  });
  const double overhead = smallest->beginning / static_cast<double>(smallest->messages);
  const auto [latency, gap, per_byte] = model.terms;
  const std::string rate = per_byte > 0 ? fmt::format("{:.2f}", 1e-9 / per_byte) : "-";
  writer.add_row("fits",
                 fmt::format("{:<28} {:>11} {:>11} {:>11} {:>11} {:>9}\n", "way", "latency us", "overhead us",
                             "gap us", "1/G GB/s", "misfit"),
                 fmt::format("{:<28} {:>11.3f} {:>11.3f} {:>11.3f} {:>11} {:>9.2f}\n", way, 1e6 * latency,
                             1e6 * overhead, 1e6 * gap, rate, model.misfit),
                 {{"way", way},
                  {"latency_seconds", latency},
                  {"overhead_seconds", overhead},
                  {"gap_seconds", gap},
                  {"gap_seconds_per_byte", per_byte},
                  {"misfit", model.misfit}});
}

/// Measures all sizes and numbers of messages by one way, on the two ranks of a grid.
std::vector<MessageTime> measure(ResultWriter& writer, const MessageArguments& arguments,
                                 const NamedWay& named, MPI_Comm mpi, const ProcessGrid& pair) {
  std::vector<MessageTime> times;
  try {
    Index most = 0;
    for (const Index bytes : arguments.bytes)
      for (const Index messages : arguments.messages)
        if (bytes * messages <= most_bytes) most = std::max(most, bytes * messages);
    std::unique_ptr<MessageWay> way;
    attempt(pair.comm(), [&] { way = named.make(mpi, pair, most); });
    for (const Index messages : arguments.messages) {
      for (const Index bytes : arguments.bytes) {
        if (bytes * messages > most_bytes) {
          add_too_long(writer, named.name, bytes, messages);
          continue;
        }
        const Index wrong = sum(pair, wrong_numbers(*way, pair, messages, bytes / Index{sizeof(double)}));
        times.push_back(time_of(*way, pair, messages, bytes, arguments.repetitions));
        add(writer, named.name, times.back(), wrong);
      }
    }
  } catch (const Error& error) {
    if (error.known_to() == KnownTo::one_rank) throw;
    writer.add_absent(named.name, error.what());
  }
  return times;
}

void check(const Communicator& world, const MessageArguments& arguments) {
  if (world.size() < 2) throw UsageError("messages need two ranks; start this with mpirun -n 2, or more");
  for (const Index bytes : arguments.bytes)
    if (bytes < 8 || bytes % 8 != 0 || bytes > most_bytes)
      throw UsageError(
          fmt::format("messages have 8 to {} bytes here, whole doubles, not {}", most_bytes, bytes));
  for (const Index messages : arguments.messages)
    if (messages < 1 || messages > most_bytes / 8)
      throw UsageError(fmt::format("there are 1 to {} messages between synchronisations, not {}",
                                   most_bytes / 8, messages));
  constexpr Index most_up_to = std::numeric_limits<int>::max() * Index{sizeof(double)};
  if (arguments.up_to > most_up_to)
    throw UsageError(fmt::format("--up-to {} is more than one call of MPI takes, {} bytes of doubles",
                                 arguments.up_to, most_up_to));
}

ExitStatus messages(Communicator& world, const MessageArguments& arguments) {
  check(world, arguments);
  ResultWriter writer(world, arguments.json);
  writer.print_header("messages");
  const MpiRanks mpi(world.rank() < 2 ? std::optional(0) : std::nullopt);
  const auto pair = program::make_grid(world, GridShape{1, 2}, arguments.device,
                                       arguments.device == "gpu" ? "nccl" : "mpi");
  program::run_on_grid(world, *pair, [&] {
    std::vector<std::pair<std::string, std::vector<MessageTime>>> all;
    for (const NamedWay& way : message_ways(arguments.device))
      all.emplace_back(way.name, measure(writer, arguments, way, mpi.get(), *pair));
    for (const auto& [way, times] : all)
      if (!times.empty()) add_fit(writer, way, times);
  });
  if (arguments.device == "cpu") find_crossovers(world, writer, arguments.up_to, arguments.repetitions);
  return writer.close();
}

}  // namespace

Action define_messages(Options& options) {
  const auto arguments = std::make_shared<MessageArguments>();
  options.numbers("--bytes", arguments->bytes, "N[,...]",
                  "Sizes of a message, whole numbers of 8 bytes [8..2M*8]");
  options.numbers("--messages", arguments->messages, "K[,...]",
                  "How many are sent between two synchronisations [1..64*4]");
  options.parsed(
      "--up-to",
      [&values = *arguments](const std::string& text) { values.up_to = program::size_number(text, 1024); },
      "N", "Largest operand, in bytes, for which ways of an operation are compared [16M]");
  options.choice("--device", arguments->device, words({"cpu", "gpu"}),
                 "Where operands live; gpu: NCCL [cpu]");
  options.whole("--reps", arguments->repetitions, "K", 1, "Repetitions; the median counts [5]");
  options.text("--json", arguments->json, "F", "Writes the figures as JSON");
  explain_columns(
      options,
      {"way, instead of         how messages move; in the last tables, the way to which it is compared",
       "bytes, messages         size of a message; messages between two synchronisations",
       "time us, min, max       until the last has arrived: median, least and most of the repetitions",
       "GB/s, #wrong            bytes of all messages over the time; numbers that arrived wrong",
       "latency us, gap us, 1/G GB/s  L, g and 1/G of L + k g + k n G, the time of k messages of n bytes",
       "overhead us             rank 0 begins a message in this time",
       "misfit                  the median relative error of this formula",
       "operation, ranks        one operation in two ways, in turn, on some ranks",
       "ratio                   the time of the way over that of the other",
       "faster from, faster up to  operands, in bytes, for which the way takes a tenth less"});
  return [arguments](Communicator& world) { return messages(world, *arguments); };
}

}  // namespace gridlops::bench
