// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "benchmarks.hpp"
#include "clock.hpp"
#include "gridlops/buffer.hpp"
#include "gridlops/mpi.hpp"
#include "journal.hpp"

namespace gridlops::bench {

namespace {

/// One operation on operands of so many bytes, on all ranks of a communicator.
class Exchange {
 public:
  Exchange(Communicator& comm, const CommCase& what) : comm_(comm), what_(what) {
    const auto ranks = static_cast<std::size_t>(comm.size());
    // Parts of a gathered or scattered operand are equal.
    part_ = what.bytes / static_cast<Index>(sizeof(double)) / comm.size();
    whole_.resize(static_cast<std::size_t>(part_) * ranks, 1.0);
    other_.resize(whole_.size(), 1.0);
  }

  void run() {
    const Index count = part_ * comm_.size();
    if (what_.operation == "broadcast") {
      comm_.broadcast({whole_.data(), count}, 0);
    } else if (what_.operation == "reduce") {
      comm_.reduce({whole_.data(), count}, {other_.data(), count}, ReduceOp::max, 0);
    } else if (what_.operation == "all-reduce") {
      comm_.all_reduce({whole_.data(), count}, ReduceOp::max);
    } else if (what_.operation == "all-gather") {
      comm_.all_gather({other_.data(), part_}, {whole_.data(), count});
    } else if (what_.operation == "reduce-scatter") {
      comm_.reduce_scatter({whole_.data(), count}, {other_.data(), part_}, ReduceOp::max);
    } else {  // every rank to the next one
      const int next = (comm_.rank() + 1) % comm_.size(),
                previous = (comm_.rank() + comm_.size() - 1) % comm_.size();
      comm_.send_receive({whole_.data(), count}, next, {other_.data(), count}, previous);
    }
  }

  /// Of one operation, of the slowest rank: the mean of as many in a row as take a millisecond or so.
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
  Index part_;
  std::vector<double> whole_, other_;
};

}  // namespace

void comm(Communicator& world, const CommArguments& arguments) {
  Journal journal(world, arguments.json);
  for (const std::string& transport : arguments.transports) {
    const std::unique_ptr<Communicator> ranks = make_host_communicator(world, transport);
    for (const std::string& operation : arguments.operations) {
      for (const Index bytes : arguments.bytes) {
        CommResult result{{operation, ranks->transport(), bytes}, ranks->size(), {}};
        Exchange exchange(*ranks, result.what);
        exchange.seconds();
        for (int repetition = 0; repetition < arguments.repetitions; ++repetition)
          result.seconds.push_back(exchange.seconds());
        journal.add(result);
      }
    }
  }
  journal.close();
}

}  // namespace gridlops::bench
