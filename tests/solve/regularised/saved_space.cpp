// SPDX-License-Identifier: BSD-3-Clause
// A space that was saved is the same space: on any grid, for other data, and where it goes on growing.
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <string>

#include "base/message.hpp"
#include "gridlops/dist/column_arithmetic.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "gridlops/solve/solution_space.hpp"
#include "io/checkpoint_files.hpp"
#include "io/npy_files.hpp"
#include "support/filtered_solutions.hpp"
#include "support/grids.hpp"
#include "support/solution_checks.hpp"

using namespace gridlops;
using namespace gridlops::testing;

TEMPLATE_TEST_CASE("A space comes back from its files on any grid", "", float, double, std::complex<float>,
                   std::complex<double>) {
  using T = TestType;
  const Index m = 45, n = 40, columns = 6;
  const KnownSpectrum<T> matrix(m, n, geometric(n, 30));
  const double tolerance = sizeof(Real<T>) == 4 ? 1e-4 : 1e-9;
  const ScratchFolder folder;
  const std::vector<GridPtr> grids = compact_grids();
  const auto directory_of = [&](std::size_t k) { return folder.file("space-" + std::to_string(k)); };
  const auto bits_of = [](const std::vector<DampingCurve>& curves) {
    std::vector<double> numbers;
    for (const DampingCurve& curve : curves)
      for (const CurvePoint& point : curve.points)
        numbers.insert(numbers.end(), {point.damp, point.residual_norm, point.x_norm});
    return numbers;
  };
  std::vector<std::vector<double>> curves(grids.size());
  for (std::size_t k = 0; k < grids.size(); ++k) {
    const OperatorPtr<T> A = dense_operator<T>(grids[k], Algorithm::stationary_a, matrix);
    const SolutionSpace<T> space(A, filled(A->range(), columns, right_hand_sides<T>()),
                                 {.damps = {1, 0.03, 0.1}, .tolerance = tolerance, .has_probe = true});
    space.save(directory_of(k));
    curves[k] = bits_of(space.curves(DampingRule::gcv));
  }
  for (std::size_t k = 0; k < grids.size(); ++k) {
    for (const GridPtr& grid : grids) {
      CAPTURE(k, describe(*grids[k]), describe(*grid));
      const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::stationary_a, matrix);
      world().barrier();
      const SolutionSpace<T> space(A, directory_of(k));
      if (!grid->is_member()) {
        CHECK(space.curves().empty());
        CHECK(space.curves(DampingRule::gcv, 0, {.sigma_min = 1}).empty());
        continue;
      }
      CHECK(space.end() == SpaceEnd::converged);
      if (grids[k]->is_member()) CHECK(bits_of(space.curves(DampingRule::gcv)) == curves[k]);
      const DistMatrix<T> B = filled(A->range(), columns, right_hand_sides<T>());
      DistMatrix<T> X(grid, A->domain().layout(columns));
      const SolveOptions options{.tolerance = tolerance, .damp = 0.1};
      for (const bool knows_data : {true, false}) {
        for (const ColumnReport& column :
             (knows_data ? space.solve(B, X, options) : space.solve_others(B, X, options)).columns) {
          CHECK(column.reason == StopReason::converged);
          CHECK(column.iterations == 0);
        }
        const std::vector<T> whole = everywhere(X);
        for (Index j = 0; j < columns; ++j) {
          const Filtered<T> exact(matrix, geometric(n, 30), right_hand_sides<T>(), j, 0.1);
          double error = 0;
          for (Index i = 0; i < n; ++i)
            error += std::norm(Accumulator<T>(whole[static_cast<std::size_t>(i + j * n)]) -
                               exact.x[static_cast<std::size_t>(i)]);
          CHECK(std::sqrt(error) <= 100 * tolerance * (exact.x_norm + exact.residual_norm));
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("A space that was interrupted goes on, on any grid, also to other dampings", "", float,
                   double, std::complex<float>, std::complex<double>) {
  using T = TestType;
  const Index m = 130, n = 120, columns = 6;
  const KnownSpectrum<T> matrix(m, n, geometric(n, 30));
  const double tolerance = sizeof(Real<T>) == 4 ? 1e-4 : 1e-9;
  const ScratchFolder folder;
  const std::vector<GridPtr> grids = compact_grids();
  const auto make = [&](const GridPtr& grid, const CheckpointOptions& checkpoint, double damp = 0.03) {
    const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::stationary_a, matrix);
    return SolutionSpace<T>(A, filled(A->range(), columns, right_hand_sides<T>()),
                            {.damps = {1, damp}, .tolerance = tolerance, .checkpoint = checkpoint});
  };
  const auto solution_of = [&](const GridPtr& grid, const SolutionSpace<T>& space) {
    const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::stationary_a, matrix);
    const DistMatrix<T> B = filled(A->range(), columns, right_hand_sides<T>());
    DistMatrix<T> X(grid, A->domain().layout(columns));
    for (const ColumnReport& column : space.solve(B, X, {.tolerance = tolerance, .damp = 0.03}).columns) {
      CHECK(column.reason == StopReason::converged);
      CHECK(column.iterations == 0);
    }
    return everywhere(X);
  };
  for (std::size_t k = 0; k < grids.size(); ++k) {
    const std::string directory = folder.file("space-" + std::to_string(k));
    int asked = 0;
    const auto in_third_step = [&asked] { return ++asked == 3; };
    const auto interrupted = [&] {
      make(grids[k], {.directory = directory, .every_iterations = 2, .requested = in_third_step});
    };
    if (grids[k]->is_member()) {
      CHECK_THROWS_AS(interrupted(), Suspended);
    } else {
      interrupted();
    }
    world().barrier();
    for (const GridPtr& grid : grids) {
      CAPTURE(describe(*grids[k]), describe(*grid));
      if (!grid->is_member()) {
        make(grid, {.restart = directory});
        continue;
      }
      const SolutionSpace<T> whole = make(grid, {}), resumed = make(grid, {.restart = directory});
      CHECK(resumed.end() == SpaceEnd::converged);
      CHECK(resumed.dimension() == whole.dimension());
      CHECK(resumed.products() == whole.products());
      const std::vector<T> expected = solution_of(grid, whole), found = solution_of(grid, resumed);
      if (grid == grids[k]) CHECK(found == expected);
      // It has less than it needs for this D; the larger one has no need of more.
      const SolutionSpace<T> begun(dense_operator<T>(grid, Algorithm::stationary_a, matrix), directory);
      CHECK(begun.end() == SpaceEnd::user_stop);
      CHECK(begun.dimension() < whole.dimension());
      CHECK(begun.curves().front().points[1].reason == StopReason::iteration_limit);
      CHECK(make(grid, {.restart = directory}, 0.3).dimension() < whole.dimension());
    }
    world().barrier();
    // A space that has ended goes on, too, where it was kept.
    make(grids[k], {.directory = directory, .restart = directory}, 0.3);
    world().barrier();
    if (!grids[k]->is_member()) continue;
    const SolutionSpace<T> more = make(grids[k], {.restart = directory});
    CHECK(more.end() == SpaceEnd::converged);
    solution_of(grids[k], more);
  }
}

TEST_CASE("A space goes on for the problem that it was begun for, and no other") {
  using T = double;
  const Index n = 40;
  const KnownSpectrum<T> matrix(50, n, geometric(n, 10)), other(50, n, geometric(n, 11));
  const ScratchFolder folder;
  for (const GridPtr& grid : compact_grids()) {
    const std::string directory = folder.file(describe(*grid));
    const auto make = [&](const KnownSpectrum<T>& of, std::uint64_t seed, const SpaceOptions& options) {
      const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::stationary_a, of);
      return SolutionSpace<T>(A, filled(A->range(), 2, random_elements<T>(seed)), options);
    };
    make(matrix, 1, {.damps = {1}, .checkpoint = {.directory = directory}});
    world().barrier();
    if (!grid->is_member()) continue;
    const CheckpointOptions restart{.restart = directory};
    CHECK_NOTHROW(make(matrix, 1, {.damps = {0.1}, .checkpoint = restart}));
    CHECK_THROWS_AS(make(matrix, 2, {.damps = {0.1}, .checkpoint = restart}), InputError);
    CHECK_THROWS_AS(make(other, 1, {.damps = {0.1}, .checkpoint = restart}), InputError);
    // AᴴA does not tell it from A.
    const OperatorPtr<T> resorted = dense_operator<T>(grid, Algorithm::stationary_a, 50, n,
                                                      [&](Index i, Index j) { return matrix(49 - i, j); });
    CHECK_THROWS_AS(SolutionSpace<T>(resorted, directory), InputError);
    CHECK_THROWS_AS(SolutionSpace<T>(resorted, filled(resorted->range(), 2, random_elements<T>(1)),
                                     {.damps = {0.1}, .checkpoint = restart}),
                    InputError);
    CHECK_THROWS_AS(make(matrix, 1, {.damps = {0.1}, .has_probe = true, .checkpoint = restart}), InputError);
    CHECK_THROWS_AS(make(matrix, 1, {.damps = {0.1}, .checkpoint = {.directory = directory}}), OutputError);
    CHECK_THROWS_AS(make(matrix, 1, {.damps = {0.1}, .checkpoint = {.every_seconds = -1}}), UsageError);
  }
}

TEST_CASE("What cgls has solved of the rest is saved with the space") {
  using T = double;
  const Index m = 30, n = 11, columns = 5;
  const KnownSpectrum<T> matrix(m, n, geometric(n, 1e3));
  const ScratchFolder folder;
  for (const GridPtr& grid : compact_grids()) {
    if (!grid->is_member()) continue;
    CAPTURE(describe(*grid));
    const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::stationary_a, matrix);
    const DistMatrix<T> B = filled(A->range(), columns, random_elements<T>(4));
    SolutionSpace<T> space(A, B, {.damps = {0.01, 0.1, 1}, .max_dimension = columns});
    REQUIRE(!space.solve_rest(B, {.max_iterations = 1000}).columns.empty());
    space.save(folder.file(describe(*grid)));
    const std::vector<DampingCurve> expected = space.curves(DampingRule::discrepancy, 4.5),
                                    found = SolutionSpace<T>(A, folder.file(describe(*grid)))
                                                .curves(DampingRule::discrepancy, 4.5);
    for (std::size_t j = 0; j < expected.size(); ++j) {
      CHECK(found[j].chosen == expected[j].chosen);
      for (std::size_t d = 0; d < 3; ++d) {
        CHECK(is_solved(found[j].points[d].reason));
        CHECK(found[j].points[d].reason == expected[j].points[d].reason);
        CHECK(found[j].points[d].x_norm == expected[j].points[d].x_norm);
        CHECK(found[j].points[d].residual_norm == expected[j].points[d].residual_norm);
      }
    }
  }
}

