// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "benchmarks.hpp"
#include "gridlops/buffer.hpp"
#include "gridlops/mpi.hpp"
#include "results.hpp"

namespace gridlops::bench {

namespace {

constexpr Index element_bytes = sizeof(double);

/// The size that was asked for, rounded up to what the operation can have: whole elements, and equal parts
/// where the ranks have parts of the operand.
Index possible_bytes(const std::string& operation, Index asked, int ranks) {
  const bool has_parts = operation == "all-gather" || operation == "reduce-scatter";
  const Index unit = element_bytes * (has_parts ? ranks : 1);
  return (asked / unit + (asked % unit > 0)) * unit;
}

/// One operation on operands of a possible size, on all ranks of a communicator.
class Exchange {
 public:
  Exchange(Communicator& comm, const CommCase& what)
      : comm_(comm),
        what_(what),
        whole_(static_cast<std::size_t>(what.bytes / element_bytes), 1.0),
        other_(whole_) {}

  void run() {
    const Index count = what_.bytes / element_bytes, part = count / comm_.size();
    if (what_.operation == "broadcast") {
      comm_.broadcast({whole_.data(), count}, 0);
    } else if (what_.operation == "reduce") {
      comm_.reduce({whole_.data(), count}, {other_.data(), count}, ReduceOp::max, 0);
    } else if (what_.operation == "all-reduce") {
      comm_.all_reduce({whole_.data(), count}, ReduceOp::max);
    } else if (what_.operation == "all-gather") {
      comm_.all_gather({other_.data(), part}, {whole_.data(), count});
    } else if (what_.operation == "reduce-scatter") {
      comm_.reduce_scatter({whole_.data(), count}, {other_.data(), part}, ReduceOp::max);
    } else {  // every rank to the next one
      const int next = (comm_.rank() + 1) % comm_.size(),
                previous = (comm_.rank() + comm_.size() - 1) % comm_.size();
      comm_.send_receive({whole_.data(), count}, next, {other_.data(), count}, previous);
    }
  }

  /// The bytes that all ranks together send in one operation.
  Index bytes_sent() {
    const Index before = comm_.traffic().bytes_sent;
    run();
    std::array<Index, 1> sum{comm_.traffic().bytes_sent - before};
    comm_.all_reduce(sum, ReduceOp::sum);
    return sum[0];
  }

  /// The time of one operation on the slowest rank: the mean of as many in a row as take about a millisecond.
  double seconds() {
    const Index often = std::clamp<Index>((Index{1} << 22) / std::max<Index>(what_.bytes, 1), 1, 200);
    comm_.barrier();
    const double begin = now();
    for (Index k = 0; k < often; ++k) run();
    std::array<double, 1> slowest{(now() - begin) / static_cast<double>(often)};
    comm_.all_reduce(slowest, ReduceOp::max);
    return slowest[0];
  }

 private:
  Communicator& comm_;
  const CommCase& what_;
  std::vector<double> whole_, other_;
};

}  // namespace

void comm(Communicator& world, const CommArguments& arguments) {
  ResultWriter writer(world, arguments.json);
  for (const std::string& transport : arguments.transports) {
    const std::unique_ptr<Communicator> ranks = make_host_communicator(world, transport);
    for (const std::string& operation : arguments.operations) {
      for (const Index bytes : arguments.bytes) {
        CommResult result{{operation, ranks->transport(), possible_bytes(operation, bytes, ranks->size())},
                          ranks->size(),
                          0,
                          {}};
        Exchange exchange(*ranks, result.what);
        result.bytes_sent = exchange.bytes_sent();
        exchange.seconds();
        for (int repetition = 0; repetition < arguments.repetitions; ++repetition)
          result.seconds.push_back(exchange.seconds());
        writer.add(result);
      }
    }
  }
  writer.close();
}

}  // namespace gridlops::bench
