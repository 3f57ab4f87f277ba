// SPDX-License-Identifier: BSD-3-Clause
// Storage::planes and high_plane().
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "gridlops/base/error.hpp"
#include "gridlops/ops/dot_test.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "support/agreed_failures.hpp"
#include "support/metered_backend.hpp"
#include "support/problems.hpp"
#include "support/test_data.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

constexpr std::array stationary{Algorithm::block, Algorithm::stationary_a};
using Doubles = std::tuple<double, std::complex<double>>;

bool is_on_host(const GridPtr& grid) { return grid->backend()->memory_space() == MemorySpace::host; }

/// A number rounded to 21 binary digits, ties away from zero.
double to_21_digits(double value) {
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  return std::ldexp(std::round(std::ldexp(fraction, 21)), exponent - 21);
}
std::complex<double> to_21_digits(std::complex<double> value) {
  return {to_21_digits(value.real()), to_21_digits(value.imag())};
}

template <Scalar T>
OperatorPtr<T> stored_as(Storage storage, const GridPtr& grid, Algorithm algorithm, const Whole<T>& A,
                         bool column_stable = false) {
  return dense_operator<T>(grid, algorithm, A.rows, A.cols, A,
                           {.column_stable = column_stable, .storage = storage});
}

}  // namespace

TEMPLATE_LIST_TEST_CASE(
    "Planes have the products of whole numbers, and the high one those of rounded numbers", "[planes]",
    Doubles) {
  using T = TestType;
  for (const auto& [rows, cols] :
       {std::pair<Index, Index>{0, 3}, {3, 0}, {1, 1}, {2, 5}, {41, 3}, {130, 97}}) {
    const Whole<T> A = fractions<T>(1, rows, cols);
    Whole<T> rounded = A;
    for (T& value : rounded.values) value = to_21_digits(value);
    for (const GridPtr& grid : all_grids()) {
      if (!grid->is_member() || !is_on_host(grid)) continue;
      for (const Algorithm algorithm : stationary) {
        for (const bool column_stable : {false, true}) {
          const auto with = [&](Storage storage, const Whole<T>& elements) {
            return stored_as<T>(storage, grid, algorithm, elements, column_stable);
          };
          const OperatorPtr<T> packed = with(Storage::packed, A), planes = with(Storage::planes, A),
                               rough = with(Storage::packed, rounded), high = high_plane(planes);
          CHECK(planes->has_one_pass() == packed->has_one_pass());
          for (const Index nrhs : {0, 1, 4, 7, 40}) {
            INFO(describe(*grid) << ": " << name_of(algorithm) << ", A " << rows << " x " << cols << ", "
                                 << nrhs << " columns, column-stable: " << column_stable);
            const Whole<T> X = fractions<T>(2, cols, nrhs), Y = fractions<T>(3, rows, nrhs);
            CHECK(products(*planes, X, Y) == products(*packed, X, Y));
            CHECK(products(*high, X, Y) == products(*rough, X, Y));
            CHECK(products(*planes, X, Y) == products(*packed, X, Y));
          }
          CHECK(dot_test(*high).passed);
          CHECK(dot_test(*planes).passed);
          CHECK(block_hash(*planes) == block_hash(*packed));
        }
      }
    }
  }
}

TEMPLATE_LIST_TEST_CASE("Both planes follow a change of the matrix", "[planes]", Doubles) {
  using T = TestType;
  for (const GridPtr& grid : all_grids()) {
    if (!grid->is_member() || !is_on_host(grid)) continue;
    for (const Algorithm algorithm : stationary) {
      const Whole<T> X = fractions<T>(2, 11, 3), Y = fractions<T>(3, 13, 3);
      DistMatrix<T> A = filled(grid, matrix_layout(algorithm, *grid, 13, 11), fractions<T>(1, 13, 11));
      const OperatorPtr<T> op =
          matrix_mult(algorithm, DistMatrix<T>(grid, A.layout(), A.local()), {.storage = Storage::planes});
      const OperatorPtr<T> high = high_plane(op);
      products(*high, X, Y);
      const Whole<T> second = fractions<T>(5, 13, 11);
      A.fill(second);
      matrix_changed(*op);
      const OperatorPtr<T> fresh = stored_as<T>(Storage::planes, grid, algorithm, second);
      INFO(describe(*grid) << ": " << name_of(algorithm));
      CHECK(products(*op, X, Y) == products(*fresh, X, Y));
      CHECK(products(*high, X, Y) == products(*high_plane(fresh), X, Y));
    }
  }
}

