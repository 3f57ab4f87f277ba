// SPDX-License-Identifier: BSD-3-Clause
// However a matrix that never moves is stored, its elements can be visited, and have one norm.
#include <cmath>
#include <complex>
#include <string>
#include <utility>
#include <vector>

#include "gridlops/base/error.hpp"
#include "gridlops/compressed/compressed_matrix.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "gridlops/solve/inversion.hpp"
#include "gridlops/streamed/streamed_matrix.hpp"
#include "ops/matrix/local_block.hpp"
#include "support/problems.hpp"
#include "support/test_data.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

/// A matrix in one of its storages. tolerance: of its elements, relative to the norm of all.
template <Scalar T>
struct Stored {
  std::string name;
  OperatorPtr<T> op;
  double tolerance = 0;
};

/// rounds: also in those that are for numbers of usual size, since they round them.
template <Scalar T>
std::vector<Stored<T>> in_every_storage(const GridPtr& grid, const Whole<T>& A, bool rounds = true) {
  const auto on = [&](Algorithm algorithm) {
    return filled(grid, matrix_layout(algorithm, *grid, A.rows, A.cols), A);
  };
  std::vector<Stored<T>> all;
  std::vector<Storage> storages{Storage::columns, Storage::packed};
  if (std::is_same_v<Real<T>, double>) storages.push_back(Storage::planes);
  for (const Storage storage : storages) {
    for (const Algorithm algorithm : {Algorithm::block, Algorithm::stationary_a}) {
      const OperatorPtr<T> op = matrix_mult(algorithm, on(algorithm), {.storage = storage});
      all.push_back({std::string(name_of(algorithm)) + ", " + name_of(storage), op});
      if (storage == Storage::planes && rounds) all.push_back({"high plane", high_plane(op), 0x1p-21});
    }
  }
  for (const Index memory : {Index{0}, Index{1} << 30})
    all.push_back({"streamed", stream_matrix(on(Algorithm::stationary_a), {.memory = memory})});
  if (!rounds) return all;
  const double tolerance = std::is_same_v<Real<T>, double> ? 1e-10 : 1e-4;
  all.push_back({"compressed", compress(on(Algorithm::stationary_a), {.tolerance = tolerance, .tile = 20}),
                 2 * tolerance});
  return all;
}

constexpr std::pair<Index, Index> sizes[] = {{0, 3}, {3, 0}, {1, 1}, {2, 5}, {23, 17}, {150, 70}};

bool is_on_host(const GridPtr& grid) { return grid->backend()->memory_space() == MemorySpace::host; }

}  // namespace

TEMPLATE_LIST_TEST_CASE("The rows of a block are visited in order, in every storage", "[block_contract]",
                        Scalars) {
  using T = TestType;
  for (const auto& [rows, cols] : sizes) {
    const Whole<T> A = fractions<T>(1, rows, cols);
    for (const GridPtr& grid : all_grids()) {
      if (!grid->is_member() || !is_on_host(grid)) continue;
      for (const auto& [name, op, tolerance] : in_every_storage(grid, A)) {
        const DistMatrix<T> X(grid, op->domain().layout(2)), Y(grid, op->range().layout(2));
        for (const bool has_multiplied : {false, true}) {
          INFO(name << ' ' << describe(*grid) << ": A " << rows << " x " << cols
                    << ", multiplied before: " << has_multiplied);
          DistMatrix<T> result(grid, op->range().layout(2));
          if (has_multiplied) op->apply(T(1), X, T(0), result);
          const auto& matrix = dynamic_cast<const MatrixInBlocks<T>&>(*op);
          const Layout& layout = matrix.layout_of_matrix();
          const Range block_rows = layout.row_range(*grid, grid->my_row(), grid->my_col()),
                      block_cols = layout.col_range(*grid, grid->my_row(), grid->my_col());
          Index next = 0, wrong = 0;
          matrix.local_block()->visit_rows(*grid, [&](Range visited, MatrixView<const T> elements) {
            CHECK(
                (visited.begin == next && elements.rows == visited.size && elements.cols == block_cols.size));
            next = visited.end();
            const double near = tolerance * std::sqrt(2 * static_cast<double>(rows * cols));
            for (Index j = 0; j < elements.cols; ++j)
              for (Index i = 0; i < elements.rows; ++i)
                if (!(std::abs(elements(i, j) -
                               A(block_rows.begin + visited.begin + i, block_cols.begin + j)) <= near))
                  ++wrong;
          });
          CHECK(wrong == 0);
          if (block_cols.size > 0) CHECK(next == block_rows.size);
        }
      }
    }
  }
}

