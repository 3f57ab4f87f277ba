// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/base/types.hpp"

#include "support/catch.hpp"
#include "support/reference.hpp"

using namespace gridlops;

TEMPLATE_LIST_TEST_CASE("A scalar type as a type and as a value agree", "[types]", testing::Scalars) {
  constexpr ScalarType type = scalar_type_of<TestType>;
  CHECK(size_of(type) == Index{sizeof(TestType)});
  CHECK(with_scalar_type(type, []<Scalar T>() { return std::same_as<T, TestType>; }));
  CHECK(sizeof(Accumulator<TestType>) == (is_complex<TestType> ? 16 : 8));
}

TEST_CASE("Scalar types have the names that files and options use", "[types]") {
  CHECK(name_of(ScalarType::f32) == "f32");
  CHECK(name_of(ScalarType::f64) == "f64");
  CHECK(name_of(ScalarType::c64) == "c64");
  CHECK(name_of(ScalarType::c128) == "c128");
}

TEST_CASE("Conjugation keeps the type", "[types]") {
  CHECK(conjugate(std::complex<float>(1, 2)) == std::complex<float>(1, -2));
  CHECK(conjugate(3.0) == 3.0);
  STATIC_REQUIRE(std::same_as<decltype(conjugate(1.0F)), float>);
}

TEST_CASE("Ranges intersect, never to a negative size", "[types]") {
  CHECK(intersect({2, 5}, {4, 9}) == Range{4, 3});
  CHECK(intersect({0, 10}, {3, 2}) == Range{3, 2});
  CHECK(intersect({0, 3}, {3, 4}).size == 0);
  CHECK(intersect({0, 2}, {7, 1}).size == 0);
  CHECK(intersect({7, 1}, {0, 2}).size == 0);
  CHECK(intersect({5, 0}, {0, 9}).size == 0);
}
