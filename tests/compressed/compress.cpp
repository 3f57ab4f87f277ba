// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/compressed/compressed_matrix.hpp"

#include "compressed/waves.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/ops/dot_test.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "gridlops/ops/slice_groups.hpp"
#include "support/metered_backend.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

/// ‖A − B‖_F, and ‖A‖_F for B = 0.
template <Scalar T, class A, class B>
double distance(Index rows, Index cols, const A& a, const B& b) {
  double sum = 0;
  for (Index j = 0; j < cols; ++j)
    for (Index i = 0; i < rows; ++i)
      sum += std::norm(static_cast<Accumulator<T>>(a(i, j)) - static_cast<Accumulator<T>>(b(i, j)));
  return std::sqrt(sum);
}
template <Scalar T>
constexpr auto zeros = [](Index, Index) { return T(0); };

/// The promises of compress() for any matrix.
template <Scalar T>
CompressionReport check(const GridPtr& grid, Index rows, Index cols, const Element<T>& element,
                        const CompressionOptions& options, int variant = 0) {
  INFO(describe(*grid) << ": " << rows << " x " << cols << ", tolerance " << options.tolerance << ", tile "
                       << options.tile << ", cut in variant " << variant);
  const DistMatrix<T> A = placed<T>(grid, rows, cols, element, variant);
  const CompressedMatrixPtr<T> compressed = compress(A, options);
  const CompressionReport& report = compressed->report();
  const double norm = distance<T>(rows, cols, element, zeros<T>);
  const Whole<T> found = elements_of(*compressed);
  if (grid->is_member()) {
    CHECK(std::abs(report.norm - norm) <= 1e-6 * norm);
    CHECK(report.error <= options.tolerance);
    CHECK(report.dense_bytes == rows * cols * Index{sizeof(T)});
    const double error = distance<T>(rows, cols, element, found), rounding = 100 * epsilon_of<T> * norm;
    CHECK(std::abs(error - report.error * norm) <= rounding);
  }
  CHECK(dot_test(*compressed).passed);

  // Products with any operands are those with the elements of Ã.
  for (const Index nrhs : {0, 1, 5}) {
    for (const bool forward : {true, false}) {
      const Space &from = forward ? compressed->domain() : compressed->range(),
                  &to = forward ? compressed->range() : compressed->domain();
      const Whole<T> in = fractions<T>(2, from.dimension(), nrhs),
                     old = fractions<T>(3, to.dimension(), nrhs),
                     product = multiplied(forward ? Op::none : Op::adjoint, found, in);
      for (const auto& [alpha, beta] : {std::pair{T(1), T(0)}, {number<T>(1, 2), number<T>(3, -1)}}) {
        EmbeddedMatrix<T> X(grid, from.layout(nrhs), 2, in),
            Y(grid, to.layout(nrhs), 3,
              [&, beta = beta](Index i, Index j) { return beta == T(0) ? quiet_nan<T>() : old(i, j); });
        DistMatrix<T> out = Y.matrix();
        forward ? compressed->apply(alpha, X.matrix(), beta, out)
                : compressed->apply_adjoint(alpha, X.matrix(), beta, out);
        const auto expected = [&, alpha = alpha, beta = beta](Index i, Index j) {
          return beta == T(0) ? alpha * product(i, j) : alpha * product(i, j) + beta * old(i, j);
        };
        CHECK(mismatches(out, expected, 100 * epsilon_of<T> * (norm + 1)) == 0);
        CHECK(X.surroundings_untouched());
        CHECK(Y.surroundings_untouched());
      }
    }
  }
  return report;
}

constexpr std::array<std::pair<Index, Index>, 9> shapes{
    std::pair<Index, Index>{0, 0}, {0, 5}, {5, 0}, {1, 1}, {1, 7}, {7, 1}, {13, 11}, {41, 30}, {90, 67}};

}  // namespace

TEMPLATE_LIST_TEST_CASE("A compressed matrix is as near as it says, and multiplies as its elements do",
                        "[compressed]", Scalars) {
  using T = TestType;
  for (const GridPtr& grid : all_grids()) {
    for (const auto& [rows, cols] : shapes) {
      const Element<T> waves = Waves<T>{rows, cols};
      check<T>(grid, rows, cols, waves, {.tolerance = 1e-2, .tile = 16});
      check<T>(grid, rows, cols, waves,
               {.tolerance = 1e-4,
                .tile = 24,
                .row_order = Waves<T>::order(rows),
                .col_order = Waves<T>::order(cols)});
    }
  }
}

TEMPLATE_LIST_TEST_CASE("A compressed matrix may be cut anywhere, in tiles of any size", "[compressed]",
                        Scalars) {
  using T = TestType;
  const Index rows = 60, cols = 47;
  for (const GridPtr& grid : compact_grids())
    for (int variant = 1; variant < cut_variants; ++variant)
      for (const Index tile : {1, 7, 1000})
        check<T>(grid, rows, cols, Waves<T>{rows, cols},
                 {.tolerance = 1e-3, .tile = tile, .col_order = Waves<T>::order(cols)}, variant);
}