TEMPLATE_LIST_TEST_CASE("The norms of columns are those of the elements, in every storage and of any size",
                        "[block_contract]", Scalars) {
  using T = TestType;
  const auto most = static_cast<double>(std::numeric_limits<Real<T>>::max());
  for (const double scale : {1.0, most / 256, 256 / most}) {
    for (const auto& [rows, cols] : sizes) {
      Whole<T> A = integers<T>(1, rows, cols);
      for (T& element : A.values) element *= static_cast<Real<T>>(scale);
      std::vector<double> expected;
      for (Index j = 0; j < cols; ++j) {
        long double sum = 0;
        for (Index i = 0; i < rows; ++i) sum += std::norm(extended(A(i, j)));
        expected.push_back(static_cast<double>(std::sqrt(sum)));
      }
      for (const GridPtr& grid : all_grids()) {
        if (!is_on_host(grid)) continue;
        for (const auto& [name, op, tolerance] : in_every_storage(grid, A, scale == 1)) {
          INFO(name << ' ' << describe(*grid) << ": A " << rows << " x " << cols << ", times " << scale);
          const std::vector<double> norms = column_norms(*op);
          const double near = tolerance * 7 * std::sqrt(static_cast<double>(rows * cols));
          Index wrong = 0;
          for (std::size_t j = 0; j < norms.size(); ++j) {
            const double exact = grid->is_member() ? expected[j] : 0;
            if (!(std::abs(norms[j] - exact) <= near + 1e-14 * exact)) ++wrong;
          }
          CHECK(wrong == 0);
        }
      }
    }
  }
}

TEST_CASE("Operators that move their matrix, or have none, know no norms of columns", "[block_contract]") {
  for (const GridPtr& grid : all_grids()) {
    for (const Algorithm algorithm : {Algorithm::summa, Algorithm::stationary_b}) {
      const auto A = dense_operator<double>(grid, algorithm, 4, 6, random_elements<double>(1));
      CHECK(contains(message_of<UsageError>([&] { column_norms(*A); }), "4 x 6 does not know the norms"));
      CHECK_THROWS_AS(column_scaling(*A), UsageError);
    }
  }
}

TEST_CASE("Columns of a matrix on disks are scaled as those of one in memory", "[block_contract]") {
  using T = double;
  const Whole<T> A = fractions<T>(1, 31, 12), X = fractions<T>(2, 12, 3);
  for (const GridPtr& grid : all_grids()) {
    if (!grid->is_member() || !is_on_host(grid)) continue;
    const DistMatrix<T> matrix = filled(grid, matrix_layout(Algorithm::stationary_a, *grid, 31, 12), A);
    const auto streamed = stream_matrix(matrix);
    const DistMatrix<T> in = filled(grid, streamed->domain().layout(3), X);
    DistMatrix<T> scaled(grid, in.layout()), expected(grid, in.layout());
    column_scaling<T>(*streamed)->apply(1, in, 0, scaled);
    column_scaling(matrix, streamed->domain())->apply(1, in, 0, expected);
    CHECK(mismatches(
              scaled,
              [&](Index i, Index j) { return expected.local()(i - expected.local_row_range().begin, j); },
              1e-14) == 0);
  }
}
