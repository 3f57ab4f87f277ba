// SPDX-License-Identifier: BSD-3-Clause
// Solvers are interrupted, and go on from what they saved.
#include <filesystem>
#include <fstream>
#include <optional>

#include "gridlops/ops/operator_algebra.hpp"
#include "gridlops/solve/proximal.hpp"
#include "gridlops/solve/solve_observer.hpp"
#include "gridlops/solve/sparse_solver.hpp"
#include "io/checkpoint_files.hpp"
#include "io/file.hpp"
#include "io/npy_files.hpp"
#include "support/grids.hpp"
#include "support/solution_checks.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

constexpr Index m = 41, n = 23, nrhs = 7;

template <Scalar T>
SolveReport sparse(bool momentum, const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                   const SolveOptions& options) {
  SolveOptions own = options;
  own.lambda = 0.05;
  own.monotone = momentum;
  return momentum ? fista(A, B, X, own) : ista(A, B, X, own);
}
template <Scalar T>
SolveReport ista_alike(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                       const SolveOptions& options) {
  return sparse(false, A, B, X, options);
}
template <Scalar T>
SolveReport fista_alike(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                        const SolveOptions& options) {
  return sparse(true, A, B, X, options);
}

/// NCCL promises no order of its sums. Bits repeat where sums are asked for by rank.
bool needs_order() { return world().transport() == "nccl"; }

template <Scalar T>
struct Case {
  const char* name;
  SolverFunction<T> solver;
  Algorithm algorithm = Algorithm::stationary_a;
  double damp = 0;
  bool guess = false;
  Storage storage = Storage::columns;
  std::vector<double> damps{};
};

const std::vector<double> some_damps{0, 1, 0.1, 0.01, 10, 0, 0.3};

template <Scalar T>
std::vector<Case<T>> all_cases() {
  return {
      {"cgls", cgls<T>},
      {"cgls with summa, damped", cgls<T>, Algorithm::summa, 0.2},
      {"cgls with block, guess", cgls<T>, Algorithm::block, 0, true},
      {"one_pass_cgls", one_pass_cgls<T>, Algorithm::stationary_a, 0, false, Storage::packed},
      {"one_pass_cgls damped, guess", one_pass_cgls<T>, Algorithm::stationary_a, 0.2, true, Storage::packed},
      {"lsqr", lsqr<T>},
      {"lsqr damped, guess", lsqr<T>, Algorithm::stationary_a, 0.2, true},
      {"lsmr with summa, damped", lsmr<T>, Algorithm::summa, 0.2},
      {"block_cgls", block_cgls<T>},
      {"block_cgls damped, guess", block_cgls<T>, Algorithm::stationary_a, 0.2, true},
      {"ista", ista_alike<T>},
      {"fista with summa", fista_alike<T>, Algorithm::summa},
      {"cgls with summa, damps", cgls<T>, Algorithm::summa, 0, false, Storage::columns, some_damps},
      {"lsqr with damps", lsqr<T>, Algorithm::stationary_a, 0, false, Storage::columns, some_damps},
      {"lsmr with damps", lsmr<T>, Algorithm::stationary_a, 0, false, Storage::columns, some_damps}};
}

/// Column 1 takes no iteration, and column 2 takes one of most solvers. So they leave one after the other,
/// and the others come to lie in another order than if both had left at once.
template <Scalar T>
struct Problem {
  Problem(const GridPtr& on, const Case<T>& what, double condition)
      : grid(on),
        matrix(m, n, geometric(n, condition)),
        A(dense_operator<T>(on, what.algorithm, matrix,
                            {.column_stable = needs_order(), .storage = what.storage})),
        how(what) {
    if (what.guess) guess = random_elements<T>(9);
  }

  Solution<T> solve_with(SolveOptions options) const {
    options.damp = how.damp;
    if (!how.damps.empty()) options.damp = how.damps;
    options.column_stable = needs_order();
    return solve<T>(how.solver, *A, nrhs, b, options, guess);
  }
  /// Ends after iteration `last`, with its state in the folder.
  void suspend(SolveOptions options, const std::string& folder, Index last, int asking) const {
    Index iteration = 0;
    options.checkpoint.directory = folder;
    options.checkpoint.requested = [this, &iteration, last, asking] {
      return ++iteration >= last && grid->comm().rank() == asking;
    };
    if (!grid->is_member()) {
      solve_with(options);
    } else {
      REQUIRE_THROWS_AS(solve_with(options), Suspended);
      CHECK(iteration == last);
    }
  }

  GridPtr grid;
  KnownSpectrum<T> matrix;
  OperatorPtr<T> A;
  Case<T> how;
  Element<T> guess;
  Element<T> b = [this](Index i, Index j) {
    return j == 2 ? matrix.left(i, 3) : j == 1 ? T(0) : counter_random<T>(4, i, j);
  };
};

template <Scalar T>
bool same_bits(const std::vector<T>& x, const std::vector<T>& y) {
  return x.size() == y.size() && (x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof(T)) == 0);
}

}  // namespace

