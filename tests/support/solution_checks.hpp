// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <string>

#include "support/catch.hpp"
#include "support/problems.hpp"

namespace gridlops::testing {

/// The system of a solve, whole on every rank, and the norms of a solution's residuals.
template <Scalar T>
class WholeSystem {
 public:
  using Wide = Accumulator<T>;

  struct Norms {
    double residual = 0;   ///< ‖b − Ax‖
    double normal = 0;     ///< ‖Aᴴ(b−Ax) − D²x‖
    double tested = 0;     ///< the norm that must be at most tolerance · reference
    double reference = 0;  ///< the norm relative to which `tested` is small
    double rounding = 0;   ///< ε times the norms that `residual` is a difference of
  };

  /// solver: cg if the solver tests the norm of the residual, else any other.
  WholeSystem(SolverFunction<T> solver, Index m, Index n, const Element<T>& A, const Element<T>& b,
              const SolveOptions& options, const Element<T>& guess = {})
      : is_cg_(solver == SolverFunction<T>(&cg<T>)), m_(m), n_(n), b_(b), guess_(guess), options_(options) {
    for (Index j = 0; j < n; ++j)
      for (Index i = 0; i < m; ++i) A_.push_back(Wide(A(i, j)));
  }

  Norms norms(Index column, const std::vector<T>& x) const {
    const std::vector<Wide> b = wide(column, b_, m_), r = residual(b, wide(x)),
                            start = wide(column, guess_, n_);
    const std::vector<Wide> r0 = residual(b, start);
    Norms result;
    result.residual = norm_of(r);
    result.normal = norm_of(damped(transposed_product(r), wide(x)));
    result.tested = is_cg_ ? norm_of(damped(r, wide(x))) : result.normal;
    result.reference = is_cg_ ? std::max(norm_of(b), norm_of(r0))
                              : std::max(norm_of(transposed_product(b)), norm_of(transposed_product(r0)));
    result.rounding = epsilon_of<T> * (norm_of(b) + norm_of(A_) * norm_of(x));
    return result;
  }
  double damping() const {
    const double damp = options_.damp.one_or(0);
    return damp * damp;
  }
  double norm_of_A() const { return norm_of(A_); }
  double tolerance() const { return tolerance_of(options_, scalar_type_of<T>).one_or(0); }

 private:
  static std::vector<Wide> wide(const std::vector<T>& x) { return {x.begin(), x.end()}; }
  static std::vector<Wide> wide(Index column, const Element<T>& many, Index rows) {
    std::vector<Wide> x(static_cast<std::size_t>(rows), Wide(0));
    if (!many) return x;
    for (Index i = 0; i < rows; ++i) x[static_cast<std::size_t>(i)] = Wide(many(i, column));
    return x;
  }
  const Wide& element(Index i, Index j) const { return A_[static_cast<std::size_t>(i + j * m_)]; }
  std::vector<Wide> residual(std::vector<Wide> b, const std::vector<Wide>& x) const {
    for (Index j = 0; j < n_; ++j)
      for (Index i = 0; i < m_; ++i)
        b[static_cast<std::size_t>(i)] -= element(i, j) * x[static_cast<std::size_t>(j)];
    return b;
  }
  std::vector<Wide> transposed_product(const std::vector<Wide>& r) const {
    std::vector<Wide> s(static_cast<std::size_t>(n_), Wide(0));
    for (Index j = 0; j < n_; ++j)
      for (Index i = 0; i < m_; ++i)
        s[static_cast<std::size_t>(j)] += conjugate(element(i, j)) * r[static_cast<std::size_t>(i)];
    return s;
  }
  std::vector<Wide> damped(std::vector<Wide> s, const std::vector<Wide>& x) const {
    for (std::size_t i = 0; i < s.size(); ++i) s[i] -= damping() * x[i];
    return s;
  }

  bool is_cg_;
  Index m_, n_;
  Element<T> b_, guess_;
  SolveOptions options_;
  std::vector<Wide> A_;
};

/// Everything in a report, as numbers, with −1 for NaN.
inline std::vector<double> numbers_in(const SolveReport& report) {
  std::vector<double> numbers{static_cast<double>(report.iterations)};
  for (const ColumnReport& column : report.columns) {
    numbers.insert(numbers.end(), {static_cast<double>(column.reason), static_cast<double>(column.iterations),
                                   column.residual_norm, column.normal_residual_norm});
  }
  for (const IterationRecord& record : report.history) {
    numbers.push_back(static_cast<double>(record.iteration));
    for (const Index column : record.columns) numbers.push_back(static_cast<double>(column));
    numbers.insert(numbers.end(), record.residual_norms.begin(), record.residual_norms.end());
    numbers.insert(numbers.end(), record.tested_norms.begin(), record.tested_norms.end());
  }
  for (double& number : numbers)
    if (std::isnan(number)) number = -1;
  return numbers;
}

/// Checks that all members of a grid have the same bits.
inline void check_same_everywhere(const SolveReport& report, Communicator& comm) {
  std::vector<double> least = numbers_in(report), most = least;
  std::vector<std::int64_t> shortest{static_cast<std::int64_t>(least.size())}, longest = shortest;
  comm.all_reduce(shortest, ReduceOp::min);
  comm.all_reduce(longest, ReduceOp::max);
  CHECK(shortest == longest);
  if (shortest != longest) return;
  comm.all_reduce(least, ReduceOp::min);
  comm.all_reduce(most, ReduceOp::max);
  CHECK(least == most);
}

/// Checks the rules for every report, however its columns ended (collective over the grid's members).
template <Scalar T>
void check_report(const WholeSystem<T>& system, const Solution<T>& solution, Communicator& comm) {
  check_same_everywhere(solution.report, comm);
  Index most = 0;
  for (std::size_t k = 0; k < solution.report.columns.size(); ++k) {
    const auto j = static_cast<Index>(k);
    const ColumnReport& column = solution.report.columns[k];
    const std::vector<T> x = solution.column(j);
    CAPTURE(j, name_of(column.reason), column.iterations);
    most = std::max(most, column.iterations);
    if (column.reason == StopReason::non_finite) {
      CHECK(std::all_of(x.begin(), x.end(), [](T element) { return std::isnan(std::norm(element)); }));
      CHECK(std::isnan(column.residual_norm));
      CHECK(std::isnan(column.normal_residual_norm));
      continue;
    }
    const auto norms = system.norms(j, x);
    const double normal_rounding =
        system.norm_of_A() * norms.rounding + epsilon_of<T> * system.damping() * norm_of(x);
    CHECK(std::abs(column.residual_norm - norms.residual) <= 10 * norms.rounding);
    CHECK(std::abs(column.normal_residual_norm - norms.normal) <= 10 * normal_rounding);
    if (column.reason != StopReason::converged) continue;
    CHECK(norms.tested <= system.tolerance() * norms.reference * (1 + 1e-6) + 10 * normal_rounding);
    if (solution.report.solver == "cgls")
      CHECK(column.normal_residual_norm <= system.tolerance() * norms.reference * (1 + 1e-6));
  }
  CHECK(solution.report.iterations == most);
}

}  // namespace gridlops::testing