TEST_CASE("Memory of products that a matrix loses is taken anew by operators on its high plane", "[planes]") {
  for (const GridShape shape : all_shapes(world().size())) {
    const auto memory = std::make_shared<MeteredBackend>();
    const auto grid = std::make_shared<const ProcessGrid>(world(), shape, memory);
    if (!grid->is_member() || shape.size() == 1) continue;
    INFO(describe(*grid));
    const Whole<double> X = fractions<double>(2, 11, 3), Y = fractions<double>(3, 13, 3);
    const OperatorPtr<double> A = stored_as<double>(Storage::planes, grid, Algorithm::stationary_a,
                                                    fractions<double>(1, 13, 11)),
                              twice = scale(2.0, high_plane(A));
    const std::vector<double> before = products(*twice, X, Y);
    const DistMatrix<double> many = filled(grid, A->domain().layout(50), fractions<double>(4, 11, 50));
    DistMatrix<double> result(grid, A->range().layout(50));
    memory->limit_block_bytes(1);
    CHECK_THROWS_AS(A->apply(1, many, 0, result), OutOfMemory);
    memory->limit_block_bytes(std::numeric_limits<Index>::max());
    CHECK(products(*twice, X, Y) == before);
  }
}

TEST_CASE("NaN and infinity are in both planes", "[planes]") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const GridPtr& grid : all_grids()) {
    if (!grid->is_member() || !is_on_host(grid)) continue;
    for (const std::uint64_t bits :
         {~std::uint64_t{0}, std::uint64_t{0x7fffffffffffffff}, std::uint64_t{0x7ff0000000000001},
          std::bit_cast<std::uint64_t>(infinity), std::bit_cast<std::uint64_t>(-infinity)}) {
      const auto special = std::bit_cast<double>(bits);
      const auto A = stored_as<double>(Storage::planes, grid, Algorithm::stationary_a, {1, 1, {special}});
      for (const OperatorPtr<double>& op : {A, high_plane(A)}) {
        const DistMatrix<double> X = filled(grid, op->domain().layout(1), [](Index, Index) { return 1.0; });
        DistMatrix<double> Y(grid, op->range().layout(1));
        op->apply(1, X, 0, Y);
        CHECK(mismatches(Y, [&](Index, Index) { return special; }) == 0);
      }
    }
  }
}

TEST_CASE("Planes are refused where there are none", "[planes]") {
  for (const GridPtr& grid : all_grids()) {
    const auto refusal = [&](Algorithm algorithm, auto number, Storage storage) {
      using T = decltype(number);
      return ending_of([&] {
               high_plane(
                   dense_operator<T>(grid, algorithm, 4, 6, random_elements<T>(1), {.storage = storage}));
             })
          .text;
    };
    for (const Algorithm algorithm : stationary) {
      INFO(describe(*grid) << ": " << name_of(algorithm));
      CHECK(
          contains(refusal(algorithm, 1.0F, Storage::planes), "a matrix of f32 cannot be stored as planes"));
      CHECK(contains(refusal(algorithm, std::complex<float>(1), Storage::planes),
                     "a matrix of c64 cannot be stored as planes"));
      CHECK(contains(refusal(algorithm, 1.0, Storage::packed), "of 4 x 6 has no high plane"));
      CHECK(contains(refusal(algorithm, 1.0F, Storage::columns), "of 4 x 6 has no high plane"));
      const std::string text = refusal(algorithm, 1.0, Storage::planes);
      CHECK((is_on_host(grid) ? text.empty() : contains(text, "planes are for matrices in host memory")));
    }
    CHECK(contains(refusal(Algorithm::summa, 1.0, Storage::planes), "moves A, so that A cannot be planes"));
    CHECK(contains(ending_of([&] {
                     const Space space{grid, Cut::balanced(Axis::all, 5, *grid), Axis::uncut};
                     high_plane(identity<double>(space));
                   }).text,
                   "of 5 x 5 has no high plane"));
  }
}