TEMPLATE_TEST_CASE("A restart on the same grid ends as the run that was not interrupted, to the bit", "",
                   double, std::complex<float>) {
  for (const GridPtr& grid : compact_grids()) {
    for (const Case<TestType>& how : all_cases<TestType>()) {
      const Problem<TestType> problem(grid, how, 30);
      for (const Index batch : {0, 2}) {
        CAPTURE(how.name, batch, describe(*grid));
        const ScratchFolder folder;
        SolveOptions options;
        options.batch = batch;
        const Solution<TestType> whole = problem.solve_with(options);
        problem.suspend(options, folder.file("saved"), 4, grid->shape().size() - 1);
        options.checkpoint.restart = folder.file("saved");
        const Solution<TestType> resumed = problem.solve_with(options);
        CHECK(same_bits(resumed.X, whole.X));
        CHECK(numbers_in(resumed.report) == numbers_in(whole.report));
      }
    }
  }
}

TEST_CASE("CG restarts to the bit") {
  const auto values = geometric(n, 30);
  for (const GridPtr& grid : compact_grids()) {
    const KnownSpectrum<double> matrix = KnownSpectrum<double>::hermitian(values);
    const OperatorPtr<double> product =
        dense_operator(grid, Algorithm::stationary_a, matrix, {.column_stable = needs_order()});
    const OperatorPtr<double> A =
        gridlops::product(identity<double>(product->domain(), product->range()), product);
    const ScratchFolder folder;
    SolveOptions options;
    options.column_stable = needs_order();
    const Solution<double> whole = solve<double>(cg, *A, nrhs, random_elements<double>(4), options);
    options.checkpoint.directory = folder.file("saved");
    options.checkpoint.every_iterations = 3;
    const Solution<double> saving = solve<double>(cg, *A, nrhs, random_elements<double>(4), options);
    options.checkpoint.restart = folder.file("saved");
    const Solution<double> resumed = solve<double>(cg, *A, nrhs, random_elements<double>(4), options);
    CHECK(same_bits(saving.X, whole.X));
    CHECK(same_bits(resumed.X, whole.X));
    CHECK(numbers_in(resumed.report) == numbers_in(whole.report));
  }
}

TEST_CASE("LSQR's variances restart to the bit, also those of batches that are through") {
  for (const GridPtr& grid : compact_grids()) {
    const KnownSpectrum<double> matrix(m, n, geometric(n, 30));
    const OperatorPtr<double> A =
        dense_operator(grid, Algorithm::stationary_a, matrix, {.column_stable = needs_order()});
    DistMatrix<double> B(grid, A->range().layout(nrhs)), X(grid, A->domain().layout(nrhs));
    B.fill(random_elements<double>(4));
    const auto variances = [&](const SolveOptions& options) {
      DistMatrix<double> V(grid, A->domain().layout(nrhs));
      V.fill([](Index, Index) { return -1.0; });
      lsqr(*A, B, X, V, options);
      return everywhere(V);
    };
    for (const Index batch : {0, 2}) {
      const ScratchFolder folder;
      SolveOptions options;
      options.batch = batch;
      options.column_stable = needs_order();
      const std::vector<double> whole = variances(options);
      Index calls = 0;
      options.checkpoint.directory = folder.file("saved");
      options.checkpoint.requested = [&] { return ++calls >= (batch == 0 ? 20 : 40); };  // in a later batch
      if (grid->is_member()) CHECK_THROWS_AS(variances(options), Suspended);
      options.checkpoint = {};
      options.checkpoint.restart = folder.file("saved");
      CHECK(same_bits(variances(options), whole));
    }
  }
}

TEST_CASE("On another grid ten further iterations agree to rounding") {
  std::vector<GridPtr> grids = compact_grids();
  // Stacks are ordered as the grid is: one grid of two dimensions, and one of one.
  if (world().size() == 4)
    grids.push_back(std::make_shared<const ProcessGrid>(world(), GridShape{4, 1}, grids.front()->backend()));
  for (const Case<double>& how : all_cases<double>()) {
    for (const GridPtr& first : grids) {
      const ScratchFolder folder;
      SolveOptions options;
      options.tolerance = 0;
      options.max_iterations = 14;
      const Problem<double> begun(first, how, 3);
      std::vector<double> expected = begun.solve_with(options).X;
      expected.resize(static_cast<std::size_t>(n * nrhs));
      world().broadcast(expected, 0);
      begun.suspend(options, folder.file("saved"), 4, 0);
      world().barrier();
      options.checkpoint.restart = folder.file("saved");
      for (const GridPtr& second : grids) {
        CAPTURE(how.name, describe(*first), describe(*second));
        const Solution<double> resumed = Problem<double>(second, how, 3).solve_with(options);
        if (second->is_member()) CHECK(relative_difference(resumed.X, expected) < 1e-12);
      }
    }
  }
}

