// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/solve/plan.hpp"

#include <algorithm>
#include <cmath>

#include "base/numbers.hpp"
#include "ops/matrix/algorithms.hpp"
#include "ops/stationary/matrix_block.hpp"
#include "solve/factor/converted_rows.hpp"
#include "solve/factor/gram_matrix.hpp"

namespace gridlops {

namespace {

/// The larger part of a dimension that is cut over this many ranks.
double part(Index size, int ranks) { return static_cast<double>(balanced_part(size, ranks, 0).size); }

double seconds_of_vectors(const PlannedIteration& iteration, GridShape grid, const MachineModel& machine) {
  const ProductShape& shape = iteration.shape;
  const int P = grid.rows, Q = grid.cols;
  double models = part(shape.cols, P) * part(shape.nrhs, Q), data = part(shape.rows, P) * part(shape.nrhs, Q);
  if (iteration.algorithm == Algorithm::stationary_a) {
    models = part(shape.cols, P * Q) * static_cast<double>(shape.nrhs);
    data = part(shape.rows, P * Q) * static_cast<double>(shape.nrhs);
  } else if (iteration.algorithm == Algorithm::block) {
    models = static_cast<double>(shape.cols) * part(shape.nrhs, P);
    data = part(shape.rows, Q) * part(shape.nrhs, P);
  }
  const SolverRow& solver = row_of(iteration.solver);
  // Each copied byte is read once and written once.
  return (solver.model_passes * models + solver.data_passes * data) *
         static_cast<double>(size_of(shape.type)) * machine.seconds_per_copied_byte / 2;
}

/// The scalars of all columns travel twice: after the product, and with the norms.
double seconds_of_sums(const PlannedIteration& iteration, GridShape grid, const MachineModel& machine) {
  if (grid.size() == 1) return 0;
  constexpr double sums = 5;
  const double bytes = 2 * sums * static_cast<double>(iteration.shape.nrhs * Index{sizeof(double)});
  return machine.seconds(CommOperation::all_reduce, grid.size(), 2, bytes);
}

}  // namespace

Partition columns_of(Algorithm algorithm, Index nrhs, GridShape grid) {
  if (algorithm == Algorithm::stationary_a) return Partition::balanced(nrhs, 1);
  return Partition::balanced(nrhs, algorithm == Algorithm::block ? grid.rows : grid.cols);
}

ProductShape first_batch(Algorithm algorithm, ProductShape shape, GridShape grid, Index batch) {
  shape.nrhs = largest_batch(columns_of(algorithm, shape.nrhs, grid), batch);
  return shape;
}

PlannedIteration plan_iteration(const IterationRequest& asked, const ProductShape& shape, GridShape grid,
                                const MachineModel& machine) {
  if (asked.storage)
    require_storage_possible(*asked.storage, shape.type,
                             asked.on_host ? MemorySpace::host : MemorySpace::device);
  const auto batch_by = [&](Algorithm algorithm) { return first_batch(algorithm, shape, grid, asked.batch); };
  const bool may_be_stationary_a =
      asked.algorithm == Algorithm::automatic || asked.algorithm == Algorithm::stationary_a;
  const bool on_disk = asked.place == MatrixPlace::disk;
  const bool one_pass_pays = on_disk || (may_be_stationary_a && asked.on_host &&
                                         (!asked.storage || row_of(*asked.storage).reads_once) &&
                                         one_pass_is_faster(batch_by(Algorithm::stationary_a), grid));
  const bool one_pass = row_of(asked.solver).has(Feature::one_pass) && asked.one_pass.value_or(one_pass_pays);
  const bool never_moves = one_pass || on_disk || row_of(asked.solver).has(Feature::shared_space);
  Algorithm algorithm = never_moves ? Algorithm::stationary_a : asked.algorithm;
  // A factor is made of whole rows, which are cheapest where A never moves.
  if (algorithm == Algorithm::automatic && row_of(asked.solver).has(Feature::factor))
    algorithm = Algorithm::stationary_a;
  if (algorithm == Algorithm::automatic) {
    ProductShape at_once = shape;
    if (asked.batch > 0) at_once.nrhs = std::min(shape.nrhs, asked.batch);
    algorithm = choose_algorithm(at_once, grid, machine);
    const bool must_stay = asked.storage && !row_of(*asked.storage).is_as_given;
    if (must_stay && !never_moves_A(algorithm)) algorithm = Algorithm::stationary_a;
  }
  const ProductShape batch = batch_by(algorithm);
  const Storage usual = on_disk         ? Storage::packed
                        : asked.on_host ? faster_storage(algorithm, batch, grid)
                                        : Storage::columns;
  const bool needs_packed =
      one_pass && asked.on_host && !on_disk && !(asked.storage && row_of(*asked.storage).reads_once);
  const Storage storage = needs_packed ? Storage::packed : asked.storage.value_or(usual);
  return {asked.solver, one_pass, algorithm, batch, asked.panel, storage, asked.place};
}

int passes_over_matrix(const PlannedIteration& iteration) {
  return iteration.one_pass || !row_of(iteration.solver).multiplies_with_adjoint() ? 1 : 2;
}

double iteration_seconds(const PlannedIteration& iteration, GridShape grid, const MachineModel& machine) {
  const ProductShape& shape = iteration.shape;
  if (shape.nrhs == 0) return 0;
  const auto product = [&](bool adjoint) {
    return product_seconds(iteration.algorithm, shape, grid, adjoint, machine, iteration.panel);
  };
  const double products = iteration.one_pass
                              ? normal_product_seconds(shape, grid, machine)
                              : product(false) + (passes_over_matrix(iteration) == 2 ? product(true) : 0);
  return std::max(
      passes_over_matrix(iteration) * iteration.pass_seconds,
      products + seconds_of_vectors(iteration, grid, machine) + seconds_of_sums(iteration, grid, machine));
}

double factor_seconds(const PlannedIteration& iteration, GridShape grid, const MachineModel& machine) {
  const auto m = static_cast<double>(iteration.shape.rows), n = static_cast<double>(iteration.shape.cols),
             P = static_cast<double>(grid.size()), least = std::min(m, n);
  PlannedIteration unit_vectors = iteration;
  unit_vectors.one_pass = false;
  unit_vectors.pass_seconds = 0;
  unit_vectors.shape.nrhs = std::min(iteration.shape.rows, iteration.shape.cols);
  const auto products = [&](ScalarType type) {
    unit_vectors.shape.type = type;
    return iteration_seconds(unit_vectors, grid, machine);
  };
  const ScalarType wide = type_of_sums(iteration.shape.type);
  // Of rows, or of columns in memory, the half of AᴴA is enough, the first of its two products.
  const bool has_rows =
      never_moves_A(iteration.algorithm) && (m >= n || iteration.place != MatrixPlace::disk);
  const double passes = 2 * std::ceil(least / static_cast<double>(most_unit_vectors)),
               gram = has_rows ? std::max(iteration.pass_seconds, products(wide) / 4)
                               : std::max(passes * iteration.pass_seconds, products(iteration.shape.type));
  return gram + products(wide) * least * P / (12 * std::max(m, n));
}

double direct_seconds(const PlannedIteration& iteration, Index nrhs, bool initial_guess, GridShape grid,
                      const MachineModel& machine) {
  const ProductShape& shape = iteration.shape;
  if (nrhs == 0 || shape.nrhs == 0) return 0;
  PlannedIteration in_memory = iteration;
  in_memory.one_pass = false;
  in_memory.pass_seconds = 0;
  const auto adjoint = [&] {
    return product_seconds(iteration.algorithm, shape, grid, true, machine, iteration.panel);
  };
  // Ax and its gradient are two products of three; the third is Aᴴb. Data take one more for x = Aᴴy.
  const int iterations = initial_guess ? 3 : 1, adjoints = shape.rows < shape.cols ? 2 : 1;
  const Index n = std::min(shape.rows, shape.cols);
  const ProductShape triangles{n, n, balanced_part(shape.nrhs, grid.size(), 0).size, shape.type};
  const double products = iterations * iteration_seconds(in_memory, grid, machine) + adjoints * adjoint(),
               reading = (2 * iterations + adjoints) * iteration.pass_seconds,
               solves = product_seconds(Algorithm::block, triangles, {1, 1}, false, machine);
  const auto batches = std::ceil(static_cast<double>(nrhs) / static_cast<double>(shape.nrhs));
  return factor_seconds(iteration, grid, machine) + batches * (std::max(products, reading) + solves);
}

PlannedIteration with_faster_passes(const PlannedIteration& iteration, GridShape grid,
                                    const MachineModel& machine) {
  PlannedIteration two_passes = iteration;
  two_passes.one_pass = false;
  return iteration_seconds(two_passes, grid, machine) < iteration_seconds(iteration, grid, machine)
             ? two_passes
             : iteration;
}

RankCost iteration_cost(const PlannedIteration& iteration, GridShape grid, int row, int col) {
  if (iteration.one_pass) return normal_product_cost(iteration.shape, grid, row, col);
  const auto product = [&](bool adjoint) {
    return product_cost(iteration.algorithm, iteration.shape, grid, row, col, adjoint, iteration.panel);
  };
  RankCost cost = product(false);
  if (!row_of(iteration.solver).multiplies_with_adjoint()) return cost;
  const RankCost adjoint = product(true);
  cost.bytes_received += adjoint.bytes_received;
  cost.bytes_sent += adjoint.bytes_sent;
  cost.messages += adjoint.messages;
  cost.flops += adjoint.flops;
  cost.workspace_bytes = std::max(cost.workspace_bytes, adjoint.workspace_bytes);
  return cost;
}

}  // namespace gridlops
