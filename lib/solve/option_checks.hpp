// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "comm/failure/failure.hpp"
#include "gridlops/solve/solve_options.hpp"

namespace gridlops {

/// Names all options of the table to an agreement, and the directories of checkpoints.
void describe_options(Agreement& agreement, const SolveOptions& options);

/// Throws UsageError or ShapeError if a method with these features does not take an option that is given, or
/// if an option has an impossible value.
void check_options(const char* method, Feature features, const SolveOptions& options, Index nrhs);

/// The options, with their values in words, that a checkpoint fixes and keeps in words, since they are no
/// numbers: those that these features allow.
std::string fixed_words(Feature features, const SolveOptions& options);

/// An option that a checkpoint fixes and keeps as numbers: none, one, or one for each column.
struct FixedNumbers {
  const char* name;
  std::vector<double> values;
};
/// Those that these features allow, for `nrhs` columns.
std::vector<FixedNumbers> fixed_numbers(Feature features, const SolveOptions& options, Index nrhs);
/// Sets such an option to the values of a checkpoint.
void set_fixed_numbers(const FixedNumbers& option, SolveOptions& options);

}  // namespace gridlops
