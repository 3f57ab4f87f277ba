// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <new>
#include <stdexcept>
#include <typeinfo>

#include "comm/failure/failure.hpp"
#include "comm/failure/watchdog.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/comm/communicator.hpp"
#include "gridlops/comm/mpi.hpp"
#include "gridlops/comm/process_grid.hpp"
#include "support/catch.hpp"
#include "support/disagreements.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

/// Checks what all ranks learn of an error of type E on the given rank.
template <class E, class Thrown>
void check_agreement(int failing_rank, const Thrown& thrown, ExitStatus status, const std::string& text) {
  bool caught = false;
  try {
    attempt(world(), [&] {
      if (world().rank() == failing_rank) throw thrown;
    });
  } catch (const Error& error) {
    caught = true;
    CHECK(typeid(error) == typeid(E));
    CHECK(error.status() == status);
    CHECK(error.known_to() == KnownTo::all_ranks);
    CHECK(error.rank() == failing_rank);
    CHECK(error.what() == "rank " + std::to_string(failing_rank) + ": " + text);
  }
  CHECK(caught);
}

struct Odd {};

}  // namespace

TEST_CASE("An error of one rank becomes the same error of all ranks") {
  for (int rank = 0; rank < world().size(); ++rank) {
    check_agreement<Error>(rank, Error(ExitStatus::try_again, "again"), ExitStatus::try_again, "again");
    check_agreement<UsageError>(rank, UsageError("wrong"), ExitStatus::usage, "wrong");
    check_agreement<ShapeError>(rank, ShapeError("2x3"), ExitStatus::usage, "2x3");
    check_agreement<InputError>(rank, InputError("A.npy ends early"), ExitStatus::bad_input,
                                "A.npy ends early");
    check_agreement<OutputError>(rank, OutputError("disk full"), ExitStatus::bad_output, "disk full");
    check_agreement<OutOfMemory>(rank, OutOfMemory("8 GB"), ExitStatus::out_of_memory, "8 GB");
    check_agreement<CommunicationError>(rank, CommunicationError("lost"), ExitStatus::internal, "lost");
    check_agreement<Suspended>(rank, Suspended("saved"), ExitStatus::try_again, "saved");
    check_agreement<OutOfMemory>(rank, std::bad_alloc(), ExitStatus::out_of_memory,
                                 "not enough memory (std::bad_alloc)");
    check_agreement<Error>(rank, std::runtime_error(""), ExitStatus::internal, "");
    check_agreement<Error>(rank, Odd(), ExitStatus::internal, "an exception that is no std::exception");
  }
}

TEST_CASE("Of several ranks' errors the lowest rank's counts") {
  const int last = world().size() - 1;
  try {
    attempt(world(), [&] {
      if (world().rank() == last) throw InputError("last");
      if (world().rank() > 0) throw OutputError("rank " + std::to_string(world().rank()));
    });
    FAIL_CHECK("nothing was thrown");
  } catch (const Error& error) {
    const bool single = last <= 1;
    CHECK(error.what() ==
          (single ? "rank " + std::to_string(last) + ": last" : std::string("rank 1: rank 1")));
    CHECK(error.status() == (single ? ExitStatus::bad_input : ExitStatus::bad_output));
  }
}

TEST_CASE("Without an error all ranks go on") {
  int runs = 0;
  attempt(world(), [&] { ++runs; });
  CHECK(runs == 1);
}

TEST_CASE("An attempt returns what its action returns, on every rank") {
  const std::unique_ptr<int> made = attempt(world(), [] { return std::make_unique<int>(world().rank()); });
  CHECK(*made == world().rank());
  const std::string text = "kept";
  CHECK(attempt(world(), [&]() -> const std::string& { return text; }) == "kept");
}

