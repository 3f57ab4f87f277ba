// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "gridlops/solve/refined_solver.hpp"
#include "measure/report.hpp"
#include "solve/task/solve_task.hpp"

namespace gridlops::program {

// A solve with a compressed matrix C, and its bounds for the matrix A that C was made of.

/// The results on every rank of the grid.
struct CompressedSolve {
  CompressionReport matrix{};
  /// With --certify: ‖A − C‖_F / ‖A‖_F as random vectors show it, and how columns were solved; the report of
  /// the solve is elsewhere.
  double seen_error = 0;
  std::optional<RefinedReport> refined{};
  /// Without: the most that ‖x − x*‖ can be for each column, where x* solves the problem of A; empty if
  /// nothing bounds it.
  std::vector<double> bounds{};
};

/// Reads the header of --certify, if that is given (collective over world). Throws, on all ranks, UsageError
/// if C is not compressed, and InputError if the matrix has another shape or type.
std::optional<MatrixFile> read_original(Communicator& world, const SolveArguments& arguments,
                                        const MatrixFile& C);

/// Returns ‖A − C‖_F / ‖A‖_F, estimated by four random vectors (collective over the grid). Throws InputError,
/// on all ranks, if C was made of another matrix: its norm is not the one that was saved with C, or the
/// estimate is far above the error of the compression.
template <Scalar T>
double require_original(const SolveTask& task, const LinearOperator<T>& A, double norm_A,
                        const LinearOperator<T>& C);

/// Solves for A by solve_refined(). A product costs what is read for it. Completes `solved`.
template <Scalar T>
SolveReport solve_for_original(const SolveTask& task, const LinearOperator<T>& A, const LinearOperator<T>& C,
                               const ConstDistMatrix<T>& B, DistMatrix<T>& X, const SolveOptions& options,
                               CompressedSolve& solved);
/// The memory that it takes on a rank, in bytes, by the names of rows in a table; the last is the sum.
inline constexpr std::array certified_rows{"matrix",       "compressed matrix", "right-hand sides",
                                           "solution",     "solver's vectors",  "products' scratch memory",
                                           "memory in all"};
using CertifiedBytes = std::array<Index, certified_rows.size()>;
/// A may be a plan. Nothing on idle ranks. Not collective.
template <Scalar T>
CertifiedBytes certified_bytes(const SolveTask& task, const LinearOperator<T>& A);
/// The table of all ranks, on rank 0 (collective over world).
std::string certified_plan_text(Communicator& world, const SolveTask& task, const CertifiedBytes& mine);

/// Bounds the errors for A of the solutions with C, if a least-squares solver was damped (collective over the
/// grid). weights: of the columns, if there are any; B is then weighted.
template <Scalar T>
std::vector<double> bounds_for_original(const SolveTask& task, const SolveReport& report,
                                        const ConstDistMatrix<T>& B, const ConstDistMatrix<T>& X,
                                        const PerColumn& damp, const CompressionReport& matrix,
                                        const std::vector<WeightRange>& weights);

/// A line that says for which matrix the verdicts hold. norms: ‖x‖ of each column.
std::string verdicts_text(const SolveTask& task, const CompressedSolve& solved,
                          const std::vector<double>& norms);
/// Why columns were refused, and what to do; empty if none was.
std::string refusal_text(const SolveTask& task, const CompressedSolve& solved);

/// The report's facts.
nlohmann::ordered_json json_of(const SolveTask& task, const CompressedSolve& solved);
std::vector<ColumnFigure> column_figures_of(const CompressedSolve& solved);

}  // namespace gridlops::program
