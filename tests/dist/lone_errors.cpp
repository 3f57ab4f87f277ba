// SPDX-License-Identifier: BSD-3-Clause
// If one rank alone can know that something is wrong, it alone throws, and the error says so: a handler that
// believed that all ranks throw would wait for ever. Once the ranks have told each other, all throw it.
#include <vector>

#include "comm/failure/failure.hpp"
#include "gridlops/dist/dist_matrix.hpp"
#include "gridlops/local/backend.hpp"
#include "gridlops/local/buffer.hpp"
#include "gridlops/local/matrix_view.hpp"
#include "local/host_kernels.hpp"
#include "support/agreed_failures.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

/// Runs the action on one rank, which is wrong there. Others do nothing: none of this communicates.
template <class E>
void check_lone(const char* what, const std::function<void()>& wrong) {
  for (const int failing : {0, world().size() - 1}) {
    CAPTURE(what, failing);
    if (world().rank() == failing) {
      bool thrown = false;
      try {
        wrong();
      } catch (const E& error) {
        thrown = true;
        CHECK(error.known_to() == KnownTo::one_rank);
      }
      CHECK(thrown);
    }
    // It is one of all ranks where they attempt it, or are in the middle of something that they do together.
    const auto check_known = [&](const std::function<void()>& together) {
      bool thrown = false;
      try {
        together();
      } catch (const E& error) {
        thrown = true;
        CHECK(error.known_to() == KnownTo::all_ranks);
      }
      CHECK(thrown);
    };
    const auto on_one = [&] {
      if (world().rank() == failing) wrong();
    };
    check_known([&] { attempt(world(), on_one); });
    check_known([&] {
      FailureScope failures;
      failures.run(on_one);
      failures.settle(world());
    });
    check_known([&] { attempt(world(), wrong); });
    check_known([&] { agree(world(), "what all do wrong", [&](Agreement&) { wrong(); }); });
  }
}

}  // namespace

TEST_CASE("An error that one rank alone can know of says so") {
  const GridPtr grid = all_grids().front();
  const auto backend = make_host_backend();
  std::vector<double> memory(100);
  const auto block = [&](Index rows, Index cols, Index stride) {
    return MatrixView<double>(memory.data(), rows, cols, stride);
  };
  if (grid->shape().size() == world().size()) {
    const Layout layout = row_blocks(*grid, 7 * world().size(), 2);
    check_lone<ShapeError>("a block one row short",
                           [&] { ConstDistMatrix<double>(grid, layout, block(6, 2, 6)); });
    check_lone<ShapeError>("a block one column short",
                           [&] { DistMatrix<double>(grid, layout, block(7, 1, 7)); });
    check_lone<ShapeError>("a stride below the rows",
                           [&] { ConstDistMatrix<double>(grid, layout, block(7, 2, 6)); });
  }
  check_lone<UsageError>("a negative size of memory", [&] { Buffer<double>(backend, -1); });
  check_lone<OutOfMemory>("too much memory", [&] { Buffer<double>(backend, Index{1} << 58); });
  check_lone<UsageError>("a block too long for BLAS", [&] {
    constexpr Index longest = 8;
    host_gemm<double>(Op::none, Op::none, 1, block(9, 9, 9), block(9, 1, 9), 0, block(9, 1, 9), longest);
  });
  check_lone<ShapeError>("a transpose of another shape",
                         [&] { transpose<double>(block(2, 3, 2), block(2, 3, 2)); });
  // Arguments of a message, which other ranks need not send or receive alike.
  std::vector<double> sent(2);
  check_lone<UsageError>("a peer that is no rank", [&] { world().send(sent, world().size(), 0); });
  check_lone<UsageError>("a negative tag", [&] { world().send(sent, 0, -1); });
  check_lone<UsageError>("a root that is no rank", [&] { world().broadcast(sent, -1); });
  check_lone<UsageError>("counts of too few ranks", [&] {
    world().all_gather_v(sent, sent, std::vector<Index>(static_cast<std::size_t>(world().size() + 1), 0));
  });
}

TEST_CASE("A rank that is idle in a grid knows that alone") {
  const auto grid = std::make_shared<ProcessGrid>(world(), GridShape{1, 1}, make_host_backend());
  if (grid->is_member()) return;
  try {
    static_cast<void>(grid->my_row());
    FAIL_CHECK("nothing was thrown");
  } catch (const UsageError& error) {
    CHECK(error.known_to() == KnownTo::one_rank);
  }
}
