// SPDX-License-Identifier: BSD-3-Clause
// A trace has the regions of each rank, and counts what Traffic counts.
#include "gridlops/base/trace.hpp"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>

#include "gridlops/io/trace_report.hpp"
#include "support/catch.hpp"
#include "support/solution_checks.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

/// Records what one test does.
class Recording {
 public:
  explicit Recording(const TraceOptions& options = {}) { start_trace(options); }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  ~Recording() { stop_trace(); }
};

/// The line of a tree that is inside the regions of these names; null if there is none.
const TraceLine* line_of(const TraceTree& tree, const std::vector<std::string>& path) {
  std::size_t depth = 0;
  for (const TraceLine& line : tree.lines) {
    if (line.depth <= static_cast<int>(depth))
      depth = std::min(depth, static_cast<std::size_t>(std::max(line.depth - 1, 0)));
    if (line.depth == static_cast<int>(depth) + 1 && line.name == path[depth] && ++depth == path.size())
      return &line;
  }
  return nullptr;
}

/// Every rank's value, on rank 0.
std::vector<Index> gathered(Index value) {
  const std::array<Index, 1> mine{value};
  std::vector<Index> all(world().rank() == 0 ? static_cast<std::size_t>(world().size()) : 0);
  world().gather(mine, all, 0);
  return all;
}

/// On rank 0: that the tree has these numbers of each rank in this line.
template <class Figure>
void check_ranks(const TraceLine& line, const std::vector<Index>& expected, Figure&& figure) {
  for (std::size_t rank = 0; rank < expected.size(); ++rank) {
    CAPTURE(rank, line.name);
    CHECK(figure(line.ranks[rank]) == expected[rank]);
  }
}

/// On rank 0: that no region has less than the regions inside it together.
void check_adds_up(const TraceTree& tree) {
  for (const TraceLine& line : tree.lines) {
    for (std::size_t rank = 0; rank < line.own.size() && !line.is_mark; ++rank) {
      const TraceFigures& own = line.own[rank];
      CAPTURE(rank, line.name, line.depth);
      CHECK(own.seconds >= -1e-12);
      CHECK(own.counts.seconds_waiting >= -1e-12);
      CHECK(own.counts.flops >= 0);
      CHECK(own.counts.messages >= 0);
      CHECK(own.counts.bytes_sent >= 0);
      CHECK(own.counts.bytes_received >= 0);
      CHECK(own.counts.bytes_read_from_peers >= 0);
      CHECK(line.ranks[rank].counts.seconds_waiting <= line.ranks[rank].seconds + 1e-12);
    }
  }
}