TEST_CASE("Only two checkpoints are kept, and what a writer that died left is removed") {
  const GridPtr grid = compact_grids().back();
  const Problem<double> problem(grid, {"cgls", cgls<double>}, 30);
  const ScratchFolder folder;
  const std::filesystem::path saved = folder.file("saved");
  if (world().rank() == 0) {
    for (const char* name : {"generation-3", "generation-4", "generation-5", "generation-6", "generation-7"})
      std::filesystem::create_directories(saved / name);
    std::ofstream(saved / "generation-7" / "unfinished")
        << "GridLOps was writing a checkpoint in this folder\n";
    std::ofstream(saved / "generation-7" / "x.npy") << "half a fi";
    // Whose these are, nobody knows.
    std::ofstream(saved / "generation-4" / "best.txt") << "population";
    std::ofstream(saved / "generation-5" / "x.npy") << "no checkpoint";
    std::filesystem::create_directories(saved / "generation-6" / "x.npy");
  }
  world().barrier();
  SolveOptions options;
  options.max_iterations = 10;
  options.checkpoint.directory = saved.string();
  options.checkpoint.every_iterations = 2;
  problem.solve_with(options);
  world().barrier();
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(saved))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  CHECK(names == std::vector<std::string>{"generation-11", "generation-12", "generation-4", "generation-5",
                                          "generation-6", "manifest.json"});
  CHECK(contents((saved / "generation-4" / "best.txt").string()) == "population");
  const auto facts = checkpoint_facts(world(), saved.string());
  CHECK(facts.at("iteration") == "10");
  CHECK(read_manifest(world(), saved.string()).previous == "generation-11");
  CHECK(checkpoint_facts(world(), (saved / "generation-11").string()).at("iteration") == "8");
}

TEST_CASE("What somebody put into the folder of a checkpoint is not removed with it") {
  const GridPtr grid = compact_grids().back();
  const Problem<double> problem(grid, {"cgls", cgls<double>}, 30);
  const ScratchFolder folder;
  const std::filesystem::path saved = folder.file("saved");
  SolveOptions options;
  options.max_iterations = 10;
  options.checkpoint.directory = saved.string();
  options.checkpoint.every_iterations = 2;
  Index iteration = 0;
  options.checkpoint.requested = [&] {
    if (++iteration == 3 && grid->comm().rank() == 0)
      std::ofstream(saved / "generation-1" / "mine.npy") << "notes";
    return false;
  };
  problem.solve_with(options);
  world().barrier();
  CHECK(contents((saved / "generation-1" / "mine.npy").string()) == "notes");
  CHECK(!std::filesystem::exists(saved / "generation-2"));
  CHECK(std::filesystem::exists(saved / "generation-5"));
  // Nor is a file that is no lock.
  world().barrier();
  if (world().rank() == 0) std::ofstream(saved / "lock") << "of my house";
  world().barrier();
  options.checkpoint.restart = saved.string();
  options.checkpoint.requested = {};
  if (grid->is_member()) CHECK_THROWS_AS(problem.solve_with(options), OutputError);
  world().barrier();
  CHECK(contents((saved / "lock").string()) == "of my house");
}

TEST_CASE("A run that has converged goes on to a smaller tolerance") {
  for (const GridPtr& grid : compact_grids()) {
    for (const Case<double>& how : all_cases<double>()) {
      for (const Index batch : {0, 2}) {
        CAPTURE(how.name, batch, describe(*grid));
        const Problem<double> problem(grid, how, 3);
        const ScratchFolder folder;
        SolveOptions options;
        options.batch = batch;
        options.max_iterations = 1000;
        options.tolerance = 1e-2;
        options.checkpoint.directory = folder.file("saved");
        const Solution<double> begun = problem.solve_with(options);
        const std::string problem_of_end = folder.file("saved");
        options.checkpoint.restart = problem_of_end;
        const Solution<double> again = problem.solve_with(options);
        options.tolerance = 1e-9;
        const Solution<double> resumed = problem.solve_with(options);
        options.checkpoint = {};
        const Solution<double> whole = problem.solve_with(options);
        if (!grid->is_member()) continue;
        CHECK(same_bits(again.X, begun.X));
        double error = 0, norm = 0;
        for (std::size_t k = 0; k < whole.X.size(); ++k) {
          error += std::norm(resumed.X[k] - whole.X[k]);
          norm += std::norm(whole.X[k]);
        }
        CHECK(std::sqrt(error) <= 1e-6 * std::sqrt(norm));
        for (Index j = 0; j < nrhs; ++j) {
          CHECK(is_solved(again.verdict(j).reason));
          CHECK(is_solved(resumed.verdict(j).reason));
        }
      }
    }
  }
}

namespace {

/// Counts the batches that begin or are resumed, and sets the count of iterations to 0.
class BatchCounter final : public SolveObserver {
 public:
  BatchCounter(Index& begun, Index& iteration) : begun_(begun), iteration_(iteration) {}
  bool step(const IterationInfo& info) override {
    if (info.at_start) ++begun_, iteration_ = 0;
    return false;
  }

 private:
  Index &begun_, &iteration_;
};

}  // namespace