TEST_CASE("Ranks without rows have the same space") {
  using T = double;
  const Index n = 140;
  const ScratchFolder folder;
  for (const GridPtr& grid : compact_grids()) {
    if (!grid->is_member()) continue;
    CAPTURE(describe(*grid));
    std::vector<Index> sizes(static_cast<std::size_t>(grid->comm().size()), 0);
    sizes.back() = n;
    DistMatrix<T> d(grid, {{Axis::all, Partition::with_sizes(sizes)}, Cut::uncut(1)});
    d.fill([](Index i, Index) { return 1 / (1 + 0.5 * static_cast<double>(i)); });
    const OperatorPtr<T> A = diagonal(std::move(d));
    const DistMatrix<T> B = filled(A->range(), 3, random_elements<T>(4));
    const SolutionSpace<T> space(A, B, {.damps = {0.01}, .tolerance = 1e-9});
    CHECK(space.dimension() > 64);  // in several buffers
    space.save(folder.file(describe(*grid)));
    grid->comm().barrier();
    const SolutionSpace<T> again(A, folder.file(describe(*grid)));
    DistMatrix<T> X(grid, A->domain().layout(3));
    for (const ColumnReport& column : again.solve_others(B, X, {.tolerance = 1e-6, .damp = 0.01}).columns) {
      CHECK(column.reason == StopReason::converged);
      CHECK(column.iterations == 0);
    }
  }
}

