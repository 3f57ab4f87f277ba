// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <streambuf>
#include <string>
#include <vector>

#include "gridlops/solve/error_bound.hpp"
#include "gridlops/solve/factor.hpp"
#include "gridlops/solve/inversion.hpp"
#include "gridlops/solve/proximal.hpp"
#include "gridlops/solve/robust.hpp"
#include "gridlops/solve/solve_observer.hpp"
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

/// The argument of a callback. The callback may query it only while it runs.
struct Iteration {
  const IterationInfo* info;

  const IterationInfo& now() const {
    if (info == nullptr)
      throw UsageError("an iteration can be asked only while the callback that got it runs");
    return *info;
  }
};

std::vector<double> copy_of(std::span<const double> values) { return {values.begin(), values.end()}; }

/// Notifies a Python object with methods start(dict), step(Iteration) and end(dict).
class PythonObserver final : public SolveObserver {
 public:
  explicit PythonObserver(py::object told) : told_(keep(std::move(told))) {}

  void start(const SolveStart& start) override {
    const py::gil_scoped_acquire lock;
    py::dict facts;
    facts["solver"] = start.solver;
    facts["rows"] = start.rows;
    facts["cols"] = start.cols;
    facts["nrhs"] = start.nrhs;
    facts["tolerance"] = start.tolerance;
    facts["damp"] = start.damp;
    facts["max_iterations"] = start.max_iterations;
    facts["rank"] = start.rank;
    told_->attr("start")(facts);
  }
  bool step(const IterationInfo& info) override {
    const py::gil_scoped_acquire lock;
    const auto iteration = std::make_shared<Iteration>(Iteration{&info});
    const Forget forget{*iteration};
    const py::object stop = told_->attr("step")(iteration);
    return py::bool_(stop);
  }
  void end(const SolveReport& report) override {
    const py::gil_scoped_acquire lock;
    told_->attr("end")(dict_of(report));
  }

 private:
  struct Forget {
    Iteration& iteration;
    ~Forget() { iteration.info = nullptr; }
  };
  std::shared_ptr<py::object> told_;
};

/// Lets Ctrl-C, and other signals that Python handles, end a solver within an iteration.
class SignalObserver final : public SolveObserver {
  bool step(const IterationInfo&) override {
    const py::gil_scoped_acquire lock;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    return false;
  }
};

/// Sends text to Python's sys.stdout, which need not be the process's standard output.
class PythonOutput final : public std::streambuf {
  int overflow(int character) override {
    if (character == traits_type::eof()) return 0;
    text_.push_back(static_cast<char>(character));
    if (character == '\n') sync();
    return character;
  }
  int sync() override {
    const py::gil_scoped_acquire lock;
    py::module_::import("sys").attr("stdout").attr("write")(text_);
    text_.clear();
    return 0;
  }
  std::string text_;
};

std::shared_ptr<SolveObserver> table_on_stdout(Index first, Index last, Index step) {
  struct Table {
    PythonOutput buffer;
    std::ostream out{&buffer};
    std::shared_ptr<SolveObserver> observer;
  };
  const auto table = std::make_shared<Table>();
  table->observer = print_table(table->out, {first, last, step});
  return {table, table->observer.get()};
}

/// Copies the model to a matrix of any type in Python.
void copy_iterate(const Iteration& iteration, const py::object& Y) {
  const py::object native = Y.attr("native");
  const auto copied_as = [&]<Scalar T>(T) {
    if (!py::isinstance<Matrix<T>>(native)) return false;
    iteration.now().iterate.copy_to<T>(native.cast<Matrix<T>&>().output());
    return true;
  };
  if (!copied_as(float()) && !copied_as(double()) && !copied_as(std::complex<float>()) &&
      !copied_as(std::complex<double>()))
    throw py::type_error("copy_to takes a Matrix");
}

