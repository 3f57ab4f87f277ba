// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/solve/ridge.hpp"

#include <string>
#include <utility>
#include <vector>

#include "gridlops/comm/failure.hpp"
#include "native.hpp"
#include "reports.hpp"

namespace gridlops::python {
namespace {

py::dict dict_of(const RidgeReport& report, bool has_coefficients) {
  std::vector<double> alphas, scores, residual_norms, normal_residual_norms;
  std::vector<std::complex<double>> intercepts;
  std::vector<Index> chosen;
  std::vector<std::string> reasons;
  for (const RidgeColumn& column : report.columns) {
    alphas.push_back(column.alpha);
    scores.push_back(column.score);
    chosen.push_back(column.chosen);
    if (!has_coefficients) continue;
    intercepts.push_back(column.intercept);
    reasons.emplace_back(name_of(column.reason));
    residual_norms.push_back(column.residual_norm);
    normal_residual_norms.push_back(column.normal_residual_norm);
  }
  return py::dict(py::arg("alphas") = alphas, py::arg("chosen") = chosen, py::arg("best_scores") = scores,
                  py::arg("scores") = report.scores, py::arg("intercepts") = intercepts,
                  py::arg("reasons") = reasons, py::arg("residual_norms") = residual_norms,
                  py::arg("normal_residual_norms") = normal_residual_norms,
                  py::arg("at_smallest") = report.at_smallest, py::arg("at_largest") = report.at_largest,
                  py::arg("deciding_row") = report.deciding_row);
}

template <Scalar T>
void bind_ridge(py::module_& native) {
  native.def("ridge", [](const Operator<T>& A, const Matrix<T>& B, Matrix<T>* X, std::vector<double> alphas,
                         const std::string& validation, std::vector<Index> folds, std::vector<double> weights,
                         const std::string& score, std::vector<Index> groups, bool one_standard_error,
                         bool intercept, bool standardize, Index batch) {
    const RidgeOptions options{
        std::move(alphas),
        parse(validation,
              {RidgeValidation::none, RidgeValidation::folds, RidgeValidation::leave_one_out,
               RidgeValidation::gcv},
              "validation"),
        std::move(folds),
        std::move(weights),
        parse(score, {RidgeScore::r2, RidgeScore::correlation, RidgeScore::negative_mse}, "score"),
        std::move(groups),
        one_standard_error,
        intercept,
        standardize,
        batch};
    RidgeReport report;
    {
      const py::gil_scoped_release release;
      report = ridge<T>(*A.ptr, B.matrix, options, X == nullptr ? nullptr : &X->output());
    }
    return dict_of(report, X != nullptr);
  });
}

/// Calls read() on every rank, which returns whether coefficients are wanted. Raises on all ranks what one
/// raises, or UsageError if they disagree. Collective over the grid.
void agree_on_ridge(const GridPtr& grid, const py::function& read) {
  const py::gil_scoped_release release;
  agree(grid, "ridge", [&](Agreement& agreement) {
    const py::gil_scoped_acquire lock;
    agreement.on("coefficients", read().cast<bool>());
  });
}

}  // namespace

void bind_ridges(py::module_& native) {
  native.def("agree_on_ridge", agree_on_ridge);
  native.def("contiguous_folds", contiguous_folds);
  for_each_type(native, []<Scalar T>(py::module_ module) { bind_ridge<T>(module); });
}

}  // namespace gridlops::python
