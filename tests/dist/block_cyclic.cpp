// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/dist/block_cyclic.hpp"

#include "base/message.hpp"
#include "gridlops/base/error.hpp"
#include "support/catch.hpp"
#include "support/disagreements.hpp"
#include "support/metered_backend.hpp"
#include "support/test_data.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

// ScaLAPACK's own formulas for one dimension (tools/numroc.f and tools/indxl2g.f), from 1 there and from 0
// here.
Index numroc(Index n, Index nb, Index iproc, Index isrcproc, Index nprocs) {
  const Index mydist = (nprocs + iproc - isrcproc) % nprocs, nblocks = n / nb, extrablks = nblocks % nprocs;
  Index count = nblocks / nprocs * nb;
  if (mydist < extrablks) count += nb;
  if (mydist == extrablks) count += n % nb;
  return count;
}
Index indxl2g(Index local, Index nb, Index iproc, Index isrcproc, Index nprocs) {
  return nprocs * nb * (local / nb) + local % nb + (nprocs + iproc - isrcproc) % nprocs * nb;
}

/// Where a rank is in the grid of ScaLAPACK; -1 beyond it.
struct Place {
  Index row = -1, col = -1;
};
Place place_of(const BlockCyclic& matrix, int rank) {
  if (rank >= matrix.grid.rows * matrix.grid.cols) return {};
  if (matrix.order == RankOrder::row_major) return {rank / matrix.grid.cols, rank % matrix.grid.cols};
  return {rank % matrix.grid.rows, rank / matrix.grid.rows};
}

/// The rank that has element (i, j): the block that it lies in, counted from the first process.
int rank_of(const BlockCyclic& matrix, Index i, Index j) {
  const Index row = (i / matrix.row_block + matrix.first_row) % matrix.grid.rows;
  const Index col = (j / matrix.col_block + matrix.first_col) % matrix.grid.cols;
  return static_cast<int>(matrix.order == RankOrder::row_major ? row * matrix.grid.cols + col
                                                               : col * matrix.grid.rows + row);
}

template <Scalar T>
T value_at(Index i, Index j) {
  const auto value = static_cast<Real<T>>(1 + i + 100 * j);
  if constexpr (is_complex<T>) {
    return T(value, -value - 1);
  } else {
    return value;
  }
}

/// This rank's block of a block-cyclic matrix, in the memory that the tests run on, full of NaN at first.
template <Scalar T>
class CyclicBlock {
 public:
  CyclicBlock(const BlockCyclic& matrix, Index padding)
      : matrix_(matrix), place_(place_of(matrix, world().rank())) {
    if (place_.row >= 0) {
      rows_ = numroc(matrix.rows, matrix.row_block, place_.row, matrix.first_row, matrix.grid.rows);
      cols_ = numroc(matrix.cols, matrix.col_block, place_.col, matrix.first_col, matrix.grid.cols);
    }
    matrix_.stride = std::max<Index>(rows_, 1) + padding;
    values_.assign(static_cast<std::size_t>(matrix_.stride * cols_), quiet_nan<T>());
    memory_ = Buffer<T>(backend_, matrix_.stride * cols_);
    upload();
  }

  const BlockCyclic& matrix() const { return matrix_; }
  Index rows() const { return rows_; }
  Index cols() const { return cols_; }
  T* data() const { return memory_.data(); }

  void fill() {
    for_each([&](T& value, Index i, Index j) { value = value_at<T>(i, j); });
    upload();
  }

  /// Counts the elements that are not value_at(i, j), and those in gaps between columns that are not NaN.
  Index mismatches() {
    backend_->download(memory_.data(), values_.data(), memory_.size() * Index{sizeof(T)});
    Index wrong = 0;
    for_each([&](T& value, Index i, Index j) {
      wrong += value != value_at<T>(i, j);
      value = quiet_nan<T>();
    });
    for (const T value : values_) wrong += !is_nan(value);
    return wrong;
  }