TEST_CASE("Batches that ended under looser limits are solved again under tighter ones") {
  for (const GridPtr& grid : compact_grids()) {
    CAPTURE(describe(*grid));
    const Problem<double> problem(grid, {"cgls", cgls<double>}, 3);
    const ScratchFolder folder;
    SolveOptions options;
    options.batch = 1;
    options.max_iterations = 1000;
    options.tolerance = 1e-9;
    const Solution<double> whole = problem.solve_with(options);
    Index begun = 0, iteration = 0, last = 4;
    options.observers = {std::make_shared<BatchCounter>(begun, iteration)};
    options.checkpoint.directory = folder.file("saved");
    options.checkpoint.requested = [&] { return begun == last && ++iteration == 2; };
    for (const double tolerance : {1e-9, 1e-2}) {  // the first ends in batch 3, the second in batch 4
      options.tolerance = tolerance;
      begun = 0;
      if (grid->is_member()) CHECK_THROWS_AS(problem.solve_with(options), Suspended);
      world().barrier();
      options.checkpoint.restart = options.checkpoint.directory;
      last = 2;
    }
    options.tolerance = 1e-9;
    options.observers.clear();
    options.checkpoint.requested = {};
    const Solution<double> resumed = problem.solve_with(options);
    if (!grid->is_member()) continue;
    double error = 0, norm = 0;
    for (std::size_t k = 0; k < whole.X.size(); ++k) {
      error += std::norm(resumed.X[k] - whole.X[k]);
      norm += std::norm(whole.X[k]);
    }
    CHECK(std::sqrt(error) <= 1e-6 * std::sqrt(norm));
  }
}

TEST_CASE("A checkpoint that cannot be written is tried again, and only the end that is asked for fails") {
  const GridPtr grid = compact_grids().back();
  const Problem<double> problem(grid, {"cgls", cgls<double>}, 30);
  for (const Index asked : {0, 6}) {
    CAPTURE(asked);
    const ScratchFolder folder;
    const std::filesystem::path saved = folder.file("saved");
    // Behind the last number there is none.
    const std::filesystem::path last = saved / "generation-18446744073709551615",
                                before = saved / "generation-18446744073709551614";
    SolveOptions options;
    options.max_iterations = 10;
    options.tolerance = 0;
    options.checkpoint.directory = saved.string();
    options.checkpoint.every_iterations = 2;
    Index iteration = 0;
    options.checkpoint.requested = [&] {
      ++iteration;
      if (grid->comm().rank() == 0 && iteration == 3)
        for (const auto& path : {last, before}) std::filesystem::create_directories(path / "mine");
      if (grid->comm().rank() == 0 && iteration == 9)
        for (const auto& path : {last, before}) std::filesystem::remove_all(path);
      return iteration == asked;
    };
    if (asked > 0) {
      if (grid->is_member()) CHECK_THROWS_AS(problem.solve_with(options), OutputError);
    } else {
      const Solution<double> solved = problem.solve_with(options);
      if (grid->is_member()) CHECK(solved.verdict(0).reason == StopReason::iteration_limit);
    }
    world().barrier();
    CHECK(checkpoint_facts(world(), saved.string()).at("iteration") == (asked > 0 ? "2" : "10"));
    world().barrier();
  }
}

TEST_CASE("A damaged checkpoint is refused by a text that names the one before, which goes on") {
  const GridPtr grid = compact_grids().back();
  const Problem<double> problem(grid, {"cgls", cgls<double>}, 30);
  const ScratchFolder folder;
  const std::filesystem::path saved = folder.file("saved");
  SolveOptions options;
  options.max_iterations = 4;
  options.checkpoint.directory = saved.string();
  options.checkpoint.every_iterations = 2;
  problem.solve_with(options);
  world().barrier();
  if (world().rank() == 0) {
    const std::string path = (saved / "generation-2" / "x.npy").string();
    std::string text = contents(path);
    text.back() = static_cast<char>(text.back() ^ 1);
    std::ofstream(path, std::ios::binary) << text;
  }
  world().barrier();
  options.checkpoint.restart = saved.string();
  const std::string text = message_of<InputError>([&] { problem.solve_with(options); });
  const std::string before = (saved / "generation-1").string();
  CAPTURE(text);
  CHECK((!grid->is_member() || text.find("the one before it is " + before) != std::string::npos));
  options.checkpoint.restart = before;
  problem.solve_with(options);
  world().barrier();
  CHECK(checkpoint_facts(world(), saved.string()).at("iteration") == "4");
}

