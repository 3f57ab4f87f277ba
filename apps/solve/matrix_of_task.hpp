// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "gridlops/compressed/compressed_matrix.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "gridlops/solve/inversion.hpp"
#include "gridlops/streamed/streamed_matrix.hpp"
#include "measure/report.hpp"
#include "solve/certify.hpp"
#include "solve/task/solve_task.hpp"

namespace gridlops::program {

inline bool is_scaled(const SolveTask& task) { return task.arguments.precondition == "column-norms"; }

/// Of a matrix in memory, or the plan of one on disks.
template <Scalar T>
OperatorPtr<T> make_product(const SolveTask& task, DistMatrix<T> A) {
  return matrix_mult(task.iteration().algorithm, std::move(A),
                     {.panel = task.arguments.product.panel,
                      .column_stable = task.arguments.options.column_stable,
                      .storage = task.iteration().storage});
}

template <Scalar T>
OperatorPtr<T> planned_product(const SolveTask& task) {
  return make_product(task, planned_matrix<T>(task.grid(), layout_of_matrix(task)));
}

/// The product. For a Hermitian A, whose data are models, too, it redistributes to the layout of models.
template <Scalar T>
OperatorPtr<T> make_operator(const SolveTask& task, OperatorPtr<T> A) {
  if (row_of(task.arguments.solver).problem != ProblemKind::hermitian || A->domain() == A->range()) return A;
  return product(identity<T>(A->domain(), A->range()), A);
}

/// The A of a run, wherever it is.
template <Scalar T>
struct MatrixOfTask {
  OperatorPtr<T> product{};         ///< the A of the verdicts: with --certify the original
  OperatorPtr<T> approximation{};   ///< with --certify the compressed matrix, or null
  OperatorPtr<T> preconditioner{};  ///< of --precondition, or null
  std::optional<CompressionReport> compression{};
  double frobenius_norm = 0;  ///< ‖A‖_F, or more, as far as the task needs it
  double seen_error = 0;      ///< with --certify, see CompressedSolve
  /// Returns the bytes of A that this rank has read from disks, and the seconds that products waited for
  /// them.
  std::function<std::pair<Index, double>()> disk_reads{};

  /// Takes a matrix whose elements may be on disks. matrix: a StreamedMatrixPtr or a CompressedMatrixPtr.
  template <class Pointer>
  void take(const Pointer& matrix) {
    product = matrix;
    disk_reads = [matrix] { return std::pair(matrix->bytes_read(), matrix->seconds_waited()); };
  }
};

/// Reads A, or opens it where it is to stay (collective over the grid). Adds to what reading and setting up
/// have taken. Throws on all ranks.
template <Scalar T>
MatrixOfTask<T> open_matrix(const SolveTask& task, Measurements& measured) {
  const SolveArguments& arguments = task.arguments;
  const auto& grid = task.grid();
  const StreamOptions on_disk{.scratch = arguments.scratch,
                              .memory = task.placed.memory_of_tiles,
                              .column_stable = arguments.options.column_stable,
                              .tiles = arguments.tiles,
                              .in_place = task.placed.in_place};
  Stopwatch clock;
  MatrixOfTask<T> of;
  if (task.A.is_compressed()) {
    const auto C =
        read_compressed<T>(grid, task.A.name(), task.A.header(),
                           task.is_on_disk() ? std::optional<StreamOptions>(on_disk) : std::nullopt);
    of.take(C);
    of.compression = C->report();
    of.frobenius_norm = (1 + C->report().error) * C->report().norm;
    measured.read_seconds += clock.lap();
  }
  const MatrixFile* const elements = task.elements();
  if (elements == nullptr) return of;
  if (task.is_on_disk()) {
    const auto A = stream_matrix<T>(grid, elements->name(), elements->header(), on_disk);
    of.take(A);
    of.frobenius_norm = A->frobenius_norm();
    if (is_scaled(task)) of.preconditioner = column_scaling<T>(*A);
    measured.read_seconds += clock.lap();
    return of;
  }
  DistMatrix<T> A = allocate_matrix<T>(grid, layout_of_matrix(task));
  measured.setup_seconds += clock.lap();
  read_matrix(elements->name(), elements->header(), A);
  measured.read_seconds += clock.lap();
  // While this rank still owns A: columns are scaled in the domain of a product with a view of it.
  if (is_scaled(task))
    of.preconditioner =
        column_scaling(A, make_product(task, DistMatrix<T>(grid, A.layout(), A.local()))->domain());
  if (arguments.bounds_errors() || task.original) of.frobenius_norm = frobenius_norm(A);
  of.approximation = std::exchange(of.product, make_product(task, std::move(A)));
  if (task.original)
    of.seen_error = require_original(task, *of.product, of.frobenius_norm, *of.approximation);
  measured.setup_seconds += clock.lap();
  return of;
}

}  // namespace gridlops::program
