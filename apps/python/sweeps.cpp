// SPDX-License-Identifier: BSD-3-Clause
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gridlops/solve/damping_curve.hpp"
#include "gridlops/solve/solution_space.hpp"
#include "gridlops/solve/spectral_factor.hpp"
#include "native.hpp"
#include "reports.hpp"

namespace gridlops::python {
namespace {

DampingRule parse_rule(const std::string& name) {
  using enum DampingRule;
  return parse(name, {none, lcurve, discrepancy, gcv}, "rule for dampings");
}

/// The parts of a report that damping_curve() needs.
SolveReport report_with(const std::vector<double>& residual_norms, const std::vector<std::string>& reasons) {
  using enum StopReason;
  SolveReport report;
  for (const std::string& name : reasons) {
    ColumnReport& column = report.columns.emplace_back();
    column.reason = parse(
        name,
        {converged, stagnated, iteration_limit, condition_limit, user_stop, breakdown, non_finite, corrupted},
        "verdict");
    column.residual_norm = residual_norms.at(report.columns.size() - 1);
  }
  return report;
}

py::dict dict_of(const DampingCurve& curve) {
  std::vector<double> damps, residual_norms, x_norms, merits, error_bounds;
  std::vector<std::string> reasons;
  for (const CurvePoint& point : curve.points) {
    damps.push_back(point.damp);
    residual_norms.push_back(point.residual_norm);
    x_norms.push_back(point.x_norm);
    merits.push_back(point.merit);
    error_bounds.push_back(point.error_bound);
    reasons.emplace_back(name_of(point.reason));
  }
  py::dict result;
  result["rule"] = name_of(curve.rule);
  result["damps"] = damps;
  result["residual_norms"] = residual_norms;
  result["x_norms"] = x_norms;
  result["merits"] = merits;
  result["error_bounds"] = error_bounds;
  result["reasons"] = reasons;
  result["chosen"] = curve.chosen;
  result["remark"] = curve.remark;
  return result;
}

template <Scalar T>
void bind_damping_curve(py::module_ native) {
  native.def("damping_curve", [](const std::vector<double>& damps, const std::vector<double>& residual_norms,
                                 const std::vector<std::string>& reasons, const Matrix<T>& X,
                                 const std::string& rule, double noise) {
    const SolveReport report = report_with(residual_norms, reasons);
    const DampingRule chosen_by = parse_rule(rule);
    DampingCurve curve;
    {
      const py::gil_scoped_release release;
      curve = damping_curve<T>(damps, report, X.matrix, chosen_by, noise);
    }
    return dict_of(curve);
  });
}

py::list list_of(const std::vector<DampingCurve>& curves) {
  py::list list;
  for (const DampingCurve& curve : curves) list.append(dict_of(curve));
  return list;
}

template <Scalar T>
void bind_damping_curves(py::module_ native) {
  native.def("damping_curves", [](const Operator<T>& A, const Matrix<T>& B, const Operator<T>& factor,
                                  const std::vector<double>& damps, const std::string& rule,
                                  const py::object& noise, const SolveOptions& options) {
    const auto& of_all = dynamic_cast<const SpectralFactor<T>&>(*factor.ptr);
    const DampingRule chosen_by = parse_rule(rule);
    const PerColumn norms = per_column(noise);
    std::vector<DampingCurve> curves;
    {
      const py::gil_scoped_release release;
      curves = damping_curves<T>(*A.ptr, B.matrix, of_all, damps, chosen_by, norms, options);
    }
    return list_of(curves);
  });
}

template <Scalar T>
void bind_solution_space(py::module_ native) {
  using Bound = SolutionSpace<T>;
  py::class_<Bound>(native, "SolutionSpace")
      .def(py::init([](const Operator<T>& A, const Matrix<T>& B, std::vector<double> damps,
                       std::optional<double> tolerance, Index max_dimension, bool has_probe, bool limits_cost,
                       double product_cost, const CheckpointOptions& checkpoint) {
        const auto signal_came = [] {
          const py::gil_scoped_acquire lock;
          if (PyErr_CheckSignals() != 0) throw py::error_already_set();
          return false;
        };
        const py::gil_scoped_release release;
        return std::make_unique<Bound>(A.ptr, B.matrix,
                                       SpaceOptions{std::move(damps), tolerance, max_dimension, has_probe,
                                                    limits_cost, product_cost, signal_came, checkpoint});
      }))
      .def(py::init([](const Operator<T>& A, const std::string& directory) {
        const py::gil_scoped_release release;
        return std::make_unique<Bound>(A.ptr, directory);
      }))
      .def("save", &Bound::save, py::call_guard<py::gil_scoped_release>())
      .def_property_readonly("dimension", &Bound::dimension)
      .def_property_readonly("products", &Bound::products)
      .def_property_readonly("end", [](const Bound& space) { return name_of(space.end()); })
      .def("curves",
           [](const Bound& space, const std::string& rule, const py::object& noise, double sigma_min,
              double frobenius_norm) {
             return list_of(space.curves(parse_rule(rule), per_column(noise),
                                         {.sigma_min = sigma_min, .frobenius_norm = frobenius_norm}));
           })
      .def("solve_rest",
           [](Bound& space, const Matrix<T>& B, const SolveOptions& options) {
             return report_of([&] { return space.solve_rest(B.matrix, options); });
           })
      .def("solve",
           [](const Bound& space, const Matrix<T>& B, Matrix<T>& X, const SolveOptions& options) {
             return report_of([&] { return space.solve(B.matrix, X.output(), options); });
           })
      .def("solve_others",
           [](const Bound& space, const Matrix<T>& B, Matrix<T>& X, const SolveOptions& options) {
             return report_of([&] { return space.solve_others(B.matrix, X.output(), options); });
           });
}

}  // namespace

void bind_sweeps(py::module_& native) {
  native.def("gcv_probe", gcv_probe);
  for_each_type(native, []<Scalar T>(py::module_ module) {
    bind_damping_curve<T>(module);
    bind_damping_curves<T>(module);
    bind_solution_space<T>(module);
  });
}

}  // namespace gridlops::python