 private:
  template <class Function>
  void for_each(Function&& function) {
    for (Index j = 0; j < cols_; ++j)
      for (Index i = 0; i < rows_; ++i)
        function(values_[static_cast<std::size_t>(i + j * matrix_.stride)],
                 indxl2g(i, matrix_.row_block, place_.row, matrix_.first_row, matrix_.grid.rows),
                 indxl2g(j, matrix_.col_block, place_.col, matrix_.first_col, matrix_.grid.cols));
  }
  void upload() { backend_->upload(values_.data(), memory_.data(), memory_.size() * Index{sizeof(T)}); }

  BlockCyclic matrix_;
  Place place_;
  Index rows_ = 0, cols_ = 0;
  std::vector<T> values_;
  std::shared_ptr<Backend> backend_ = make_backend();
  Buffer<T> memory_;
};

/// Elements that rank `from` of a layout sends to rank `to` of ScaLAPACK's grid, or receives from it, counted
/// one by one.
Index elements_between(const ProcessGrid& grid, const Layout& layout, int rank, const BlockCyclic& matrix,
                       int cyclic_rank, bool only_owners) {
  if (rank >= grid.shape().size()) return 0;
  const int row = rank / grid.cols(), col = rank % grid.cols();
  if (only_owners && !layout.owned_at(grid, row, col)) return 0;
  const Range rows = layout.row_range(grid, row, col), cols = layout.col_range(grid, row, col);
  Index count = 0;
  for (Index j = cols.begin; j < cols.end(); ++j)
    for (Index i = rows.begin; i < rows.end(); ++i) count += rank_of(matrix, i, j) == cyclic_rank;
  return count;
}

/// Checks that there was one all_to_all, after rank 0 had told the others how the matrix lies, and that it
/// carried only what changes its rank.
template <Scalar T>
void check_traffic(const TrafficSince& traffic, const ProcessGrid& grid, const Layout& layout,
                   const BlockCyclic& matrix, bool to_cyclic) {
  const int me = world().rank(), ranks = world().size();
  CHECK(traffic.calls() == 2);
  CHECK(traffic.calls(CommOperation::all_to_all) == 1);
  const Index words = 10 * Index{sizeof(Index)};
  Index of_layout = 0, of_cyclic = 0;
  for (int other = 0; other < ranks; ++other) {
    if (other == me) continue;
    of_layout += elements_between(grid, layout, me, matrix, other, to_cyclic);
    of_cyclic += elements_between(grid, layout, other, matrix, me, to_cyclic);
  }
  const Index sent = to_cyclic ? of_layout : of_cyclic, received = to_cyclic ? of_cyclic : of_layout;
  CHECK(traffic.sent() == sent * Index{sizeof(T)} + (me == 0 ? words * (ranks - 1) : 0));
  CHECK(traffic.received() == received * Index{sizeof(T)} + (me == 0 ? 0 : words));
}

/// One matrix there and back, between this layout and this block-cyclic form.
template <Scalar T>
void check_there_and_back(const GridPtr& grid, const Layout& layout, const BlockCyclic& matrix) {
  CyclicBlock<T> before(matrix, 1), after(matrix, 2);
  CHECK(before.matrix().local_rows(world().rank()) == before.rows());
  CHECK(before.matrix().local_cols(world().rank()) == before.cols());
  before.fill();
  EmbeddedMatrix<T> X(grid, layout, 2, [](Index, Index) { return quiet_nan<T>(); });
  DistMatrix<T> x = X.matrix();

  const TrafficSince traffic(world());
  from_block_cyclic(world(), before.matrix(), before.data(), x);
  check_traffic<T>(traffic, *grid, layout, matrix, false);
  CHECK(mismatches(x, value_at<T>) == 0);
  CHECK(X.surroundings_untouched());
  CHECK(before.mismatches() == 0);

  // Copies do not count on the way back.
  if (grid->is_member() && !x.owned()) x.fill([](Index, Index) { return quiet_nan<T>(); });
  const TrafficSince traffic_back(world());
  to_block_cyclic(world(), x, after.matrix(), after.data());
  check_traffic<T>(traffic_back, *grid, layout, matrix, true);
  CHECK(after.mismatches() == 0);
}

/// Blocks of which one is larger than the matrix, and others divide it or not.
inline constexpr std::array<std::array<Index, 2>, 6> blocks{
    {{1, 1}, {2, 3}, {3, 1}, {20, 2}, {2, 20}, {7, 5}}};