TEST_CASE("Every type of error matches itself first, and makes errors that all ranks know") {
  for (const ErrorType& type : error_types()) {
    CAPTURE(type.name);
    try {
      std::rethrow_exception(type.make(type.status, "text", 3));
    } catch (const Error& error) {
      CHECK(type_of(error).name == std::string(type.name));
      CHECK(error.status() == type.status);
      CHECK(error.known_to() == KnownTo::all_ranks);
      CHECK(error.rank() == 3);
      CHECK(error.what() == std::string("text"));
    }
  }
  struct Derived : ShapeError {
    using ShapeError::ShapeError;
  };
  CHECK(type_of(Derived("text")).name == std::string("ShapeError"));
}

TEST_CASE("The rank that is named is the one of the communicator that agrees") {
  const auto backwards = world().split(0, -world().rank());
  try {
    attempt(*backwards, [] {
      if (world().rank() == 0) throw InputError("missing");
    });
    FAIL_CHECK("nothing was thrown");
  } catch (const InputError& error) {
    CHECK(error.what() == "rank " + std::to_string(world().size() - 1) + ": missing");
  }
}

TEST_CASE("A text of any rank becomes known to all") {
  for (int root = 0; root < world().size(); ++root) {
    for (const std::string& text : {std::string(), std::string("x"), std::string(3000, 'y')}) {
      CHECK(broadcast_text(world(), world().rank() == root ? text : "other", root) == text);
    }
  }
}

TEST_CASE("Ranks that name the same go on, and count that apart") {
  const TrafficSince traffic(world());
  const Traffic before = world().traffic();
  agree(world(), "a test", [](Agreement& agreement) { agreement.on("the size", 3).on("the name", "x"); });
  CHECK(traffic.nothing());
  CHECK(world().traffic().agreements == before.agreements + 1);
  // Three numbers of eight bytes, as an all_reduce counts.
  const Index sent = world().size() == 1 ? 0 : world().traffic().agreement_bytes - before.agreement_bytes;
  CHECK((world().size() == 1 || sent >= 24));
}

TEST_CASE("Ranks that name other values all throw one error with all values") {
  const int ranks = world().size();
  if (ranks == 1) return;
  for (int odd = 0; odd < ranks; ++odd) {
    const bool am_odd = world().rank() == odd;
    check_disagreement(
        world(), {difference("the size", "3", "4", odd, ranks), "a test: the ranks disagree."}, [&] {
          agree(world(), "a test",
                [&](Agreement& agreement) { agreement.on("the name", "x").on("the size", am_odd ? 4 : 3); });
        });
    check_disagreement(world(), {difference("operation", "one", "another", odd, ranks)},
                       [&] { agree(world(), am_odd ? "another" : "one", [](Agreement&) {}); });
    // A rank that fails has not named all its values.
    for (const int size : {3, 30}) {
      const auto fails_early = [&] {
        agree(world(), "a test", [&](Agreement& agreement) {
          agreement.on("the size", am_odd ? 3 : size);
          if (am_odd) throw InputError("lost");
          agreement.on("the name", "x");
        });
      };
      const std::string rank = std::to_string(odd);
      if (size != 3) {
        check_disagreement(
            world(),
            {difference("the size", "30", "3", odd, ranks),
             difference("the name", "x", "nothing", odd, ranks), "Rank " + rank + " finds: lost"},
            fails_early);
        continue;
      }
      const Ending mine = ending_of(fails_early);
      CHECK(mine.text == "rank " + rank + ": lost");
      CHECK((mine.type != nullptr && *mine.type == typeid(InputError)));
      CHECK(rank_of(mine) == odd);
    }
  }
  std::string all_values;
  for (int rank = 0; rank < ranks; ++rank)
    all_values += (rank == 0 ? "" : ", ") + std::to_string(10 * rank) + " on rank " + std::to_string(rank);
  check_disagreement(world(), {"the size: " + all_values}, [] {
    agree(world(), "a test", [](Agreement& agreement) { agreement.on("the size", 10 * world().rank()); });
  });
}

