// SPDX-License-Identifier: BSD-3-Clause
// The cases of test_stackedarray.py: several arrays as one vector.
#include <limits>

#include "gridlops/dist/column_arithmetic.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "pylops_mpi/whole_arrays.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Member {
  std::vector<Index> sizes;
  int cut;
};
struct Case {
  std::vector<Member> members;  // those after the second are in a stack of their own
  bool complex;
};
const std::vector<Case> cases{
    {{{{500, 501}, 1}, {{500, 501}, 1}}, false},
    {{{{500, 501}, 0}, {{501, 500}, 1}}, true},
    {{{{100, 101, 51}, 0}, {{600}, 0}}, true},
    {{{{500, 501}, 1}, {{500, 501}, 0}, {{100, 101, 51}, 2}, {{600}, 0}}, false},
    {{{{500, 501}, 1}, {{500, 501}, 1}, {{500, 501}, 0}}, true},
};

template <Scalar T>
struct Stack {
  std::vector<Space> spaces;
  Space space;

  Stack(const GridPtr& grid, const std::vector<Member>& members) {
    for (const Member& member : members) spaces.push_back(array_space(grid, member.sizes, member.cut));
    // Nested: a stack of the first two and of a stack of the others.
    const auto split = spaces.begin() + 2;
    std::vector<Space> parts(spaces.begin(), split);
    if (split != spaces.end()) parts.push_back(stack_spaces({split, spaces.end()}));
    space = stack_spaces(parts);
  }
  DistMatrix<T> matrix() const { return DistMatrix<T>(space.grid, space.layout(1)); }
  std::vector<T> array(std::uint64_t seed, std::size_t k) const {
    return random_array<T>(seed + k, spaces[k].dimension());
  }
  DistMatrix<T> random(std::uint64_t seed) const {
    DistMatrix<T> X = matrix();
    for (std::size_t k = 0; k < spaces.size(); ++k) {
      DistMatrix<T> rows = stack_rows(spaces, k, X);
      copy(placed(spaces[k], array(seed, k)), rows);
    }
    return X;
  }
};

template <class Check>
void for_each_stack(Check&& check) {
  const GridPtr grid = line_of_ranks();
  for (const Case& of : cases) {
    CAPTURE(&of - cases.data());
    with_type(of.complex, [&](auto type) { check(Stack<decltype(type)>(grid, of.members), type); });
  }
}

}  // namespace

TEST_CASE("Stacks of arrays are created, and nested stacks have all members in one row", "[pylops_mpi]") {
  for_each_stack([](const auto& stack, auto type) {
    using T = decltype(type);
    CHECK(stack.space == stack_spaces(stack.spaces));
    Index elements = 0;
    for (const Space& member : stack.spaces) elements += member.dimension();
    DistMatrix<T> X = stack.matrix();
    CHECK(X.rows() == elements);
    X.fill([](Index, Index) { return T(1); });
    CHECK(column_norms(X, 1)[0] == static_cast<double>(elements));
    const DistMatrix<T> Y = stack.random(1);
    for (std::size_t k = 0; k < stack.spaces.size(); ++k)
      CHECK(difference<T>(stack_rows<T>(stack.spaces, k, Y), stack.spaces[k], stack.array(1, k)) == 0);
  });
}

TEST_CASE("Stacks of arrays are added, subtracted, scaled, conjugated and multiplied", "[pylops_mpi]") {
  for_each_stack([](const auto& stack, auto type) {
    using T = decltype(type);
    const DistMatrix<T> X = stack.random(1), Y = stack.random(50);
    const auto check = [&](const ConstDistMatrix<T>& result, const auto& expected) {
      for (std::size_t k = 0; k < stack.spaces.size(); ++k) {
        std::vector<T> values = stack.array(1, k);
        const std::vector<T> others = stack.array(50, k);
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = expected(values[i], others[i]);
        CHECK(difference<T>(stack_rows<T>(stack.spaces, k, result), stack.spaces[k], values) <= 1e-15);
      }
    };
    DistMatrix<T> Z = X.clone();
    Z += Y;
    check(Z, [](T a, T b) { return a + b; });
    copy(X, Z);
    Z -= Y;
    check(Z, [](T a, T b) { return a - b; });
    Z *= -2.5;
    check(Z, [](T a, T b) { return -2.5 * (a - b); });
    const OperatorPtr<T> times_X = diagonal<T>(stack.space, X.clone());
    check(applied(*times_X, Y), [](T a, T b) { return a * b; });
    check(applied(*times_X, Y, false), [](T a, T b) { return conjugate(a) * b; });
  });
}

TEST_CASE("Dots and norms of stacks of arrays are those of all members, in one reduction", "[pylops_mpi]") {
  for_each_stack([](const auto& stack, auto type) {
    using T = decltype(type);
    const DistMatrix<T> X = stack.random(1), Y = stack.random(50);
    Extended<T> dot{};
    long double ones = 0, squares = 0, most = 0, count = 0;
    for (std::size_t k = 0; k < stack.spaces.size(); ++k) {
      const std::vector<T> x = stack.array(1, k), y = stack.array(50, k);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const long double m = std::abs(extended(x[i]));
        dot += extended(conjugate(x[i])) * extended(y[i]);
        ones += m, squares += m * m, most = std::max(most, m), count += 1;
      }
    }
    const TrafficSince traffic(X.grid()->comm());
    const auto found = column_dots(X, Y)[0];
    CHECK(traffic.calls() == 1);
    CHECK(std::abs(found - rounded<T>(dot)) <= 1e-14 * static_cast<double>(squares));
    const auto check = [&](double order, long double expected) {
      CAPTURE(order);
      CHECK(std::abs(column_norms(X, order)[0] / static_cast<double>(expected) - 1) <= 1e-13);
    };
    check(0, count);
    check(1, ones);
    check(2, std::sqrt(squares));
    check(infinity, most);
  });
}