void check_cgls(const GridPtr& grid, Algorithm algorithm) {
  constexpr Index m = 45, n = 23, nrhs = 5;
  const OperatorPtr<double> A = dense_operator(grid, algorithm, KnownSpectrum<double>(m, n, geometric(n, 3)));
  DistMatrix<double> B(grid, A->range().layout(nrhs)), X(grid, A->domain().layout(nrhs));
  B.fill(random_elements<double>(1));
  const OperatorActivity activity = A->activity();
  const Traffic before = grid->is_member() ? grid->comm().traffic() : Traffic();
  const Recording recording;
  {
    const TraceRegion region("mine");
    cgls(*A, B, X);
  }
  const Traffic after = grid->is_member() ? grid->comm().traffic() : Traffic();
  const TraceTree tree = gather_trace(world());
  Index calls = 0;
  for (std::size_t k = 0; k < comm_operation_count; ++k) calls += after.calls[k] - before.calls[k];
  const auto sent = gathered(after.bytes_sent - before.bytes_sent);
  const auto received = gathered(after.bytes_received - before.bytes_received);
  const auto read = gathered(after.bytes_read_from_peers - before.bytes_read_from_peers);
  const auto messages = gathered(calls);
  const auto waiting = gathered(static_cast<Index>(1e9 * (after.seconds_waiting - before.seconds_waiting)));
  if (world().rank() != 0) return;
  CAPTURE(grid->rows(), grid->cols(), name_of(algorithm));
  check_adds_up(tree);
  const TraceLine* const mine = line_of(tree, {"mine"});
  REQUIRE(mine != nullptr);
  check_ranks(*mine, sent, [](const TraceFigures& of) { return of.counts.bytes_sent; });
  check_ranks(*mine, received, [](const TraceFigures& of) { return of.counts.bytes_received; });
  check_ranks(*mine, read, [](const TraceFigures& of) { return of.counts.bytes_read_from_peers; });
  check_ranks(*mine, messages, [](const TraceFigures& of) { return of.counts.messages; });
  for (std::size_t rank = 0; rank < waiting.size(); ++rank)
    CHECK(mine->ranks[rank].counts.seconds_waiting ==
          Approx(1e-9 * static_cast<double>(waiting[rank])).margin(2e-9));
  double flops = 0;
  for (const TraceFigures& of : mine->ranks) flops += of.counts.flops;
  const Index columns = A->activity().forward_columns - activity.forward_columns +
                        A->activity().adjoint_columns - activity.adjoint_columns;
  CHECK(flops == 2.0 * m * n * static_cast<double>(columns));
  const TraceLine* const iterations = line_of(tree, {"mine", "cgls", "iteration"});
  REQUIRE(iterations != nullptr);
  CHECK(iterations->ranks[0].calls == A->activity().forward_applications - 1);
}

}  // namespace

TEST_CASE("While no trace is recorded, regions leave nothing") {
  {
    const TraceRegion region("before");
    start_trace();
    trace_mark("within");
  }
  CHECK(trace_is_on());
  const TraceTree recorded = gather_trace(world());
  stop_trace();
  CHECK_FALSE(trace_is_on());
  {
    const TraceRegion region("after");
    trace_mark("mark");
    trace_flops(7);
    world().barrier();
  }
  const TraceTree nothing = gather_trace(world());
  if (world().rank() != 0) return;
  CHECK(line_of(recorded, {"before"}) == nullptr);
  REQUIRE(recorded.lines.size() == 2);
  CHECK(recorded.lines[1].name == "within");
  REQUIRE(nothing.lines.size() == 1);
  for (const TraceFigures& figures : nothing.lines[0].ranks) {
    CHECK(figures.calls == 0);
    CHECK(figures.counts.flops == 0);
    CHECK(figures.counts.messages == 0);
  }
}

TEST_CASE("Regions nest, and marks divide them") {
  const Recording recording;
  for (int k = 0; k < 3; ++k) {
    const TraceRegion outer("outer");
    trace_mark("begin");
    {
      const TraceRegion inner(std::string_view("inner").data());
      trace_flops(2);
    }
    trace_mark("end");
    trace_flops(1);
  }
  const TraceRegion open("open");
  trace_flops(5);
  const TraceTree tree = gather_trace(world());
  const TraceTree again = gather_trace(world());
  if (world().rank() != 0) return;
  check_adds_up(tree);
  REQUIRE(tree.lines.size() == 6);
  CHECK(again.lines.size() == 6);
  const TraceLine* const outer = line_of(tree, {"outer"});
  const TraceLine* const inner = line_of(tree, {"outer", "inner"});
  const TraceLine* const mark = line_of(tree, {"outer", "end"});
  REQUIRE((outer != nullptr && inner != nullptr && mark != nullptr));
  CHECK(mark->is_mark);
  CHECK_FALSE(inner->is_mark);
  for (const TraceFigures& figures : outer->ranks) CHECK((figures.calls == 3 && figures.counts.flops == 9));
  for (const TraceFigures& figures : outer->own) CHECK(figures.counts.flops == 3);
  for (const TraceFigures& figures : inner->ranks) CHECK((figures.calls == 3 && figures.counts.flops == 6));
  CHECK(mark->ranks[0].calls == 3);
  CHECK(mark->ranks[0].seconds >= inner->ranks[0].seconds);
  CHECK(mark->ranks[0].seconds <= outer->ranks[0].seconds);
  for (const TraceFigures& figures : line_of(tree, {"open"})->ranks)
    CHECK((figures.calls == 1 && figures.counts.flops == 5 && figures.seconds > 0));
}