TEST_CASE("What fails on one rank that names the same all throw, and what fails on all as it is") {
  for (int rank = 0; rank < world().size(); ++rank) {
    const Ending mine = ending_of([&] {
      agree(world(), "a test", [&](Agreement&) {
        if (world().rank() == rank) throw InputError("lost");
      });
    });
    const bool alone = world().size() == 1;
    CHECK(mine.text == (alone ? "lost" : "rank " + std::to_string(rank) + ": lost"));
    CHECK(rank_of(mine) == (alone ? -1 : rank));
    CHECK((mine.type != nullptr && *mine.type == typeid(InputError)));
  }
  const Ending all =
      ending_of([] { agree(world(), "a test", [](Agreement&) { throw InputError("lost"); }); });
  CHECK(all.text == "lost");
  CHECK(rank_of(all) == -1);
}

TEST_CASE("A rank that fails in a step of an agreement goes through the other steps, and then all throw") {
  for (int rank = 0; rank < world().size(); ++rank) {
    FailureScope around;
    int steps = 0;
    const Ending mine = ending_of([&] {
      agree(world(), "a test", [&](Agreement&) {
        FailureScope failures;
        failures.run([&] {
          if (world().rank() == rank) throw InputError("lost");
        });
        failures.run([&] {
          world().barrier();
          ++steps;
        });
      });
    });
    CHECK(steps == 1);
    CHECK(mine.text == (world().size() == 1 ? "lost" : "rank " + std::to_string(rank) + ": lost"));
    CHECK(failure_to_tell() == nullptr);  // the scope around it has kept nothing
    CHECK_NOTHROW(around.settle(world()));
  }
}

TEST_CASE("Over a grid ranks compare what they begin, but not the steps of it") {
  const int ranks = world().size();
  const auto idle =
      std::make_shared<ProcessGrid>(world(), GridShape{1, std::max(ranks - 1, 1)}, make_host_backend());
  int runs = 0;
  agree(std::shared_ptr<const ProcessGrid>(), "a test", [&](Agreement&) { ++runs; });
  const std::shared_ptr<const ProcessGrid> grid = idle;
  const auto agreements = [&] { return grid->is_member() ? grid->comm().traffic().agreements : 0; };
  const Index before = agreements();
  agree(grid, "a test", [&](Agreement& agreement) { agreement.on("the size", ++runs); });
  CHECK(runs == 2);
  CHECK(agreements() - before == (grid->is_member() ? 1 : 0));
  FailureScope step;
  agree(grid, "a test", [&](Agreement& agreement) { agreement.on("the size", ++runs); });
  CHECK(runs == 3);
  CHECK(agreements() - before == (grid->is_member() ? 1 : 0));
}

TEST_CASE("What a rank keeps is known to the message with which it may have to end") {
  CHECK(kept_failure_text().empty());
  {
    FailureScope outer;
    CHECK(kept_failure_text().empty());
    FailureScope().run([] { throw InputError("lost"); });
    outer.run([] { throw InputError("lost later"); });
    CHECK(kept_failure_text() == "; this rank had yet to tell the others of: lost");
  }
  CHECK(kept_failure_text().empty());
}

TEST_CASE(
    "A rank that does not find its failure in a sum tells the others, since the ranks are out of step") {
  if (world().size() == 1) return;
  std::vector<double> values{0};
  FailureScope failures;
  if (world().rank() == 0) {
    failures.run([] { throw InputError("lost"); });
    CHECK(contains(message_of<InputError>([&] { failures.reduce(world(), values); }), "rank 0: lost"));
  } else {  // another operation, whose numbers happen to hide it
    std::array others{0.0, world().rank() == 1 ? -1.0 : 0.0};
    world().all_reduce(others, ReduceOp::sum);
    const auto listen = [end = std::chrono::steady_clock::now() + std::chrono::seconds(20)] {
      while (std::chrono::steady_clock::now() < end) keep_alive();
    };
    CHECK(contains(message_of<InputError>(listen), "rank 0: lost"));
  }
  CHECK(ranks_are_out_of_step());
  Watchdog::current()->forget_failure();  // which has left nothing behind here
}
