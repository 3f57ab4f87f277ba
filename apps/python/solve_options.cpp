// SPDX-License-Identifier: BSD-3-Clause
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <streambuf>
#include <string>
#include <vector>

#include "gridlops/solve/solve_observer.hpp"
#include "gridlops/solve/solve_options.hpp"
#include "gridlops/solve/sparse_solver.hpp"
#include "native.hpp"
#include "reports.hpp"

namespace gridlops::python {

Threshold threshold_of(const py::object& name) {
  return parse(name.cast<std::string>(), {Threshold::soft, Threshold::hard, Threshold::half}, "threshold");
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
void set(Threshold& field, const py::object& value) { field = threshold_of(value); }
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

}  // namespace

void bind_solve_options(py::module_& native) {
  bind_observers(native);
  bind_options(native);
}

}  // namespace gridlops::python
