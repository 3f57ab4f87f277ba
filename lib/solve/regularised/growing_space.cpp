// SPDX-License-Identifier: BSD-3-Clause
#include "solve/regularised/growing_space.hpp"

#include <algorithm>
#include <cmath>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "comm/failure/failure.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/trace.hpp"
#include "io/checkpoint_files.hpp"
#include "ops/operator/library_operator.hpp"
#include "solve/checkpoint/fingerprint.hpp"
#include "solve/option_checks.hpp"

namespace gridlops {

namespace {

// The parts of a saved space besides the vectors.
constexpr const char *description_fact = "problem", *layout_fact = "layout", *steps_fact = "iteration",
                     *numbers_file = "numbers";
// Of the numbers; it changes with what visit() visits.
constexpr const char* space_layout = "2";

// How much longer a multiplication in the loops of small problems takes than one in a product of matrices.
constexpr double slowness = 5;

// Of dampings of small problems, where A has a norm of about 1. Its square is finite.
constexpr double largest_damp = 0x1p500;

}  // namespace

template <Scalar T>
GrowingSpace<T>::GrowingSpace(OperatorPtr<T> A, const ConstDistMatrix<T>& B, const SpaceOptions& options)
    : A_(std::move(A)),
      options_(options),
      tolerance_(options.tolerance.value_or(default_tolerance(scalar_type_of<T>))),
      blocks_(*A_) {
  const CheckpointOptions& saving = options_.checkpoint;
  agree(B.grid(), "SolutionSpace", [&](Agreement& agreement) {
    describe_operator(agreement, *A_);
    describe_matrix(agreement, "B", B);
    agreement.on("the tolerance", tolerance_)
        .on("the largest dimension", options.max_dimension)
        .on("the probe", options.has_probe)
        .on("the limit of cost", options.limits_cost)
        .on("the cost of a product", options.product_cost)
        .on("who stops it", options.stops ? "the caller" : "nobody");
    describe_options(agreement, saving);
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
    require<UsageError>(options.product_cost >= 0 && std::isfinite(options.product_cost),
                        "SolutionSpace: the cost of a product is ", options.product_cost,
                        "; it must be a finite number ≥ 0");
    check_options(saving);
  });
  if (!B.grid()->is_member()) return;
  const TraceRegion region("solution space");
  std::optional<CheckpointDirectory> lock;
  if (!saving.directory.empty()) lock.emplace(comm(), saving.directory, saving.restart);
  fingerprint_of_B_ = fingerprint(A_->range(), B);
  if (saving.restart.empty()) {
    begin(B);
  } else {
    go_on(saving.restart);
  }
  grow();
  if (lock) saves_.save(comm(), false, [&] { write(saving.directory); });
}

template <Scalar T>
GrowingSpace<T>::GrowingSpace(OperatorPtr<T> A, const std::string& directory)
    : A_(std::move(A)), blocks_(*A_) {
  const auto& grid = A_->domain().grid;
  agree(grid, "SolutionSpace", [&](Agreement& agreement) {
    describe_operator(agreement, *A_);
    agreement.on("the directory", directory);
    require_uncut_columns();
  });
  if (!grid->is_member()) return;
  load(directory);
  if (pairs_.reason.empty()) evaluate();
}

template <Scalar T>
void GrowingSpace<T>::require_uncut_columns() const {
  const Space& space = A_->domain();
  require<ShapeError>(space.grid->parts(space.columns) == 1,
                      "SolutionSpace: right-hand sides that share a space must lie together, but the "
                      "operator's are cut along ",
                      name_of(space.columns), " into ", space.grid->parts(space.columns),
                      " parts; make it with Algorithm::stationary_a");
}

template <Scalar T>
void GrowingSpace<T>::begin(const ConstDistMatrix<T>& B) {
  FailureScope failures;
  if (!blocks_.begin(B, options_.has_probe)) end_ = SpaceEnd::non_finite;
  const BlockScalars<S> scalars = projected().factored(0, smallest());
  for (Index j = 0; j < columns(); ++j) references_.push_back(std::sqrt(scalars.gradient_squared(j)));
}

/// Takes the saved space for the options that are asked for now.
template <Scalar T>
void GrowingSpace<T>::go_on(const std::string& directory) {
  const SpaceOptions asked = options_;
  const std::vector<double> of_B = fingerprint_of_B_;
  const double tolerance = tolerance_;
  load(directory);
  const std::string differs = difference_of_columns<T>(A_->range(), fingerprint_of_B_, of_B);
  require<InputError>(differs.empty(), directory, " holds ", description(), " for other data: here ",
                      differs);
  require<InputError>(options_.has_probe == asked.has_probe, directory, " holds a space ",
                      options_.has_probe ? "with" : "without", " the probe for gcv, and one ",
                      asked.has_probe ? "with" : "without", " it is asked for");
  options_ = asked;
  tolerance_ = tolerance;
  pairs_ = {};
}

/// Lets the space grow until something ends it.
template <Scalar T>
void GrowingSpace<T>::grow() {
  FailureScope failures;
  std::optional<SpaceEnd> end;
  if (end_ == SpaceEnd::non_finite) end = end_;  // its last blocks are spoilt
  end_ = SpaceEnd::user_stop;                    // of what is saved before the end
  // The smallest D converges last, but for rounding.
  double watched = *std::min_element(options_.damps.begin(), options_.damps.end());
  BlockScalars<S> scalars = projected().factored(scaled(watched), smallest());
  while (!end) {
    if (is_solved(scalars)) {
      evaluate();
      if (const std::vector<std::size_t> rest = unsolved(); !rest.empty()) {
        watched = options_.damps[rest.front() / at(columns())];
        scalars = projected().factored(scaled(watched), smallest());
      } else {
        end_ = SpaceEnd::converged;
        return;
      }
    }
    end = step(scalars);
  }
  end_ = *end;
  evaluate();
}

/// Appends a block to the space, and to the factorisation of its small problem, unless something ends it.
template <Scalar T>
std::optional<SpaceEnd> GrowingSpace<T>::step(BlockScalars<S>& scalars) {
  using Step = typename BlockBidiagonalisation<T>::Step;
  if (options_.max_dimension > 0 && projected().dimension() + blocks_.next_width() > options_.max_dimension)
    return SpaceEnd::dimension_limit;
  if (options_.limits_cost && !pays()) return SpaceEnd::cost_limit;
  if (answer_requests()) return SpaceEnd::user_stop;
  pairs_ = {};
  const Step step = blocks_.grow();
  if (step == Step::complete) return SpaceEnd::complete;
  if (step == Step::non_finite) return SpaceEnd::non_finite;
  blocks_.projected().follow(scalars, smallest());
  return std::nullopt;
}

/// Saves the space if that is due, throws Suspended if it was requested, and returns whether the caller stops
/// the space: on all ranks what any of them is asked for.
template <Scalar T>
bool GrowingSpace<T>::answer_requests() {
  const CheckpointOptions& saving = options_.checkpoint;
  const bool saves = !saving.directory.empty();
  bool stops = false, suspends = false, is_due = false;
  if (options_.stops || saves) {
    FailureScope failures;
    std::vector<double> asked(3, 0.0);
    failures.run([&] {
      asked[0] = options_.stops && options_.stops() ? 1 : 0;
      asked[1] = saves && saving.requested && saving.requested() ? 1 : 0;
      const std::chrono::duration<double> since = Clock::now() - last_save_;
      asked[2] = comm().rank() == 0 && saving.every_seconds > 0 && since.count() >= saving.every_seconds;
    });
    failures.reduce(comm(), asked, ReductionOrder::any, ReduceOp::max);
    stops = asked[0] > 0;
    suspends = asked[1] > 0;
    is_due = asked[2] > 0;
  }
  const Index steps = projected().steps();
  is_due = is_due || (saving.every_iterations > 0 && steps > 0 && steps % saving.every_iterations == 0);
  if (saves && (suspends || is_due)) {
    saves_.save(comm(), suspends, [&] { write(saving.directory); });
    last_save_ = Clock::now();
  }
  if (suspends)
    throw Suspended(message("a space of ", projected().dimension(), " vectors was saved in ",
                            saving.directory,
                            " as asked, and grows no further; a restart goes on from there"));
  return stops;
}

template <Scalar T>
double GrowingSpace<T>::scaled(double damp) const {
  return std::min(std::ldexp(damp, blocks_.power()), largest_damp);
}

template <Scalar T>
typename GrowingSpace<T>::Projected::Solution GrowingSpace<T>::solution(double damp) const {
  auto solution = projected().solve(scaled(damp), smallest());
  if (std::ldexp(damp, blocks_.power()) <= largest_damp) return solution;
  solution.x.assign(solution.x.size(), 0.0);  // as cgls has it: squares of Aᴴb/D² vanish
  solution.y = SmallMatrix<S>(solution.y.rows(), solution.y.cols());
  return solution;
}

template <Scalar T>
bool GrowingSpace<T>::is_solved(Index column, double damped_residual, double gradient) const {
  return gradient <=
         std::max(0.5 * tolerance_ * references_[at(column)], epsilon * blocks_.norm() * damped_residual);
}

template <Scalar T>
bool GrowingSpace<T>::is_solved(const BlockScalars<S>& scalars) const {
  for (Index j = 0; j < columns(); ++j)
    if (!is_solved(j, std::sqrt(scalars.residual_squared(j)), std::sqrt(scalars.gradient_squared(j))))
      return false;
  return true;
}

template <Scalar T>
std::vector<std::size_t> GrowingSpace<T>::unsolved() const {
  std::vector<std::size_t> places;
  for (std::size_t place = 0; place < pairs_.reason.size(); ++place)
    if (!gridlops::is_solved(pairs_.reason[place]) && pairs_.reason[place] != StopReason::non_finite)
      places.push_back(place);
  return places;
}

/// Whether a step more leaves the space no dearer than CGLS of all pairs. Of these, nothing is known before
/// the first step.
template <Scalar T>
bool GrowingSpace<T>::pays() {
  cost_ += cost_of_step();
  if (cost_ > affordable_ && projected().steps() > 0) affordable_ = cost_of_cgls();
  return projected().steps() == 0 || cost_ <= affordable_;
}

/// The multiplications on a rank of CGLS of all pairs, as far as the small problem shows them: those of one
/// column for each D, another for another D, stand for all. No D counts for more than four times the cost of
/// the space, which is enough for the space to go on, and the counting costs no more than the space.
template <Scalar T>
double GrowingSpace<T>::cost_of_cgls() const {
  const std::vector<Index> unknown = unknown_columns();
  if (unknown.empty()) return 0;
  const double ranks = comm().size(),
               of_iteration = 2 * cost_of_product() / ranks * static_cast<double>(unknown.size());
  const double counting = slowness * 4 * static_cast<double>(columns() * projected().dimension()) *
                          std::ceil(static_cast<double>(options_.damps.size()) / ranks);
  const auto most =
      static_cast<Index>(std::ceil(std::min({4 * cost_ / of_iteration, cost_ / counting, 1e9})));
  std::vector<double> iterations{0};
  FailureScope failures;
  failures.run([&] {
    for (std::size_t d = at(comm().rank()); d < options_.damps.size(); d += at(comm().size())) {
      const Index column = unknown[d % unknown.size()];
      iterations[0] += static_cast<double>(projected().cgls_iterations(
          column, scaled(options_.damps[d]), tolerance_ * references_[at(column)], most));
    }
  });
  failures.reduce(comm(), iterations);
  return iterations[0] * of_iteration;
}

/// Those that CGLS solves by iterations.
template <Scalar T>
std::vector<Index> GrowingSpace<T>::unknown_columns() const {
  std::vector<Index> unknown;
  for (Index j = 0; j < columns(); ++j)
    if (references_[at(j)] > 0 && std::isfinite(references_[at(j)])) unknown.push_back(j);
  return unknown;
}

template <Scalar T>
bool GrowingSpace<T>::is_worth_preconditioning(double damp, double tolerance) const {
  constexpr Index many = 100;  // where singular values cluster, fewer are enough, and M would spread them
  const std::vector<Index> unknown = unknown_columns();
  return !unknown.empty() && projected().steps() > 0 &&
         projected().cgls_iterations(unknown.front(), scaled(damp),
                                     tolerance * references_[at(unknown.front())], many) == many;
}

/// The multiplications on a rank in a step with blocks of w columns: the products; the orthogonalisation of
/// V, against all of itself once; that of the blocks, and what they were made of; and the small problems.
template <Scalar T>
double GrowingSpace<T>::cost_of_step() const {
  const auto w = static_cast<double>(blocks_.next_width()),
             kept = static_cast<double>(projected().dimension()) + w;
  const auto m = static_cast<double>(A_->rows()), n = static_cast<double>(A_->cols());
  const double shared = 2 * w * cost_of_product() + 2 * n * kept * w + 5 * (m + n) * w * w;
  const double of_small = 35 * w * w * w * slowness;
  return of_small + (shared + of_small * static_cast<double>(options_.damps.size())) / comm().size();
}

template <Scalar T>
double GrowingSpace<T>::cost_of_product() const {
  return options_.product_cost > 0 ? options_.product_cost
                                   : static_cast<double>(A_->rows()) * static_cast<double>(A_->cols());
}

/// Computes the norms of all pairs, each D on one rank.
template <Scalar T>
void GrowingSpace<T>::evaluate() {
  const std::size_t each = at(columns()), all = options_.damps.size() * each;
  std::vector<double> numbers(3 * all, 0.0);
  FailureScope failures;
  failures.run([&] {
    for (std::size_t d = at(comm().rank()); d < options_.damps.size(); d += at(comm().size())) {
      const auto solution = this->solution(options_.damps[d]);
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
  pairs_ = {part(0), part(1), part(2), {}};
  for (std::size_t place = 0; place < all; ++place) {
    const auto column = static_cast<Index>(place % each);
    const double damp = options_.damps[place / each];
    if (!is_finite(column)) {
      pairs_.x[place] = pairs_.residual[place] = pairs_.gradient[place] =
          std::numeric_limits<double>::quiet_NaN();
      pairs_.reason.push_back(StopReason::non_finite);
      continue;
    }
    pairs_.reason.push_back(is_solved(column,
                                      std::hypot(pairs_.residual[place], scaled(damp) * pairs_.x[place]),
                                      pairs_.gradient[place])
                                ? StopReason::converged
                                : StopReason::iteration_limit);
  }
}

/// Describes the space for a checkpoint's manifest.
template <Scalar T>
std::string GrowingSpace<T>::description() const {
  return message("a solution space of a ", A_->rows(), " x ", A_->cols(), " operator of ",
                 name_of(scalar_type_of<T>));
}

/// Saves or loads all but the vectors, and takes no memory for them. The norms follow from the rest.
template <Scalar T>
void GrowingSpace<T>::visit(StateArchive& archive) {
  archive.visit_list(options_.damps);
  archive.visit(options_.has_probe, tolerance_, end_, blocks_);
  archive.visit_list(references_);
  archive.visit_list(fingerprint_of_B_);
  archive.visit(pairs_);
  if (!archive.loading()) return;
  const std::size_t pairs = pairs_.reason.size();
  archive.require((pairs == 0 || pairs == options_.damps.size() * at(columns())) &&
                  pairs_.x.size() == pairs && pairs_.residual.size() == pairs &&
                  pairs_.gradient.size() == pairs);
  archive.require(!options_.damps.empty() && columns() >= (has_probe() ? 1 : 0) &&
                  std::ssize(references_) == columns() && tolerance_ >= 0 && std::isfinite(tolerance_));
  for (const double damp : options_.damps) archive.require(damp >= 0 && std::isfinite(damp));
  archive.require(end_ == SpaceEnd::non_finite || blocks_.can_grow());
}

/// Numbers that tell A from other operators.
template <Scalar T>
std::vector<double> GrowingSpace<T>::fingerprint_of_A() const {
  return fingerprint(*A_, allocate_matrix<T>(A_->range().grid, A_->range().layout(uncut_columns(0))));
}

/// Loads what was saved for the same A.
template <Scalar T>
void GrowingSpace<T>::load(const std::string& directory) {
  const CheckpointReader reader(A_->domain().grid, directory);
  const auto& facts = reader.manifest().facts;
  const auto found = facts.find(description_fact);
  require<InputError>(found != facts.end() && found->second == description(), directory, " holds ",
                      found == facts.end() ? "something else" : found->second, ", and not ", description());
  const auto version = facts.find(layout_fact);
  require<InputError>(version != facts.end() && version->second == space_layout, directory, " holds ",
                      description(), " that another version of this program wrote; make it anew");
  StateArchive numbers(reader.read_numbers(numbers_file));
  std::vector<double> of_A;
  numbers.visit_list(of_A);
  const std::string other_operator = difference(*A_, of_A, fingerprint_of_A());
  require<InputError>(other_operator.empty(), directory, " holds ", description(), ", but here is ",
                      other_operator);
  visit(numbers);
  const auto& saved = reader.manifest().matrices;
  for (const auto& shape : blocks_.shapes()) {
    const auto there = saved.find(shape.name);
    numbers.require(there != saved.end() && there->second.rows == shape.rows &&
                    there->second.cols == shape.cols);
  }
  attempt(comm(), [&] { blocks_.take_memory(); });
  for (NamedMatrix<T>& vectors : blocks_.vectors()) reader.read(vectors.name, vectors.matrix);
}

template <Scalar T>
void GrowingSpace<T>::write(const std::string& directory) {
  std::vector<double> of_A = fingerprint_of_A();
  StateArchive numbers;
  numbers.visit_list(of_A);
  visit(numbers);
  CheckpointWriter writer(A_->domain().grid, directory);
  for (const NamedMatrix<T>& vectors : blocks_.vectors()) writer.write(vectors.name, vectors.matrix);
  writer.write_numbers(numbers_file, numbers.numbers());
  std::map<std::string, std::string> facts = options_.checkpoint.facts;
  facts[description_fact] = description();
  facts[layout_fact] = space_layout;
  facts[steps_fact] = message(projected().steps());
  writer.finish(std::move(facts));
}

template <Scalar T>
void GrowingSpace<T>::save(const std::string& directory) {
  const auto& grid = A_->domain().grid;
  agree(grid, "SolutionSpace::save", [&](Agreement& agreement) { agreement.on("the directory", directory); });
  if (!grid->is_member()) return;
  const CheckpointDirectory lock(comm(), directory, "");
  write(directory);
}

#define GRIDLOPS_INSTANTIATE(T) template class GrowingSpace<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
