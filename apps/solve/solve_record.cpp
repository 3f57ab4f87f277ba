// SPDX-License-Identifier: BSD-3-Clause
#include "solve/solve_record.hpp"

#include <fmt/format.h>

#include <limits>

#include "gridlops/solve/spectrum.hpp"
#include "solve/column_figures.hpp"

namespace gridlops::program {

namespace {

using Json = nlohmann::ordered_json;

const char* penalty_of(Threshold threshold) {
  switch (threshold) {
    case Threshold::soft:
      return "|x|_1";
    case Threshold::hard:
      return "|x|_0";
    case Threshold::half:
      break;
  }
  return "sum sqrt|x| / 2";
}

std::string problem_of(const SolveTask& task) {
  switch (row_of(task.arguments.solver).problem) {
    case ProblemKind::hermitian:
      return "(A + D^2 I) x = b";
    case ProblemKind::sparse:
      return fmt::format("min |{}|^2 / 2 + lambda {}", task.arguments.weighs() ? "w o (A x - b)" : "A x - b",
                         penalty_of(task.arguments.options.threshold));
    case ProblemKind::least_squares:
      break;
  }
  if (task.arguments.reweighs())
    return fmt::format("min sum 2 s^2 {}(w o (A x - b) / s) + D^2 |x|^2", name_of(task.arguments.misfit));
  const bool is_bounded = row_of(task.arguments.solver).has(Feature::bounds);
  return fmt::format("min |{}|^2 + D^2 |x|^2{}", task.arguments.weighs() ? "w o (A x - b)" : "A x - b",
                     is_bounded ? " for l <= x <= u" : "");
}

std::vector<RunFile> files_of(const SolveTask& task, const Solved& solved) {
  const SolveArguments& arguments = task.arguments;
  const Index columns = solved.curve ? saved_columns(arguments.sweep, *solved.curve).size : task.shape.nrhs;
  const MatrixHeader solution{.type = task.shape.type,
                              .rows = task.shape.cols,
                              .cols = columns,
                              .dimensions = columns == 1 ? task.B.dimensions : 2};
  return {{"--matrix", arguments.product.matrix, task.A.header()},
          {"--certify", arguments.certify, task.A.header()},
          {"--rhs", arguments.rhs, task.B},
          {"--initial", arguments.initial, task.X0},
          {"--lower", task.lower ? arguments.lower : "", task.lower},
          {"--upper", task.upper ? arguments.upper : "", task.upper},
          {"--weights", arguments.weights, task.W},
          {"--damps", damps_file(arguments.sweep), {}},
          {"--tolerances", arguments.tolerances, {}},
          {"--output", arguments.output, solution},
          {"--variances", arguments.variances, solution},
          {"--history", arguments.history, {}},
          {"--curve", arguments.sweep.curve, {}}};
}

Json json_of(const DampingCurve& curve) {
  const double damp = curve.chosen ? curve.points[static_cast<std::size_t>(*curve.chosen)].damp : 0;
  return {{"dampings", curve.points.size()},
          {"chosen", curve.chosen ? Json(*curve.chosen) : Json()},
          {"damp", curve.chosen ? Json(damp) : Json()},
          {"remark", curve.remark}};
}

Json json_of(const SweptSpace& space, bool leaves_rest) {
  Json json{{"dimension", space.dimension}, {"products", space.products}, {"end", name_of(space.end)}};
  if (leaves_rest) {
    Index products = 0;
    for (const ColumnReport& pair : space.rest.columns) products += 2 * pair.iterations;
    json["rest"] = {{"pairs", space.rest.columns.size()}, {"products", products}};
  }
  return json;
}

Json json_of(const SweepOfEach& solved, const Sweep& sweep) {
  Json chosen = Json::array();
  for (const DampingCurve& curve : solved.curves)
    chosen.push_back(curve.chosen ? Json(*curve.chosen) : Json());
  Json json{{"dampings", sweep.damps.size()}, {"chosen", chosen}};
  if (solved.space) json["space"] = json_of(*solved.space, sweep.leaves_rest);
  if (solved.factor)
    json["factor"] = {{"rank", solved.factor->rank},
                      {"by_qr", solved.factor->by_qr},
                      {"condition", solved.factor->condition}};
  return json;
}

/// Returns the σ that was computed of A, if that was asked for, and the figures of the disks.
std::vector<std::pair<std::string, double>> figures_of(const SolveTask& task, const Solved& solved) {
  std::vector<std::pair<std::string, double>> figures;
  if (!task.arguments.sigma_min_way.empty()) figures.emplace_back("sigma_min", solved.sigma_min);
  if (task.arguments.holes == "nan") figures.emplace_back("holes", static_cast<double>(solved.holes));
  if (task.arguments.sketches()) {
    figures.emplace_back("sketch_rows", static_cast<double>(sketch_rows(task.shape.cols)));
    figures.emplace_back("sketch_failure", sketch_failure);
  }
  if (task.patience && solved.factored) {
    figures.emplace_back("direct_seconds_predicted", *task.patience);
    figures.emplace_back("first_solver_seconds", solved.factored->seconds);
    figures.emplace_back("first_solver_iterations", static_cast<double>(solved.factored->iterations));
  }
  if (solved.disk) {
    figures.emplace_back("disk_bytes", solved.disk->bytes);
    figures.emplace_back("disk_bytes_read", solved.disk->bytes_read);
    figures.emplace_back("disk_in_place", solved.disk->in_place ? 1 : 0);
    figures.emplace_back("disk_seconds_waited", solved.disk->seconds_waited);
    if (solved.disk->bytes_per_second > 0) figures.emplace_back("disk_rate", solved.disk->bytes_per_second);
  }
  return figures;
}

/// The facts of columns with a misfit.
void add_figures(const std::vector<RobustColumn>& columns, std::vector<ColumnFigure>& figures) {
  const auto add = [&](const char* name, auto fact) {
    std::vector<double> values;
    for (const RobustColumn& column : columns) values.push_back(static_cast<double>(column.*fact));
    figures.emplace_back(name, std::move(values));
  };
  add("misfit_scale", &RobustColumn::scale);
  add("misfit_solves", &RobustColumn::solves);
  add("misfit_rejected", &RobustColumn::rejected);
  add("misfit_distance", &RobustColumn::distance);
}

/// The computed figures, and each column's damping, merit and tolerance.
std::vector<ColumnFigure> column_figures_of(const SolveTask& task, const Solved& solved) {
  std::vector<ColumnFigure> figures = solved.column_figures;
  if (task.arguments.bounds_errors()) figures.emplace_back("error_bound", solved.error_bounds);
  if (!solved.robust.empty()) add_figures(solved.robust, figures);
  if (!task.tolerances.empty()) figures.emplace_back("tolerance", task.tolerances);
  if (solved.compressed)
    for (const ColumnFigure& figure : column_figures_of(*solved.compressed)) figures.push_back(figure);
  if (solved.sweep) {
    figures.emplace_back("damp", solved.cost.damp.values());
    return figures;
  }
  if (!solved.curve) return figures;
  figures.emplace_back("damp", solved.cost.damp.values());
  if (const std::string name = merit_name(solved.curve->rule); !name.empty()) {
    std::vector<double> merits(solved.cost.damp.values().size(), std::numeric_limits<double>::quiet_NaN());
    for (std::size_t k = 0; k < solved.curve->points.size(); ++k) merits[k] = solved.curve->points[k].merit;
    figures.emplace_back(name, merits);
  }
  return figures;
}

}  // namespace

RunFacts facts_of(const SolveTask& task, const Solved& solved) {
  const ProcessGrid& grid = *task.grid();
  const double seconds = task.A.modelled(iteration_seconds(task.iteration(), grid.shape(), task.machine));
  return {
      .command = "solve",
      .grid = grid.shape(),
      .shape = task.shape,
      .device = task.arguments.product.device,
      .transport = transport_of(grid),
      .product = RunFacts::Product{name_of(task.iteration().algorithm), name_of_storage(task.iteration())},
      .choices = task.choices,
      .prediction = RunFacts::Prediction{"iteration", task.machine_source, seconds},
      .figures = figures_of(task, solved),
      .column_figures = column_figures_of(task, solved),
      .problem = problem_of(task),
      .options = used_options(task, solved),
      .sweep = solved.curve   ? json_of(*solved.curve)
               : solved.sweep ? json_of(*solved.sweep, task.sweep)
                              : Json(),
      .compressed = solved.compressed ? json_of(task, *solved.compressed) : Json(),
      .files = files_of(task, solved),
      .hashes = task.arguments.product.hashes};
}

}  // namespace gridlops::program