TEST_CASE("A run that is no restart leaves the checkpoint of an earlier one alone, and computes nothing") {
  const GridPtr grid = compact_grids().back();
  const Problem<double> problem(grid, {"cgls", cgls<double>}, 30);
  const ScratchFolder folder;
  const std::filesystem::path saved = folder.file("saved"), other = folder.file("other");
  problem.suspend({}, saved.string(), 4, 0);
  problem.suspend({}, other.string(), 3, 0);
  world().barrier();
  if (world().rank() == 0) std::filesystem::create_symlink("saved", folder.file("link"));
  world().barrier();
  Index iterations = 0;
  SolveOptions options;
  options.checkpoint.directory = saved.string();
  options.checkpoint.requested = [&] { return ++iterations < 0; };
  for (const std::string& restart : {std::string(), other.string()}) {
    options.checkpoint.restart = restart;
    for (const bool asks : {true, false}) {
      const std::string text = message_of<OutputError>([&] {
        if (!asks) return void(problem.solve_with(options));
        if (grid->is_member()) check_checkpoint_directory(grid->comm(), options.checkpoint);
      });
      CAPTURE(text, restart);
      CHECK((!grid->is_member() || text.find("manifest.json: names what an earlier run saved") != text.npos));
    }
  }
  CHECK(iterations == 0);
  world().barrier();
  CHECK(checkpoint_facts(world(), saved.string()).at("iteration") == "4");
  options.checkpoint.restart = folder.file("link");
  CHECK_NOTHROW(problem.solve_with(options));
}

TEST_CASE("Two jobs do not save in one directory, and one that was killed holds nobody up") {
  const GridPtr grid = compact_grids().back();
  const Problem<double> problem(grid, {"cgls", cgls<double>}, 30);
  const ScratchFolder folder;
  const std::string saved = folder.file("saved"), lock = saved + "/lock";
  SolveOptions options;
  options.checkpoint.directory = saved;
  {
    std::optional<LockFile> another;
    if (world().rank() == 0) {
      std::filesystem::create_directory(saved);
      another.emplace(lock, "save checkpoints there");
    }
    world().barrier();
    const std::string text = message_of<OutputError>([&] { problem.solve_with(options); });
    CAPTURE(text);
    CHECK((!grid->is_member() || (text.find(lock + ": is held by process ") != text.npos &&
                                  text.find("name another folder") != text.npos)));
    world().barrier();
  }
  if (world().rank() == 0) std::ofstream(lock) << "process 1 on a host that is gone";
  world().barrier();
  problem.suspend(options, saved, 4, 0);
  world().barrier();
  CHECK_FALSE(std::filesystem::exists(lock));
}

TEST_CASE("A manifest that would be too long is refused before the first iteration") {
  const GridPtr grid = compact_grids().back();
  const Problem<double> problem(grid, {"cgls", cgls<double>}, 30);
  const ScratchFolder folder;
  Index iterations = 0;
  SolveOptions options;
  options.checkpoint.directory = folder.file("saved");
  options.checkpoint.requested = [&] { return ++iterations < 0; };
  options.checkpoint.facts["notes"] = std::string(std::size_t{64} << 20, 'x');
  const std::string text = message_of<OutputError>([&] { problem.solve_with(options); });
  CAPTURE(text);
  CHECK((!grid->is_member() || text.find("but manifests have at most 67108864") != text.npos));
  CHECK(iterations == 0);
}

TEMPLATE_TEST_CASE(
    "The end at the limit of iterations is saved, and with more of them a restart is the run without "
    "interruption",
    "", double, std::complex<float>) {
  for (const GridPtr& grid : compact_grids()) {
    for (const Case<TestType>& how : all_cases<TestType>()) {
      const Problem<TestType> problem(grid, how, 3);
      SolveOptions options;
      const Solution<TestType> whole = problem.solve_with(options);
      std::vector<Index> iterations{whole.report.iterations};  // none on idle ranks, which wait for others
      world().broadcast(iterations, 0);
      for (const Index limit : {0, 1, 4}) {
        if (iterations.front() <= limit) continue;
        for (const Index every : {0, 2, 3}) {
          CAPTURE(how.name, describe(*grid), limit, every);
          const ScratchFolder folder;
          SolveOptions limited = options;
          limited.max_iterations = limit;
          limited.checkpoint.directory = folder.file("saved");
          limited.checkpoint.every_iterations = every;
          const Solution<TestType> begun = problem.solve_with(limited);
          limited.checkpoint.restart = folder.file("saved");
          for (const Index as_low : {limit, limit / 2}) {
            limited.max_iterations = as_low;
            const Solution<TestType> again = problem.solve_with(limited);
            CHECK(same_bits(again.X, begun.X));
            CHECK(numbers_in(again.report) == numbers_in(begun.report));
          }
          options.checkpoint.restart = folder.file("saved");
          const Solution<TestType> resumed = problem.solve_with(options);
          options.checkpoint.restart = "";
          CHECK(same_bits(resumed.X, whole.X));
          CHECK(numbers_in(resumed.report) == numbers_in(whole.report));
        }
      }
    }
  }
}

