// SPDX-License-Identifier: BSD-3-Clause
// The contract of a matrix that never moves, which every storage of it keeps.
#include <cmath>
#include <complex>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "gridlops/base/error.hpp"
#include "gridlops/compressed/compressed_matrix.hpp"
#include "gridlops/ops/dot_test.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "gridlops/solve/inversion.hpp"
#include "gridlops/streamed/streamed_matrix.hpp"
#include "gridlops/streamed/streamed_series.hpp"
#include "io/npy_files.hpp"
#include "ops/single_block.hpp"
#include "streamed/scratch_disk.hpp"
#include "support/metered_backend.hpp"
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
  std::shared_ptr<StreamedSeries<T>> series{};  ///< that the matrix is in
};

/// A matrix of integers or of fractions, of which some tiles have full rank, and others the rank 1.
template <Scalar T>
Whole<T> mixed(Index rows, Index cols, bool of_integers) {
  const auto element = [&](std::uint64_t seed, Index i, Index j) {
    return of_integers ? small_integer<T>(seed, i, j) : counter_random<T>(seed, i, j);
  };
  return {rows, cols, dense<T>(rows, cols, [&](Index i, Index j) {
            return j < cols / 2 ? element(1, i, j) : element(2, i, 0) * element(3, 0, j);
          })};
}

/// Those of matrices of T in memory.
template <Scalar T>
std::vector<Storage> storages_of() {
  std::vector<Storage> all;
  for (const StorageRow& row : storage_table)
    if (!row.for_doubles || std::is_same_v<Real<T>, double>) all.push_back(row.storage);
  return all;
}

/// rounds: also in those that are for numbers of usual size, since they round them.
template <Scalar T>
std::vector<Stored<T>> in_every_storage(const GridPtr& grid, const Whole<T>& A, bool rounds = true) {
  const auto on = [&](Algorithm algorithm) {
    return filled(grid, matrix_layout(algorithm, *grid, A.rows, A.cols), A);
  };
  std::vector<Stored<T>> all;
  for (const Storage storage : storages_of<T>()) {
    for (const Algorithm algorithm : {Algorithm::block, Algorithm::stationary_a}) {
      const OperatorPtr<T> op = matrix_mult(algorithm, on(algorithm), {.storage = storage});
      all.push_back({std::string(name_of(algorithm)) + ", " + name_of(storage), op});
      if (storage == Storage::planes && rounds) all.push_back({"high plane", high_plane(op), 0x1p-21});
    }
  }
  all.push_back({"streamed", stream_matrix(on(Algorithm::stationary_a), {.scratch = disk})});
  if (!rounds) return all;
  const double tolerance = std::is_same_v<Real<T>, double> ? 1e-10 : 1e-4;
  const auto backwards = [](Index count) {
    std::vector<Index> order(static_cast<std::size_t>(count));
    std::iota(order.rbegin(), order.rend(), Index{0});
    return order;
  };
  const CompressionOptions options{
      .tolerance = tolerance, .tile = 20, .row_order = backwards(A.rows), .col_order = backwards(A.cols)};
  const DistMatrix<T> dense = on(Algorithm::stationary_a);
  all.push_back({"compressed", compress(dense, options), 2 * tolerance});
  const auto series = std::make_shared<StreamedSeries<T>>(StreamOptions{.scratch = disk, .memory = 0});
  all.push_back({"compressed, in a series", compress(dense, options, *series), 2 * tolerance, series});
  if (grid->is_member()) series->start(0, {0, 1});
  if constexpr (std::is_same_v<Real<T>, double>)
    all.push_back({"in single precision", in_single(dense, std::make_shared<bool>(false), true), 0x1p-24});
  return all;
}

constexpr std::pair<Index, Index> sizes[] = {{0, 3}, {3, 0}, {1, 1}, {2, 5}, {23, 17}, {150, 70}, {3, 600}};

/// The five products of a model X and data Y with integers A, and how far the elements of a result may be off
/// that is ‖A − Ã‖_F away from them for each unit of the tolerance.
template <Scalar T>
struct ExactProducts {
  ExactProducts(const Whole<T>& A, Index columns)
      : X(integers<T>(2, A.cols, columns)),
        Y(integers<T>(3, A.rows, columns)),
        AX(multiplied(Op::none, A, X)),
        AhY(multiplied(Op::adjoint, A, Y)),
        AhAX(multiplied(Op::adjoint, A, AX)) {
    const auto size = [](const Whole<T>& M) {
      double square = 0;
      for (const T& element : M.values) square += std::norm(element);
      return std::sqrt(square);
    };
    const double of_A = size(A);
    in_product = of_A * std::max(size(X), size(Y));
    in_normal_product = 2 * of_A * of_A * size(X);
  }
  Whole<T> X, Y, AX, AhY, AhAX;
  double in_product = 0, in_normal_product = 0;
};

