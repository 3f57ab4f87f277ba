// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/ops/dot_test.hpp"

#include "gridlops/base/error.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "support/test_data.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

/// Applies one operator forwards and the adjoint of another backwards.
template <Scalar T>
class Mismatched final : public LinearOperator<T> {
 public:
  Mismatched(OperatorPtr<T> forwards, OperatorPtr<T> backwards)
      : LinearOperator<T>(forwards->range(), forwards->domain()),
        forwards_(std::move(forwards)),
        backwards_(std::move(backwards)) {}

 private:
  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    forwards_->apply(alpha, X, beta, Y);
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    backwards_->apply_adjoint(alpha, Y, beta, X);
  }
  OperatorPtr<T> forwards_, backwards_;
};

template <Scalar T, class Function>
OperatorPtr<T> matrix_operator(const GridPtr& grid, Algorithm algorithm, Index rows, Index cols,
                               Function&& value) {
  DistMatrix<T> A(grid, matrix_layout(algorithm, *grid, rows, cols));
  A.fill(value);
  return matrix_mult(algorithm, std::move(A), MatrixMultOptions{});
}

template <Scalar T>
T entry(Index i, Index j) {
  return counter_random<T>(7, i, j);
}

/// All ranks of the grid have the same result, and this one is it.
void check_same_on_all(const ProcessGrid& grid, const DotTestResult& result) {
  if (!grid.is_member()) {
    CHECK(result.passed);
    return;
  }
  std::array<double, 2> most{result.mismatch, result.passed ? 1.0 : 0.0};
  std::array<double, 2> least = most;
  grid.comm().all_reduce(most, ReduceOp::max);
  grid.comm().all_reduce(least, ReduceOp::min);
  CHECK(most[1] == least[1]);
  if (!std::isnan(result.mismatch)) CHECK(most[0] == least[0]);
}

