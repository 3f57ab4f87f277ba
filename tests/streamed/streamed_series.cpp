// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/streamed/streamed_series.hpp"

#include <map>
#include <utility>
#include <vector>

#include "compressed/waves.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/compressed/compressed_matrix.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "gridlops/ops/slice_groups.hpp"
#include "io/npy_files.hpp"
#include "streamed/scratch_disk.hpp"
#include "support/metered_backend.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

constexpr Index few = 0, some = Index{3} << 20, all = Index{1} << 40;

enum class Kind { dense, compressed };
/// One series each.
const std::vector<std::vector<Kind>> series_of_kinds{
    {Kind::dense}, {Kind::compressed}, {Kind::dense, Kind::compressed}};

/// Some ranks have no rows or columns of small ones.
using Shapes = std::vector<std::pair<Index, Index>>;
const Shapes shapes{{1000, 700}, {3, 5}, {900, 1100}, {0, 4}, {6, 0}};

template <Scalar T>
DistMatrix<T> matrix_on(const GridPtr& grid, std::pair<Index, Index> shape) {
  const auto [rows, cols] = shape;
  return placed<T>(grid, rows, cols, [rows = rows, cols = cols](Index i, Index j) {
    return j < cols / 2 ? Waves<T>{rows, cols}(i, j) : counter_random<T>(3, i, j);
  });
}

/// A series of matrices of these shapes, and the same in memory.
template <Scalar T>
struct Filled {
  Filled(const GridPtr& grid, const std::vector<Kind>& kinds, const std::string& scratch,
         const Shapes& of_shapes = shapes)
      : series({.scratch = scratch}) {
    for (const auto& shape : of_shapes) {
      const Kind kind = kinds[together.size() % kinds.size()];
      if (kind == Kind::compressed) {
        const DistMatrix<T> A = matrix_on<T>(grid, shape);
        const CompressionOptions options{
            .tolerance = 1e-5, .tile = 90, .row_order = Waves<T>::order(shape.first)};
        const CompressedMatrixPtr<T> one = compress(A, options), of_series = compress(A, options, series);
        CHECK(of_series->report().bytes == one->report().bytes);
        alone.push_back(one);
        together.push_back(of_series);
      } else {
        const StreamedMatrixPtr<T> of_series = series.add(matrix_on<T>(grid, shape));
        CHECK(of_series->frobenius_norm() == Approx(frobenius_norm(matrix_on<T>(grid, shape))));
        alone.push_back(
            matrix_mult(Algorithm::stationary_a, matrix_on<T>(grid, shape), {.storage = Storage::packed}));
        together.push_back(of_series);
      }
    }
  }
  Index count() const { return std::ssize(together); }
  bool has_products_of(Index k, Index nrhs = 3) {
    const Whole<T> X = fractions<T>(2, alone[at(k)]->cols(), nrhs),
                   Y = fractions<T>(3, alone[at(k)]->rows(), nrhs);
    const auto [expected, is_new] = known.try_emplace({k, nrhs});
    if (is_new) expected->second = products(*alone[at(k)], X, Y);
    return products(*together[at(k)], X, Y) == expected->second;
  }
  /// As solvers apply all of them in each iteration.
  void iterate(bool in_one_pass) const {
    const auto vector = [](const Space& space) {
      DistMatrix<T> x(space.grid, space.layout(1));
      x.set_zero();
      return x;
    };
    for (const Op op : {Op::none, Op::adjoint}) {
      for (const auto& A : together) {
        DistMatrix<T> x = vector(A->domain()), y = vector(A->range());
        if (in_one_pass) {
          if (op == Op::adjoint) continue;
          DistMatrix<T> u = vector(A->domain()), v = vector(A->domain());
          const DistMatrix<T> r = vector(A->range());
          A->normal_product(x, r, y, u, v);
        } else {
          op == Op::none ? A->apply(T(1), x, T(0), y) : A->apply_adjoint(T(1), y, T(0), x);
        }
      }
    }
  }

  StreamedSeries<T> series;
  std::vector<OperatorPtr<T>> alone{}, together{};
  std::map<std::pair<Index, Index>, std::vector<T>> known{};  ///< products in memory
};

}  // namespace