TEST_CASE("A space is neither written over another nor read for another operator") {
  using T = double;
  const Index n = 10;
  const KnownSpectrum<T> matrix(12, n, geometric(n, 10)), other(12, n, geometric(n, 11));
  const ScratchFolder folder;
  for (const GridPtr& grid : compact_grids()) {
    const std::string directory = folder.file(describe(*grid));
    const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::stationary_a, matrix);
    const SolutionSpace<T> space(A, filled(A->range(), 2, random_elements<T>(1)), {.damps = {1}});
    space.save(directory);
    world().barrier();
    if (!grid->is_member()) continue;
    CHECK_THROWS_AS(space.save(directory), OutputError);
    CHECK_THROWS_AS(SolutionSpace<T>(A, folder.file("nowhere")), InputError);
    CHECK_THROWS_AS(SolutionSpace<T>(dense_operator<T>(grid, Algorithm::stationary_a, other), directory),
                    InputError);
    CHECK_THROWS_AS(SolutionSpace<float>(dense_operator<float>(grid, Algorithm::stationary_a,
                                                               KnownSpectrum<float>(12, n, geometric(n, 10))),
                                         directory),
                    InputError);
    CHECK_NOTHROW(SolutionSpace<T>(A, directory));
    if (grid->comm().rank() == 0) {
      std::fstream file(directory + "/generation-1/vectors-0.npy",
                        std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(-8, std::ios::end);
      file.write("damaged!", 8);
    }
    grid->comm().barrier();
    CHECK_THROWS_AS(SolutionSpace<T>(A, directory), InputError);
  }
}

