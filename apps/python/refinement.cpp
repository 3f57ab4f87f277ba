// SPDX-License-Identifier: BSD-3-Clause
#include <vector>

#include "gridlops/solve/refined_solver.hpp"
#include "native.hpp"
#include "reports.hpp"

namespace gridlops::python {
namespace {

py::dict account_of(const RefinedReport& report) {
  std::vector<Index> inner_iterations;
  std::vector<double> contractions, cgls_iterations, needed_contractions;
  std::vector<bool> refused;
  for (const RefinedColumn& column : report.columns) {
    inner_iterations.push_back(column.inner_iterations);
    contractions.push_back(column.contraction);
    cgls_iterations.push_back(column.cgls_iterations);
    needed_contractions.push_back(column.needed_contraction);
    refused.push_back(column.is_refused);
  }
  py::dict result;
  result["inner_iterations"] = inner_iterations;
  result["contractions"] = contractions;
  result["cgls_iterations"] = cgls_iterations;
  result["needed_contractions"] = needed_contractions;
  result["refused"] = refused;
  result["products_with_A"] = report.products_with_A;
  result["products_with_approximation"] = report.products_with_approximation;
  result["refusal"] = report.refusal;
  return result;
}

template <Scalar T>
void bind_refinement(py::module_ native) {
  using M = Matrix<T>;
  using A = Operator<T>;
  native.def("solve_refined",
             [](const A& a, const A& approximation, const M& B, M& X, const SolveOptions& common,
                Index inner_iterations, double cost_of_A, double cost_of_approximation) {
               const RefinedOptions options{common, inner_iterations, cost_of_A, cost_of_approximation};
               RefinedReport report;
               {
                 const py::gil_scoped_release release;
                 report = solve_refined<T>(*a.ptr, *approximation.ptr, B.matrix, X.output(), options);
               }
               py::dict result = dict_of(report.solve);
               result["refinement"] = account_of(report);
               return result;
             });
  native.def(
      "difference_norm",
      [](const A& a, const A& approximation, int steps) {
        return difference_norm<T>(a.ptr, approximation.ptr, steps);
      },
      py::call_guard<py::gil_scoped_release>());
}

}  // namespace

void bind_refinement(py::module_& native) {
  for_each_type(native, []<Scalar T>(py::module_ module) { bind_refinement<T>(module); });
}

}  // namespace gridlops::python
