// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "gridlops/ops/array_operators.hpp"
#include "gridlops/solve/proximal.hpp"
#include "subcommands.hpp"
#include "use_cases/impedance.hpp"
#include "use_cases/objective.hpp"
#include "use_cases/use_case.hpp"

namespace gridlops::program {

namespace {

struct ReflectivityArguments {
  UseCaseArguments common;
  ImpedanceArguments impedance;
  double sigma = 1e-2;
  std::optional<double> step;
};

/// Models are the true one, and the inverted one, whose memory has the impedance before.
template <Scalar T>
InversionMemory memory_of(const Impedance& impedance, const SolveBytes& solve,
                          const LinearOperator<T>& derivative, bool has_costs) {
  const Space& space = impedance.space();
  const Partition column = Partition::with_sizes({1});
  InversionMemory memory{.solve = solve,
                         .arrays = 3 * space.local_rows() * static_cast<Index>(sizeof(T)) + impedance.bytes(),
                         .otherwise = impedance.bytes_at_reading()};
  memory.solve.operators += derivative.kept_bytes(column);
  memory.solve.products = std::max(solve.products, derivative.scratch_bytes(ProductKind::forward, column));
  if (has_costs) memory.arrays += Objective<T>::bytes(nullptr, space);
  return memory;
}

ExitStatus reflectivity_inversion(Communicator& world, const ReflectivityArguments& arguments) {
  UseCase run(world, "reflectivity", arguments.common, {world.size(), 1}, {"model", "data", "inverted"},
              {{"--model", arguments.impedance.model}});
  return run.run([&]<Scalar T>() {
    const Impedance impedance(run.grid(), arguments.impedance, run.is_dry());
    const Space& space = impedance.space();
    const Index samples = space.dims.size(2);
    const OperatorPtr<T> derivative = band_operator<T>(space, 2, first_derivative(samples)),
                         A = band_operator<T>(space, 2, convolution(samples, trace_wavelet(), half_wavelet));
    const Solver solver = arguments.common.solver;
    const bool has_costs = !arguments.common.cost.empty();
    if (run.plan(memory_of<T>(impedance, solve_bytes(solver, *A, 1), *derivative, has_costs))) return;
    DistMatrix<T> inverted = impedance.model<T>();
    DistMatrix<T> model = allocate_matrix<T>(run.grid(), inverted.layout()),
                  data = allocate_matrix<T>(run.grid(), inverted.layout());
    derivative->apply(T(1), inverted, T(0), model);
    A->apply(T(1), model, T(0), data);
    run.save("model", space.dims, model);
    run.save("data", space.dims, data);
    const double norm = column_norms(model)[0];
    run.figure("norm of the model", norm);
    run.figure("norm of the data", column_norms(data)[0]);
    const ProximalPtr<T> l1 = threshold_penalty<T>(Threshold::soft);
    const bool gradient = solver == Solver::proximal_gradient;
    // FISTA's cost is PyLops', whose eps is twice the weight of its threshold.
    std::shared_ptr<Objective<T>> objective;
    if (has_costs)
      objective = std::make_shared<Objective<T>>(l1, gradient ? arguments.sigma : 2 * arguments.sigma,
                                                 nullptr, space);
    run.solve({A->rows(), A->cols(), 1, scalar_type_of<T>}, [&](SolveOptions options) {
      options.lambda = arguments.sigma;
      options.step = arguments.step;
      if (objective != nullptr) options.observers.push_back(objective);
      SolveReport report = solve(solver, *A, data, inverted, options, {.penalty = gradient ? l1 : nullptr});
      run.option("sigma", arguments.sigma);
      run.option("step", report.step);
      return report;
    });
    if (objective != nullptr) run.set_costs(objective->costs());
    run.save("inverted", space.dims, inverted);
    inverted -= model;
    if (norm > 0) run.figure("relative model error", column_norms(inverted)[0] / norm);
  });
}

}  // namespace

Action define_reflectivity(Options& options) {
  const auto arguments = std::make_shared<ReflectivityArguments>();
  arguments->common.solver = Solver::fista;
  arguments->common.iterations = 200;
  define_impedance(options, arguments->impedance);
  options.group("Sparsity");
  options.number("--sigma", arguments->sigma, "S", 0, "Of the absolute values; half of PyLops' eps [0.01]");
  options.number("--step", arguments->step, "A", 0, "Of the gradient [by the estimated norm]");
  define_use_case(options, arguments->common, {Solver::fista, Solver::ista, Solver::proximal_gradient},
                  "200");
  options.examples({"mpirun -n 4 gridlops reflectivity --save reflectivity",
                    "gridlops reflectivity --solver ista --iterations 500 --report ista.json"});
  return [arguments](Communicator& world) { return reflectivity_inversion(world, *arguments); };
}

}  // namespace gridlops::program