namespace {

/// Copies a saved space, with other numbers.
template <Scalar T>
void save_with(const GridPtr& grid, const std::string& from, const std::string& to,
               const std::vector<double>& numbers) {
  const CheckpointReader reader(grid, from);
  CheckpointWriter writer(grid, to);
  for (const auto& [name, matrix] : reader.manifest().matrices) {
    if (name == "numbers") continue;
    DistMatrix<T> X(grid, replicated(matrix.rows, matrix.cols));
    reader.read(name, X);
    writer.write(name, X);
  }
  writer.write_numbers("numbers", numbers);
  writer.finish(reader.manifest().facts);
}

}  // namespace

TEMPLATE_TEST_CASE("Numbers of a saved space that do not fit together are refused", "", double,
                   std::complex<float>) {
  using T = TestType;
  const Index m = 9, n = 7, columns = 2;
  const KnownSpectrum<T> matrix(m, n, geometric(n, 30));
  const ScratchFolder folder;
  const GridPtr grid = compact_grids().back();
  const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::stationary_a, matrix);
  const DistMatrix<T> B = filled(A->range(), columns, right_hand_sides<T>());
  const SpaceOptions options{.damps = {0.1}, .tolerance = 1e-3};
  SolutionSpace<T>(A, B, options).save(folder.file("sound"));
  if (!grid->is_member()) return;
  const std::vector<double> sound = CheckpointReader(grid, folder.file("sound")).read_numbers("numbers");
  Index refused = 0, taken = 0;
  const auto check = [&](const std::vector<double>& numbers) {
    const std::string other = folder.file(message("other-", refused + taken));
    save_with<T>(grid, folder.file("sound"), other, numbers);
    try {
      SolutionSpace<T> space(A, other);
      DistMatrix<T> X(grid, A->domain().layout(columns));
      space.solve_others(B, X, {.max_iterations = 3});
      ++taken;
    } catch (const InputError&) {
      ++refused;
    } catch (const UsageError&) {  // of a limit that is another number now
      ++taken;
    }
    SpaceOptions more = options;
    more.tolerance = 1e-10;
    more.checkpoint.restart = other;
    try {
      SolutionSpace<T>(A, B, more);
    } catch (const InputError&) {
    }
    grid->comm().barrier();
    if (grid->comm().rank() == 0) std::filesystem::remove_all(other);
  };
  check(sound);
  CHECK(taken == 1);
  const std::vector<double> others{-1, 0, 1, 0.5, 3, 0x1p32, 0x1p62, 1e300, std::nan("")};
  // One rank tries all of them, and more ranks, which take longer, some in turn.
  const std::size_t step = grid->comm().size() == 1 ? 1 : 4;
  for (std::size_t k = 0; k < sound.size(); ++k) {
    for (std::size_t which = k % step; which < others.size(); which += step) {
      CAPTURE(k, others[which]);
      std::vector<double> numbers = sound;
      numbers[k] = others[which];
      check(numbers);
    }
    if (k % step == 0) check({sound.begin(), sound.begin() + static_cast<std::ptrdiff_t>(k)});
  }
  CHECK(refused > 100 / static_cast<Index>(step));
  CHECK(taken > 10 / static_cast<Index>(step));
}

