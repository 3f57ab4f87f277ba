// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/solve/solution_space.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "comm/failure/failure.hpp"
#include "dist/column_powers.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/trace.hpp"
#include "gridlops/dist/column_arithmetic.hpp"
#include "io/checkpoint_files.hpp"
#include "ops/operator/library_operator.hpp"
#include "solve/checkpoint/fingerprint.hpp"
#include "solve/methods/block_bidiagonalisation.hpp"
#include "solve/option_checks.hpp"
#include "solve/run/column_method.hpp"

namespace gridlops {

namespace {

// What a saved space consists of.
constexpr const char *description_fact = "problem", *numbers_file = "numbers";
std::string file_of_vectors(std::size_t k) { return message("vectors-", k); }

}  // namespace

const char* name_of(SpaceEnd end) {
  switch (end) {
    case SpaceEnd::converged:
      return "converged";
    case SpaceEnd::complete:
      return "complete";
    case SpaceEnd::dimension_limit:
      return "dimension_limit";
    case SpaceEnd::user_stop:
      return "user_stop";
    case SpaceEnd::non_finite:
      break;
  }
  return "non_finite";
}

/// Norms are those of the columns of B times powers of two, until curves and x get the powers back.
template <Scalar T>
class SolutionSpace<T>::Construction {
  using S = Accumulator<T>;
  using Small = SmallMatrix<S>;
  static constexpr double epsilon = static_cast<double>(std::numeric_limits<Real<T>>::epsilon());

 public:
  Construction(OperatorPtr<T> A, const ConstDistMatrix<T>& B, const SpaceOptions& options);
  Construction(OperatorPtr<T> A, const std::string& directory);
  void save(const std::string& directory);

  Index dimension() const { return blocks_.projected().dimension(); }
  Index products() const { return blocks_.products(); }
  SpaceEnd end() const { return end_; }
  std::vector<DampingCurve> curves(DampingRule rule, const PerColumn& noise) const;
  SolveReport solve(const ConstDistMatrix<T>& B, DistMatrix<T>& X, SolveOptions options);
  SolveReport solve_others(const ConstDistMatrix<T>& B, DistMatrix<T>& X, SolveOptions options);

 private:
  /// The norms of x, of the residual and of the gradient for each D and column, D by D.
  struct Norms {
    std::vector<double> x, residual, gradient;
  };

  Communicator& comm() const { return A_->domain().grid->comm(); }
  Index columns() const { return std::ssize(blocks_.powers()); }
  /// Without the probe; none on idle ranks.
  Index columns_of_data() const { return std::max<Index>(columns() - (options_.has_probe ? 1 : 0), 0); }
  double smallest() const { return epsilon * blocks_.norm(); }
  void require_uncut_columns() const;
  /// What it is, for a checkpoint's manifest.
  std::string description() const {
    return message("a solution space of a ", A_->rows(), " x ", A_->cols(), " operator of ",
                   name_of(scalar_type_of<T>));
  }
  /// Numbers that tell A from other operators.
  std::vector<double> fingerprint_of_A() const {
    return fingerprint(*A_, allocate_matrix<T>(A_->range().grid, A_->range().layout(uncut_columns(0))));
  }
  void visit(StateArchive& archive);
  void build(const ConstDistMatrix<T>& B);
  bool is_stopped();
  std::optional<SpaceEnd> grow(BlockScalars<S>& scalars);
  bool is_solved(Index column, double damp, double damped_residual, double gradient) const;
  bool is_solved(const BlockScalars<S>& scalars, double damp) const;
  std::optional<double> unsolved_damp() const;
  void evaluate();
  void check(const ConstDistMatrix<T>& B, const DistMatrix<T>& X, const SolveOptions& options,
             Index columns) const;
  Small combinations(const PerColumn& damp, Index columns, const std::function<Small(double)>& solve);
  SolveReport finish(const ConstDistMatrix<T>& B, DistMatrix<T>& X, SolveOptions options) const;

