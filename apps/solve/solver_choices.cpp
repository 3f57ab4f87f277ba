// SPDX-License-Identifier: BSD-3-Clause
#include "solve/solver_choices.hpp"

#include <fmt/format.h>

#include "gridlops/base/error.hpp"
#include "gridlops/ops/matrix_mult.hpp"

namespace gridlops::program {

namespace {

/// block-cgls and one pass need stationary-a: the right-hand sides of a block must be on the same ranks, and
/// one pass needs a block of A that never moves.
bool may_be_stationary_a(const AskedChoices& asked) {
  return asked.algorithm == Algorithm::automatic || asked.algorithm == Algorithm::stationary_a;
}

bool is_stored_in_columns(const AskedChoices& asked) {
  return asked.on_host && asked.storage == Storage::columns;
}

}  // namespace

void require_compatible(const AskedChoices& asked) {
  const bool one_pass = asked.one_pass == "on", block = asked.solver == Solver::block_cgls;
  if ((one_pass || block) && !may_be_stationary_a(asked)) {
    throw UsageError(fmt::format("{} works with --algorithm stationary-a only, not with {}",
                                 one_pass ? "--one-pass" : "--solver block-cgls", name_of(asked.algorithm)));
  }
  if (one_pass && is_stored_in_columns(asked)) {
    throw UsageError(
        "--one-pass on and --storage columns exclude each other: one pass reads A packed; leave --storage "
        "out");
  }
  if (one_pass && asked.scaled) {
    throw UsageError(
        "--one-pass on and --precondition column-norms exclude each other: with scaled columns the "
        "operator is a product, which has no normal product of its own");
  }
}

std::string shape_refusal(Solver solver, Index rows, Index cols) {
  if (row_of(solver).problem != ProblemKind::hermitian || rows == cols) return {};
  return fmt::format("{} x {}, but --solver {} needs a square matrix; cgls takes any", rows, cols,
                     name_of(solver));
}

bool reads_once(const AskedChoices& asked, const ProductShape& shape, GridShape grid) {
  if (asked.solver != Solver::cgls) return false;
  if (asked.one_pass != "auto") return asked.one_pass == "on";
  return may_be_stationary_a(asked) && !asked.scaled && asked.on_host && !is_stored_in_columns(asked) &&
         one_pass_is_faster(first_batch(Algorithm::stationary_a, shape, grid, asked.batch), grid);
}

Algorithm algorithm_for(const AskedChoices& asked, bool one_pass) {
  return one_pass || asked.solver == Solver::block_cgls ? Algorithm::stationary_a : asked.algorithm;
}

PlannedIteration planned_iteration(const AskedChoices& asked, const ProductShape& shape, Algorithm algorithm,
                                   bool one_pass, GridShape grid) {
  return {asked.solver, one_pass, algorithm, first_batch(algorithm, shape, grid, asked.batch), asked.panel};
}

Storage storage_for(const AskedChoices& asked, const PlannedIteration& iteration, GridShape grid) {
  if (iteration.one_pass && asked.on_host) return Storage::packed;
  if (asked.storage) return *asked.storage;
  return asked.on_host ? faster_storage(iteration.algorithm, iteration.shape, grid) : Storage::columns;
}

}  // namespace gridlops::program