TEST_CASE("Columns of the last batch go on where more iterations are allowed") {
  for (const GridPtr& grid : compact_grids()) {
    for (const Case<double>& how : all_cases<double>()) {
      CAPTURE(how.name, describe(*grid));
      const Problem<double> problem(grid, how, 3);
      const ScratchFolder folder;
      SolveOptions options;
      options.batch = 2;
      options.max_iterations = 3;
      options.checkpoint.directory = folder.file("saved");
      const Solution<double> begun = problem.solve_with(options);
      options.max_iterations = 1000;
      options.checkpoint.restart = folder.file("saved");
      const Solution<double> resumed = problem.solve_with(options);
      if (!grid->is_member()) continue;
      Index went_on = 0;
      for (Index j = 0; j < nrhs; ++j) {
        if (begun.verdict(j).reason != StopReason::iteration_limit) {
          // It is judged anew, and LSQR and LSMR know ‖A‖ after an iteration only.
          CHECK(resumed.verdict(j).reason == begun.verdict(j).reason);
          CHECK(resumed.verdict(j).iterations <= begun.verdict(j).iterations + 1);
        } else if (resumed.verdict(j).iterations > 3) {
          CHECK(resumed.verdict(j).reason == StopReason::converged);
          ++went_on;
        }
      }
      CHECK(went_on > 0);
    }
  }
}

TEST_CASE("Data with NaN are the same data at a restart") {
  for (const GridPtr& grid : compact_grids()) {
    CAPTURE(describe(*grid));
    Problem<double> problem(grid, {"cgls", cgls<double>}, 30);
    problem.b = [whole = problem.b](Index i, Index j) {
      return i == 1 && j == 1 ? std::numeric_limits<double>::quiet_NaN() : whole(i, j);
    };
    const ScratchFolder folder;
    SolveOptions options;
    problem.suspend(options, folder.file("saved"), 4, 0);
    world().barrier();
    options.checkpoint.restart = folder.file("saved");
    const Solution<double> resumed = problem.solve_with(options);
    if (!grid->is_member()) continue;
    CHECK(resumed.verdict(0).reason == StopReason::converged);
    CHECK(resumed.verdict(1).reason == StopReason::non_finite);
  }
}

TEST_CASE("Nobody waits in a checkpoint for a rank that asks for the end") {
  struct Asks final : SolveObserver {
    explicit Asks(Index when) : when_(when) {}
    bool step(const IterationInfo& info) override { return info.iteration == when_; }
    Index when_;
  };
  for (const GridPtr& grid : compact_grids()) {
    for (const Case<double>& how : all_cases<double>()) {
      for (int asking = 0; asking < grid->shape().size(); ++asking) {
        for (const bool observes : {false, true}) {
          CAPTURE(how.name, describe(*grid), asking, observes);
          const Problem<double> problem(grid, how, 30);
          const ScratchFolder folder;
          const bool asks = grid->is_member() && grid->comm().rank() == asking;
          SolveOptions options;
          options.checkpoint.directory = folder.file("saved");
          options.checkpoint.every_iterations = 3;
          if (observes) {
            if (asks) options.observers = {std::make_shared<Asks>(3)};
          } else {
            options.observers = {after_each_iteration(
                [asks](const IterationInfo& info) { return asks && info.iteration == 3; })};
          }
          const Solution<double> stopped = problem.solve_with(options);
          if (!grid->is_member()) continue;
          CHECK(stopped.verdict(0).reason == StopReason::user_stop);
          CHECK(stopped.verdict(0).iterations == 3);
          CHECK(checkpoint_facts(grid->comm(), folder.file("saved")).at("iteration") == "3");
        }
      }
    }
  }
}

TEST_CASE("A checkpoint of something else is refused on all ranks") {
  const GridPtr grid = compact_grids().back();
  const Problem<double> problem(grid, {"cgls", cgls<double>}, 30);
  const ScratchFolder folder;
  SolveOptions options;
  problem.suspend(options, folder.file("saved"), 4, 0);
  world().barrier();
  options.checkpoint.restart = folder.file("saved");
  const auto refusal = [&](const Problem<double>& other, const SolveOptions& with) {
    return message_of<Error>([&] { other.solve_with(with); });
  };
  const auto says = [&](const std::string& text, const char* part) {
    CAPTURE(text);
    CHECK((!grid->is_member() || text.find(part) != std::string::npos));
  };
  Problem<double> other = problem;
  other.how.solver = lsqr<double>;
  says(refusal(other, options), "but this is lsqr");
  other.how.solver = one_pass_cgls<double>;
  says(refusal(other, options), "but this is one-pass-cgls");
  other = problem;
  other.how.damp = 0.5;
  says(refusal(other, options), "with damp 0, but here it is 0.5");
  other.how.damp = 0;
  other.how.damps = some_damps;
  says(refusal(other, options), "with damp 0 in entry 1, but here it is 1");
  Problem<double> sweep = other;
  SolveOptions of_sweep;
  sweep.suspend(of_sweep, folder.file("sweep"), 4, 0);
  of_sweep.checkpoint.restart = folder.file("sweep");
  sweep.how.damps[2] = 0.2;
  says(refusal(sweep, of_sweep), "with damp 0.1 in entry 2, but here it is 0.2");
  other = problem;
  other.A = dense_operator<double>(grid, Algorithm::stationary_a, m, n, [&](Index i, Index j) {
    return problem.matrix(i, j) + (i == m - 1 && j == n - 1 ? 1e-6 : 0);
  });
  says(refusal(other, options), "another operator");
  other = problem;
  other.b = [&](Index i, Index j) { return j == 5 ? -problem.b(i, j) : problem.b(i, j); };
  says(refusal(other, options), "other data: right-hand side 5");
  SolveOptions nowhere = options;
  nowhere.checkpoint.restart = folder.file("nothing");
  says(refusal(problem, nowhere), "there is no manifest.json");
  nowhere.checkpoint.restart = "";
  nowhere.checkpoint.directory = folder.file("saved") + "/manifest.json/below";
  says(refusal(problem, nowhere), "checkpoints cannot be kept there");
}