/// Checks the products of an operator, in matrices that lie within NaN.
template <Scalar T>
void check_products(const Stored<T>& stored, const ExactProducts<T>& exact) {
  const LinearOperator<T>& A = *stored.op;
  const GridPtr& grid = A.domain().grid;
  const Layout of_models = A.domain().layout(exact.X.cols), of_data = A.range().layout(exact.X.cols);
  const auto nothing = [](Index, Index) { return quiet_nan<T>(); };
  EmbeddedMatrix<T> X(grid, of_models, 1, exact.X), Y(grid, of_data, 2, exact.Y);
  const double near = stored.tolerance * exact.in_product;
  for (const auto& [alpha, beta] : {std::pair<T, T>{T(1), T(0)}, {number<T>(1, 2), number<T>(3, -1)}}) {
    EmbeddedMatrix<T> AX(grid, of_data, 1, exact.Y), AhY(grid, of_models, 3, exact.X);
    DistMatrix<T> forward = AX.matrix(), adjoint = AhY.matrix();
    if (beta == T(0)) {
      forward.fill(nothing);
      adjoint.fill(nothing);
    }
    A.apply(alpha, X.matrix(), beta, forward);
    A.apply_adjoint(alpha, Y.matrix(), beta, adjoint);
    const auto combined = [a = alpha, b = beta](const Whole<T>& product, const Whole<T>& old) {
      return [&product, &old, a, b](Index i, Index j) {
        return b == T(0) ? a * product(i, j) : a * product(i, j) + b * old(i, j);
      };
    };
    CHECK(mismatches(forward, combined(exact.AX, exact.Y), 3 * near) == 0);
    CHECK(mismatches(adjoint, combined(exact.AhY, exact.X), 3 * near) == 0);
    CHECK((AX.surroundings_untouched() && AhY.surroundings_untouched()));
  }
  EmbeddedMatrix<T> Q(grid, of_data, 1, nothing), U(grid, of_models, 1, nothing),
      V(grid, of_models, 2, nothing);
  DistMatrix<T> AX = Q.matrix(), AhY = U.matrix(), AhAX = V.matrix();
  A.normal_product(X.matrix(), Y.matrix(), AX, AhY, AhAX);
  CHECK(mismatches(AX, exact.AX, near) == 0);
  CHECK(mismatches(AhY, exact.AhY, near) == 0);
  CHECK(mismatches(AhAX, exact.AhAX, stored.tolerance * exact.in_normal_product) == 0);
  CHECK((Q.surroundings_untouched() && U.surroundings_untouched() && V.surroundings_untouched()));
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("A matrix multiplies as its elements do, in every storage", "[block_contract]",
                        Scalars) {
  using T = TestType;
  for (const auto& [rows, cols] : sizes) {
    const Whole<T> A = mixed<T>(rows, cols, true);
    std::vector<ExactProducts<T>> products;
    for (const Index columns : {7, 0, 1, 130}) products.emplace_back(A, columns);
    for (const GridPtr& grid : all_grids()) {
      if (!grid->is_member() || !is_on_host(grid)) continue;
      for (const Stored<T>& stored : in_every_storage(grid, A)) {
        for (const ExactProducts<T>& exact : products) {
          INFO(stored.name << ' ' << describe(*grid) << ": A " << rows << " x " << cols << ", "
                           << exact.X.cols << " columns");
          check_products(stored, exact);
        }
        INFO(stored.name << ' ' << describe(*grid));
        CHECK(dot_test(*stored.op).passed);
      }
    }
  }
}

TEST_CASE("Products take memory the first time only, in every storage", "[block_contract]") {
  using T = double;
  const Whole<T> A = integers<T>(1, 150, 70);
  for (const GridPtr& grid : all_grids([] { return std::make_shared<MeteredBackend>(make_backend()); })) {
    if (!grid->is_member() || !is_on_host(grid)) continue;
    auto& memory = dynamic_cast<MeteredBackend&>(*grid->backend());
    for (const auto& [name, op, tolerance, series] : in_every_storage(grid, A)) {
      INFO(name << ' ' << describe(*grid));
      const auto multiply = [&, A = op](Index columns) {
        const DistMatrix<T> X = filled(grid, A->domain().layout(columns), integers<T>(2, 70, columns)),
                            Y = filled(grid, A->range().layout(columns), integers<T>(3, 150, columns));
        DistMatrix<T> AX(grid, Y.layout()), AhY(grid, X.layout()), AhAX(grid, X.layout());
        memory.forget_most();
        const Index before = memory.bytes_in_use();
        A->apply(1, X, 0, AX);
        A->apply_adjoint(1, Y, 0, AhY);
        A->normal_product(X, Y, AX, AhY, AhAX);
        return memory.most_bytes_in_use() - before;
      };
      multiply(9);
      CHECK(multiply(9) == 0);
      CHECK(multiply(4) == 0);
    }
  }
}

TEMPLATE_TEST_CASE("A block takes the memory that was planned for it, and says so, in every storage",
                   "[block_contract]", double, std::complex<double>, std::complex<float>) {
  using T = TestType;
  const ScratchFolder folder(disk);
  const std::string saved = folder.file("saved");
  const auto backend = std::make_shared<MeteredBackend>();
  const std::vector<GridPtr> grids = grids_of(all_shapes(world().size()), [&] { return backend; });
  for (const auto& [m, n] : {std::pair<Index, Index>{0, 3}, {3, 0}, {2, 5}, {23, 17}, {901, 470}}) {
    const Index rows = m, cols = n;
    const Whole<T> A = mixed<T>(rows, cols, false);
    const auto on = [&](const GridPtr& grid, Algorithm algorithm) {
      return filled(grid, matrix_layout(algorithm, *grid, rows, cols), A);
    };
    const std::string directory = saved + std::to_string(rows);
    compress(on(grids.front(), Algorithm::stationary_a),
             {.tolerance = 1e-4, .tile = 20, .directory = directory});
    const MatrixHeader header = read_compressed_header(world(), directory);
    const SavedCompressed known(world(), directory);
    for (const GridPtr& grid : grids) {
      const int row = grid->is_member() ? grid->my_row() : 0, col = grid->is_member() ? grid->my_col() : 0;
      const auto check = [&](const char* name, Index planned, const std::function<OperatorPtr<T>()>& make) {
        const Index before = backend->bytes_in_use();
        const OperatorPtr<T> op = make();
        if (!grid->is_member()) return;
        LocalBlock<T>& block = *matrix_in_blocks(*op)->local_block();
        block.reserve(ProductKind::forward, 0);
        KeptBytes kept;
        block.add_kept_bytes(kept);
        INFO(name << ' ' << describe(*grid) << ": A " << rows << " x " << cols);
        CHECK(kept.total() == planned);
        CHECK(backend->bytes_in_use() - before == planned);
      };
      for (const Storage storage : storages_of<T>()) {
        for (const Algorithm algorithm : {Algorithm::block, Algorithm::stationary_a}) {
          const Layout layout = matrix_layout(algorithm, *grid, rows, cols);
          check(name_of(storage),
                block_bytes<T>(storage, layout.row_range(*grid, row, col).size,
                               layout.col_range(*grid, row, col).size),
                [&] {
                  const OperatorPtr<T> op = matrix_mult(algorithm, on(grid, algorithm), {.storage = storage});
                  CHECK(block_hash(*op).has_value() == grid->is_member());
                  return op;
                });
        }
      }
      const DistMatrix<T> dense = on(grid, Algorithm::stationary_a);
      for (const Index memory : {Index{0}, Index{1} << 21, Index{1} << 28}) {
        const StreamOptions on_disk{.scratch = folder.file(""), .memory = memory};
        check("streamed", streamed_sizes<T>(rows, cols, 1, grid->shape(), row, col, memory).memory,
              [&] { return stream_matrix(dense, on_disk); });
        const StreamedSizes sizes = known.sizes_on_disk(grid->shape(), row, col, 0, memory);
        check("compressed, on disks", sizes.memory + sizes.workspace,
              [&] { return read_compressed<T>(grid, directory, header, on_disk); });
      }
      check("compressed", known.bytes_of_rank(grid->shape(), row, col, 0),
            [&] { return read_compressed<T>(grid, directory, header); });
    }
  }
}

TEMPLATE_LIST_TEST_CASE(
    "The rows of a block are visited in order, and those of its adjoint where it has columns, in every "
    "storage",
    "[block_contract]", Scalars) {
  using T = TestType;
  for (const auto& [rows, cols] : sizes) {
    const Whole<T> A = mixed<T>(rows, cols, false);
    for (const GridPtr& grid : all_grids()) {
      if (!grid->is_member() || !is_on_host(grid)) continue;
      for (const auto& [name, op, tolerance, series] : in_every_storage(grid, A)) {
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
          const double near = 2 * tolerance * std::sqrt(static_cast<double>(rows * cols));
          for (const Op of : {Op::none, Op::adjoint}) {
            if (of == Op::adjoint && !matrix.block_facts().has_columns) continue;
            const Index height = of == Op::none ? block_rows.size : block_cols.size,
                        width = of == Op::none ? block_cols.size : block_rows.size;
            const auto element = [&](Index i, Index j) {
              return of == Op::none ? A(block_rows.begin + i, block_cols.begin + j)
                                    : conjugate(A(block_rows.begin + j, block_cols.begin + i));
            };
            Index next = 0, wrong = 0;
            FailureScope failures;
            const auto compare = [&](Range visited, MatrixView<const T> elements) {
              CHECK((visited.begin == next && elements.rows == visited.size && elements.cols == width));
              next = visited.end();
              for (Index j = 0; j < elements.cols; ++j)
                for (Index i = 0; i < elements.rows; ++i)
                  if (!(std::abs(elements(i, j) - element(visited.begin + i, j)) <= near)) ++wrong;
            };
            visit_rows<T>(matrix, of, *grid, true, failures, compare, [] {});
            failures.settle(grid->comm());
            CHECK(wrong == 0);
            if (width > 0) CHECK(next == height);
          }
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
      Whole<T> A = mixed<T>(rows, cols, true);
      for (T& element : A.values) element *= static_cast<Real<T>>(scale);
      std::vector<double> expected;
      for (Index j = 0; j < cols; ++j) {
        long double sum = 0;
        for (Index i = 0; i < rows; ++i) sum += std::norm(extended(A(i, j)));
        expected.push_back(static_cast<double>(std::sqrt(sum)));
      }
      for (const GridPtr& grid : all_grids()) {
        if (!is_on_host(grid)) continue;
        for (const auto& [name, op, tolerance, series] : in_every_storage(grid, A, scale == 1)) {
          INFO(name << ' ' << describe(*grid) << ": A " << rows << " x " << cols << ", times " << scale);
          const std::vector<double> norms = column_norms(*op);
          const double near = tolerance * 18 * std::sqrt(static_cast<double>(rows * cols));
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

TEMPLATE_LIST_TEST_CASE("The rows of a block in many slabs on a disk are visited, before and after products",
                        "[block_contract]", Scalars) {
  using T = TestType;
  constexpr Index rows = 5001, cols = 701;
  const Element<T> element = random_elements<T>(1);
  for (const GridPtr& grid : compact_grids()) {
    if (!grid->is_member() || !is_on_host(grid)) continue;
    const DistMatrix<T> A = filled(grid, matrix_layout(Algorithm::stationary_a, *grid, rows, cols), element);
    const auto streamed = stream_matrix(A, {.scratch = disk});
    const std::vector<double> exact = column_norms(A);
    const DistMatrix<T> X(grid, streamed->domain().layout(1));
    DistMatrix<T> Y(grid, streamed->range().layout(1));
    const Index disk =
        streamed_sizes<T>(rows, cols, 1, grid->shape(), grid->my_row(), grid->my_col(), 0).disk;
    INFO(describe(*grid));
    CHECK((disk > 0 || sizeof(T) < 16));
    for (const bool has_multiplied : {false, true}) {
      if (has_multiplied) streamed->apply(1, X, 0, Y);
      const Index before = streamed->bytes_read();
      const std::vector<double> norms = column_norms(*streamed);
      for (std::size_t j = 0; j < norms.size(); ++j)
        if (std::abs(norms[j] - exact[j]) > 1e-6 * exact[j]) FAIL_CHECK("column " << j << ": " << norms[j]);
      CHECK((streamed->bytes_read() > before) == (disk > 0));
    }
    streamed->apply(1, X, 0, Y);
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
    const auto streamed = stream_matrix(matrix, {.scratch = disk});
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
