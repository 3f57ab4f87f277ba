// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/solve/solution_space.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

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
#include "solve/run/column_method.hpp"

namespace gridlops {

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

namespace {

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

/// The y of these columns, by solve(D) for all columns, each D on one rank.
template <Scalar T>
SmallMatrix<Accumulator<T>> combinations(const GrowingSpace<T>& space, const PerColumn& damp, Index columns,
                                         const std::function<SmallMatrix<Accumulator<T>>(double)>& solve) {
  using S = Accumulator<T>;
  Communicator& comm = space.A()->domain().grid->comm();
  std::map<double, std::vector<Index>> columns_of;
  for (Index j = 0; j < columns; ++j) columns_of[damp[j]].push_back(j);
  SmallMatrix<S> Y(space.projected().dimension(), columns);
  FailureScope failures;
  std::vector<double> numbers(at(Y.rows() * Y.cols()) * sizeof(S) / sizeof(double), 0.0);
  auto* const elements = reinterpret_cast<S*>(numbers.data());
  failures.run([&] {
    int next = 0;
    for (const auto& [each, of_each] : columns_of) {
      if (next++ % comm.size() != comm.rank()) continue;
      const SmallMatrix<S> y = solve(each);
      for (const Index j : of_each) std::copy_n(y.column(j), y.rows(), elements + j * y.rows());
    }
  });
  failures.reduce(comm, numbers);
  std::copy_n(reinterpret_cast<const S*>(numbers.data()), Y.rows() * Y.cols(), Y.column(0));
  return Y;
}

/// CGLS from X.
template <Scalar T>
SolveReport finish(const GrowingSpace<T>& space, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                   SolveOptions options) {
  options.initial_guess = true;
  if (!options.tolerance && options.error == 0) options.tolerance = space.tolerance();
  return solve(Solver::cgls, *space.A(), B, X, options);
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
std::vector<DampingCurve> SolutionSpace<T>::curves(DampingRule rule, const PerColumn& noise) const {
  const Index count = columns_of_data(*space_);
  require<UsageError>(rule != DampingRule::gcv || space_->has_probe(),
                      "SolutionSpace: gcv needs a space with SpaceOptions::has_probe");
  if (count == 0) return {};
  require<ShapeError>(noise.is_one() || std::ssize(noise.values()) == count, "SolutionSpace: there are ",
                      count, " right-hand sides, and the norms of ", noise.values().size(), " noises");
  const auto& norms = space_->norms();
  const std::vector<double>& damps = space_->damps();
  std::vector<DampingCurve> curves(at(count));
  for (Index j = 0; j < count; ++j) {
    DampingCurve& curve = curves[at(j)];
    curve.rule = rule;
    curve.noise = noise[j];
    const int power = space_->blocks().powers()[at(j)];
    for (std::size_t d = 0; d < damps.size(); ++d) {
      const auto damped_residual = [&](std::size_t place) {
        return std::hypot(norms.residual[place], damps[d] * norms.x[place]);
      };
      const auto is_solved_at = [&](Index column, std::size_t place) {
        return space_->is_solved(column, damps[d], damped_residual(place), norms.gradient[place]);
      };
      const Index all = space_->columns();
      const std::size_t place = d * at(all) + at(j), of_probe = (d + 1) * at(all) - 1;
      curve.points.push_back({damps[d], std::ldexp(norms.residual[place], power),
                              std::ldexp(norms.x[place], power),
                              is_solved_at(j, place) ? StopReason::converged : StopReason::iteration_limit});
      if (rule == DampingRule::gcv && is_solved_at(all - 1, of_probe))
        curve.points.back().free_dimensions = std::pow(damped_residual(of_probe), 2);
    }
    choose_damping(curve);
  }
  return curves;
}

template <Scalar T>
SolveReport SolutionSpace<T>::solve(const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                                    SolveOptions options) const {
  const Index count = columns_of_data(*space_);
  check(*space_, B, X, options, count);
  if (B.grid()->is_member()) {
    const Space& range = space_->A()->range();
    const std::string differs =
        difference_of_columns<T>(range, space_->fingerprint_of_B(), fingerprint(range, B));
    require<UsageError>(differs.empty(), "SolutionSpace::solve: the space is for other data: here ", differs);
    BlockBasis<T>& V = space_->blocks().v();
    attempt(B.grid()->comm(), [&] { V.reserve_products(count); });
    X.set_zero();
    V.add_combination(combinations<T>(*space_, options.damp, count,
                                      [this](double damp) {
                                        return space_->projected().solve(damp, space_->smallest()).y;
                                      }),
                      X);
    std::vector<int> powers = space_->blocks().powers();
    powers.resize(at(count));  // without that of the probe
    multiply_by_powers(X, powers);
  }
  return finish(*space_, B, X, std::move(options));
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
    const std::vector<int> powers = powers_of_columns(B);
    copy(B, scaled);
    multiply_by_powers(scaled, opposite(powers));
    space_->A()->apply_adjoint(T(1), scaled, T(0), X);
    const auto C =
        V.products_with(X, [&comm](std::vector<double>& numbers) { FailureScope().reduce(comm, numbers); });
    X.set_zero();
    V.add_combination(combinations<T>(*space_, options.damp, B.cols(),
                                      [&](double damp) {
                                        return space_->projected().solve_normal_equations(C, damp,
                                                                                          space_->smallest());
                                      }),
                      X);
    multiply_by_powers(X, powers);
  }
  return finish(*space_, B, X, std::move(options));
}

template <Scalar T>
Index solution_space_bytes(const LinearOperator<T>& A, Index columns, Index vectors, int row, int col) {
  return BlockBidiagonalisation<T>(A).elements_at(row, col, columns, vectors) * Index{sizeof(T)};
}

#define GRIDLOPS_INSTANTIATE(T)    \
  template class SolutionSpace<T>; \
  template Index solution_space_bytes(const LinearOperator<T>&, Index, Index, int, int);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
