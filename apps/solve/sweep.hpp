// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gridlops/io/array_file.hpp"
#include "gridlops/solve/damping_curve.hpp"
#include "gridlops/solve/factor.hpp"
#include "gridlops/solve/solution_space.hpp"
#include "solve/task/solve_arguments.hpp"

namespace gridlops::program {

/// The columns of a solve beyond those in the file of B. Column j of a sweep has damping j. For GCV the same
/// number of columns follows, whose data are a random vector. A Sweep is the same on all ranks.
struct Sweep {
  std::vector<double> damps;  ///< empty: there is no sweep, and all columns are those of the file
  bool chooses_each = false;  ///< each column of the file is solved with all dampings, and has one solution
  bool in_space = false;      ///< those have one space
  bool leaves_rest = false;   ///< the space may leave some, which the solver then solves
  bool copies = false;        ///< all columns are copies of one right-hand side
  bool has_probes = false;

  explicit operator bool() const { return !damps.empty(); }
  /// The number of columns to solve for, if the file has this many.
  Index columns(Index in_file) const;
  /// The values of all columns, from one value for each damping.
  std::vector<double> of_all_columns(std::vector<double> values) const;
};

/// The space of a sweep.
struct SweptSpace {
  Index dimension = 0, products = 0;
  SpaceEnd end = SpaceEnd::converged;
  SolveReport rest{};  ///< of the pairs of right-hand side and damping that the space left
};

/// The result of a sweep that chooses for each right-hand side, the same on every rank of the grid.
struct SweepOfEach {
  std::vector<DampingCurve> curves{};  ///< of each right-hand side
  std::optional<SweptSpace> space{};
  std::optional<FactorFacts> factor{};

  /// The chosen damping of each right-hand side; the smallest if none was chosen.
  std::vector<double> damps() const;
  /// The right-hand sides without a choice.
  std::vector<Index> without_choice() const;
};

/// The dampings of FIRST:LAST:COUNT, from FIRST to LAST in equal ratios; none if the text is a file's name.
/// Throws UsageError if the range is invalid.
std::optional<std::vector<double>> damping_range(const std::string& text);

/// The requested dampings, from a file or a range (collective). Throws InputError on all ranks if they are
/// not dampings, or do not fit this many right-hand sides.
Sweep plan_sweep(Communicator& world, const SolveArguments& arguments, Index nrhs);

/// B, weights or an initial guess ← the file, or copies of its one column, in a sweep once for each damping
/// (collective over the grid). The columns after these become zero.
template <Scalar T>
void read_columns(const Sweep& sweep, const std::string& path, const MatrixHeader& header, DistMatrix<T>& X);
/// The columns of B after the dampings' columns, if any ← a random vector of ±1. Not collective.
template <Scalar T>
void draw_probes(const Sweep& sweep, DistMatrix<T>& B);

/// The columns in the file of X if there is a curve: those of all dampings, or of the chosen one.
Range saved_columns(const SweepArguments& arguments, const DampingCurve& curve);
/// Writes these columns (collective over the grid). dimensions: of B; a single column gets them, too. like:
/// the name of B, whose attributes they get.
template <Scalar T>
void write_columns(const std::string& name, Range columns, int dimensions, const std::string& like,
                   DistMatrix<T>& X);

/// The number that the rule compares: "curvature" or "gcv"; empty if it compares neither.
const char* merit_name(DampingRule rule);

/// The curve as a table, one line per damping, with the choice.
std::string curve_text(const DampingCurve& curve);

/// Prints the curve, warns if the choice is missing or doubtful, and writes --curve (collective).
void tell_curve(Communicator& world, const SolveArguments& arguments, const DampingCurve& curve);

/// For a sweep that chooses for each right-hand side, prints a summary, warns of those whose choice is
/// missing or doubtful, and writes --curve with the curves of all.
void tell_curves(Communicator& world, const SolveArguments& arguments, const SweepOfEach& sweep);

/// The file that contains the dampings; empty if they are a range.
std::string damps_file(const SweepArguments& arguments);

}  // namespace gridlops::program