TEST_CASE("Ranks need not have the same regions") {
  const int rank = world().rank();
  const Recording recording;
  {
    const TraceRegion both("both");
    if (rank > 0) {
      const TraceRegion region("all but one");
    }
    if (rank == 0) {
      const TraceRegion region("one only");
      const TraceRegion inner("all but one");
    }
  }
  const TraceTree tree = gather_trace(world());
  CHECK(tree.lines.empty() == (rank > 0));
  if (rank > 0) return;
  const auto calls = [](const TraceLine* line) {
    Index sum = 0;
    for (const TraceFigures& figures : line->ranks) sum += figures.calls;
    return sum;
  };
  CHECK(calls(line_of(tree, {"both"})) == world().size());
  CHECK(calls(line_of(tree, {"both", "one only"})) == 1);
  CHECK(calls(line_of(tree, {"both", "one only", "all but one"})) == 1);
  if (world().size() > 1) CHECK(calls(line_of(tree, {"both", "all but one"})) == world().size() - 1);
  const TraceSpread of_one =
      spread(line_of(tree, {"both", "one only"})->ranks, [](const TraceFigures& of) { return of.seconds; });
  CHECK(of_one.least == of_one.most);
}

TEST_CASE("The median of an even number of ranks is the mean of the two in the middle") {
  const auto median = [](const std::vector<double>& seconds) {
    std::vector<TraceFigures> ranks(1);  // one that did not come
    for (const double value : seconds) ranks.push_back({.calls = 1, .seconds = value, .counts = {}});
    return spread(ranks, [](const TraceFigures& of) { return of.seconds; }).median;
  };
  CHECK(median({3}) == 3);
  CHECK(median({3, 1}) == 2);
  CHECK(median({8, 1, 3}) == 3);
  CHECK(median({8, 1, 3, 2}) == 2.5);
}

TEST_CASE("A trace counts the bytes, messages and waits of Traffic, and the flops of products") {
  for (const auto& grid : compact_grids())
    for (const Algorithm algorithm : all_algorithms) check_cgls(grid, algorithm);
}

TEST_CASE("What has no room in a trace is counted") {
  const Recording recording({.timeline = true, .regions = 2, .events = 3});
  {
    const TraceRegion one("one");
    {
      const TraceRegion two("two");
      const TraceRegion three("three");
      trace_flops(1);
    }
    const TraceRegion two("two");
    const TraceRegion four("four");
    trace_mark("mark");
  }
  const TraceTree tree = gather_trace(world());
  if (world().rank() != 0) return;
  CHECK(tree.lines.size() == 3);
  CHECK(line_of(tree, {"one", "two"})->ranks[0].counts.flops == 1);
  CHECK(tree.dropped_regions == 3 * world().size());  // "three", "four" and the mark
  CHECK(tree.dropped_events == world().size());       // the mark
  CHECK(contains(message_of<UsageError>([] { start_trace({.regions = 0}); }), "no room"));
}

TEST_CASE("Recording takes no memory once it has begun") {
  if (std::getenv("GRIDLOPS_TEST_DEVICE") != nullptr)
    return;  // the emulation counts calls, in other threads too
  const auto work = [] {
    const TraceRegion outer("outer");
    for (int k = 0; k < 1000; ++k) {
      const TraceRegion inner("inner");
      trace_mark("mark");
      trace_flops(1);
    }
  };
  const Recording recording({.timeline = true, .events = 100});
  const auto before = mallinfo2().uordblks;
  work();
  CHECK(mallinfo2().uordblks == before);
}
