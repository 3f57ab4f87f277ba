// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "comm/failure/failure.hpp"
#include "gridlops/solve/solve_options.hpp"

namespace gridlops {

/// Adds all options of the table, and those of checkpoints, to an agreement.
void describe_options(Agreement& agreement, const SolveOptions& options);
void describe_options(Agreement& agreement, const CheckpointOptions& options);

/// Throws UsageError or ShapeError if a method with these features does not take an option that is given, or
/// if an option has an invalid value.
void check_options(const char* method, Feature features, const SolveOptions& options, Index nrhs);

/// Throws UsageError if the intervals of checkpoints are none.
void check_options(const CheckpointOptions& options);

/// Throws UsageError if errors are to be tested, and nothing bounds them for an operator of this shape.
void check_error_options(const SolveOptions& options, Index rows, Index cols);

/// The fixed options that a checkpoint stores as words because they are not numbers, with their values; only
/// those that these features allow.
std::string fixed_words(Feature features, const SolveOptions& options);

/// A fixed option that a checkpoint stores as numbers: none, one, or one per column.
struct FixedNumbers {
  const char* name;
  std::vector<double> values;
};
/// The options of this kind that these features allow, for `nrhs` columns.
std::vector<FixedNumbers> fixed_numbers(Feature features, const SolveOptions& options, Index nrhs);
/// Sets such an option to the values from a checkpoint.
void set_fixed_numbers(const FixedNumbers& option, SolveOptions& options);

}  // namespace gridlops