TEMPLATE_LIST_TEST_CASE("Matrices of a series have the products of those in memory, in any order",
                        "[streamed_series]", Scalars) {
  using T = TestType;
  const ScratchFolder folder(disk);
  for (const GridPtr& grid : compact_grids()) {
    if (!is_on_host(grid) || !grid->is_member()) continue;
    for (const std::vector<Kind>& kinds : series_of_kinds) {
      INFO(describe(*grid) << ", " << kinds.size() << " kinds, the first is "
                           << (kinds.front() == Kind::dense ? "dense" : "compressed"));
      Filled<T> filled(grid, kinds, folder.file(""));
      StreamedSeries<T>& series = filled.series;
      const Index count = filled.count();
      CHECK(series.count() == count);
      CHECK(nameless_bytes(folder.file("")) == series.bytes_on_disk());
      for (const Index memory : {few, some, all}) {
        series.start(memory, {0, count});
        CHECK((memory != all || series.memory(memory, {0, count}) < all));
        for (const Index k : {0, 1, 2, 3, 4, 2, 0}) CHECK(filled.has_products_of(k));
        for (const bool in_one_pass : {true, false, false}) filled.iterate(in_one_pass);
        for (const Index k : {2, 0, 4}) {
          series.start(memory, {k, 1});
          CHECK(filled.has_products_of(k));
          CHECK(filled.has_products_of(k, 0));
        }
      }
      // A matrix that is not started is refused, and what the disk changed is found.
      series.start(few, {0, 2});
      CHECK(contains(message_of<Error>([&] { static_cast<void>(filled.has_products_of(2)); }), "start()"));
      if (is_last_rank(*grid)) flip_byte(folder.file(""), 200000);
      grid->comm().barrier();
      // start() reads the parts that stay in memory, on this rank alone.
      CHECK(contains(message_of<Error>([&] {
                       attempt(grid->comm(), [&] { series.start(few, {2, 1}); });
                       static_cast<void>(filled.has_products_of(2));
                     }),
                     "are not those"));
    }
  }
}

TEST_CASE("A series reads what is on disks once in each direction, and once in one pass",
          "[streamed_series]") {
  using T = double;
  const ScratchFolder folder(disk);
  for (const GridPtr& grid : compact_grids()) {
    if (!is_on_host(grid) || !grid->is_member()) continue;
    for (const bool in_one_pass : {true, false}) {
      INFO(describe(*grid) << (in_one_pass ? ", in one pass" : ", in two passes"));
      Filled<T> filled(grid, {Kind::dense}, folder.file(""), {{1000, 700}, {900, 1100}, {1200, 800}});
      const Range all_of_them{0, filled.count()};
      filled.series.start(few, all_of_them);
      const Index before = filled.series.bytes_read(), memory = filled.series.memory(few, all_of_them);
      constexpr Index turns = 5;
      for (Index turn = 0; turn < turns; ++turn) filled.iterate(in_one_pass);
      const Index read = filled.series.bytes_read() - before, passes = (in_one_pass ? 1 : 2) * turns;
      CHECK(read <= passes * filled.series.bytes_on_disk() + memory);
      CHECK(read + passes * memory >= passes * filled.series.bytes_on_disk());
    }
  }
}

TEST_CASE("A series takes the memory that it says, and slices the memory of products once",
          "[streamed_series]") {
  using T = std::complex<float>;
  const ScratchFolder folder(disk);
  const auto backend = std::make_shared<MeteredBackend>();
  for (const GridPtr& grid : compact_grids(backend)) {
    if (!grid->is_member()) continue;
    Filled<T> filled(grid, {Kind::dense}, folder.file(""));
    for (const Index memory : {few, some, all}) {
      INFO(describe(*grid) << ": " << memory << " bytes in memory");
      const Range all_of_them{0, filled.count()};
      filled.series.start(few, {0, 0});
      const Index before = backend->bytes_in_use();
      filled.series.start(memory, all_of_them);
      CHECK(backend->bytes_in_use() - before == filled.series.memory(memory, all_of_them));
      CHECK(filled.series.memory(memory, all_of_them) <=
            std::max(memory, filled.series.memory(few, all_of_them)));
    }
    const Partition columns = filled.together.front()->domain().layout(3).cols.partition;
    // The series keeps the matrices. What products take is that of the largest.
    KeptBytes kept;
    Index most = 0;
    for (const auto& A : filled.together) {
      A->add_kept_bytes(kept, columns);
      most = std::max(most, A->kept_bytes(columns));
    }
    CHECK(most > 0);
    CHECK(kept.total() == most);
  }
}

