// SPDX-License-Identifier: BSD-3-Clause
// Where memory is not enough on one rank for what all ranks have of a compressed matrix, all ranks throw. It
// is memory of std::vector, not of a backend.
#include <algorithm>
#include <cstdlib>
#include <new>
#include <string>

#include "compressed/waves.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/random.hpp"
#include "gridlops/comm/mpi.hpp"
#include "gridlops/compressed/compressed_matrix.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "io/npy_files.hpp"
#include "support/agreed_failures.hpp"
#include "support/metered_backend.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

constexpr std::size_t large = 1 << 16;
Index until_failure = 0;  // large allocations; 0: none fails

}  // namespace

// All other forms but the aligned ones call these.
void* operator new(std::size_t bytes) {
  if (bytes >= large && until_failure > 0 && --until_failure == 0) throw std::bad_alloc();
  if (void* const memory = std::malloc(std::max<std::size_t>(bytes, 1))) return memory;
  throw std::bad_alloc();
}
// Sanitizers have one of their own.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

TEST_CASE("All ranks throw where the tables of a compressed matrix are too large for one") {
  using T = double;
  const int last = world().size() - 1;
  if (last == 0) return;            // nobody waits
  constexpr Index m = 9000, n = 2;  // so that the order of the rows is large, too
  const GridPtr grid = all_grids().front();
  const ScratchFolder folder;
  const DistMatrix<T> A = placed<T>(grid, m, n, Waves<T>{m, n});
  Index saved = 0;
  const auto next = [&] { return folder.file("saved-" + std::to_string(++saved)); };
  const auto make = [&](const std::string& directory) { compress(A, {.tile = 1, .directory = directory}); };
  const std::string whole = next();
  make(whole);
  const MatrixHeader header = read_compressed_header(world(), whole);

  const auto check = [&](const char* what, const std::function<void()>& action) {
    for (const int failing : {0, last}) {
      Index k = 0;
      for (bool ended = false; !ended;) {
        ++k;
        INFO(what << ", large allocation " << k << " of rank " << failing);
        if (world().rank() == failing) until_failure = k;
        const Ending mine = ending_of(action);
        until_failure = 0;
        INFO("it ended with: " << mine.text);
        REQUIRE(all_ended_alike(world(), mine));
        ended = mine.type == nullptr;
        CHECK((ended || *mine.type == typeid(OutOfMemory)));
        REQUIRE(k < 1000);
      }
      CHECK(k > 5);
    }
  };
  check("reading", [&] { read_compressed<T>(grid, whole, header); });
  check("planning", [&] { SavedCompressed(world(), whole); });
  check("writing", [&] { make(next()); });
}

namespace {

/// An operator of a caller's, made of another.
template <Scalar T>
class Callers final : public LinearOperator<T> {
 public:
  explicit Callers(OperatorPtr<T> A) : LinearOperator<T>(A->range(), A->domain()), A_(std::move(A)) {}

 private:
  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    A_->apply(alpha, X, beta, Y);
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    A_->apply_adjoint(alpha, Y, beta, X);
  }

  OperatorPtr<T> A_;
};

}  // namespace

// Compressed matrices on one grid share the memory of gathered operands.
TEST_CASE("Where memory was not enough for one compressed matrix, others on its grid multiply as before") {
  if (world().transport() == "nccl") return;  // the transports below are MPI's
  using T = double;
  constexpr Index m = 60, n = 50, few = 2, many = 40;
  Index failures = 0;
  for (const char* transport : {"mpi", "shared", "one-sided"}) {
    const auto comm = make_host_communicator(world(), transport);
    const auto backend = std::make_shared<MeteredBackend>();
    const auto grid = std::make_shared<const ProcessGrid>(*comm, near_square(world().size()), backend);
    if (!grid->is_member()) continue;
    const Layout layout = matrix_layout(Algorithm::stationary_a, *grid, m, n);
    const auto make = [&]() -> OperatorPtr<T> {
      return compress(filled(grid, layout, Waves<T>{m, n}), {.tile = 16});
    };
    for (const bool in_sum : {false, true}) {
      for (const int rank : {0, grid->comm().size() - 1}) {
        for (Index k = 1;; ++k) {
          CAPTURE(transport, describe(*grid), in_sum, rank, k);
          const OperatorPtr<T> A = make(), B = make(), callers = std::make_shared<Callers<T>>(B),
                               failing = in_sum ? sum(B, callers) : callers;
          const auto operand = [&](Index columns) {
            return filled(grid, A->domain().layout(columns),
                          [](Index i, Index j) { return counter_uniform(3, i, j); });
          };
          const DistMatrix<T> x = operand(few), X = operand(many);
          DistMatrix<T> y(grid, A->range().layout(few)), Y(grid, A->range().layout(many));
          A->apply(1, x, 0, y);
          const std::vector<T> expected = on_host(y);
          if (grid->comm().rank() == rank) backend->fail_at(k);
          const Ending mine = ending_of([&] { failing->apply(1, X, 0, Y); });
          backend->fail_at(0);
          REQUIRE(all_ended_alike(*grid, mine));
          y.set_zero();
          A->apply(1, x, 0, y);
          CHECK(on_host(y) == expected);
          if (mine.type == nullptr) break;
          ++failures;
          REQUIRE(k < 100);
        }
      }
    }
  }
  CHECK((failures > 0 || world().size() == 1));
}
