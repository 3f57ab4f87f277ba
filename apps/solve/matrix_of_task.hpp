// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "gridlops/compressed/compressed_matrix.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "gridlops/solve/inversion.hpp"
#include "gridlops/streamed/streamed_matrix.hpp"
#include "measure/report.hpp"
#include "solve/certify.hpp"
#include "solve/on_disk.hpp"

namespace gridlops::program {

inline bool is_on_disk(const SolveTask& task) { return task.iteration.storage == Storage::disk; }
inline bool is_scaled(const SolveTask& task) { return task.arguments.precondition == "column-norms"; }

/// Of a matrix in memory, or the plan of one on disks.
template <Scalar T>
OperatorPtr<T> make_product(const SolveTask& task, DistMatrix<T> A) {
  return matrix_mult(task.iteration.algorithm, std::move(A),
                     {.panel = task.arguments.product.panel,
                      .column_stable = task.arguments.options.column_stable,
                      .storage = !is_on_disk(task) ? task.iteration.storage
                                 : task.compressed ? Storage::columns
                                                   : Storage::packed});
}

template <Scalar T>
OperatorPtr<T> planned_product(const SolveTask& task) {
  return make_product(task, planned_matrix<T>(task.grid, layout_of_matrix(task)));
}

/// The A of a run, wherever it is.
template <Scalar T>
struct MatrixOfTask {
  OperatorPtr<T> product{};             ///< the A of the verdicts: with --certify the original
  OperatorPtr<T> preconditioner{};      ///< of --precondition, or null
  CompressedMatrixPtr<T> compressed{};  ///< A, or with --certify the approximation; null: not compressed
  StreamedMatrixPtr<T> streamed{};      ///< A, if its elements are on disks; else null
  double frobenius_norm = 0;            ///< ‖A‖_F, or more, as far as the task needs it
  double seen_error = 0;                ///< with --certify, see CompressedSolve

  bool is_certified() const { return compressed != nullptr && product != compressed; }
  Index bytes_read() const { return streamed ? streamed->bytes_read() : compressed->bytes_read(); }
  double seconds_waited() const {
    return streamed ? streamed->seconds_waited() : compressed->seconds_waited();
  }
};

/// Reads A, or opens it where it is to stay (collective over the grid). Adds to what reading and setting up
/// have taken. Throws on all ranks.
template <Scalar T>
MatrixOfTask<T> open_matrix(const SolveTask& task, Measurements& measured) {
  const SolveArguments& arguments = task.arguments;
  const auto& grid = task.grid;
  const StreamOptions on_disk{.scratch = arguments.scratch,
                              .memory = task.memory_of_tiles,
                              .column_stable = arguments.options.column_stable,
                              .tiles = arguments.tiles,
                              .in_place = task.in_place};
  const std::string file = file_of_elements(task);
  Stopwatch clock;
  MatrixOfTask<T> of;
  if (task.compressed) {
    of.product = of.compressed =
        read_compressed<T>(grid, arguments.product.matrix, task.A,
                           is_on_disk(task) ? std::optional<StreamOptions>(on_disk) : std::nullopt);
    of.frobenius_norm = (1 + of.compressed->report().error) * of.compressed->report().norm;
    measured.read_seconds += clock.lap();
  }
  if (is_on_disk(task) && !task.compressed) {
    of.product = of.streamed = stream_matrix<T>(grid, file, task.elements, on_disk);
    of.frobenius_norm = of.streamed->frobenius_norm();
    measured.read_seconds += clock.lap();
  } else if (!file.empty()) {
    DistMatrix<T> A = allocate_matrix<T>(grid, layout_of_matrix(task));
    measured.setup_seconds += clock.lap();
    read_matrix(file, task.elements, A);
    measured.read_seconds += clock.lap();
    // While this rank still owns A: columns are scaled in the domain of a product with a view of it.
    if (is_scaled(task))
      of.preconditioner =
          column_scaling(A, make_product(task, DistMatrix<T>(grid, A.layout(), A.local()))->domain());
    if (arguments.bounds_errors() || task.compressed) of.frobenius_norm = frobenius_norm(A);
    of.product = make_product(task, std::move(A));
    if (task.compressed)
      of.seen_error = require_original(task, *of.product, of.frobenius_norm, *of.compressed);
    measured.setup_seconds += clock.lap();
  }
  return of;
}

}  // namespace gridlops::program