void bind_observers(py::module_& native) {
  const py::class_<SolveObserver, std::shared_ptr<SolveObserver>> observer(native, "SolveObserver");
  native.def("print_table", table_on_stdout);
  native.def("watch_for_signals",
             []() -> std::shared_ptr<SolveObserver> { return std::make_shared<SignalObserver>(); });
  native.def("stop_at_cost_ratio", stop_at_cost_ratio);
  native.def("stop_on_non_finite", stop_on_non_finite);
  py::class_<Iteration, std::shared_ptr<Iteration>>(native, "Iteration")
      .def_property_readonly("iteration", [](const Iteration& it) { return it.now().iteration; })
      .def_property_readonly("at_start", [](const Iteration& it) { return it.now().at_start; })
      .def_property_readonly("active_columns", [](const Iteration& it) { return it.now().active_columns; })
      .def_property_readonly("residual_norms",
                             [](const Iteration& it) { return copy_of(it.now().residual_norms); })
      .def_property_readonly("tested_norms",
                             [](const Iteration& it) { return copy_of(it.now().tested_norms); })
      .def_property_readonly("residual_tests",
                             [](const Iteration& it) { return copy_of(it.now().residual_tests); })
      .def_property_readonly("gradient_tests",
                             [](const Iteration& it) { return copy_of(it.now().gradient_tests); })
      .def_property_readonly("x_norms", [](const Iteration& it) { return copy_of(it.now().x_norms); })
      .def("copy_to", copy_iterate);
}

template <class Value>
void set(Value& field, const py::object& value) {
  field = value.cast<Value>();
}
void set(PerColumn& field, const py::object& value) { field = per_column(value); }
void set(std::optional<PerColumn>& field, const py::object& value) {
  field = value.is_none() ? std::nullopt : std::optional(per_column(value));
}
/// Python passes a choice by its name.
template <class Choice>
void set_choice(Choice& field, const py::object& value, std::initializer_list<Choice> all, const char* what) {
  field = parse(value.cast<std::string>(), all, what);
}
void set(Threshold& field, const py::object& value) {
  set_choice(field, value, {Threshold::soft, Threshold::hard, Threshold::half}, "threshold");
}
void set(Acceleration& field, const py::object& value) {
  set_choice(field, value, {Acceleration::none, Acceleration::fista, Acceleration::vandenberghe},
             "acceleration");
}

/// Binds an option of the library's table. Python can set it, not read it.
template <class Value>
void bind_field(py::class_<SolveOptions>& bound, const char* name, Value SolveOptions::*field) {
  bound.def_property(name, nullptr, [field](SolveOptions& options, const py::object& value) {
    try {
      set(options.*field, value);
    } catch (const py::cast_error&) {
      throw py::type_error("an option cannot have a value of this type");
    }
  });
}

void bind_options(py::module_& native) {
  py::class_<CheckpointOptions>(native, "CheckpointOptions")
      .def(py::init<>())
      .def_readwrite("directory", &CheckpointOptions::directory)
      .def_readwrite("every_iterations", &CheckpointOptions::every_iterations)
      .def_readwrite("every_seconds", &CheckpointOptions::every_seconds)
      .def_readwrite("facts", &CheckpointOptions::facts)
      .def_readwrite("restart", &CheckpointOptions::restart)
      .def("set_requested", [](CheckpointOptions& options, py::object asked) {
        options.requested = [kept = keep(std::move(asked))] {
          const py::gil_scoped_acquire lock;
          return static_cast<bool>(py::bool_((*kept)()));
        };
      });
  py::class_<SolveOptions> bound(native, "SolveOptions");
  std::vector<std::string> fields;
  for_each_option([&](const SolverOption& option, auto field) {
    fields.emplace_back(option.field);
    bind_field(bound, option.field, field);
  });
  native.attr("SOLVE_OPTIONS") = fields;
  bound.def(py::init<>())
      .def_readwrite("record_history", &SolveOptions::record_history)
      .def_readwrite("checkpoint", &SolveOptions::checkpoint)
      .def("add_observer",
           [](SolveOptions& options, std::shared_ptr<SolveObserver> observer) {
             options.observers.push_back(std::move(observer));
           })
      .def("add_python_observer", [](SolveOptions& options, py::object told) {
        options.observers.push_back(std::make_shared<PythonObserver>(std::move(told)));
      });
}

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
    Threshold threshold{};
    set(threshold, kind);
    return P{threshold_penalty<T>(threshold, sigma)};
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
  bind_observers(native);
  bind_options(native);
  for_each_type(native, []<Scalar T>(py::module_ module) { bind_solvers_of_type<T>(module); });
}

}  // namespace gridlops::python