/// The dot test of an operator whose adjoint is that of another matrix.
template <Scalar T, class Forwards, class Backwards>
DotTestResult test_mismatched(const GridPtr& grid, Algorithm algorithm, Forwards&& forwards,
                              Backwards&& backwards) {
  const Mismatched<T> op(matrix_operator<T>(grid, algorithm, 9, 6, forwards),
                         matrix_operator<T>(grid, algorithm, 9, 6, backwards));
  const DotTestResult result = dot_test(op);
  check_same_on_all(*grid, result);
  return result;
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("Matrices of every algorithm and shape pass the dot test", "[dot_test]", Scalars) {
  using T = TestType;
  for (const GridPtr& grid : all_grids()) {
    for (const Algorithm algorithm : all_algorithms) {
      for (const auto& shape : {std::pair<Index, Index>{9, 6}, {1, 1}, {0, 4}, {4, 0}, {60, 110}}) {
        INFO(describe(*grid) << ": " << name_of(algorithm) << ", " << shape.first << " x " << shape.second);
        const OperatorPtr<T> op = matrix_operator<T>(grid, algorithm, shape.first, shape.second, entry<T>);
        for (const std::uint64_t seed : {1U, 2U, 3U}) {
          const DotTestResult result = dot_test(*op, 4, 0, seed);
          CHECK(result.passed);
          CHECK(result.mismatch <= result.tolerance);
          check_same_on_all(*grid, result);
        }
      }
    }
  }
}

TEMPLATE_LIST_TEST_CASE("An adjoint that forgets the conjugate fails the dot test", "[dot_test]", Scalars) {
  using T = TestType;
  const auto conjugated = [](Index i, Index j) { return conjugate(entry<T>(i, j)); };
  for (const GridPtr& grid : all_grids()) {
    for (const Algorithm algorithm : all_algorithms) {
      INFO(describe(*grid) << ": " << name_of(algorithm));
      const DotTestResult result = test_mismatched<T>(grid, algorithm, entry<T>, conjugated);
      if (!grid->is_member()) continue;
      CHECK(result.passed == !is_complex<T>);
      CHECK((result.mismatch > result.tolerance) == is_complex<T>);
    }
  }
}

TEMPLATE_LIST_TEST_CASE("An adjoint that is wrong in one entry fails the dot test", "[dot_test]", Scalars) {
  using T = TestType;
  for (const GridPtr& grid : all_grids()) {
    for (const auto& place : {std::pair<Index, Index>{0, 0}, {8, 5}, {3, 4}}) {
      const auto altered = [&](Index i, Index j) {
        return entry<T>(i, j) + (i == place.first && j == place.second ? T(Real<T>(1e-3)) : T(0));
      };
      for (const Algorithm algorithm : all_algorithms) {
        INFO(describe(*grid) << ": " << name_of(algorithm) << ", entry " << place.first << ", "
                             << place.second);
        const DotTestResult result = test_mismatched<T>(grid, algorithm, entry<T>, altered);
        if (grid->is_member()) CHECK_FALSE(result.passed);
      }
    }
  }
}

TEMPLATE_LIST_TEST_CASE("Numbers that are not finite fail the dot test", "[dot_test]", Scalars) {
  using T = TestType;
  const T infinity(std::numeric_limits<Real<T>>::infinity());
  for (const T bad : {quiet_nan<T>(), infinity, -infinity}) {
    const auto spoilt = [&](Index i, Index j) { return i == 2 && j == 3 ? bad : entry<T>(i, j); };
    for (const GridPtr& grid : all_grids()) {
      for (const Algorithm algorithm : all_algorithms) {
        INFO(describe(*grid) << ": " << name_of(algorithm) << ", " << bad);
        for (const DotTestResult& result : {test_mismatched<T>(grid, algorithm, spoilt, spoilt),
                                            test_mismatched<T>(grid, algorithm, spoilt, entry<T>),
                                            test_mismatched<T>(grid, algorithm, entry<T>, spoilt)}) {
          if (!grid->is_member()) continue;
          CHECK_FALSE(result.passed);
          CHECK_FALSE(result.mismatch <= result.tolerance);
        }
      }
    }
  }
}

TEST_CASE("The tolerance of a dot test can be given", "[dot_test]") {
  for (const GridPtr& grid : all_grids()) {
    INFO(describe(*grid));
    const auto altered = [](Index i, Index j) { return entry<double>(i, j) + (i + j == 3 ? 1e-6 : 0.0); };
    const Mismatched<double> op(matrix_operator<double>(grid, Algorithm::summa, 9, 6, entry<double>),
                                matrix_operator<double>(grid, Algorithm::summa, 9, 6, altered));
    CHECK(dot_test(op, 3, 1e-4).passed);
    CHECK(dot_test(op, 3, 1e-4).tolerance == 1e-4);
    CHECK(dot_test(op).tolerance == 4 * std::sqrt(15.0) * std::numeric_limits<double>::epsilon());
    if (grid->is_member()) CHECK_FALSE(dot_test(op, 3, 1e-12).passed);
    CHECK_THROWS_AS(dot_test(op, 0), UsageError);
    CHECK_THROWS_AS(dot_test(op, -1), UsageError);
    CHECK_THROWS_AS(dot_test(op, 3, -1e-3), UsageError);
    CHECK_THROWS_AS(dot_test(op, 3, quiet_nan<double>()), UsageError);
  }
}

TEST_CASE("The zero operator passes the dot test with no mismatch", "[dot_test]") {
  for (const GridPtr& grid : all_grids()) {
    INFO(describe(*grid));
    const Space space{grid, Cut::balanced(Axis::grid_rows, 5, *grid), Axis::grid_cols};
    const DotTestResult result = dot_test(*zero<float>(space, space));
    CHECK(result.passed);
    CHECK(result.mismatch == 0);
  }
}

TEMPLATE_LIST_TEST_CASE("Operators of every size are tested as they are", "[dot_test]", Scalars) {
  using T = TestType;
  using R = Real<T>;
  constexpr bool is_double = sizeof(R) == 8;
  // From where squares vanish, or even values are denormal, to where squares overflow.
  const std::vector<double> sizes = is_double ? std::vector<double>{1e-315, 1e-290, 1e-170, 1e160, 1e300}
                                              : std::vector<double>{1e-42, 1e-36, 1e-25, 1e25, 1e36};
  for (const GridPtr& grid : compact_grids()) {
    for (const Algorithm algorithm : {Algorithm::summa, Algorithm::stationary_a}) {
      for (const double size : sizes) {
        const auto times = [size](double factor) {
          return [size, factor](Index i, Index j) { return entry<T>(i, j) * static_cast<R>(factor * size); };
        };
        const auto zero_entry = [](Index, Index) { return T(0); };
        INFO(describe(*grid) << ": " << name_of(algorithm) << ", " << size);
        const DotTestResult right = test_mismatched<T>(grid, algorithm, times(1), times(1)),
                            wrong = test_mismatched<T>(grid, algorithm, times(1), times(1.5)),
                            none = test_mismatched<T>(grid, algorithm, times(1), zero_entry),
                            tiny = test_mismatched<T>(grid, algorithm, times(1),
                                                      [](Index i, Index j) { return entry<T>(i, j); });
        if (!grid->is_member()) continue;
        CHECK(right.passed);
        CHECK(right.mismatch <= right.tolerance);
        for (const DotTestResult& result : {wrong, none, tiny}) {
          CHECK_FALSE(result.passed);
          CHECK(std::isfinite(result.mismatch));
        }
      }
    }
  }
}