TEMPLATE_LIST_TEST_CASE("Compression keeps every tolerance, and takes fewer bytes for a larger one",
                        "[compressed]", Scalars) {
  using T = TestType;
  const Index rows = 150, cols = 140;
  for (const GridPtr& grid : compact_grids()) {
    Index before = std::numeric_limits<Index>::max();
    for (const double tolerance : {1e-13, 1e-9, 1e-7, 1e-5, 1e-3, 1e-1, 0.9}) {
      const CompressionReport report = check<T>(grid, rows, cols, Waves<T>{rows, cols, 1.0},
                                                {.tolerance = tolerance,
                                                 .tile = 50,
                                                 .row_order = Waves<T>::order(rows),
                                                 .col_order = Waves<T>::order(cols)});
      if (!grid->is_member()) continue;
      CHECK(report.bytes <= before);
      before = report.bytes;
    }
  }
}

TEMPLATE_LIST_TEST_CASE("Numbers of any size are compressed alike", "[compressed]", Scalars) {
  using T = TestType;
  const Index size = 40;
  const double largest = std::numeric_limits<Real<T>>::max() / 1e4,
               smallest = std::numeric_limits<Real<T>>::min() * 1e4;
  for (const GridPtr& grid : compact_grids()) {
    CompressionReport usual;
    for (const double factor :
         {1.0, std::exp2(std::floor(std::log2(largest))), std::exp2(std::ceil(std::log2(smallest)))}) {
      const DistMatrix<T> A = placed<T>(grid, size, size, [&](Index i, Index j) {
        return static_cast<Real<T>>(factor) * Waves<T>{size, size}(i, j);
      });
      const CompressionReport report = compress(A, {.tolerance = 1e-3, .tile = 20})->report();
      if (factor == 1) usual = report;
      CHECK(std::abs(report.error - usual.error) <= 1e-3 * usual.error);
      CHECK(report.bytes == usual.bytes);
    }
  }
}

TEMPLATE_LIST_TEST_CASE("Tiles are stored in the cheapest way", "[compressed]", Scalars) {
  using T = TestType;
  const Index size = 96;
  const CompressionOptions options{.tolerance = 1e-3, .tile = 200};
  for (const GridPtr& grid : compact_grids()) {
    if (!grid->is_member()) continue;
    const Index blocks = grid->shape().size();
    const CompressionReport nothing = check<T>(grid, size, size, zeros<T>, options);
    CHECK((nothing.error == 0 && nothing.empty_tiles == nothing.tiles && nothing.tiles == blocks));
    const CompressionReport one = check<T>(
        grid, size, size,
        [](Index i, Index j) { return counter_random<T>(1, i, 0) * counter_random<T>(2, j, 0); }, options);
    CHECK((one.dense_tiles == 0 && one.empty_tiles == 0));
    CHECK(one.bytes < one.dense_bytes / 4);
    // A range that is exhausted within a block of random vectors.
    for (const bool has_few_rows : {false, true}) {
      const CompressionReport few =
          check<T>(grid, 256, 256,
                   [&](Index i, Index j) {
                     T sum(0);
                     for (Index k = 0; k < 20; ++k)
                       sum += has_few_rows ? (i % 128 == k ? counter_random<T>(7, i, j) : T(0))
                                           : counter_random<T>(8, i, k) * counter_random<T>(9, j, k);
                     return sum;
                   },
                   {.tolerance = 1e-3, .tile = 300});
      CHECK(few.dense_tiles == 0);
    }
    // Random numbers have no low rank; in bfloat16 their error is 1.7e-3, so float32 it is.
    const CompressionReport noise = check<T>(grid, size, size, random_elements<T>(5), options);
    CHECK(noise.dense_tiles == blocks);
    CHECK(noise.bytes >= size * size * (is_complex<T> ? 8 : 4));
    const CompressionReport rough =
        check<T>(grid, size, size, random_elements<T>(5), {.tolerance = 1e-2, .tile = 200});
    CHECK(rough.dense_tiles == blocks);
    CHECK(rough.bytes < size * size * (is_complex<T> ? 5 : 3));
    // Even a tolerance below rounding is kept: the tile stays as it is.
    const CompressionReport exact =
        check<T>(grid, size, size, random_elements<T>(5), {.tolerance = 1e-15, .tile = 200});
    CHECK(exact.error == 0);
  }
}

