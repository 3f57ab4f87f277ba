// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gridlops/io/npy.hpp"
#include "gridlops/solve/damping_curve.hpp"
#include "subcommands.hpp"

namespace gridlops::program {

/// The columns that a solve has beyond those of the file of B. Column j of a sweep has damping j; for GCV as
/// many columns follow, whose data are a random vector. The same on all ranks.
struct Sweep {
  std::vector<double> damps;  ///< empty: there is no sweep, and all columns are those of the file
  bool copies = false;        ///< all columns are copies of one right-hand side
  bool has_probes = false;

  explicit operator bool() const { return !damps.empty(); }
  /// How many columns are solved for, where the file has so many.
  Index columns(Index in_file) const;
  /// What all of them have, from what each damping has.
  std::vector<double> of_all_columns(std::vector<double> values) const;
};

/// The dampings of FIRST:LAST:COUNT, from FIRST to LAST by equal ratios; none if the text is a file's name.
/// Throws UsageError if the range is none.
std::optional<std::vector<double>> damping_range(const std::string& text);

/// Throws UsageError if a sweep was asked for that cannot be with the other arguments.
void check_sweep(const SolveArguments& arguments);

/// The dampings that were asked for: read from a file, or a range (collective). Throws InputError on all
/// ranks if they are none, or do not fit so many right-hand sides.
Sweep plan_sweep(Communicator& world, const SolveArguments& arguments, Index nrhs);

/// B or an initial guess ← the file, its one column as often as there are dampings if the sweep copies it
/// (collective over the grid). The columns behind become zero.
template <Scalar T>
void read_columns(const Sweep& sweep, const std::string& path, const NpyHeader& header, DistMatrix<T>& X);
/// The columns of B behind the dampings, if there are any ← a random vector of ±1. Not collective.
template <Scalar T>
void draw_probes(const Sweep& sweep, DistMatrix<T>& B);

/// The columns of the file of X if there is a curve: all dampings, or the chosen one.
Range saved_columns(const SweepArguments& arguments, const DampingCurve& curve);
/// Writes these columns (collective over the grid). dimensions: of the file of B, which one column gets, too.
template <Scalar T>
void write_columns(const std::string& path, Range columns, int dimensions, DistMatrix<T>& X);

/// What the rule compares: "curvature" or "gcv"; empty if it compares no such number.
const char* merit_name(DampingRule rule);

/// The curve as a table, a line for each damping, with the choice.
std::string curve_text(const DampingCurve& curve);

/// Writes the curve as CSV, unless the path is empty (collective). Throws OutputError on all ranks.
void write_curve(Communicator& world, const std::string& path, const DampingCurve& curve);

/// Prints the curve, warns of a choice that is missing or doubtful, and writes --curve (collective).
void tell_curve(Communicator& world, const SolveArguments& arguments, const DampingCurve& curve);

/// The file that the dampings are in; empty if they are a range.
std::string damps_file(const SweepArguments& arguments);

}  // namespace gridlops::program
