// SPDX-License-Identifier: BSD-3-Clause
#include <new>
#include <stdexcept>
#include <typeinfo>

#include "gridlops/communicator.hpp"
#include "gridlops/error.hpp"
#include "support/catch.hpp"
#include "support/mpi_main.hpp"

using namespace gridlops;
using gridlops::testing::world;

namespace {

/// Checks what all ranks learn of an error of type E on the given rank.
template <class E, class Thrown>
void check_agreement(int failing_rank, const Thrown& thrown, ExitStatus status, const std::string& text) {
  bool caught = false;
  try {
    succeed_together(world(), [&] {
      if (world().rank() == failing_rank) throw thrown;
    });
  } catch (const Error& error) {
    caught = true;
    CHECK(typeid(error) == typeid(E));
    CHECK(error.status() == status);
    CHECK(error.known_to() == KnownTo::all_ranks);
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
    check_agreement<OutOfMemory>(rank, std::bad_alloc(), ExitStatus::out_of_memory,
                                 "not enough memory (std::bad_alloc)");
    check_agreement<Error>(rank, std::runtime_error(""), ExitStatus::internal, "");
    check_agreement<Error>(rank, Odd(), ExitStatus::internal, "an exception that is no std::exception");
  }
}

TEST_CASE("Of several ranks' errors the lowest rank's counts") {
  const int last = world().size() - 1;
  try {
    succeed_together(world(), [&] {
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
  succeed_together(world(), [&] { ++runs; });
  CHECK(runs == 1);
}

TEST_CASE("The rank that is named is the one of the communicator that agrees") {
  const auto backwards = world().split(0, -world().rank());
  try {
    succeed_together(*backwards, [] {
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