namespace {

/// A, but for an adjoint product that makes NaN.
template <Scalar T>
class SpoiltOnce final : public LinearOperator<T> {
 public:
  SpoiltOnce(OperatorPtr<T> A, int spoilt)
      : LinearOperator<T>(A->range(), A->domain()), A_(std::move(A)), left_(spoilt) {}

 private:
  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    A_->apply(alpha, X, beta, Y);
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    A_->apply_adjoint(alpha, Y, beta, X);
    if (--left_ == 0) X *= std::numeric_limits<Real<T>>::quiet_NaN();
  }

  OperatorPtr<T> A_;
  mutable int left_;
};

}  // namespace

TEST_CASE("A space that ended because a product was not finite comes back from its files") {
  using T = double;
  const Index m = 230, n = 220;
  const ScratchFolder folder;
  for (const GridPtr& grid : compact_grids()) {
    const OperatorPtr<T> A =
        dense_operator<T>(grid, Algorithm::stationary_a, KnownSpectrum<T>(m, n, geometric(n, 30)));
    for (const Index columns : {1, 6, 40}) {  // with 40 each step takes memory of its own
      for (const int spoilt : {2, 3, 4}) {
        CAPTURE(describe(*grid), columns, spoilt);
        const std::string directory =
            folder.file(describe(*grid) + std::to_string(columns) + "-" + std::to_string(spoilt));
        const DistMatrix<T> B = filled(A->range(), columns, right_hand_sides<T>());
        const SolutionSpace<T> space(std::make_shared<SpoiltOnce<T>>(A, spoilt), B,
                                     {.damps = {1, 0.1}, .tolerance = 1e-9});
        space.save(directory);
        world().barrier();
        const SolutionSpace<T> read(A, directory);
        if (!grid->is_member()) continue;
        CHECK(space.end() == SpaceEnd::non_finite);
        CHECK(read.end() == SpaceEnd::non_finite);
        const std::vector<DampingCurve> before = space.curves(DampingRule::lcurve, 0),
                                        after = read.curves(DampingRule::lcurve, 0);
        REQUIRE(before.size() == after.size());
        for (std::size_t j = 0; j < before.size(); ++j)
          for (std::size_t d = 0; d < 2; ++d) {
            CHECK(after[j].points[d].reason == before[j].points[d].reason);
            CHECK(std::memcmp(&after[j].points[d].x_norm, &before[j].points[d].x_norm, sizeof(double)) == 0);
          }
      }
    }
  }
}
