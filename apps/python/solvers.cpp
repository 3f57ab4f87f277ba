// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gridlops/solve/error_bound.hpp"
#include "gridlops/solve/factor.hpp"
#include "gridlops/solve/inversion.hpp"
#include "gridlops/solve/proximal.hpp"
#include "gridlops/solve/robust.hpp"
#include "gridlops/solve/solver.hpp"
#include "gridlops/solve/sparse_solver.hpp"
#include "gridlops/solve/weights.hpp"
#include "native.hpp"
#include "reports.hpp"

namespace gridlops::python {

py::dict dict_of(const SolveReport& report) {
  py::dict result;
  result["solver"] = report.solver;
  result["iterations"] = report.iterations;
  std::vector<std::string> reasons;
  std::vector<Index> iterations;
  std::vector<double> residual, normal_residual, relative_normal_residual, norms, conditions, references,
      tested, quadratures;
  for (const ColumnReport& column : report.columns) {
    reasons.emplace_back(name_of(column.reason));
    iterations.push_back(column.iterations);
    residual.push_back(column.residual_norm);
    normal_residual.push_back(column.normal_residual_norm);
    relative_normal_residual.push_back(column.relative_normal_residual_norm);
    norms.push_back(column.operator_norm);
    conditions.push_back(column.condition);
    references.push_back(column.reference_norm);
    tested.push_back(column.tested_norm);
    quadratures.push_back(column.quadrature);
  }
  result["reasons"] = reasons;
  result["column_iterations"] = iterations;
  result["residual_norms"] = residual;
  result["normal_residual_norms"] = normal_residual;
  result["relative_normal_residual_norms"] = relative_normal_residual;
  result["operator_norms"] = norms;
  result["conditions"] = conditions;
  result["reference_norms"] = references;
  result["tested_norms"] = tested;
  result["quadratures"] = quadratures;
  result["sigma_min"] = report.sigma_min;
  result["weighted"] = report.weighted;
  result["step"] = report.step;
  result["lambdas"] = report.lambdas;
  py::list history, alarms;
  for (const IterationRecord& record : report.history) {
    py::dict entry;
    entry["iteration"] = record.iteration;
    entry["columns"] = record.columns;
    entry["residual_norms"] = record.residual_norms;
    entry["tested_norms"] = record.tested_norms;
    history.append(entry);
  }
  for (const GuardAlarm& alarm : report.alarms) {
    py::dict entry;
    entry["kind"] = alarm.kind == GuardAlarm::Kind::gap    ? "gap"
                    : alarm.kind == GuardAlarm::Kind::norm ? "norm"
                                                           : "non_finite";
    entry["iteration"] = alarm.iteration;
    entry["column"] = alarm.column;
    entry["found"] = alarm.found;
    entry["limit"] = alarm.limit;
    alarms.append(entry);
  }
  result["history"] = history;
  result["alarms"] = alarms;
  result["guard_products"] = report.guard_products;
  return result;
}

namespace {

/// A proximal operator, as Python holds it.
template <Scalar T>
struct Proximal {
  ProximalPtr<T> ptr;
};

/// The weights that a callable returns for the memory of |e|/s, as an array of as many doubles.
WeightFunction weights_by(py::object function) {
  return [kept = keep(std::move(function))](std::span<const double> t, std::span<double> weights) {
    const py::gil_scoped_acquire lock;
    const auto size = static_cast<py::ssize_t>(t.size());
    const py::buffer found = (*kept)(py::memoryview::from_buffer(t.data(), {size}, {sizeof(double)}));
    const py::buffer_info info = found.request();
    if (info.size != size || info.format != py::format_descriptor<double>::format())
      throw ShapeError("the weights of a misfit must be as many double numbers as there are residuals");
    std::copy_n(static_cast<const double*>(info.ptr), size, weights.begin());
  };
}

template <Scalar T>
void bind_solve(py::module_ native) {
  using M = Matrix<T>;
  using A = Operator<T>;
  native.def("solve", [](const std::string& solver, const A& a, const M& B, M& X, const SolveOptions& options,
                         const A* preconditioner, const A* sparsity, const Proximal<T>* penalty, M* variances,
                         const A* factor, const M* lower, const M* upper, const M* weights) {
    const auto pointer = [](const A* op) { return op == nullptr ? nullptr : op->ptr.get(); };
    const SolverOperands<T> operands{pointer(preconditioner),
                                     pointer(sparsity),
                                     penalty == nullptr ? nullptr : penalty->ptr,
                                     variances == nullptr ? nullptr : &variances->output(),
                                     dynamic_cast<const Factor<T>*>(pointer(factor)),
                                     lower == nullptr ? nullptr : &lower->matrix,
                                     upper == nullptr ? nullptr : &upper->matrix,
                                     weights == nullptr ? nullptr : &weights->matrix};
    return report_of([&] {
      return gridlops::solve<T>(parse_solver(solver), *a.ptr, B.matrix, X.output(), options, operands);
    });
  });
  native.def("robust_solve", [](const std::string& solver, const A& a, const M& B, M& X,
                                const SolveOptions& options, const A* preconditioner, const M* weights,
                                M* final_weights, const py::object& misfit, const py::object& scale) {
    RobustOptions robust;
    if (py::isinstance<py::str>(misfit)) {
      robust.misfit = parse(misfit.cast<std::string>(),
                            {Misfit::l2, Misfit::huber, Misfit::l1, Misfit::cauchy, Misfit::tukey}, "misfit");
    } else {
      robust.weights = weights_by(misfit);
    }
    if (!scale.is_none()) robust.scale = per_column(scale);
    SolverOperands<T> operands;
    if (preconditioner != nullptr) operands.preconditioner = preconditioner->ptr.get();
    RobustReport report;
    {
      const py::gil_scoped_release release;
      DistMatrix<T> W = allocate_matrix<T>(B.matrix.grid(), B.matrix.layout());
      if (weights == nullptr) W.fill([](Index, Index) { return T(1); });
      if (weights != nullptr) copy<T>(weights->matrix, W);
      report =
          robust_solve<T>(parse_solver(solver), *a.ptr, B.matrix, X.output(), W, robust, options, operands);
      if (final_weights != nullptr) copy<T>(W, final_weights->output());
    }
    py::dict result = dict_of(report.solve);
    const auto set = [&](const char* name, auto fact) {
      py::list values;
      for (const RobustColumn& column : report.columns) values.append(column.*fact);
      result[name] = values;
    };
    set("misfit_scales", &RobustColumn::scale);
    set("misfit_solves", &RobustColumn::solves);
    set("misfit_rejected", &RobustColumn::rejected);
    set("misfit_distances", &RobustColumn::distance);
    return result;
  });
  native.def("mark_holes", [](const M& B, M& W) {
    const py::gil_scoped_release release;
    return mark_holes<T>(B.matrix, W.output());
  });
}

template <Scalar T>
void bind_error_bounds(py::module_ native) {
  native.def("error_bounds",
             [](const std::string& solver, const std::vector<double>& residual_norms,
                const std::vector<double>& relative_gradient_norms, const std::vector<double>& tested_norms,
                const std::vector<double>& quadratures, double sigma_min_of_solve, bool weighted,
                const Matrix<T>& B, const Matrix<T>& X, std::vector<double> damp, double sigma_min,
                double norm_A, bool is_definite, double difference_norm, const Matrix<T>* weights) {
               SolveReport report;
               report.solver = solver;
               report.sigma_min = sigma_min_of_solve;
               report.weighted = weighted;
               for (std::size_t j = 0; j < residual_norms.size(); ++j)
                 report.columns.push_back({.residual_norm = residual_norms[j],
                                           .relative_normal_residual_norm = relative_gradient_norms.at(j),
                                           .tested_norm = tested_norms.at(j),
                                           .quadrature = quadratures.at(j)});
               const py::gil_scoped_release release;
               ErrorBoundOptions known{std::move(damp), sigma_min, norm_A, is_definite, difference_norm};
               if (weights == nullptr) return error_bounds<T>(report, B.matrix, X.matrix, known);
               DistMatrix<T> weighted_B = allocate_matrix<T>(B.matrix.grid(), B.matrix.layout());
               copy<T>(B.matrix, weighted_B);
               known.weights = weigh<T>(weights->matrix, weighted_B);
               return error_bounds<T>(report, weighted_B, X.matrix, known);
             });
  native.def(
      "frobenius_norm", [](const Matrix<T>& A) { return frobenius_norm<T>(A.matrix); },
      py::call_guard<py::gil_scoped_release>());
}

template <Scalar T>
void bind_penalties(py::module_ native) {
  using M = Matrix<T>;
  using A = Operator<T>;
  using P = Proximal<T>;
  using Column = std::shared_ptr<M>;  // null: none
  py::class_<P> proximal(native, "Proximal");
  proximal.def("value", [](const P& f, const M& X) {
    const py::gil_scoped_release release;
    return value(*f.ptr, X.matrix).values();
  });
  proximal.def("prox", [](const P& f, const std::vector<double>& tau, M& X) {
    const py::gil_scoped_release release;
    f.ptr->prox(ColumnScalars(tau), X.output());
  });
  proximal.def("prox_of_conjugate", [](const P& f, const std::vector<double>& tau, M& X, M& W) {
    const py::gil_scoped_release release;
    prox_of_conjugate(*f.ptr, ColumnScalars(tau), X.output(), W.output());
  });
  native.def("threshold_penalty", [](const py::object& kind, double sigma) {
    return P{threshold_penalty<T>(threshold_of(kind), sigma)};
  });
  native.def("box", [](double lower, double upper) { return P{box<T>(lower, upper)}; });
  native.def("l21_norm",
             [](const std::vector<Space>& stack, double sigma) { return P{l21_norm<T>(stack, sigma)}; });
  native.def("l21_norm_along", [](const Space& space, int dim, double sigma) {
    return P{l21_norm_along<T>(space, dim, sigma)};
  });
  const auto shared = [](const Column& column) { return column ? share<T>(column) : DistMatrix<T>(); };
  native.def("quadratic", [shared](double rho, const Column& a) {
    return P{keep_alive(quadratic<T>(rho, shared(a)), a)};
  });
  native.def("postcompose", [shared](const P& f, double sigma, double rho, const Column& a) {
    return P{keep_alive(postcompose<T>(f.ptr, sigma, rho, shared(a)), a)};
  });
  native.def("precompose", [shared](const P& f, double s, const Column& t) {
    return P{keep_alive(precompose<T>(f.ptr, s, shared(t)), t)};
  });
  native.def("precompose_orthogonal",
             [](const P& f, const A& a, double c) { return P{precompose<T>(f.ptr, a.ptr, c)}; });
  native.def("separable_sum", [](const std::vector<Space>& spaces, const std::vector<P>& parts) {
    std::vector<ProximalPtr<T>> pointers;
    for (const P& f : parts) pointers.push_back(f.ptr);
    return P{separable_sum<T>(spaces, std::move(pointers))};
  });
  native.def("primal_dual", [](const A& k, const P& f, const P& g, const M& B, M& X,
                               const SolveOptions& common, const std::optional<double>& tau,
                               const std::optional<double>& sigma, double theta, bool dual_guess, M* Y) {
    const PrimalDualOptions options{common, tau, sigma, theta, dual_guess};
    return report_of([&] {
      return primal_dual<T>(k.ptr, f.ptr, g.ptr, B.matrix, X.output(), options,
                            Y == nullptr ? nullptr : &Y->output());
    });
  });
  native.def("admm",
             [](const A& a, const A& l, const Proximal<T>& g, const M& B, M& X, const SolveOptions& common,
                double tau, Index inner_iterations, double inner_tolerance) {
               const AdmmOptions options{common, tau, inner_iterations, inner_tolerance};
               return report_of([&] { return admm<T>(a.ptr, l.ptr, g.ptr, B.matrix, X.output(), options); });
             });
}

template <Scalar T>
std::vector<Regularizer<T>> regularizers_of(
    const std::vector<std::tuple<Operator<T>, double, const Matrix<T>*>>& terms) {
  std::vector<Regularizer<T>> result;
  for (const auto& [R, epsilon, data] : terms) {
    result.push_back({R.ptr, epsilon, data == nullptr ? nullptr : &data->matrix});
  }
  return result;
}

template <Scalar T>
void bind_inversion(py::module_ native) {
  using M = Matrix<T>;
  using A = Operator<T>;
  using Terms = std::vector<std::tuple<A, double, const M*>>;
  native.def("normal_equations_inversion", [](const A& a, const M& B, M& X, const A* weight,
                                              const Terms& terms, const SolveOptions& options) {
    const NormalEquationsTerms<T> all{
        weight == nullptr ? nullptr : weight->ptr, regularizers_of<T>(terms), {}};
    return report_of(
        [&] { return normal_equations_inversion<T>(a.ptr, B.matrix, X.output(), all, options); });
  });
  native.def("regularized_inversion", [](const A& a, const M& B, M& X, const A* weight, const Terms& terms,
                                         const std::string& solver, const SolveOptions& options) {
    const RegularizedTerms<T> all{weight == nullptr ? nullptr : weight->ptr, regularizers_of<T>(terms),
                                  parse_solver(solver)};
    return report_of([&] { return regularized_inversion<T>(a.ptr, B.matrix, X.output(), all, options); });
  });
  native.def("preconditioned_inversion", [](const A& a, const M& B, M& X, const A& p,
                                            const std::string& solver, bool damps_x,
                                            const SolveOptions& options) {
    const Preconditioning<T> how{p.ptr, parse_solver(solver), damps_x};
    return report_of([&] { return preconditioned_inversion<T>(a.ptr, B.matrix, X.output(), how, options); });
  });
}

template <Scalar T>
void bind_solvers_of_type(py::module_ native) {
  bind_solve<T>(native);
  bind_error_bounds<T>(native);
  bind_penalties<T>(native);
  bind_inversion<T>(native);
}

}  // namespace

void bind_solvers(py::module_& native) {
  native.def("solver_names", [] {
    std::vector<std::string> names;
    for (const SolverRow& row : solver_rows) names.emplace_back(row.name);
    return names;
  });
  std::vector<std::string> hermitian;
  for (const SolverRow& row : solver_rows)
    if (row.problem == ProblemKind::hermitian) hermitian.emplace_back(row.name);
  native.attr("hermitian_solvers") = hermitian;
  bind_solve_options(native);
  for_each_type(native, []<Scalar T>(py::module_ module) { bind_solvers_of_type<T>(module); });
}

}  // namespace gridlops::python