  const OperatorPtr<T> A_;
  SpaceOptions options_;
  double tolerance_ = 0;
  BlockBidiagonalisation<T> blocks_;
  std::vector<double> references_;  // ‖Aᴴb‖
  SpaceEnd end_ = SpaceEnd::complete;
  Norms norms_;
};

template <Scalar T>
SolutionSpace<T>::Construction::Construction(OperatorPtr<T> A, const ConstDistMatrix<T>& B,
                                             const SpaceOptions& options)
    : A_(std::move(A)),
      options_(options),
      tolerance_(options.tolerance.value_or(default_tolerance(scalar_type_of<T>))),
      blocks_(*A_) {
  agree(B.grid(), "SolutionSpace", [&](Agreement& agreement) {
    describe_operator(agreement, *A_);
    describe_matrix(agreement, "B", B);
    agreement.on("the tolerance", tolerance_)
        .on("the largest dimension", options.max_dimension)
        .on("the probe", options.has_probe)
        .on("who stops it", options.stops ? "the caller" : "nobody");
    for (const double damp : options.damps) agreement.on("a damping", damp);
    A_->range().require_contains(B, "SolutionSpace: B");
    require_uncut_columns();
    require<UsageError>(!options.damps.empty(), "SolutionSpace: there is no damping; 0 is one");
    for (const double damp : options.damps)
      require<UsageError>(damp >= 0 && std::isfinite(damp), "SolutionSpace: a damping is ", damp,
                          "; it must be a finite number ≥ 0");
    require<UsageError>(tolerance_ >= 0 && std::isfinite(tolerance_), "SolutionSpace: the tolerance is ",
                        tolerance_, "; it must be a finite number ≥ 0");
    require<UsageError>(options.max_dimension >= 0, "SolutionSpace: max_dimension is ", options.max_dimension,
                        "; it must be ≥ 0");
  });
  if (B.grid()->is_member()) build(B);
}

template <Scalar T>
void SolutionSpace<T>::Construction::require_uncut_columns() const {
  const Space& space = A_->domain();
  require<ShapeError>(space.grid->parts(space.columns) == 1,
                      "SolutionSpace: right-hand sides that share a space must lie together, but the "
                      "operator's are cut along ",
                      name_of(space.columns), " into ", space.grid->parts(space.columns),
                      " parts; make it with Algorithm::stationary_a");
}

template <Scalar T>
SolutionSpace<T>::Construction::Construction(OperatorPtr<T> A, const std::string& directory)
    : A_(std::move(A)), blocks_(*A_) {
  const auto& grid = A_->domain().grid;
  agree(grid, "SolutionSpace", [&](Agreement& agreement) {
    describe_operator(agreement, *A_);
    agreement.on("the directory", directory);
    require_uncut_columns();
  });
  if (!grid->is_member()) return;
  const CheckpointReader reader(grid, directory);
  const auto& facts = reader.manifest().facts;
  const auto found = facts.find(description_fact);
  require<InputError>(found != facts.end() && found->second == description(), directory, " holds ",
                      found == facts.end() ? "something else" : found->second, ", and not ", description());
  StateArchive numbers(reader.read_numbers(numbers_file));
  std::vector<double> saved;
  numbers.visit_list(saved);
  const std::string differs = difference(*A_, saved, fingerprint_of_A());
  require<InputError>(differs.empty(), directory, " holds ", description(), ", but here is ", differs);
  std::vector<Index> vectors;
  numbers.visit_list(vectors);
  visit(numbers);
  std::vector<DistMatrix<T>> V;
  attempt(comm(), [&] { V = blocks_.v().restore(vectors); });
  for (std::size_t k = 0; k < V.size(); ++k) reader.read(file_of_vectors(k), V[k]);
}

template <Scalar T>
void SolutionSpace<T>::Construction::save(const std::string& directory) {
  const auto& grid = A_->domain().grid;
  agree(grid, "SolutionSpace::save", [&](Agreement& agreement) { agreement.on("the directory", directory); });
  if (!grid->is_member()) return;
  const CheckpointDirectory lock(comm(), directory, "");
  const std::vector<DistMatrix<T>> V = blocks_.v().kept();
  std::vector<Index> vectors;
  for (const DistMatrix<T>& part : V) vectors.push_back(part.cols());
  std::vector<double> of_A = fingerprint_of_A();
  StateArchive numbers;
  numbers.visit_list(of_A);
  numbers.visit_list(vectors);
  visit(numbers);
  CheckpointWriter writer(grid, directory);
  for (std::size_t k = 0; k < V.size(); ++k) writer.write(file_of_vectors(k), V[k]);
  writer.write_numbers(numbers_file, numbers.numbers());
  writer.finish({{description_fact, description()}});
}

/// Saves or loads all but the vectors.
template <Scalar T>
void SolutionSpace<T>::Construction::visit(StateArchive& archive) {
  archive.visit_list(options_.damps);
  archive.visit(options_.has_probe, tolerance_, end_, blocks_);
  archive.visit_list(references_);
  for (std::vector<double>* norms : {&norms_.x, &norms_.residual, &norms_.gradient})
    archive.visit_list(*norms);
}

template <Scalar T>
void SolutionSpace<T>::Construction::build(const ConstDistMatrix<T>& B) {
  const TraceRegion region("solution space");
  FailureScope failures;
  const bool is_finite = blocks_.begin(B, options_.has_probe);
  // The smallest D converges last, but for rounding.
  double watched = *std::min_element(options_.damps.begin(), options_.damps.end());
  BlockScalars<S> scalars = blocks_.projected().factored(watched, smallest());
  for (Index j = 0; j < columns(); ++j) references_.push_back(std::sqrt(scalars.gradient_squared(j)));
  std::optional<SpaceEnd> end;
  if (!is_finite) end = SpaceEnd::non_finite;
  while (!end) {
    if (is_solved(scalars, watched)) {
      evaluate();
      if (const std::optional<double> unsolved = unsolved_damp()) {
        watched = *unsolved;
        scalars = blocks_.projected().factored(watched, smallest());
      } else {
        end_ = SpaceEnd::converged;
        return;
      }
    }
    end = grow(scalars);
  }
  end_ = *end;
  evaluate();
}

/// Appends a block to the space, and to the factorisation of its small problem, unless something ends it.
template <Scalar T>
std::optional<SpaceEnd> SolutionSpace<T>::Construction::grow(BlockScalars<S>& scalars) {
  using Step = typename BlockBidiagonalisation<T>::Step;
  if (options_.max_dimension > 0 && dimension() + blocks_.next_width() > options_.max_dimension)
    return SpaceEnd::dimension_limit;
  if (is_stopped()) return SpaceEnd::user_stop;
  const Step step = blocks_.grow();
  if (step == Step::complete) return SpaceEnd::complete;
  if (step == Step::non_finite) return SpaceEnd::non_finite;
  blocks_.projected().follow(scalars, smallest());
  return std::nullopt;
}

template <Scalar T>
bool SolutionSpace<T>::Construction::is_stopped() {
  if (!options_.stops) return false;
  FailureScope failures;
  std::vector<double> asked{0};
  failures.run([&] { asked[0] = options_.stops() ? 1 : 0; });
  failures.reduce(comm(), asked, ReductionOrder::any, ReduceOp::max);
  return asked[0] > 0;
}

/// Whether the gradient is within half the tolerance, which leaves the rest to rounding, or is rounding.
template <Scalar T>
bool SolutionSpace<T>::Construction::is_solved(Index column, double damp, double damped_residual,
                                               double gradient) const {
  return gradient <= std::max(0.5 * tolerance_ * references_[at(column)],
                              epsilon * (blocks_.norm() + damp) * damped_residual);
}

template <Scalar T>
bool SolutionSpace<T>::Construction::is_solved(const BlockScalars<S>& scalars, double damp) const {
  for (Index j = 0; j < columns(); ++j)
    if (!is_solved(j, damp, std::sqrt(scalars.residual_squared(j)), std::sqrt(scalars.gradient_squared(j))))
      return false;
  return true;
}

template <Scalar T>
std::optional<double> SolutionSpace<T>::Construction::unsolved_damp() const {
  std::size_t place = 0;
  for (const double damp : options_.damps)
    for (Index j = 0; j < columns(); ++j, ++place)
      if (!is_solved(j, damp, std::hypot(norms_.residual[place], damp * norms_.x[place]),
                     norms_.gradient[place]))
        return damp;
  return std::nullopt;
}

/// Computes the norms for all D, each on one rank.
template <Scalar T>
void SolutionSpace<T>::Construction::evaluate() {
  const std::size_t each = at(columns()), all = options_.damps.size() * each;
  std::vector<double> numbers(3 * all, 0.0);
  FailureScope failures;
  failures.run([&] {
    for (std::size_t d = at(comm().rank()); d < options_.damps.size(); d += at(comm().size())) {
      const auto solution = blocks_.projected().solve(options_.damps[d], smallest());
      const auto place = numbers.begin() + static_cast<std::ptrdiff_t>(d * each);
      std::copy(solution.x.begin(), solution.x.end(), place);
      std::copy(solution.residual.begin(), solution.residual.end(), place + static_cast<std::ptrdiff_t>(all));
      std::copy(solution.gradient.begin(), solution.gradient.end(),
                place + static_cast<std::ptrdiff_t>(2 * all));
    }
  });
  failures.reduce(comm(), numbers);
  const auto part = [&](std::size_t k) {
    const auto begin = numbers.begin() + static_cast<std::ptrdiff_t>(k * all);
    return std::vector<double>(begin, begin + static_cast<std::ptrdiff_t>(all));
  };
  norms_ = {part(0), part(1), part(2)};
}

template <Scalar T>
std::vector<DampingCurve> SolutionSpace<T>::Construction::curves(DampingRule rule,
                                                                 const PerColumn& noise) const {
  const Index count = columns_of_data();
  require<UsageError>(rule != DampingRule::gcv || options_.has_probe,
                      "SolutionSpace: gcv needs a space with SpaceOptions::has_probe");
  if (count == 0) return {};
  require<ShapeError>(noise.is_one() || std::ssize(noise.values()) == count, "SolutionSpace: there are ",
                      count, " right-hand sides, and the norms of ", noise.values().size(), " noises");
  std::vector<DampingCurve> curves(at(count));
  for (Index j = 0; j < count; ++j) {
    DampingCurve& curve = curves[at(j)];
    curve.rule = rule;
    curve.noise = noise[j];
    const int power = blocks_.powers()[at(j)];
    for (std::size_t d = 0; d < options_.damps.size(); ++d) {
      const double damp = options_.damps[d];
      const auto damped_residual = [&](std::size_t place) {
        return std::hypot(norms_.residual[place], damp * norms_.x[place]);
      };
      const auto is_solved_at = [&](Index column, std::size_t place) {
        return is_solved(column, damp, damped_residual(place), norms_.gradient[place]);
      };
      const std::size_t place = d * at(columns()) + at(j), of_probe = (d + 1) * at(columns()) - 1;
      curve.points.push_back({damp, std::ldexp(norms_.residual[place], power),
                              std::ldexp(norms_.x[place], power),
                              is_solved_at(j, place) ? StopReason::converged : StopReason::iteration_limit});
      if (rule == DampingRule::gcv && is_solved_at(columns() - 1, of_probe))
        curve.points.back().free_dimensions = std::pow(damped_residual(of_probe), 2);
    }
    choose_damping(curve);
  }
  return curves;
}

/// Throws, on all ranks, unless cgls can start from the space with these.
template <Scalar T>
void SolutionSpace<T>::Construction::check(const ConstDistMatrix<T>& B, const DistMatrix<T>& X,
                                           const SolveOptions& options, Index columns) const {
  agree(B.grid(), "SolutionSpace::solve", [&](Agreement& agreement) {
    describe_problem(agreement, B, X, options);
    A_->require_operands(X, B, "SolutionSpace::solve");
    require<UsageError>(!options.initial_guess, "SolutionSpace::solve: the space gives the initial guess");
    require<ShapeError>(!B.grid()->is_member() || B.cols() == columns, "SolutionSpace::solve: B has ",
                        B.cols(), " columns, and the space is for ", columns);
    check_options("SolutionSpace::solve", row_of(Solver::cgls).features, options, B.cols());
  });
}

template <Scalar T>
SolveReport SolutionSpace<T>::Construction::solve(const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                                                  SolveOptions options) {
  const Index count = columns_of_data();
  check(B, X, options, count);
  if (B.grid()->is_member()) {
    const std::vector<double> norms = column_norms(B);
    for (Index j = 0; j < count; ++j) {
      const double before = std::ldexp(blocks_.data_norms()[at(j)], blocks_.powers()[at(j)]);
      require<UsageError>(std::abs(norms[at(j)] - before) <= 100 * epsilon * before || !std::isfinite(before),
                          "SolutionSpace::solve: column ", j, " of B has the norm ", norms[at(j)],
                          ", and the space is for one of ", before);
    }
    attempt(comm(), [&] { blocks_.v().reserve_products(count); });
    X.set_zero();
    const Small Y = combinations(
        options.damp, count, [this](double damp) { return blocks_.projected().solve(damp, smallest()).y; });
    blocks_.v().add_combination(Y, X);
    std::vector<int> powers = blocks_.powers();
    powers.resize(at(count));  // without that of the probe
    multiply_by_powers(X, powers);
  }
  return finish(B, X, std::move(options));
}

template <Scalar T>
SolveReport SolutionSpace<T>::Construction::solve_others(const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                                                         SolveOptions options) {
  check(B, X, options, B.cols());
  if (B.grid()->is_member()) {
    FailureScope failures;
    DistMatrix<T> scaled = allocate_matrix<T>(B.grid(), B.layout());
    attempt(comm(), [&] { blocks_.v().reserve_products(B.cols()); });
    const std::vector<int> powers = powers_of_columns(B);
    copy(B, scaled);
    multiply_by_powers(scaled, opposite(powers));
    A_->apply_adjoint(T(1), scaled, T(0), X);
    const Small C = blocks_.v().products_with(
        X, [this](std::vector<double>& numbers) { FailureScope().reduce(comm(), numbers); });
    X.set_zero();
    const Small Y = combinations(options.damp, B.cols(), [&](double damp) {
      return blocks_.projected().solve_normal_equations(C, damp, smallest());
    });
    blocks_.v().add_combination(Y, X);
    multiply_by_powers(X, powers);
  }
  return finish(B, X, std::move(options));
}

/// CGLS from X.
template <Scalar T>
SolveReport SolutionSpace<T>::Construction::finish(const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                                                   SolveOptions options) const {
  options.initial_guess = true;
  if (!options.tolerance && options.error == 0) options.tolerance = tolerance_;
  return gridlops::solve(Solver::cgls, *A_, B, X, options);
}

/// The y of these columns, by solve(D) for all columns, each D on one rank.
template <Scalar T>
typename SolutionSpace<T>::Construction::Small SolutionSpace<T>::Construction::combinations(
    const PerColumn& damp, Index columns, const std::function<Small(double)>& solve) {
  std::map<double, std::vector<Index>> columns_of;
  for (Index j = 0; j < columns; ++j) columns_of[damp[j]].push_back(j);
  Small Y(dimension(), columns);
  FailureScope failures;
  std::vector<double> numbers(at(Y.rows() * Y.cols()) * sizeof(S) / sizeof(double), 0.0);
  auto* const elements = reinterpret_cast<S*>(numbers.data());
  failures.run([&] {
    int next = 0;
    for (const auto& [each, of_each] : columns_of) {
      if (next++ % comm().size() != comm().rank()) continue;
      const Small y = solve(each);
      for (const Index j : of_each) std::copy_n(y.column(j), y.rows(), elements + j * y.rows());
    }
  });
  failures.reduce(comm(), numbers);
  std::copy_n(reinterpret_cast<const S*>(numbers.data()), Y.rows() * Y.cols(), Y.column(0));
  return Y;
}

template <Scalar T>
SolutionSpace<T>::SolutionSpace(OperatorPtr<T> A, const ConstDistMatrix<T>& B, const SpaceOptions& options)
    : built_(std::make_unique<Construction>(std::move(A), B, options)) {}
template <Scalar T>
SolutionSpace<T>::SolutionSpace(OperatorPtr<T> A, const std::string& directory)
    : built_(std::make_unique<Construction>(std::move(A), directory)) {}
template <Scalar T>
SolutionSpace<T>::SolutionSpace(SolutionSpace&&) noexcept = default;
template <Scalar T>
SolutionSpace<T>& SolutionSpace<T>::operator=(SolutionSpace&&) noexcept = default;
template <Scalar T>
SolutionSpace<T>::~SolutionSpace() = default;

template <Scalar T>
void SolutionSpace<T>::save(const std::string& directory) const {
  built_->save(directory);
}
template <Scalar T>
Index SolutionSpace<T>::dimension() const {
  return built_->dimension();
}
template <Scalar T>
Index SolutionSpace<T>::products() const {
  return built_->products();
}
template <Scalar T>
SpaceEnd SolutionSpace<T>::end() const {
  return built_->end();
}
template <Scalar T>
std::vector<DampingCurve> SolutionSpace<T>::curves(DampingRule rule, const PerColumn& noise) const {
  return built_->curves(rule, noise);
}
template <Scalar T>
SolveReport SolutionSpace<T>::solve(const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                                    SolveOptions options) const {
  return built_->solve(B, X, std::move(options));
}
template <Scalar T>
SolveReport SolutionSpace<T>::solve_others(const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                                           SolveOptions options) const {
  return built_->solve_others(B, X, std::move(options));
}

#define GRIDLOPS_INSTANTIATE(T) template class SolutionSpace<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