TEST_CASE("A checkpoint of another operator is refused whatever its size") {
  const GridPtr grid = compact_grids().back();
  for (const int power : {-900, -560, 560, 900}) {
    Problem<double> problem(grid, {"cgls", cgls<double>}, 30);
    const auto scaled = [&](bool last_rows_change_places) {
      return dense_operator<double>(grid, Algorithm::stationary_a, m, n, [=, &problem](Index i, Index j) {
        const Index row = last_rows_change_places && i >= m - 2 ? 2 * m - 3 - i : i;
        return std::ldexp(problem.matrix(row, j), power);
      });
    };
    problem.A = scaled(false);
    // Nothing of these data is where rows change places.
    problem.b = [&](Index i, Index j) { return i < m - 2 ? std::ldexp(counter_uniform(4, i, j), power) : 0; };
    const ScratchFolder folder;
    SolveOptions options;
    problem.suspend(options, folder.file("saved"), 4, 0);
    world().barrier();
    options.checkpoint.restart = folder.file("saved");
    CAPTURE(power);
    for (const bool is_other : {true, false}) {
      problem.A = scaled(is_other);
      const std::string text = message_of<Error>([&] { problem.solve_with(options); });
      if (!grid->is_member()) continue;
      CHECK((text.find("another operator") != std::string::npos) == is_other);
      CHECK(text.empty() == !is_other);
    }
    problem.b = [&](Index i, Index j) { return std::ldexp(counter_uniform(5, i, j), power); };
    const std::string text = message_of<Error>([&] { problem.solve_with(options); });
    CHECK((!grid->is_member() || text.find("other data: right-hand side 0") != std::string::npos));
  }
}

TEST_CASE("A damaged checkpoint is refused on all ranks, whatever byte it is") {
  const GridPtr grid = compact_grids().back();
  const Problem<double> problem(grid, {"cgls", cgls<double>}, 30);
  const ScratchFolder folder;
  SolveOptions options;
  problem.suspend(options, folder.file("saved"), 4, 0);
  world().barrier();
  options.checkpoint.restart = folder.file("saved");
  const std::filesystem::path saved = folder.file("saved");
  std::vector<std::filesystem::path> files{saved / "manifest.json"};
  for (const char* name : {"x", "r", "p", "best", "numbers"})
    files.push_back(saved / "generation-1" / (std::string(name) + ".npy"));
  for (const std::filesystem::path& file : files) {
    const std::string sound = contents(file.string());
    const std::vector<std::string> damaged{[&] {
                                             std::string text = sound;
                                             text[text.size() - 9] ^= 1;
                                             return text;
                                           }(),
                                           [&] {
                                             std::string text = sound;
                                             text[text.size() / 2] ^= 64;
                                             return text;
                                           }(),
                                           sound.substr(0, sound.size() - 8), ""};
    for (const std::string& text : damaged) {
      CAPTURE(file.string(), text.size());
      world().barrier();
      if (world().rank() == 0) std::ofstream(file, std::ios::binary) << text;
      world().barrier();
      if (grid->is_member()) CHECK_THROWS_AS(problem.solve_with(options), InputError);
    }
    world().barrier();
    if (world().rank() == 0) std::ofstream(file, std::ios::binary) << sound;
    world().barrier();
  }
  CHECK_NOTHROW(problem.solve_with(options));
}

