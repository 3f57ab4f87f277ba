// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/solve/solution_space.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <span>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "comm/failure/failure.hpp"
#include "dist/column_powers.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/dist/column_arithmetic.hpp"
#include "ops/operator/library_operator.hpp"
#include "solve/checkpoint/fingerprint.hpp"
#include "solve/option_checks.hpp"
#include "solve/regularised/growing_space.hpp"
#include "solve/regularised/space_preconditioner.hpp"
#include "solve/run/column_method.hpp"
#include "solve/run/verdict.hpp"

namespace gridlops {

const char* name_of(SpaceEnd end) {
  switch (end) {
    case SpaceEnd::converged:
      return "converged";
    case SpaceEnd::complete:
      return "complete";
    case SpaceEnd::dimension_limit:
      return "dimension_limit";
    case SpaceEnd::cost_limit:
      return "cost_limit";
    case SpaceEnd::user_stop:
      return "user_stop";
    case SpaceEnd::non_finite:
      break;
  }
  return "non_finite";
}

namespace {

/// How much of the norms that bounds of errors rest on is missing in a space, in ε/2: the directions of B, A
/// V and Aᴴ U that BlockBasis leaves out, and a few roundings.
constexpr double missing = 2 * (shortest_direction + a_few);

/// Without the probe; none on idle ranks.
template <Scalar T>
Index columns_of_data(const GrowingSpace<T>& space) {
  return std::max<Index>(space.columns() - (space.has_probe() ? 1 : 0), 0);
}

/// Throws, on all ranks, unless cgls can start from the space with these.
template <Scalar T>
void check(const GrowingSpace<T>& space, const ConstDistMatrix<T>& B, const DistMatrix<T>& X,
           const SolveOptions& options, Index columns) {
  agree(B.grid(), "SolutionSpace::solve", [&](Agreement& agreement) {
    describe_problem(agreement, B, X, options);
    space.A()->require_operands(X, B, "SolutionSpace::solve");
    require<UsageError>(!options.initial_guess, "SolutionSpace::solve: the space gives the initial guess");
    require<ShapeError>(!B.grid()->is_member() || B.cols() == columns, "SolutionSpace::solve: B has ",
                        B.cols(), " columns, and the space is for ", columns);
    check_options("SolutionSpace::solve", row_of(Solver::cgls).features, options, B.cols());
  });
}

/// Throws UsageError, on all ranks, unless the space was made for B (collective over the grid).
template <Scalar T>
void require_same_data(const char* where, const GrowingSpace<T>& space, const ConstDistMatrix<T>& B) {
  const Space& range = space.A()->range();
  const std::string differs =
      difference_of_columns<T>(range, space.fingerprint_of_B(), fingerprint(range, B));
  require<UsageError>(differs.empty(), where, ": the space is for other data: here ", differs);
}

std::vector<Index> first_columns(Index count) {
  std::vector<Index> columns(at(count));
  std::iota(columns.begin(), columns.end(), Index{0});
  return columns;
}

/// The y of these columns of what solve(D) returns, each D on one rank.
template <Scalar T>
SmallMatrix<Accumulator<T>> combinations(const GrowingSpace<T>& space, const PerColumn& damp,
                                         const std::vector<Index>& columns,
                                         const std::function<SmallMatrix<Accumulator<T>>(double)>& solve) {
  using S = Accumulator<T>;
  Communicator& comm = space.A()->domain().grid->comm();
  std::map<double, std::vector<Index>> places_of;
  for (Index j = 0; j < std::ssize(columns); ++j) places_of[damp[j]].push_back(j);
  SmallMatrix<S> Y(space.projected().dimension(), std::ssize(columns));
  FailureScope failures;
  std::vector<double> numbers(at(Y.rows() * Y.cols()) * sizeof(S) / sizeof(double), 0.0);
  auto* const elements = reinterpret_cast<S*>(numbers.data());
  failures.run([&] {
    int next = 0;
    for (const auto& [each, of_each] : places_of) {
      if (next++ % comm.size() != comm.rank()) continue;
      const SmallMatrix<S> y = solve(each);
      for (const Index j : of_each) std::copy_n(y.column(columns[at(j)]), y.rows(), elements + j * y.rows());
    }
  });
  failures.reduce(comm, numbers);
  std::copy_n(reinterpret_cast<const S*>(numbers.data()), Y.rows() * Y.cols(), Y.column(0));
  return Y;
}

/// X ← V Y times a power of two for each column. The memory for products of V is taken.
template <Scalar T>
void combine(GrowingSpace<T>& space, SmallMatrix<Accumulator<T>> Y, std::vector<int> powers,
             DistMatrix<T>& X) {
  // Where D is large, y of the scaled problem may be smaller than the numbers of T, and x is not.
  for (Index j = 0; j < Y.cols(); ++j) {
    double largest = 0;
    for (Index i = 0; i < Y.rows(); ++i) largest = std::max(largest, std::abs(Y(i, j)));
    if (largest == 0 || !std::isfinite(largest)) continue;
    const int power = std::ilogb(largest), half = power / 2;  // 2^−power may not fit
    for (Index i = 0; i < Y.rows(); ++i) {
      Y(i, j) *= std::ldexp(1.0, -half);
      Y(i, j) *= std::ldexp(1.0, half - power);
    }
    powers[at(j)] += power;
  }
  X.set_zero();
  space.blocks().v().add_combination(Y, X);
  multiply_by_powers(X, powers);
}

/// X ← the solutions in the space for these columns of its data.
template <Scalar T>
void begin_in_space(GrowingSpace<T>& space, const PerColumn& damp, const std::vector<Index>& columns,
                    DistMatrix<T>& X) {
  attempt(X.grid()->comm(), [&] { space.blocks().v().reserve_products(X.cols()); });
  std::vector<int> powers;
  for (const Index column : columns) powers.push_back(space.power_of_x(column));
  combine(space, combinations<T>(space, damp, columns, [&](double each) { return space.solution(each).y; }),
          std::move(powers), X);
}

/// The smallest of those of the columns.
template <Scalar T>
double tolerance_of(const GrowingSpace<T>& space, const SolveOptions& options) {
  if (!options.tolerance) return space.tolerance();
  const std::vector<double>& each = options.tolerance->values();
  return each.empty() ? space.tolerance() : *std::min_element(each.begin(), each.end());
}

/// CGLS from X, preconditioned by the space for the smallest D if that saves iterations. is_known: X is as
/// good as solved.
template <Scalar T>
SolveReport finish(GrowingSpace<T>& space, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                   SolveOptions options, bool is_known) {
  options.initial_guess = true;
  if (!options.tolerance && options.error == 0) options.tolerance = space.tolerance();
  const LinearOperator<T>& A = *space.A();
  const std::vector<double>& damps = options.damp.values();  // none without columns
  const double damp = damps.empty() ? 0 : *std::min_element(damps.begin(), damps.end());
  if (is_known || damps.empty() || !B.grid()->is_member() ||
      !space.is_worth_preconditioning(damp, tolerance_of(space, options)))
    return solve(Solver::cgls, A, B, X, options);
  const OperatorPtr<T> M = space_preconditioner(space, damp);
  options.one_pass = false;
  return solve(Solver::pcgls, A, B, X, options, {.preconditioner = M.get()});
}

/// cgls() of the pairs at these places, which then have its norms and verdicts.
template <Scalar T>
SolveReport solve_pairs(GrowingSpace<T>& space, std::span<const std::size_t> places,
                        const ConstDistMatrix<T>& B, SolveOptions options) {
  const LinearOperator<T>& A = *space.A();
  const Index count = std::ssize(places);
  DistMatrix<T> data = allocate_matrix<T>(B.grid(), A.range().layout(count)),
                X = allocate_matrix<T>(B.grid(), A.domain().layout(count));
  std::vector<Index> columns;
  std::vector<double> damps;
  for (const std::size_t place : places) {
    const Index column = static_cast<Index>(place) % space.columns();
    DistMatrix<T> b = data.column_slice({std::ssize(columns)}, uncut_columns(1));
    if (column < B.cols()) {
      copy(B.column_slice({column}, uncut_columns(1)), b);
    } else {
      b.fill([](Index i, Index) { return T(static_cast<Real<T>>(gcv_probe(i))); });
    }
    columns.push_back(column);
    damps.push_back(space.damps()[place / at(space.columns())]);
  }
  begin_in_space(space, damps, columns, X);
  options.damp = damps;
  SolveReport report = finish(space, data, X, std::move(options), false);
  const std::vector<double> norms = column_norms(X);
  for (std::size_t c = 0; c < places.size(); ++c) {
    const int of_x = space.power_of_x(columns[c]), of_residual = space.blocks().powers()[at(columns[c])];
    const ColumnReport& column = report.columns[c];
    auto& pairs = space.pairs();
    pairs.x[places[c]] = std::ldexp(norms[c], -of_x);
    pairs.residual[places[c]] = std::ldexp(column.residual_norm, -of_residual);
    // Below the least number it may have become 0 in the report.
    pairs.gradient[places[c]] =
        space.blocks().data_norms()[at(columns[c])] *
        std::ldexp(column.relative_normal_residual_norm + std::numeric_limits<double>::min(),
                   space.blocks().power());
    pairs.reason[places[c]] = column.reason;
  }
  return report;
}

}  // namespace

template <Scalar T>
SolutionSpace<T>::SolutionSpace(OperatorPtr<T> A, const ConstDistMatrix<T>& B, const SpaceOptions& options)
    : space_(std::make_unique<GrowingSpace<T>>(std::move(A), B, options)) {}
template <Scalar T>
SolutionSpace<T>::SolutionSpace(OperatorPtr<T> A, const std::string& directory)
    : space_(std::make_unique<GrowingSpace<T>>(std::move(A), directory)) {}
template <Scalar T>
SolutionSpace<T>::SolutionSpace(SolutionSpace&&) noexcept = default;
template <Scalar T>
SolutionSpace<T>& SolutionSpace<T>::operator=(SolutionSpace&&) noexcept = default;
template <Scalar T>
SolutionSpace<T>::~SolutionSpace() = default;

template <Scalar T>
void SolutionSpace<T>::save(const std::string& directory) const {
  space_->save(directory);
}
template <Scalar T>
const std::string& SolutionSpace<T>::save_failure() const {
  return space_->save_failure();
}

template <Scalar T>
Index SolutionSpace<T>::dimension() const {
  return space_->projected().dimension();
}
template <Scalar T>
Index SolutionSpace<T>::products() const {
  return space_->blocks().products();
}
template <Scalar T>
SpaceEnd SolutionSpace<T>::end() const {
  return space_->end();
}

template <Scalar T>
std::vector<DampingCurve> SolutionSpace<T>::curves(DampingRule rule, const PerColumn& noise,
                                                   const ErrorBoundOptions& known) const {
  const Index count = columns_of_data(*space_);
  if (count == 0) return {};  // idle ranks know neither the space nor norms of A
  require<UsageError>(rule != DampingRule::gcv || space_->has_probe(),
                      "SolutionSpace: gcv needs a space with SpaceOptions::has_probe");
  require_usable(known, space_->A()->rows(), space_->A()->cols());
  require<ShapeError>(noise.is_one() || std::ssize(noise.values()) == count, "SolutionSpace: there are ",
                      count, " right-hand sides, and the norms of ", noise.values().size(), " noises");
  const auto& pairs = space_->pairs();
  const std::vector<double>& damps = space_->damps();
  const auto all = at(space_->columns());
  std::vector<DampingCurve> curves(at(count));
  for (Index j = 0; j < count; ++j) {
    DampingCurve& curve = curves[at(j)];
    curve.rule = rule;
    curve.noise = noise[j];
    const int of_x = space_->power_of_x(j), of_residual = space_->blocks().powers()[at(j)],
              of_A = space_->blocks().power();
    for (std::size_t d = 0; d < damps.size(); ++d) {
      const std::size_t place = d * all + at(j), of_probe = (d + 1) * all - 1;
      curve.points.push_back({damps[d], std::ldexp(pairs.residual[place], of_residual),
                              std::ldexp(pairs.x[place], of_x), pairs.reason[place]});
      const double data_norm = space_->blocks().data_norms()[at(j)], damp = space_->scaled(damps[d]);
      if (known.frobenius_norm > 0 && data_norm > 0)
        curve.points.back().error_bound =
            std::ldexp(error_bound({.tested_norm = pairs.gradient[place],
                                    .residual_norm = pairs.residual[place],
                                    .data_norm = data_norm,
                                    .x_norm = pairs.x[place],
                                    .damp = damp},
                                   {std::ldexp(known.sigma_min, of_A), std::ldexp(known.frobenius_norm, of_A),
                                    std::ldexp(known.difference_norm, of_A)},
                                   ToleranceTest::gradient,
                                   missing * static_cast<double>(std::numeric_limits<Real<T>>::epsilon())),
                       of_x);
      if (rule == DampingRule::gcv && is_solved(pairs.reason[of_probe]))
        curve.points.back().free_dimensions =
            std::pow(pairs.residual[of_probe], 2) + std::pow(damp * pairs.x[of_probe], 2);
    }
    choose_damping(curve);
  }
  return curves;
}

template <Scalar T>
SolveReport SolutionSpace<T>::solve_rest(const ConstDistMatrix<T>& B, SolveOptions options) {
  constexpr const char* where = "SolutionSpace::solve_rest";
  const Index count = columns_of_data(*space_);
  agree(B.grid(), where, [&](Agreement& agreement) {
    describe_matrix(agreement, "B", B);
    describe_options(agreement, options);
    space_->A()->range().require_contains(B, where);
    require<ShapeError>(!B.grid()->is_member() || B.cols() == count, where, ": B has ", B.cols(),
                        " columns, and the space is for ", count);
    const CheckpointOptions& saving = options.checkpoint;
    require<UsageError>(!options.initial_guess && options.damp == PerColumn(0) &&
                            (!options.tolerance || options.tolerance->is_one()) && saving.directory.empty() &&
                            saving.restart.empty(),
                        where,
                        ": guesses, dampings and the tolerance are those of the space, and nothing is saved");
    check_options(where, row_of(Solver::cgls).features, options, B.cols());
  });
  SolveReport all;
  if (!B.grid()->is_member()) return all;
  require_same_data(where, *space_, B);
  options.record_history = false;
  const std::vector<std::size_t> rest = space_->unsolved();
  const auto width = std::max(at(B.cols()), space_->damps().size());
  const auto damp_of = [this](std::size_t place) { return space_->damps()[place / at(space_->columns())]; };
  for (std::size_t begin = 0; begin < rest.size();) {
    std::span<const std::size_t> places(rest.data() + begin, std::min(width, rest.size() - begin));
    if (const double damp = damp_of(places.front());
        space_->is_worth_preconditioning(damp, tolerance_of(*space_, options)))
      while (damp_of(places.back()) != damp) places = places.first(places.size() - 1);
    begin += places.size();
    const SolveReport report = solve_pairs(*space_, places, B, options);
    if (all.solver != name_of(Solver::pcgls)) all.solver = report.solver;
    all.iterations = std::max(all.iterations, report.iterations);
    all.columns.insert(all.columns.end(), report.columns.begin(), report.columns.end());
    all.alarms.insert(all.alarms.end(), report.alarms.begin(), report.alarms.end());
  }
  return all;
}

template <Scalar T>
SolveReport SolutionSpace<T>::solve(const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                                    SolveOptions options) const {
  const Index count = columns_of_data(*space_);
  check(*space_, B, X, options, count);
  if (B.grid()->is_member()) {
    require_same_data("SolutionSpace::solve", *space_, B);
    begin_in_space(*space_, options.damp, first_columns(count), X);
  }
  const std::vector<double>&damps = options.damp.values(), &known = space_->damps();
  const bool is_asked_less =
      damps.empty() || known.empty() ||
      (tolerance_of(*space_, options) >= space_->tolerance() &&
       *std::min_element(damps.begin(), damps.end()) >= *std::min_element(known.begin(), known.end()));
  const bool is_known =
      space_->end() == SpaceEnd::complete || (space_->end() == SpaceEnd::converged && is_asked_less);
  return finish(*space_, B, X, std::move(options), is_known);
}

template <Scalar T>
SolveReport SolutionSpace<T>::solve_others(const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                                           SolveOptions options) const {
  check(*space_, B, X, options, B.cols());
  if (B.grid()->is_member()) {
    Communicator& comm = B.grid()->comm();
    BlockBasis<T>& V = space_->blocks().v();
    FailureScope failures;
    DistMatrix<T> scaled = allocate_matrix<T>(B.grid(), B.layout());
    attempt(comm, [&] { V.reserve_products(B.cols()); });
    std::vector<int> powers = powers_of_columns(B);
    copy(B, scaled);
    multiply_by_powers(scaled, opposite(powers));
    space_->blocks().apply_adjoint(scaled, X);
    const auto C =
        V.products_with(X, [&comm](std::vector<double>& numbers) { FailureScope().reduce(comm, numbers); });
    for (int& power : powers) power += space_->blocks().power();
    combine(*space_,
            combinations<T>(*space_, options.damp, first_columns(B.cols()),
                            [&](double damp) {
                              return space_->projected().solve_normal_equations(C,
                                                                                space_->normal_factor(damp));
                            }),
            std::move(powers), X);
  }
  return finish(*space_, B, X, std::move(options), false);
}

template <Scalar T>
Index solution_space_bytes(const LinearOperator<T>& A, Index columns, Index vectors, int row, int col) {
  return BlockBidiagonalisation<T>(A).elements_at(row, col, columns, vectors) * Index{sizeof(T)};
}

#define GRIDLOPS_INSTANTIATE(T)    \
  template class SolutionSpace<T>; \
  template Index solution_space_bytes(const LinearOperator<T>&, Index, Index, int, int);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
