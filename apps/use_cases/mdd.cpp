// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <complex>
#include <limits>
#include <optional>
#include <utility>

#include "gridlops/dist/column_arithmetic.hpp"
#include "gridlops/ops/fredholm.hpp"
#include "subcommands.hpp"
#include "use_cases/independent_frequencies.hpp"
#include "use_cases/mdd_data.hpp"
#include "use_cases/mdd_files.hpp"
#include "use_cases/mdd_operator.hpp"
#include "use_cases/mdd_transform.hpp"
#include "use_cases/pair_weights.hpp"

namespace gridlops::program {

namespace {

/// Inverts data by solve(data, model). Unless they are the user's own, A makes them of the model. save(name,
/// X, is_data) keeps a result.
template <Scalar T, class Solve, class Save>
void invert(UseCase& run, const LinearOperator<T>& A, bool has_own_data, DistMatrix<T>& model,
            DistMatrix<T>& data, Solve&& solve, Save&& save) {
  const auto note = [&](const char* name, DistMatrix<T>& X, bool is_data) {
    run.figure(std::string("norm of ") + name, frobenius_norm<T>(X));
    save(name, X, is_data);
  };
  if (has_own_data) {
    run.figure("norm of data", frobenius_norm<T>(data));
  } else {
    note("model", model, false);
    A.apply(1, model, 0, data);
    note("data", data, true);
  }
  A.apply_adjoint(1, data, 0, model);
  note("adjoint", model, false);
  solve(data, model);
  note("inverted", model, false);
}

void note_iterations(UseCase& run, const SolveReport& report) {
  std::vector<Index> iterations;
  for (const ColumnReport& column : report.columns) iterations.push_back(column.iterations);
  std::sort(iterations.begin(), iterations.end());
  if (iterations.empty()) return;
  run.figure("least iterations", static_cast<double>(iterations.front()));
  run.figure("median iterations", static_cast<double>(iterations[iterations.size() / 2]));
  run.figure("most iterations", static_cast<double>(iterations.back()));
}

/// Whether CGLS reads the kernel once in an iteration. With few sources memory limits the products.
template <Scalar C>
bool reads_once(const MddArguments& arguments, const KernelOperator<C>& G) {
  return arguments.common.solver == Solver::cgls && arguments.sources <= 4 && arguments.weights.empty() &&
         G.A->has_one_pass() && G.one_pass_pays;
}

/// Calls run.plan(). A: in time; null: in frequency. frequencies: that are solved alone; null: they are not.
template <Scalar R>
bool plan_mdd(UseCase& run, const MddArguments& arguments, const KernelOperator<std::complex<R>>& G,
              const Transform<R>& models, const Transform<R>& data, const OperatorPtr<R>& A,
              const IndependentFrequencies<std::complex<R>>* frequencies, const Table& weights) {
  using C = std::complex<R>;
  const Index columns = arguments.sources;
  const auto arrays = [columns]<Scalar T>(const Space& space, T) {
    return space.local_rows() * columns * static_cast<Index>(sizeof(T));
  };
  InversionMemory memory{.otherwise = G.bytes_at_reading};
  if (A != nullptr) {
    memory.solve = solve_weighted_bytes(arguments.common.solver, A, weights, columns);
    memory.arrays = arrays(A->domain(), R()) + arrays(A->range(), R());
    return run.plan(memory);
  }
  SolveOptions options;
  options.one_pass = reads_once<C>(arguments, G);
  memory.solve = frequencies == nullptr
                     ? solve_weighted_bytes(arguments.common.solver, G.A, weights, columns, options)
                     : frequencies->bytes();
  const Index of_models = arrays(G.A->domain(), C()), of_data = arrays(G.A->range(), C());
  memory.arrays = of_models + of_data;
  memory.otherwise = std::max({memory.otherwise, memory.solve.operators + of_data + models.bytes(columns),
                               memory.solve.operators + of_models + data.bytes(columns)});
  return run.plan(memory);
}

template <Scalar R>
void run_mdd(UseCase& run, const MddArguments& arguments) {
  using C = std::complex<R>;
  const auto& grid = run.grid();
  const Space kernel = array_space(grid, {arguments.frequencies, arguments.nx, arguments.ny}, 0);
  const bool own = arguments.has_own_data();
  const Table weights = read_pair_weights(arguments, grid);
  KernelOperator<C> G = kernel_operator<R>(run, arguments, kernel);
  const ConvolutionTimes times{arguments.axis_samples(), arguments.time_zero(), arguments.time_zero()};
  const Transform<R> model_transform(array_space(grid, {arguments.frequencies, arguments.nx}, 0), G.models,
                                     times.samples, times.model_zero);
  const Transform<R> data_transform(array_space(grid, {arguments.frequencies, arguments.ny}, 0), G.data,
                                    times.samples, times.data_zero);
  const OperatorPtr<R> convolution =
      arguments.domain == "time" ? multidimensional_convolution<R>(G.on_arrays(), times) : nullptr;
  std::optional<IndependentFrequencies<C>> frequencies;
  if (arguments.independent) frequencies.emplace(arguments, kernel, G.entries, weights);
  if (plan_mdd<R>(run, arguments, G, model_transform, data_transform, convolution,
                  frequencies ? &*frequencies : nullptr, weights))
    return;
  // Own data are given, or a model that data are made of.
  const Transform<R>& transform_of_given = own ? data_transform : model_transform;
  DistMatrix<R> given = allocate_matrix<R>(grid, transform_of_given.traces().layout(arguments.sources));
  if (own) {
    read_data<R>(arguments, data_transform.traces(), given);
    clear_missing<R>(weights, data_transform.traces(), given);
  } else {
    fill_model<R>(arguments, model_transform.traces(), given);
  }

  if (convolution != nullptr) {
    const OperatorPtr<R>& A = convolution;
    DistMatrix<R> other =
        allocate_matrix<R>(grid, (own ? A->domain() : A->range()).layout(arguments.sources));
    invert<R>(
        run, *A, own, own ? other : given, own ? given : other,
        [&](const DistMatrix<R>& B, DistMatrix<R>& X) {
          run.solve({A->rows(), A->cols(), B.cols(), scalar_type_of<R>}, [&](const SolveOptions& options) {
            return solve_weighted<R>(arguments.common.solver, A, nullptr, weights, B, X, options);
          });
        },
        [&](const char* name, DistMatrix<R>& X, bool is_data) {
          run.save(name, is_data ? A->range() : A->domain(), X);
        });
    return;
  }
  // The transform of the kept band keeps norms, so the iterations equal those in time.
  const OperatorPtr<C>& A = G.A;
  DistMatrix<C> given_spectra = transform_of_given.spectra_of(given);
  given = DistMatrix<R>();
  release_scratch(*grid);  // of the transform
  DistMatrix<C> other = allocate_matrix<C>(grid, (own ? A->domain() : A->range()).layout(arguments.sources));
  invert<C>(
      run, *A, own, own ? other : given_spectra, own ? given_spectra : other,
      [&](const DistMatrix<C>& B, DistMatrix<C>& X) {
        const ProductShape shape{A->rows(), A->cols(), arguments.sources, scalar_type_of<C>};
        if (!arguments.independent) {
          return run.solve(shape, [&](SolveOptions options) {
            options.one_pass = reads_once<C>(arguments, G);
            return solve_weighted<C>(arguments.common.solver, A, G.data, weights, B, X, options);
          });
        }
        SolveReport report;
        run.solve({arguments.ny, arguments.nx, arguments.frequencies * arguments.sources, scalar_type_of<C>},
                  [&](const SolveOptions& options) { return report = frequencies->solve(B, X, options); });
        run.set_costs(frequencies->take_costs());
        if (!arguments.common.tolerance) run.option("tolerance", default_tolerance(scalar_type_of<C>));
        note_iterations(run, report);
      },
      [&](const char* name, DistMatrix<C>& X, bool is_data) {
        if (arguments.common.save.empty()) return;
        const Transform<R>& transform = is_data ? data_transform : model_transform;
        DistMatrix<R> in_time = transform.traces_of(X);
        release_scratch(*grid);
        run.save(name, transform.traces(), in_time);
      });
}

ExitStatus mdd(Communicator& world, const MddArguments& given) {
  MddArguments arguments = given;
  if (arguments.has_own_data())
    read_mdd_sizes(world, arguments);
  else if (arguments.asked_frequencies > 0)
    arguments.frequencies = arguments.asked_frequencies;
  const Index most = arguments.has_own_data() ? arguments.frequencies : arguments.samples;
  if (arguments.frequencies > most) {
    throw UsageError(
        fmt::format("--nf {} is too many: traces of {} samples, and as many negative times but "
                    "one, have {} frequencies",
                    arguments.frequencies, arguments.samples, most));
  }
  if (!(arguments.interval > 0))
    throw UsageError(fmt::format("--interval is {}, but samples need time between them", arguments.interval));
  if (arguments.independent && arguments.domain == "time") {
    throw UsageError(
        "--independent and --domain time exclude each other: in time the frequencies are one "
        "problem");
  }
  std::vector<std::string> saved{"adjoint", "inverted"};
  if (!arguments.has_own_data()) saved.insert(saved.end(), {"model", "data"});
  if (arguments.independent && arguments.groups) {
    throw UsageError(
        "--independent and --groups exclude each other: a rank that shares a frequency cannot solve it "
        "alone");
  }
  UseCase run(world, "mdd", arguments.common, {world.size(), 1}, saved,
              {{"--kernel", arguments.kernel}, {"--data", arguments.data}, {"--weights", arguments.weights}});
  if (arguments.frequencies < run.grid()->shape().size() && arguments.domain == "frequency" &&
      !arguments.independent)
    arguments.groups = true;
  run.option("domain", arguments.domain);
  run.option("independent", arguments.independent);
  run.option("groups", arguments.groups);
  return run.run([&]<Scalar R>() { run_mdd<R>(run, arguments); });
}

}  // namespace

Action define_mdd(Options& options) {
  const auto arguments = std::make_shared<MddArguments>();
  arguments->common.iterations = 50;
  arguments->common.type = ScalarType::f32;
  constexpr double anywhere = std::numeric_limits<double>::lowest();
  options.group("Own data");
  CLI::Option* const kernel = options.text(
      "--kernel", arguments->kernel, "G",
      "The field between sources and receivers: real, samples x receivers x sources, or its spectra, "
      "complex, frequencies x receivers x sources, as numpy.fft.rfft makes them of as many samples as "
      "the data have. Each rank reads its part");
  kernel->needs(options
                    .text("--data", arguments->data, "D",
                          "Real traces, samples x receivers, or samples x receivers x shots: each shot is a "
                          "right-hand side. The convolution is a sum over samples and sources, periodic in "
                          "time. --dtype is that of the files")
                    ->needs(kernel));
  options
      .text("--weights", arguments->weights, "W",
            "A weight for each trace of the data, which multiplies its residual, 0 where there is no trace: "
            "real, receivers, or receivers x shots. Shots with other weights than the one before are solved "
            "after it, as problems of their own")
      ->needs(kernel);
  options
      .whole("--time-zero", arguments->first_sample, "K", 0,
             "The sample of the data, and of the model, that is time 0 [0]")
      ->needs(kernel);
  options.whole("--nf", arguments->asked_frequencies, "N", 1,
                "How many frequencies are kept, from 0 on [400; own data: all]");
  options.group("Generated data");
  for (CLI::Option* generated :
       {options.whole("--nx", arguments->nx, "N", 1, "Traces of the model [121]"),
        options.number("--ox", arguments->ox, "M", anywhere, "Where the line of the model begins [-300]"),
        options.number("--dx", arguments->dx, "M", 0, "Metres between its traces [5]"),
        options.whole("--ny", arguments->ny, "N", 1, "Traces of the data [201]"),
        options.number("--oy", arguments->oy, "M", anywhere, "Where the line of the data begins [-500]"),
        options.number("--dy", arguments->dy, "M", 0, "Metres between its traces [5]"),
        options.whole("--samples", arguments->samples, "N", 1,
                      "Samples of a trace; negative times are added [800]"),
        options.number("--interval", arguments->interval, "S", 0, "Seconds between samples [0.002]"),
        options.number("--frequency", arguments->frequency, "F", 0, "Of the Ricker wavelet, in Hz [20]"),
        options.whole("--half-wavelet", arguments->half_wavelet, "N", 0,
                      "Samples of the wavelet on either side of its peak [40]"),
        options.whole(
            "--sources", arguments->sources, "N", 1,
            "Virtual sources, evenly along the model: right-hand sides with a step of their own [1]")})
    generated->excludes(kernel);
  options.choice("--domain", arguments->domain, words({"frequency", "time"}),
                 "Where it is solved; the iterations are the same [frequency]");
  options.flag("--independent", arguments->independent,
               "Every frequency of a source has a step and a verdict of its own, and nothing is sent; "
               "--tolerance is then 1e-8, with f32 1e-4, if not given");
  options.flag("--groups", arguments->groups,
               "Groups of ranks share frequencies, so that all ranks have work where there are few; the cost "
               "model divides them. With --domain time each product then moves models and data [with fewer "
               "frequencies than ranks, unless --domain time or --independent is given]");
  define_use_case(options, arguments->common, {Solver::cgls, Solver::lsqr, Solver::lsmr}, "50");
  options.examples(
      {"mpirun -n 4 gridlops mdd --save mdd --cost mdd/cost.txt",
       "mpirun -n 4 gridlops mdd --kernel kernel.npy --data traces.npy --solver lsqr --save mine",
       "mpirun -n 4 gridlops mdd --sources 9 --independent --report mdd.json"});
  return [arguments](Communicator& world) { return mdd(world, *arguments); };
}

}  // namespace gridlops::program