TEST_CASE("Products of a compressed matrix send what those of stationary-a send", "[compressed]") {
  using T = std::complex<double>;
  for (const GridPtr& grid : all_grids()) {
    DistMatrix<T> A = placed<T>(grid, 50, 33, Waves<T>{50, 33});
    const CompressedMatrixPtr<T> compressed = compress(A);
    const OperatorPtr<T> dense = matrix_mult(Algorithm::stationary_a, std::move(A));
    CHECK(compressed->domain() == dense->domain());
    CHECK(compressed->range() == dense->range());
    if (!grid->is_member()) continue;
    std::array<Traffic, 2> traffic;
    for (const bool is_dense : {false, true}) {
      const LinearOperator<T>& op = is_dense ? *dense : *compressed;
      DistMatrix<T> X(grid, op.domain().layout(3)), Y(grid, op.range().layout(3));
      X.set_zero();
      op.apply(T(1), X, T(0), Y);
      op.apply_adjoint(T(1), Y, T(0), X);
      const Traffic before = grid->comm().traffic();
      op.apply(T(1), X, T(0), Y);
      op.apply_adjoint(T(1), Y, T(0), X);
      const Traffic& after = grid->comm().traffic();
      traffic[is_dense ? 1 : 0] = {.bytes_sent = after.bytes_sent - before.bytes_sent,
                                   .bytes_received = after.bytes_received - before.bytes_received};
    }
    CHECK(traffic[0].bytes_sent == traffic[1].bytes_sent);
    CHECK(traffic[0].bytes_received == traffic[1].bytes_received);
  }
}

TEST_CASE("What cannot be compressed is refused on all ranks", "[compressed]") {
  const GridPtr grid = all_grids().front();
  const auto refused = [&](const CompressionOptions& options, const std::string& text) {
    const DistMatrix<double> A = placed<double>(grid, 4, 3, random_elements<double>(1));
    CHECK(contains(message_of<UsageError>([&] { compress(A, options); }), text));
  };
  refused({.tolerance = 0}, "the tolerance is 0");
  refused({.tolerance = 1}, "the tolerance is 1");
  refused({.tolerance = std::nan("")}, "the tolerance is nan");
  refused({.tile = 0}, "tiles cannot have 0 rows");
  refused({.row_order = {0, 1, 2}}, "there are 4 rows, and their order has 3 indices");
  refused({.col_order = {0, 2, 2}}, "index number 2 of the order of columns is 2");
  refused({.col_order = {0, 1, 3}}, "index number 2 of the order of columns is 3");

  const DistMatrix<double> A =
      placed<double>(grid, 4, 3, [](Index i, Index j) { return i == 2 && j == 1 ? std::nan("") : 1.0; });
  CHECK(contains(message_of<UsageError>([&] { compress(A); }), "element (2, 1) of the matrix is"));
  const DistMatrix<double> whole(grid, replicated(4, 3));
  CHECK_THROWS_AS(compress(whole), ShapeError);
}

TEST_CASE("Compressed matrices on a grid take what products take once", "[compressed]") {
  using T = double;
  const auto backend = std::make_shared<MeteredBackend>();
  for (const GridPtr& grid : grids_of(all_shapes(world().size()), [&] { return backend; })) {
    if (!grid->is_member()) continue;
    std::vector<OperatorPtr<T>> slices;
    for (const Index offset : {0, 5})
      slices.push_back(compress(filled(grid, matrix_layout(Algorithm::stationary_a, *grid, 90, 67),
                                       [=](Index i, Index j) { return 1 / T(1 + offset + i + j); }),
                                {.tolerance = 1e-6, .tile = 16}));
    const auto apply = [](const LinearOperator<T>& A) {
      DistMatrix<T> X(A.domain().grid, A.domain().layout(7)), Y(A.range().grid, A.range().layout(7));
      A.apply(1, X, 0, Y);
      A.apply_adjoint(1, Y, 0, X);
      release_scratch(*A.domain().grid);
    };
    apply(*slices[0]);
    const Index with_one = backend->bytes_in_use();
    apply(*slices[1]);
    CHECK(backend->bytes_in_use() == with_one);
    const Partition columns = Partition::with_sizes({7}), none;
    Index kept = 0, most = 0;
    for (const OperatorPtr<T>& slice : slices) {
      kept += slice->kept_bytes(none);
      most = std::max(most, slice->kept_bytes(columns) - slice->kept_bytes(none));
    }
    const SliceGroups groups(grid, {{90, 67, 7}, {90, 67, 7}}, {{grid->shape(), 2}});
    std::vector<OperatorPtr<T>> of_group;
    for (const Index offset : {0, 5})
      of_group.push_back(compress(
          filled(groups.own_grid(), matrix_layout(Algorithm::stationary_a, *groups.own_grid(), 90, 67),
                 [=](Index i, Index j) { return 1 / T(1 + offset + i + j); }),
          {.tolerance = 1e-6, .tile = 16}));
    CHECK(grouped_slices<T>(groups, of_group)->kept_bytes(columns) == kept + most);
  }
}
