// SPDX-License-Identifier: BSD-3-Clause
// Checks on the emulation how transforms use cuFFT: plans are made once, run once for a group of columns, and
// where one fails no rank is left waiting.
#include "emulation/control.hpp"
#include "gridlops/ops/fourier.hpp"
#include "support/agreed_failures.hpp"
#include "support/arrays.hpp"
#include "support/problems.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

long calls(const std::string& function) { return emulation::ledger().of(function); }

template <Scalar T>
OperatorPtr<T> transform_of(const Space& space) {
  if constexpr (is_complex<T>) {
    return fourier<Real<T>>(space, 0, {.time_zero = 2, .frequency_zero = 3});
  } else {
    return real_fourier<T>(space, 0, 0, 2);
  }
}

/// A transform of arrays that one rank's part is not empty of, and operands of five columns.
template <Scalar T>
struct Transform {
  explicit Transform(const GridPtr& grid)
      : F(transform_of<T>(array_space(grid, {6, 3}, 1))),
        X(filled(grid, F->domain().layout(5), random_elements<T>(1))),
        Y(grid, F->range().layout(5)) {}
  void forward() { F->apply(T(1), X, T(0), Y); }
  void both() {
    forward();
    F->apply_adjoint(T(1), Y, T(0), X);
  }
  bool has_lines() const { return F->domain().local_rows() > 0; }

  OperatorPtr<T> F;
  DistMatrix<T> X, Y;
};

}  // namespace

TEMPLATE_LIST_TEST_CASE("A transform is planned once, and runs once for a few columns", "[transforms]",
                        Scalars) {
  for (const GridPtr& grid : all_grids()) {
    if (!grid->is_member()) continue;
    INFO(describe(*grid));
    Transform<TestType> transform(grid);
    const long planned = calls("cufftXtMakePlanMany");
    transform.both();
    const long directions = is_complex<TestType> ? 1 : 2;
    CHECK(calls("cufftXtMakePlanMany") - planned == (transform.has_lines() ? directions : 0));
    const auto before = emulation::ledger();
    const Index made = grid->backend()->allocations(), launches = grid->backend()->launches();
    transform.both();
    const auto after = emulation::ledger();
    for (const char* function : {"cufftCreate", "cufftXtMakePlanMany", "cufftSetWorkArea", "cufftDestroy"})
      CHECK(after.of(function) == before.of(function));
    CHECK(after.allocations == before.allocations);
    CHECK(grid->backend()->allocations() == made);
    CHECK(after.bytes_to_host == before.bytes_to_host);
    CHECK(after.bytes_to_device == before.bytes_to_device);
    const long run = after.of("cufftXtExec") - before.of("cufftXtExec");
    CHECK(run == (transform.has_lines() ? 2 : 0));
    CHECK(grid->backend()->launches() - launches == after.kernels - before.kernels + run);
  }
}

TEMPLATE_LIST_TEST_CASE("Groups of columns share launches, and no bit of a column depends on the others",
                        "[transforms]", Scalars) {
  using T = TestType;
  const auto grid = std::make_shared<const ProcessGrid>(world(), GridShape{1, 1}, make_backend());
  if (!grid->is_member()) return;
  // 16 short arrays make a group, 3 of the second sizes, 1 of the last.
  for (const auto& [sizes, group] :
       {std::pair(std::vector<Index>{6, 3}, Index{16}), {{2, 100, 100}, 3}, {{2, 40000}, 1}}) {
    const auto F = transform_of<T>(array_space(grid, sizes, 1));
    const Index columns = 2 * group + 1, last = columns - 1;
    struct Result {
      long runs;
      Index launches;
      std::vector<T> Y, X;
    };
    // F and Fᴴ of the columns from this one on.
    const auto of_columns_from = [&](Index begin) {
      const auto elements = [=](Index i, Index j) { return random_elements<T>(1)(i, begin + j); };
      DistMatrix<T> X = filled(grid, F->domain().layout(columns - begin), elements),
                    Y(grid, F->range().layout(columns - begin));
      const long runs = calls("cufftXtExec");
      const Index launches = grid->backend()->launches();
      F->apply(T(1), X, T(0), Y);
      F->apply_adjoint(T(1), Y, T(0), X);
      return Result{calls("cufftXtExec") - runs, grid->backend()->launches() - launches, gather(Y, 0),
                    gather(X, 0)};
    };
    of_columns_from(last);  // makes the plan
    const Result all = of_columns_from(0), alone = of_columns_from(last);
    CHECK(alone.runs == 2);
    CHECK(all.runs == 3 * 2);
    CHECK(all.launches == 3 * alone.launches);
    CHECK(std::equal(alone.Y.rbegin(), alone.Y.rend(), all.Y.rbegin()));
    CHECK(std::equal(alone.X.rbegin(), alone.X.rend(), all.X.rbegin()));
  }
}

TEST_CASE("A plan that fails on one rank fails on all, and can be tried again") {
  for (const GridPtr& grid : all_grids()) {
    if (!grid->is_member()) continue;
    INFO(describe(*grid));
    const int last = grid->comm().size() - 1;
    // Every rank has lines: 16 traces are more than there are ranks.
    const Space space = array_space(grid, {6, 16}, 1);
    for (const int failing : {0, last}) {
      const OperatorPtr<double> F = real_fourier<double>(space, 0), sound = real_fourier<double>(space, 0);
      const DistMatrix<double> X = filled(grid, space.layout(2), random_elements<double>(1));
      DistMatrix<double> Y(grid, F->range().layout(2)), expected = Y.clone();
      sound->apply(1, X, 0, expected);
      const auto fails_at = [&](const char* function, Index n) {
        if (grid->comm().rank() == failing) emulation::fail_call(function, n);
        const Ending mine = ending_of([&] { F->apply(1, X, 0, Y); });
        INFO(function << " fails on rank " << failing << ", and it ends with: " << mine.text);
        CHECK(all_ended_alike(*grid, mine));
        REQUIRE(mine.type != nullptr);
        return mine;
      };
      for (const Index plan : {1, 2}) {
        const Ending mine = fails_at("cufftXtMakePlanMany", plan);
        CHECK(*mine.type == typeid(OutOfMemory));
        CHECK(contains(mine.text, "Fourier transforms of 6 samples"));
      }
      for (const char* function :
           {"cufftCreate", "cufftSetAutoAllocation", "cufftSetStream", "cufftSetWorkArea"}) {
        const Ending mine = fails_at(function, 1);
        CHECK(contains(mine.text, std::string(function) + " failed: CUFFT_"));
      }
      F->apply(1, X, 0, Y);
      CHECK(gather(Y, 0) == gather(expected, 0));
    }
  }
}

TEST_CASE("A transform that fails says so, on its rank alone") {
  for (const GridPtr& grid : all_grids()) {
    if (!grid->is_member()) continue;
    INFO(describe(*grid));
    Transform<double> transform(grid);
    transform.both();
    const bool fails = grid->comm().rank() == 0;
    if (fails) emulation::fail_call("cufftXtExec", 2);
    bool has_failed = false;
    try {
      transform.both();
    } catch (const Error& error) {
      has_failed = true;
      CHECK(contains(error.what(), "cufftXtExec failed: CUFFT_EXEC_FAILED"));
      CHECK(error.known_to() == KnownTo::one_rank);
    }
    CHECK(has_failed == fails);
    CHECK_NOTHROW(transform.both());
  }
}