TEST_CASE("A matrix that a series cannot take leaves it as it was, on all ranks", "[streamed_series]") {
  using T = float;
  const ScratchFolder folder(disk);
  for (const GridPtr& grid : compact_grids()) {
    if (!is_on_host(grid) || !grid->is_member()) continue;
    Filled<T> filled(grid, {Kind::dense}, folder.file(""));
    const Index count = filled.count(), bytes = filled.series.bytes_on_disk();
    {
      const FileSizeLimit limit(is_last_rank(*grid) ? 1 << 16 : RLIM_INFINITY);
      CHECK_THROWS_AS(filled.series.add(matrix_on<T>(grid, shapes[0])), OutputError);
    }
    CHECK((filled.series.count() == count && filled.series.bytes_on_disk() == bytes));
    CHECK(contains(message_of<Error>([&] { StreamedSeries<T>({.tiles = "tiles"}); }), "cannot stay"));
    CHECK(contains(message_of<Error>([&] { StreamedSeries<T>({.in_place = true}); }), "in place"));
    StreamedSeries<T> stable({.scratch = folder.file(""), .column_stable = true});
    CHECK(contains(message_of<Error>([&] { compress(matrix_on<T>(grid, shapes[0]), {}, stable); }),
                   "neither column-stable"));
    const DistMatrix<T> uncut(grid, {Cut::uncut(4), Cut::uncut(5)});
    CHECK(contains(message_of<Error>([&] { filled.series.add(uncut); }), "needs its matrix as"));
    const StreamedMatrixPtr<T> added = filled.series.add(matrix_on<T>(grid, shapes[0]));
    filled.series.start(few, {count, 1});
    const Whole<T> X = fractions<T>(2, shapes[0].second, 2), Y = fractions<T>(3, shapes[0].first, 2);
    CHECK(products(*added, X, Y) == products(*filled.alone[0], X, Y));
  }
}

TEST_CASE("Grouped slices of a series have one pass, with the bits of those in memory", "[streamed_series]") {
  using T = std::complex<double>;
  const ScratchFolder folder(disk);
  const auto whole =
      std::make_shared<const ProcessGrid>(world(), GridShape{1, world().size()}, make_backend());
  if (!is_on_host(whole)) return;
  // The last rank shares nothing, if there are more than two.
  const int ranks = world().size(), first = ranks > 2 ? ranks - 2 : 1;
  const std::vector<ProductShape> slices(5, {310, 270, 2, scalar_type_of<T>});
  std::vector<RankGroup> groups{{{first, 1}, ranks > 1 ? 3 : 5}};
  if (ranks > 1) groups.push_back({{1, 1}, 2});
  const SliceGroups shared(whole, slices, groups);
  const GridPtr& own = shared.own_grid();
  StreamedSeries<T> series({.scratch = folder.file("")});
  std::vector<OperatorPtr<T>> streamed;
  std::vector<DistMatrix<T>> matrices = allocate_slices<T>(shared);
  for (std::size_t k = 0; k < matrices.size(); ++k) {
    const Index slice = shared.own_slices().begin + static_cast<Index>(k);
    matrices[k].fill(
        [&](Index i, Index j) { return counter_random<T>(static_cast<std::uint64_t>(slice), i, j); });
    streamed.push_back(series.add(matrices[k]));
  }
  if (own->is_member()) series.start(few, {0, series.count()});
  const OperatorPtr<T> on_disk = grouped_slices<T>(shared, streamed),
                       packed = grouped_slices<T>(shared, std::move(matrices), {.storage = Storage::packed});
  CHECK(on_disk->has_one_pass());
  for (const Index nrhs : {0, 2}) {
    const Whole<T> X = fractions<T>(2, on_disk->cols(), nrhs), Y = fractions<T>(3, on_disk->rows(), nrhs);
    CHECK(products(*on_disk, X, Y) == products(*packed, X, Y));
  }
}
