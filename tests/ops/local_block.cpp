// SPDX-License-Identifier: BSD-3-Clause
// A new way to store a matrix that never moves is a LocalBlock, and nothing else.
#include "ops/single_block.hpp"

#include <complex>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "gridlops/base/error.hpp"
#include "gridlops/ops/dot_test.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "gridlops/solve/factor.hpp"
#include "support/agreed_failures.hpp"
#include "support/problems.hpp"
#include "support/test_data.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

using Doubles = std::tuple<double, std::complex<double>>;

template <Scalar T>
DistMatrix<T> matrix_of(const GridPtr& grid, const Whole<T>& A) {
  return filled(grid, matrix_layout(Algorithm::stationary_a, *grid, A.rows, A.cols), A);
}

bool is_on_host(const GridPtr& grid) { return grid->backend()->memory_space() == MemorySpace::host; }

}  // namespace

TEMPLATE_LIST_TEST_CASE("A block of a new kind multiplies as an operator, also in normal products",
                        "[local_block]", Doubles) {
  using T = TestType;
  for (const auto& [rows, cols] : {std::pair<Index, Index>{0, 3}, {3, 0}, {1, 1}, {2, 5}, {23, 17}}) {
    const Whole<T> A = integers<T>(1, rows, cols);
    for (const GridPtr& grid : all_grids()) {
      if (!grid->is_member() || !is_on_host(grid)) continue;
      const auto works = std::make_shared<bool>(false);
      const auto single = in_single(matrix_of(grid, A), works, false),
                 joined = in_single(matrix_of(grid, A), works, true);
      const OperatorPtr<T> columns = matrix_mult(Algorithm::stationary_a, matrix_of(grid, A));
      for (const Index nrhs : {0, 1, 4, 130}) {
        INFO(describe(*grid) << ": A " << rows << " x " << cols << ", " << nrhs << " columns");
        const Whole<T> X = integers<T>(2, cols, nrhs), Y = integers<T>(3, rows, nrhs);
        CHECK(products(*single, X, Y) == products(*columns, X, Y));
        CHECK(products(*joined, X, Y) == products(*columns, X, Y));
      }
      CHECK(dot_test(*single).passed);
      CHECK(dot_test(*joined).passed);
    }
  }
}

TEST_CASE("A block that fails on one rank is an error on all, and not for good", "[local_block]") {
  using T = double;
  const Whole<T> A = integers<T>(1, 12, 7), X = integers<T>(2, 7, 3), Y = integers<T>(3, 12, 3);
  for (const GridPtr& grid : all_grids()) {
    if (!grid->is_member() || !is_on_host(grid)) continue;
    INFO(describe(*grid));
    for (const bool joins : {false, true}) {
      const auto fails = std::make_shared<bool>(false);
      const auto A_in_single = in_single(matrix_of(grid, A), fails, joins);
      const LinearOperator<T>& op = *A_in_single;
      const std::vector<T> before = products(op, X, Y);
      const DistMatrix<T> model = filled(grid, op.domain().layout(3), X),
                          data = filled(grid, op.range().layout(3), Y);
      DistMatrix<T> Q(grid, data.layout()), U(grid, model.layout()), V(grid, model.layout());
      const int last = grid->shape().size() - 1;
      *fails = grid->comm().rank() == last;
      const auto fails_alike = [&](const std::function<void()>& multiply) {
        check_agreed<InputError>(*grid, last, "a block cannot be read", multiply);
      };
      fails_alike([&] { op.apply(1, model, 0, Q); });
      fails_alike([&] { op.apply_adjoint(1, data, 0, U); });
      fails_alike([&] { op.normal_product(model, data, Q, U, V); });
      fails_alike([&] { column_norms(op); });
      fails_alike([&] { factor(op); });
      *fails = false;
      CHECK(products(op, X, Y) == before);
    }
  }
}

TEST_CASE("Operators on one grid that share products count their memory once", "[local_block]") {
  using T = double;
  for (const GridPtr& grid : all_grids()) {
    if (!grid->is_member() || !is_on_host(grid)) continue;
    INFO(describe(*grid));
    const auto fails = std::make_shared<bool>(false);
    const auto small = in_single(matrix_of(grid, integers<T>(1, 5, 3)), fails, false),
               large = in_single(matrix_of(grid, integers<T>(2, 40, 30)), fails, false);
    const Partition columns = Partition::with_sizes({4}), none;
    KeptBytes kept;
    for (const auto& op : {small, large, small}) op->add_kept_bytes(kept, columns);
    CHECK(large->kept_bytes(none) == 4 * matrix_of(grid, integers<T>(2, 40, 30)).local().size());
    CHECK(kept.total() == small->kept_bytes(none) + large->kept_bytes(columns));
  }
}