BlockCyclic variant_of(GridShape shape, Index rows, Index cols, std::size_t variant) {
  const auto [row_block, col_block] = blocks[variant % blocks.size()];
  const auto turn = static_cast<Index>(variant);
  return {.grid = shape,
          .order = variant % 2 == 0 ? RankOrder::row_major : RankOrder::column_major,
          .rows = rows,
          .cols = cols,
          .row_block = row_block,
          .col_block = col_block,
          .first_row = (turn + 1) % shape.rows,
          .first_col = turn / 2 % shape.cols};
}

std::vector<std::pair<Axis, Axis>> legal_axes() {
  std::vector<std::pair<Axis, Axis>> pairs;
  for (const Axis rows : all_axes)
    for (const Axis cols : all_axes)
      if (legal(rows, cols)) pairs.emplace_back(rows, cols);
  return pairs;
}

/// Every grid with every grid of ScaLAPACK: all variants of the latter if asked, else each with the next one;
/// so with the layouts.
template <Scalar T>
void check_all_grids(Index rows, Index cols, bool exhaustive) {
  const std::vector<std::pair<Axis, Axis>> axes = legal_axes();
  std::size_t next = 0;
  for (const GridPtr& grid : all_grids()) {
    for (const GridShape shape : all_shapes(world().size())) {
      const std::size_t variants = exhaustive ? blocks.size() * axes.size() : 8;
      for (std::size_t k = 0; k < variants; ++k, ++next) {
        const auto [row_axis, col_axis] = axes[next / (exhaustive ? blocks.size() : 1) % axes.size()];
        const Layout layout =
            layout_along(*grid, row_axis, col_axis, rows, cols, static_cast<int>(next) % cut_variants);
        const BlockCyclic matrix = variant_of(shape, rows, cols, next);
        INFO(describe(*grid) << ": " << layout.describe() << "; blocks of " << matrix.row_block << " x "
                             << matrix.col_block << " from (" << matrix.first_row << ", " << matrix.first_col
                             << ") on a grid of " << shape.rows << " x " << shape.cols);
        check_there_and_back<T>(grid, layout, matrix);
      }
    }
  }
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("Block-cyclic matrices go to all layouts and back", "[block_cyclic]", Scalars) {
  check_all_grids<TestType>(9, 7, false);
}

TEST_CASE("Block-cyclic matrices may be empty, or have one row or column", "[block_cyclic]") {
  for (const auto& [rows, cols] : {std::pair<Index, Index>{0, 3}, {3, 0}, {0, 0}, {1, 11}, {11, 1}})
    check_all_grids<double>(rows, cols, false);
}

TEMPLATE_LIST_TEST_CASE("Block-cyclic matrices of all kinds go to all layouts and back",
                        "[block_cyclic][.full]", Scalars) {
  check_all_grids<TestType>(9, 7, true);
  check_all_grids<TestType>(23, 4, true);
}

TEST_CASE("A descriptor of ScaLAPACK has nine integers", "[block_cyclic]") {
  const std::array<int, 9> desc{1, 17, 5, 6, 2, 3, 1, 0, 8};
  const BlockCyclic expected{.grid = {2, 3},
                             .order = RankOrder::column_major,
                             .rows = 5,
                             .cols = 6,
                             .row_block = 2,
                             .col_block = 3,
                             .first_row = 1,
                             .first_col = 0,
                             .stride = 8};
  CHECK(BlockCyclic::of_descriptor(desc.data(), {2, 3}, RankOrder::column_major) == expected);
  const std::array<std::int64_t, 9> wide{502, 17, 5, 6, 2, 3, 1, 0, 8};
  CHECK(BlockCyclic::of_descriptor(wide.data(), {2, 3}).type == 502);
}

TEST_CASE("Ranks beyond the grid of a block-cyclic matrix need not know it", "[block_cyclic]") {
  const auto grid = grids_of({GridShape{1, world().size()}}, make_backend).front();
  const BlockCyclic matrix{.grid = {1, 1}, .rows = 4, .cols = 5, .row_block = 3, .col_block = 2};
  CyclicBlock<double> block(matrix, 0);
  block.fill();
  // As DESCINIT leaves it there, or never set at all.
  const BlockCyclic unknown{.grid = {-1, -1}, .type = 0, .rows = -1, .row_block = 0, .first_row = 9};
  DistMatrix<double> X(grid, replicated(4, 5));
  from_block_cyclic<double>(world(), world().rank() == 0 ? block.matrix() : unknown, block.data(), X);
  CHECK(mismatches(X, value_at<double>) == 0);
}

namespace {

GridPtr grid_of_all() { return grids_of({GridShape{1, world().size()}}, make_backend).front(); }

/// Checks that both functions end with this error on all ranks, before an element moves.
template <class E>
void check_refused(const std::string& text, const BlockCyclic& mine, double* local) {
  const GridPtr grid = grid_of_all();
  DistMatrix<double> X(grid, blocks_2d(*grid, 8, 6));
  X.set_zero();
  const std::function<void()> there = [&] { from_block_cyclic<double>(world(), mine, local, X); },
                              back = [&] { to_block_cyclic<double>(world(), X, mine, local); };
  for (const auto& action : {there, back}) {
    const TrafficSince traffic(world());
    const Ending ending = ending_of(action);
    CHECK(traffic.calls(CommOperation::all_to_all) == 0);
    CHECK(ending.text == text);
    CHECK((ending.type != nullptr && *ending.type == typeid(E)));
    CHECK(all_ended_alike(world(), ending));
  }
}

/// 8 x 6 in blocks of 3 x 1, whose columns are dealt to all ranks.
BlockCyclic dealt_columns() {
  return {.grid = {1, world().size()}, .rows = 8, .cols = 6, .row_block = 3, .col_block = 1, .stride = 8};
}

}  // namespace

TEST_CASE("Impossible descriptors are refused on all ranks", "[block_cyclic]") {
  CyclicBlock<double> block(dealt_columns(), 0);
  const std::string ranks = std::to_string(world().size());
  const auto check_impossible = [&](const std::string& text, auto&& change) {
    BlockCyclic wrong = dealt_columns();
    change(wrong);
    check_refused<UsageError>(text, wrong, block.data());
  };
  const auto check_numbers = [&](const std::string& words, auto&& change) {
    check_impossible("a block-cyclic matrix of " + words +
                         " in row-major order is impossible; sizes must not be negative, blocks must have "
                         "elements, and the first process must be in the grid",
                     change);
  };
  const std::string on_grid = " of a grid of 1 x " + ranks;
  check_numbers("-1 x 6 in blocks of 3 x 1 from (0, 0)" + on_grid, [](BlockCyclic& m) { m.rows = -1; });
  check_numbers("8 x -6 in blocks of 3 x 1 from (0, 0)" + on_grid, [](BlockCyclic& m) { m.cols = -6; });
  check_numbers("8 x 6 in blocks of 0 x 1 from (0, 0)" + on_grid, [](BlockCyclic& m) { m.row_block = 0; });
  check_numbers("8 x 6 in blocks of 3 x -2 from (0, 0)" + on_grid, [](BlockCyclic& m) { m.col_block = -2; });
  check_numbers("8 x 6 in blocks of 3 x 1 from (1, 0)" + on_grid, [](BlockCyclic& m) { m.first_row = 1; });
  check_numbers("8 x 6 in blocks of 3 x 1 from (-1, 0)" + on_grid, [](BlockCyclic& m) { m.first_row = -1; });
  check_numbers("8 x 6 in blocks of 3 x 1 from (0, " + ranks + ")" + on_grid,
                [](BlockCyclic& m) { m.first_col = world().size(); });
  check_numbers("8 x 6 in blocks of 3 x 1 from (0, -1)" + on_grid, [](BlockCyclic& m) { m.first_col = -1; });
  check_impossible(
      "a matrix with a descriptor of type 501 cannot be read; only type 1 is a dense block-cyclic matrix",
      [](BlockCyclic& m) { m.type = 501; });
  for (const GridShape shape : {GridShape{2, world().size()}, {0, 1}, {1, -1}, {1 << 30, 4}}) {
    check_impossible(message("a block-cyclic matrix on a grid of ", shape.rows, " x ", shape.cols,
                             " is impossible with a communicator of ", ranks,
                             "; both numbers must be positive, and their product at most that"),
                     [&](BlockCyclic& m) { m.grid = shape; });
  }
}

TEST_CASE("What one rank says wrongly of a block-cyclic matrix all ranks refuse", "[block_cyclic]") {
  const int last = world().size() - 1;
  const std::string who = last == 0 ? "" : message("rank ", last, ": ");  // one that is alone has no number
  CyclicBlock<double> block(dealt_columns(), 0);
  BlockCyclic mine = dealt_columns();
  const std::string shape = message("8 x ", numroc(6, 1, last, 0, last + 1));
  if (world().rank() == last) mine.stride = 7;
  check_refused<UsageError>(
      message(who, "the leading dimension 7 of a block of ", shape, " is too small; it must be at least 8"),
      mine, block.data());
  mine.stride = 8;
  check_refused<UsageError>(message(who, "a block of ", shape, " has no memory: its pointer is null"), mine,
                            world().rank() == last ? nullptr : block.data());

  if (last == 0) return;
  const std::string form = message(" from (0, 0) of a grid of 1 x ", last + 1, " in row-major order");
  mine = dealt_columns();
  if (world().rank() == last) mine.row_block = 4;
  const GridPtr grid = grid_of_all();
  DistMatrix<double> X(grid, blocks_2d(*grid, 8, 6));
  const Ending ending = ending_of([&] { from_block_cyclic<double>(world(), mine, block.data(), X); });
  CHECK(contains(ending.text, difference("its block-cyclic form", "8 x 6 in blocks of 3 x 1" + form,
                                         "8 x 6 in blocks of 4 x 1" + form, last, last + 1)));
  CHECK(all_ended_alike(world(), ending));
}

TEST_CASE("Block-cyclic matrices of other shapes, and grids of other ranks, are refused", "[block_cyclic]") {
  BlockCyclic wider = dealt_columns();
  wider.cols = 7;
  CyclicBlock<double> block(wider, 0);
  check_refused<ShapeError>("a block-cyclic matrix of 8 x 7 cannot be one of 8 x 6", block.matrix(),
                            block.data());

  if (world().size() == 1) return;
  const auto reversed = world().split(0, -world().rank());
  const auto grid =
      std::make_shared<const ProcessGrid>(*reversed, GridShape{1, world().size()}, make_backend());
  DistMatrix<double> X(grid, blocks_2d(*grid, 8, 6));
  const BlockCyclic matrix = dealt_columns();
  const Ending ending = ending_of(
      [&] { from_block_cyclic<double>(world(), matrix, CyclicBlock<double>(matrix, 0).data(), X); });
  CHECK(
      contains(ending.text,
               "the process grid of a matrix does not consist of the first ranks of the communicator of its "
               "block-cyclic form; make both from one communicator"));
  CHECK(all_ended_alike(world(), ending));
}

TEST_CASE("Block-cyclic matrices take memory for the two blocks, and all ranks fail together",
          "[block_cyclic]") {
  const auto backend = std::make_shared<MeteredBackend>(make_backend());
  const GridPtr grid = grids_of({GridShape{1, world().size()}}, [&] { return backend; }).front();
  DistMatrix<double> X(grid, blocks_2d(*grid, 8, 6));
  CyclicBlock<double> block(dealt_columns(), 0);
  block.fill();
  const Index before = backend->bytes_in_use();
  backend->forget_most();
  from_block_cyclic<double>(world(), block.matrix(), block.data(), X);
  CHECK(backend->bytes_in_use() == before);
  CHECK(backend->most_bytes_in_use() - before ==
        (X.local().size() + block.rows() * block.cols()) * Index{sizeof(double)});

  for (Index k = 1; k <= 2; ++k) {
    const int failing = world().size() / 2;
    if (world().rank() == failing) backend->fail_at(k);
    const Ending ending =
        ending_of([&] { to_block_cyclic<double>(world(), X, block.matrix(), block.data()); });
    backend->fail_at(0);
    CHECK((ending.type != nullptr && *ending.type == typeid(OutOfMemory)));
    CHECK(all_ended_alike(world(), ending));
  }
  to_block_cyclic<double>(world(), X, block.matrix(), block.data());
  CHECK(block.mismatches() == 0);
}
