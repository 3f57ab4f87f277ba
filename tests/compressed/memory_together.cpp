// SPDX-License-Identifier: BSD-3-Clause
// Where memory is not enough on one rank for what all ranks have of a compressed matrix, all ranks throw. It
// is memory of std::vector, not of a backend.
#include <algorithm>
#include <cstdlib>
#include <new>
#include <string>

#include "compressed/waves.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/compressed/compressed_matrix.hpp"
#include "io/npy_files.hpp"
#include "support/agreed_failures.hpp"

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
