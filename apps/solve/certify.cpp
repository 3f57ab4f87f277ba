// SPDX-License-Identifier: BSD-3-Clause
#include "solve/certify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "gridlops/base/random.hpp"
#include "gridlops/solve/error_bound.hpp"
#include "matrix/memory_plan.hpp"
#include "solve/column_figures.hpp"

namespace gridlops::program {

namespace {

bool is_certified(const SolveTask& task) { return !task.arguments.certify.empty(); }

/// Returns the --tolerance of a compression that is this many times more accurate, with one digit.
double finer_tolerance(double tolerance) {
  const double unit = std::pow(10, std::floor(std::log10(tolerance)));
  return std::floor(tolerance / unit) * unit;
}

/// How much smaller the error of the compression must be for all columns that were refused; 0 if no error is
/// small enough.
double needed_share(const RefinedReport& refined) {
  double share = 1;
  for (const RefinedColumn& column : refined.columns)
    if (column.is_refused) share = std::min(share, column.needed_contraction / column.contraction);
  return share;
}

}  // namespace

std::optional<MatrixFile> read_original(Communicator& world, const SolveArguments& arguments,
                                        const MatrixFile& C) {
  const std::string& name = arguments.certify;
  if (name.empty()) return {};
  if (!C.is_compressed())
    throw UsageError(
        fmt::format("--certify is for a compressed matrix, and {} is not one: the verdicts are "
                    "for it anyway",
                    C.name()));
  const MatrixHeader original = read_matrix_header(world, name), &compressed = C.header();
  if (original.rows != compressed.rows || original.cols != compressed.cols ||
      original.type != compressed.type) {
    throw InputError(fmt::format("--certify {} is {} x {} {}, but {} was made of a matrix of {} x {} {}",
                                 name, original.rows, original.cols, name_of(original.type), C.name(),
                                 compressed.rows, compressed.cols, name_of(compressed.type)));
  }
  return MatrixFile(original, name);
}

// For a vector v of independent ±1, the mean of ‖Ev‖² is ‖E‖_F² (Hutchinson, Commun. Stat. Simul. Comput. 18,
// 1989). With four of them, no E shows three times its norm but once in three million times: the squares of
// four normal numbers have a mean above 9. Rounding in a product with v, of length √n, is as in
// error_bounds().
template <Scalar T>
double require_original(const SolveTask& task, const LinearOperator<T>& A, double norm_A,
                        const LinearOperator<T>& C) {
  const SolveArguments& arguments = task.arguments;
  const CompressionReport& report = task.A.compression();
  constexpr double of_sums = 1e-8;  // two orders of summation
  if (!(std::abs(norm_A - report.norm) <= of_sums * report.norm)) {
    throw InputError(
        fmt::format("--certify {} is not the matrix that {} was made of: its Frobenius norm is {:.10g}, and "
                    "was {:.10g}",
                    arguments.certify, arguments.product.matrix, norm_A, report.norm));
  }
  constexpr Index vectors = 4;
  DistMatrix<T> V = allocate_matrix<T>(A.domain().grid, A.domain().layout(vectors));
  DistMatrix<T> Y = allocate_matrix<T>(A.range().grid, A.range().layout(vectors));
  V.fill([](Index i, Index j) { return counter_uniform(60, i, j) < 0 ? T(-1) : T(1); });
  A.apply(T(1), V, T(0), Y);
  C.apply(T(-1), V, T(1), Y);
  const double difference = frobenius_norm(Y) / std::sqrt(static_cast<double>(vectors));
  const double seen = report.norm > 0 ? difference / report.norm : 0;
  const double rounding =
      4 * std::numeric_limits<Real<T>>::epsilon() * std::sqrt(static_cast<double>(A.cols()));
  if (!(seen <= 3 * report.error + rounding)) {
    throw InputError(
        fmt::format("--certify {} is not the matrix that {} was made of: they differ by about {:.2g} of the "
                    "norm, and the compression left {:.2g}",
                    arguments.certify, arguments.product.matrix, seen, report.error));
  }
  return seen;
}

template <Scalar T>
SolveReport solve_for_original(const SolveTask& task, const LinearOperator<T>& A, const LinearOperator<T>& C,
                               const ConstDistMatrix<T>& B, DistMatrix<T>& X, const SolveOptions& options,
                               CompressedSolve& solved) {
  // Bytes that no grid changes, since a restart on another one is to cost the same.
  const CompressionReport& saved = task.A.compression();
  const bool both = saved.dense_bytes > 0 && saved.bytes > 0;
  RefinedReport refined =
      solve_refined(A, C, B, X,
                    {.common = options,
                     .cost_of_A = both ? static_cast<double>(saved.dense_bytes) : 0.0,
                     .cost_of_approximation = both ? static_cast<double>(saved.bytes) : 0.0});
  SolveReport report = std::exchange(refined.solve, {});
  solved.refined = std::move(refined);
  return report;
}

template <Scalar T>
CertifiedBytes certified_bytes(const SolveTask& task, const LinearOperator<T>& A) {
  const ProcessGrid& grid = *task.grid();
  if (!grid.is_member()) return {};
  const Index nrhs = task.shape.nrhs,
              columns = largest_batch(Partition::with_sizes({nrhs}), task.arguments.options.batch);
  const auto of_compressed = [&](Index scratch_columns) {
    return task.A.tile_bytes({.grid = grid.shape(), .columns = scratch_columns})(grid.my_row(),
                                                                                 grid.my_col());
  };
  const ProductShape shape{task.shape.rows, task.shape.cols, columns, task.shape.type};
  const SolveBytes alone = refined_bytes(A, A, nrhs, {.common = task.arguments.options});
  CertifiedBytes bytes{
      alone.operators,
      of_compressed(0) + product_workspace_bytes(Algorithm::stationary_a, shape, grid.shape(), grid.my_row(),
                                                 grid.my_col(), false),
      A.range().local_rows() * nrhs * Index{sizeof(T)},
      A.domain().local_rows() * nrhs * Index{sizeof(T)},
      alone.vectors,
      std::max(alone.products, of_compressed(columns) - of_compressed(0))};
  bytes.back() = std::accumulate(bytes.begin(), bytes.end() - 1, Index{0});
  return bytes;
}

std::string certified_plan_text(Communicator& world, const SolveTask& task, const CertifiedBytes& mine) {
  CertifiedBytes most = mine, least = mine;
  if (!task.grid()->is_member()) least.fill(std::numeric_limits<Index>::max());
  world.all_reduce(most, ReduceOp::max);
  world.all_reduce(least, ReduceOp::min);
  return bytes_table(certified_rows, least, most);
}

template <Scalar T>
std::vector<double> bounds_for_original(const SolveTask& task, const SolveReport& report,
                                        const ConstDistMatrix<T>& B, const ConstDistMatrix<T>& X,
                                        const PerColumn& damp, const CompressionReport& matrix,
                                        const std::vector<WeightRange>& weights) {
  if (row_of(task.arguments.solver).problem != ProblemKind::least_squares || !damp.any()) return {};
  return error_bounds(report, B, X,
                      {.damp = damp,
                       .frobenius_norm = matrix.norm,
                       .difference_norm = matrix.error * matrix.norm,
                       .weights = weights});
}

std::string verdicts_text(const SolveTask& task, const CompressedSolve& solved,
                          const std::vector<double>& norms) {
  const std::string& matrix = task.arguments.product.matrix;
  if (solved.refined) {
    return fmt::format(
        "verdicts are for {}: {} products with it, and {} with {}, whose error is {:.2g} |A|\n",
        task.arguments.certify, solved.refined->products_with_A, solved.refined->products_with_approximation,
        matrix, solved.matrix.error);
  }
  const double largest = largest_relative(solved.bounds, norms);
  const std::string away =
      solved.bounds.empty() || !std::isfinite(largest)
          ? fmt::format("which differs from it by {:.2g} of its norm", solved.matrix.error)
          : fmt::format("whose solutions are at most {:.1e} |x| away", largest);
  return fmt::format(
      "verdicts are for {}, not for the matrix that it was made of, {}; --certify solves for "
      "that one\n",
      matrix, away);
}

std::string refusal_text(const SolveTask& task, const CompressedSolve& solved) {
  if (!solved.refined || solved.refined->refusal.empty()) return "";
  const std::string& original = task.arguments.certify;
  const double share = needed_share(*solved.refined);
  const std::string finer = share > 0 ? fmt::format("compress {} with --tolerance {:.0e}, or ", original,
                                                    finer_tolerance(share * solved.matrix.error))
                                      : "";
  return fmt::format("; {}; {}solve with --matrix {}", solved.refined->refusal, finer, original);
}

nlohmann::ordered_json json_of(const SolveTask& task, const CompressedSolve& solved) {
  const SolveArguments& arguments = task.arguments;
  nlohmann::ordered_json json{
      {"verdicts_for", is_certified(task) ? arguments.certify : arguments.product.matrix},
      {"error", solved.matrix.error},
      {"norm", solved.matrix.norm},
      {"bytes", solved.matrix.bytes},
      {"dense_bytes", solved.matrix.dense_bytes}};
  if (!solved.refined) return json;
  json["seen_error"] = solved.seen_error;
  json["products"] = {{"original", solved.refined->products_with_A},
                      {"compressed", solved.refined->products_with_approximation}};
  json["refusal"] = solved.refined->refusal;
  return json;
}

std::vector<ColumnFigure> column_figures_of(const CompressedSolve& solved) {
  if (!solved.bounds.empty()) return {{"original_error_bound", solved.bounds}};
  if (!solved.refined) return {};
  std::vector<double> inner, contractions;
  for (const RefinedColumn& column : solved.refined->columns) {
    inner.push_back(static_cast<double>(column.inner_iterations));
    contractions.push_back(column.contraction);
  }
  return {{"inner_iterations", inner}, {"contraction", contractions}};
}

#define GRIDLOPS_INSTANTIATE(T)                                                                   \
  template double require_original(const SolveTask&, const LinearOperator<T>&, double,            \
                                   const LinearOperator<T>&);                                     \
  template SolveReport solve_for_original(const SolveTask&, const LinearOperator<T>&,             \
                                          const LinearOperator<T>&, const ConstDistMatrix<T>&,    \
                                          DistMatrix<T>&, const SolveOptions&, CompressedSolve&); \
  template CertifiedBytes certified_bytes(const SolveTask&, const LinearOperator<T>&);            \
  template std::vector<double> bounds_for_original(                                               \
      const SolveTask&, const SolveReport&, const ConstDistMatrix<T>&, const ConstDistMatrix<T>&, \
      const PerColumn&, const CompressionReport&, const std::vector<WeightRange>&);
GRIDLOPS_INSTANTIATE(float)
GRIDLOPS_INSTANTIATE(double)
GRIDLOPS_INSTANTIATE(std::complex<float>)
GRIDLOPS_INSTANTIATE(std::complex<double>)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops::program
