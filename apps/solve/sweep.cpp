// SPDX-License-Identifier: BSD-3-Clause
#include "solve/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "command_line/console.hpp"
#include "command_line/file_checks.hpp"
#include "command_line/option_values.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/dist/dist_matrix.hpp"
#include "gridlops/io/text_file.hpp"

namespace gridlops::program {

namespace {

/// These columns of X, however X is cut.
template <Scalar T>
DistMatrix<T> slice(DistMatrix<T>& X, Range wanted) {
  const Partition& columns = X.layout().cols.partition;
  std::vector<Index> first, sizes;
  for (int part = 0; part < columns.parts(); ++part) {
    const auto in_part = [&](Index column) {
      return std::clamp<Index>(column - columns.begin(part), 0, columns.size(part));
    };
    first.push_back(in_part(wanted.begin));
    sizes.push_back(in_part(wanted.begin + wanted.size) - first.back());
  }
  return X.column_slice(first, Partition::with_sizes(sizes));
}

/// The columns after those of the dampings: they hold the random vector.
template <Scalar T>
DistMatrix<T> probes(const Sweep& sweep, DistMatrix<T>& X) {
  const auto count = static_cast<Index>(sweep.damps.size());
  return slice(X, {count, X.cols() - count});
}

}  // namespace

Index Sweep::columns(Index in_file) const {
  if (chooses_each) return in_file;
  const Index all = damps.empty() ? in_file : static_cast<Index>(damps.size());
  return has_probes ? 2 * all : all;
}

std::vector<double> Sweep::of_all_columns(std::vector<double> values) const {
  const auto count = static_cast<std::ptrdiff_t>(values.size());
  if (!has_probes) return values;
  values.resize(2 * values.size());
  std::copy_n(values.begin(), count, values.begin() + count);
  return values;
}

std::vector<double> SweepOfEach::damps() const {
  std::vector<double> damps;
  for (const DampingCurve& curve : curves) {
    const auto by_damp = [](const CurvePoint& a, const CurvePoint& b) { return a.damp < b.damp; };
    damps.push_back(curve.chosen ? curve.points[static_cast<std::size_t>(*curve.chosen)].damp
                                 : std::min_element(curve.points.begin(), curve.points.end(), by_damp)->damp);
  }
  return damps;
}

std::vector<Index> SweepOfEach::without_choice() const {
  std::vector<Index> columns;
  for (std::size_t j = 0; j < curves.size(); ++j)
    if (!curves[j].chosen) columns.push_back(static_cast<Index>(j));
  return columns;
}

std::optional<std::vector<double>> damping_range(const std::string& text) {
  const std::size_t first = text.find(':'), second = text.find(':', first + 1);
  if (first == std::string::npos || text.ends_with(".npy") || !place_of_array(text).dataset.empty())
    return std::nullopt;
  if (second == std::string::npos)
    throw UsageError(fmt::format("'{}' is no range D1:D2:N: it lacks the number of dampings", text));
  const double low = number(text.substr(0, first), 0),
               high = number(text.substr(first + 1, second - first - 1), 0);
  const Index count = whole_number(text.substr(second + 1), 2, 100000);
  if (low == 0 || high == 0)
    throw UsageError(
        fmt::format("'{}' is logarithmic, and cannot begin or end at 0; a file of dampings can", text));
  std::vector<double> damps;
  for (Index k = 0; k < count; ++k)
    damps.push_back(low * std::pow(high / low, static_cast<double>(k) / static_cast<double>(count - 1)));
  damps.back() = high;
  return damps;
}

Sweep plan_sweep(Communicator& world, const SolveArguments& arguments, Index nrhs) {
  const SweepArguments& asked = arguments.sweep;
  Sweep sweep;
  if (asked.damps.empty()) return sweep;
  const auto range = damping_range(asked.damps);
  sweep.damps = range ? *range : read_vector(world, asked.damps, "a damping", "dampings");
  sweep.chooses_each = asked.chooses_each();
  sweep.in_space = asked.in_space();
  sweep.leaves_rest = asked.leaves_rest();
  if (sweep.chooses_each) return sweep;
  const auto count = static_cast<Index>(sweep.damps.size());
  if (nrhs != 1 && nrhs != count) {
    throw InputError(fmt::format(
        "{} dampings were given, but {} has {} right-hand sides: it must have one, to be solved with "
        "every damping, or one for each",
        count, arguments.rhs, nrhs));
  }
  if (nrhs != 1 && asked.rule != DampingRule::none) {
    throw InputError(
        fmt::format("--choose takes one right-hand side, to be solved with every damping, but {} has {}",
                    arguments.rhs, nrhs));
  }
  sweep.copies = nrhs == 1;
  sweep.has_probes = asked.rule == DampingRule::gcv;
  return sweep;
}

template <Scalar T>
void read_columns(const Sweep& sweep, const std::string& path, const MatrixHeader& header, DistMatrix<T>& X) {
  const Index count = sweep.copies ? static_cast<Index>(sweep.damps.size()) : X.cols();
  if (header.cols == X.cols()) return read_matrix(path, header, X);
  const Partition& columns = X.layout().cols.partition;
  for (int part = 0; part < columns.parts(); ++part) {
    const Index begin = columns.begin(part), end = std::min(begin + columns.size(part), count);
    if (begin >= end) continue;
    DistMatrix<T> first = slice(X, {begin, 1});
    read_matrix(path, header, first);
    for (Index j = begin + 1; j < end; ++j) {
      DistMatrix<T> next = slice(X, {j, 1});
      copy(first, next);
    }
  }
  if (sweep.has_probes) probes(sweep, X).set_zero();
}

template <Scalar T>
void draw_probes(const Sweep& sweep, DistMatrix<T>& B) {
  if (sweep.has_probes)
    probes(sweep, B).fill([](Index i, Index) { return T(static_cast<Real<T>>(gcv_probe(i))); });
}

Range saved_columns(const SweepArguments& arguments, const DampingCurve& curve) {
  if (arguments.save == "chosen" && curve.chosen) return {*curve.chosen, 1};
  return {0, static_cast<Index>(curve.points.size())};
}

template <Scalar T>
void write_columns(const std::string& name, Range columns, int dimensions, const std::string& like,
                   DistMatrix<T>& X) {
  write_matrix(name, slice(X, columns), columns.size == 1 ? dimensions : 2, like);
}

const char* merit_name(DampingRule rule) {
  return rule == DampingRule::lcurve ? "curvature" : rule == DampingRule::gcv ? "gcv" : "";
}

std::string curve_text(const DampingCurve& curve) {
  const std::string merit = merit_name(curve.rule);
  std::string text = fmt::format("{:>12}  {:>12}  {:>12}", "D", "|B - A X|", "|X|");
  if (!merit.empty()) text += fmt::format("  {:>12}", merit);
  text += "  verdict\n";
  for (std::size_t k = 0; k < curve.points.size(); ++k) {
    const CurvePoint& point = curve.points[k];
    text += fmt::format("{:>12.4e}  {:>12.4e}  {:>12.4e}", point.damp, point.residual_norm, point.x_norm);
    if (!merit.empty())
      text += fmt::format("  {:>12}", std::isnan(point.merit) ? "-" : fmt::format("{:.4e}", point.merit));
    const bool is_chosen = curve.chosen == static_cast<Index>(k);
    text += fmt::format("  {}{}\n", name_of(point.reason),
                        is_chosen ? fmt::format(", chosen by {}", name_of(curve.rule)) : "");
  }
  return text;
}

namespace {

/// The lines of a curve as CSV, each after `begin`.
std::string rows_of(const DampingCurve& curve, bool bounds_errors, const std::string& begin) {
  std::string rows;
  for (std::size_t k = 0; k < curve.points.size(); ++k) {
    const CurvePoint& point = curve.points[k];
    rows += begin + fmt::format("{},{},{},{},{}", point.damp, point.residual_norm, point.x_norm,
                                name_of(point.reason), curve.chosen == static_cast<Index>(k) ? 1 : 0);
    if (*merit_name(curve.rule) != 0) rows += fmt::format(",{}", point.merit);
    if (bounds_errors) rows += fmt::format(",{}", point.error_bound);
    rows += "\n";
  }
  return rows;
}

std::string heading_of(DampingRule rule, bool bounds_errors) {
  const std::string merit = merit_name(rule);
  return "damp,residual_norm,x_norm,reason,chosen" + (merit.empty() ? "" : "," + merit) +
         (bounds_errors ? ",error_bound\n" : "\n");
}

/// Rank 0 writes the text (collective). Throws OutputError on all ranks.
void write_on_root(Communicator& world, const std::string& path, const std::function<std::string()>& text) {
  if (path.empty()) return;
  attempt(world, [&] {
    if (world.rank() != 0) return;
    std::string rows = text();
    write_text_file(path, [&rows] { return std::exchange(rows, {}); });
  });
}

/// Says what --sweep auto left to the solver, and why; empty otherwise.
std::string rest_text(const SolveArguments& arguments, const SweptSpace& space) {
  if (!arguments.sweep.leaves_rest()) return "";
  const std::size_t pairs = space.rest.columns.size();
  if (pairs == 0) return "it has the solutions of all pairs of right-hand side and damping\n";
  return fmt::format(
      "{}cgls solved the other {} pairs of right-hand side and damping, in {} iterations at most\n",
      space.end == SpaceEnd::cost_limit
          ? "a step more would have cost more than cgls of all pairs after as many iterations; "
          : "",
      pairs, space.rest.iterations);
}

/// A line about the space or the factor of all right-hand sides and dampings.
std::string shared_text(const SolveArguments& arguments, const SweepOfEach& sweep) {
  if (sweep.space)
    return fmt::format("one space of {} vectors, from products with {} columns: {}\n{}",
                       sweep.space->dimension, sweep.space->products, name_of(sweep.space->end),
                       rest_text(arguments, *sweep.space));
  if (!sweep.factor) return "";
  return fmt::format(
      "one factor of rank {}, from {}; its condition number is {:.2g} at the smallest damping\n",
      sweep.factor->rank,
      sweep.factor->by_qr     ? "QR of A"
      : sweep.factor->of_data ? "eigenvectors of A A^H"
                              : "eigenvectors of A^H A",
      sweep.factor->condition);
}

}  // namespace

void tell_curves(Communicator& world, const SolveArguments& arguments, const SweepOfEach& sweep) {
  if (world.rank() == 0) {
    std::vector<double> damps = sweep.damps();
    std::sort(damps.begin(), damps.end());
    if (!arguments.quiet && !damps.empty())
      print(shared_text(arguments, sweep) +
            fmt::format("dampings chosen by {}: from {:.4g} to {:.4g}, half of them at most {:.4g}\n",
                        name_of(arguments.sweep.rule), damps.front(), damps.back(), damps[damps.size() / 2]));
    if (const std::vector<Index> without = sweep.without_choice(); !without.empty())
      warn(fmt::format(
          "no damping was chosen for {} of {} right-hand sides, which have the smallest; the first is "
          "column {}: {}",
          without.size(), sweep.curves.size(), without.front(),
          sweep.curves[static_cast<std::size_t>(without.front())].remark));
    const auto is_doubtful = [](const DampingCurve& curve) { return curve.chosen && !curve.remark.empty(); };
    if (const auto first = std::find_if(sweep.curves.begin(), sweep.curves.end(), is_doubtful);
        first != sweep.curves.end())
      warn(fmt::format(
          "--choose {} chose the damping {:.4g} for column {}: {}; {} of {} right-hand sides have "
          "such a choice",
          name_of(first->rule), first->points[static_cast<std::size_t>(*first->chosen)].damp,
          first - sweep.curves.begin(), first->remark, std::count_if(first, sweep.curves.end(), is_doubtful),
          sweep.curves.size()));
  }
  write_on_root(world, arguments.sweep.curve, [&] {
    const bool bounds_errors = arguments.bounds_errors() && sweep.space;
    std::string rows = "column," + heading_of(arguments.sweep.rule, bounds_errors);
    for (std::size_t j = 0; j < sweep.curves.size(); ++j)
      rows += rows_of(sweep.curves[j], bounds_errors, fmt::format("{},", j));
    return rows;
  });
}

void tell_curve(Communicator& world, const SolveArguments& arguments, const DampingCurve& curve) {
  if (world.rank() == 0) {
    if (!arguments.quiet) print(curve_text(curve));
    if (curve.lacks_choice()) {
      warn(fmt::format("no damping was chosen: {}; {} has the solutions with all of them", curve.remark,
                       arguments.output));
    } else if (!curve.remark.empty()) {
      warn(fmt::format("--choose {} chose the damping {:.4g}: {}", name_of(curve.rule),
                       curve.points[static_cast<std::size_t>(*curve.chosen)].damp, curve.remark));
    }
  }
  write_on_root(world, arguments.sweep.curve, [&] {
    return heading_of(curve.rule, arguments.bounds_errors()) + rows_of(curve, arguments.bounds_errors(), "");
  });
}

std::string damps_file(const SweepArguments& arguments) {
  return arguments.damps.empty() || damping_range(arguments.damps) ? "" : arguments.damps;
}

#define GRIDLOPS_INSTANTIATE(T)                                                                      \
  template void read_columns(const Sweep&, const std::string&, const MatrixHeader&, DistMatrix<T>&); \
  template void draw_probes(const Sweep&, DistMatrix<T>&);                                           \
  template void write_columns(const std::string&, Range, int, const std::string&, DistMatrix<T>&);
GRIDLOPS_INSTANTIATE(float)
GRIDLOPS_INSTANTIATE(double)
GRIDLOPS_INSTANTIATE(std::complex<float>)
GRIDLOPS_INSTANTIATE(std::complex<double>)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops::program