TEST_CASE("A restart of a sparse solver refuses another lambda, step, decay or momentum, with both values") {
  const GridPtr grid = compact_grids().back();
  const KnownSpectrum<double> matrix(m, n, geometric(n, 30));
  const OperatorPtr<double> A = dense_operator(grid, Algorithm::stationary_a, matrix);
  DistMatrix<double> B(grid, A->range().layout(nrhs)), X(grid, A->domain().layout(nrhs));
  B.fill(random_elements<double>(4));
  const ScratchFolder folder;
  SolveOptions begun;
  begun.lambda = 0.05;
  begun.step = 0.1;
  begun.decay = {2, 1};
  begun.max_iterations = 4;
  begun.checkpoint.directory = folder.file("saved");
  const ProximalPtr<double> penalty = threshold_penalty<double>(Threshold::soft);
  const auto refusal = [&](const SolveOptions& options) {
    return message_of<InputError>([&] { proximal_gradient(*A, penalty, B, X, options); });
  };
  const auto says = [&](const std::string& text, const char* part) {
    CAPTURE(text);
    CHECK((!grid->is_member() || text.find(part) != std::string::npos));
  };
  proximal_gradient(*A, penalty, B, X, begun);
  world().barrier();
  begun.checkpoint.directory = "";
  begun.checkpoint.restart = folder.file("saved");
  begun.max_iterations = 1000;
  SolveOptions other = begun;
  other.lambda = 0.5;
  says(refusal(other), "with lambda 0.05, but here it is 0.5");
  std::vector<double> lambdas(static_cast<std::size_t>(nrhs), 0.05);
  lambdas[3] = 0.25;
  other.lambda = lambdas;
  says(refusal(other), "with lambda 0.05 in entry 3, but here it is 0.25");
  other = begun;
  other.step = 0.2;
  says(refusal(other), "with step 0.1, but here it is 0.2");
  other = begun;
  other.decay[1] = 0.5;
  says(refusal(other), "with decay 1 in entry 1, but here it is 0.5");
  other.decay = {2};
  says(refusal(other), "2 values of decay, but here are 1");
  other = begun;
  other.acceleration = Acceleration::none;
  says(refusal(other), "acceleration none");
  SolveReport resumed;
  CHECK_NOTHROW(resumed = proximal_gradient(*A, penalty, B, X, begun));
  if (grid->is_member()) CHECK(resumed.iterations > 4);
}

TEST_CASE("A restart takes the step and the lambdas that its run computed, and reports them") {
  for (const GridPtr& grid : compact_grids()) {
    const KnownSpectrum<double> matrix(m, n, geometric(n, 30));
    const OperatorPtr<double> A = dense_operator(grid, Algorithm::stationary_a, matrix);
    const ScratchFolder folder;
    SolveOptions options;
    options.lambda = {0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07};
    options.step = 0.125;
    options.max_iterations = 4;
    options.checkpoint.directory = folder.file("saved");
    DistMatrix<double> B(grid, A->range().layout(nrhs));
    B.fill(random_elements<double>(4));
    const auto solve_with = [&](const SolveOptions& how) {
      DistMatrix<double> X(grid, A->domain().layout(nrhs));
      SolveReport report = fista(*A, B, X, how);
      return Solution<double>{std::move(report), everywhere(X)};
    };
    const SolveOptions whole = [&] {
      SolveOptions all = options;
      all.max_iterations = 50;
      all.checkpoint = {};
      return all;
    }();
    solve_with(options);
    SolveOptions again = options;
    again.step.reset();  // computed anew, it would be another one
    std::vector<double> lambdas = options.lambda.values();
    for (double& lambda : lambdas) lambda *= 1 + 1e-15;
    again.lambda = lambdas;
    again.max_iterations = 50;
    again.checkpoint = {};
    again.checkpoint.restart = folder.file("saved");
    again.checkpoint.computed = {"lambda"};
    const Solution<double> expected = solve_with(whole), resumed = solve_with(again);
    if (!grid->is_member()) continue;
    CHECK(resumed.report.step == 0.125);
    CHECK(resumed.report.lambdas == options.lambda.values());
    if (!needs_order()) CHECK(same_bits(resumed.X, expected.X));
    again.checkpoint.computed = {};
    CHECK_THROWS_AS(solve_with(again), InputError);
  }
}

TEST_CASE(
    "The ratio of the joint residual is that to the start, also after a restart, and batches are refused") {
  for (const GridPtr& grid : compact_grids()) {
    const Problem<double> problem(grid, {"cgls", cgls<double>}, 30);
    SolveOptions options;
    double ratio = 0;  // after iteration 5
    options.observers = {after_each_iteration([&ratio](const IterationInfo& info) {
      const auto joint = [](std::span<const double> norms) {
        return norm_of(std::vector<double>(norms.begin(), norms.end()));
      };
      if (info.iteration == 5) ratio = joint(info.residual_norms) / joint(info.first_residual_norms);
      return info.iteration == 5;
    })};
    problem.solve_with(options);
    options.observers = {stop_at_cost_ratio(ratio * (1 + 1e-9))};
    const Solution<double> whole = problem.solve_with(options);
    const ScratchFolder folder;
    SolveOptions begun;
    begun.max_iterations = 2;
    begun.checkpoint.directory = folder.file("saved");
    problem.solve_with(begun);
    options.checkpoint.restart = folder.file("saved");
    const Solution<double> resumed = problem.solve_with(options);
    options.checkpoint.restart = "";
    options.batch = 2;
    const std::string refusal = message_of<UsageError>([&] { problem.solve_with(options); });
    if (!grid->is_member()) continue;
    CHECK(whole.report.iterations == 5);
    CHECK(0.1 < ratio);
    CHECK(ratio < 0.99);
    CHECK(whole.verdict(0).reason == StopReason::user_stop);
    CHECK(resumed.report.iterations == whole.report.iterations);
    CHECK(same_bits(resumed.X, whole.X));
    CAPTURE(refusal);
    CHECK(refusal.find("there are 4 batches") != std::string::npos);
  }
}
