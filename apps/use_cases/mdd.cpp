// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <utility>

#include "gridlops/dist/column_arithmetic.hpp"
#include "gridlops/ops/fourier.hpp"
#include "gridlops/ops/fredholm.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "gridlops/ops/slice_groups.hpp"
#include "subcommands.hpp"
#include "use_cases/independent_frequencies.hpp"
#include "use_cases/mdd_data.hpp"
#include "use_cases/mdd_files.hpp"
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

/// The kernel as an operator on all frequencies. `entries` are empty afterwards, unless frequencies shall be
/// solved alone.
template <Scalar C>
OperatorPtr<C> kernel_operator(UseCase& run, const MddArguments& arguments, const Space& kernel,
                               DistMatrix<C>& entries) {
  const auto& grid = kernel.grid;
  if (arguments.independent)
    return fredholm<C>(kernel, DistMatrix<C>(grid, entries.layout(), entries.local()));
  if (!arguments.groups) return fredholm<C>(kernel, std::exchange(entries, DistMatrix<C>()));
  const std::vector<ProductShape> slices(static_cast<std::size_t>(arguments.frequencies),
                                         {arguments.ny, arguments.nx, arguments.sources, scalar_type_of<C>});
  const SliceGroups groups(grid, slices, divide_ranks(slices, grid->shape().size()));
  run.figure("groups of ranks", static_cast<double>(groups.groups().size()));
  std::vector<DistMatrix<C>> matrices = slices_of_kernel<C>(groups, kernel, entries);
  entries = DistMatrix<C>();
  const OperatorPtr<C> A =
      grouped_slices<C>(groups, std::move(matrices), {.storage = faster_storage(groups)});
  const Space data = array_space(grid, {arguments.frequencies, arguments.ny}, 0),
              model = array_space(grid, {arguments.frequencies, arguments.nx}, 0);
  return product(adjoint(into_groups<C>(groups.data(), data)),
                 product(A, into_groups<C>(groups.models(), model)));
}

template <Scalar R>
void run_mdd(UseCase& run, const MddArguments& arguments) {
  using C = std::complex<R>;
  const auto& grid = run.grid();
  const Space kernel = array_space(grid, {arguments.frequencies, arguments.nx, arguments.ny}, 0);
  const bool own = arguments.has_own_data();
  const Table weights = read_pair_weights(arguments, grid);
  DistMatrix<C> entries = own ? read_kernel<R>(arguments, kernel) : make_kernel<R>(arguments, kernel);
  const double scale = own ? 1 : arguments.interval * std::sqrt(static_cast<double>(arguments.samples));
  release_scratch(*grid);  // of what brought the kernel here
  run.figure("norm of kernel", frobenius_norm<C>(entries) / scale);
  const OperatorPtr<C> G = kernel_operator<C>(run, arguments, kernel, entries);
  const ConvolutionTimes times{arguments.axis_samples(), arguments.time_zero(), arguments.time_zero()};
  const OperatorPtr<R> model_spectra = trace_spectra<R>(G->domain(), times.samples, times.model_zero);
  const OperatorPtr<R> data_spectra = trace_spectra<R>(G->range(), times.samples, times.data_zero);
  DistMatrix<R> model = allocate_matrix<R>(grid, model_spectra->domain().layout(arguments.sources));
  DistMatrix<R> data = allocate_matrix<R>(grid, data_spectra->domain().layout(arguments.sources));
  if (own) {
    read_data<R>(arguments, data_spectra->domain(), data);
    clear_missing<R>(weights, data_spectra->domain(), data);
  } else {
    fill_model<R>(arguments, model_spectra->domain(), model);
  }

  if (arguments.domain == "time") {
    const OperatorPtr<R> A = multidimensional_convolution<R>(G, times);
    invert<R>(
        run, *A, own, model, data,
        [&](const DistMatrix<R>& B, DistMatrix<R>& X) {
          run.solve({A->rows(), A->cols(), B.cols(), scalar_type_of<R>}, [&](const SolveOptions& options) {
            return solve_weighted<R>(arguments.common.solver, A, weights, B, X, options);
          });
        },
        [&](const char* name, DistMatrix<R>& X, bool is_data) {
          run.save(name, is_data ? A->range() : A->domain(), X);
        });
    return;
  }
  // The transform of the kept band keeps norms, so the iterations equal those in time.
  DistMatrix<C> spectra = allocate_matrix<C>(grid, G->domain().layout(arguments.sources));
  DistMatrix<C> of_data = allocate_matrix<C>(grid, G->range().layout(arguments.sources));
  DistMatrix<R> pairs = own ? pairs_of(G->range(), of_data) : pairs_of(G->domain(), spectra);
  own ? data_spectra->apply(1, data, 0, pairs) : model_spectra->apply(1, model, 0, pairs);
  invert<C>(
      run, *G, own, spectra, of_data,
      [&](const DistMatrix<C>& B, DistMatrix<C>& X) {
        const ProductShape shape{G->rows(), G->cols(), arguments.sources, scalar_type_of<C>};
        if (!arguments.independent) {
          return run.solve(shape, [&](SolveOptions options) {
            // With few sources, memory limits the products, and one pass reads the kernel once.
            options.one_pass = arguments.common.solver == Solver::cgls && arguments.sources <= 4 &&
                               weights.values.empty() && G->has_one_pass();
            return solve_weighted<C>(arguments.common.solver, G, weights, B, X, options);
          });
        }
        IndependentFrequencies<C> frequencies(arguments, kernel, entries, weights);
        SolveReport report;
        run.solve({arguments.ny, arguments.nx, arguments.frequencies * arguments.sources, scalar_type_of<C>},
                  [&](const SolveOptions& options) { return report = frequencies.solve(B, X, options); });
        run.set_costs(frequencies.take_costs());
        if (!arguments.common.tolerance) run.option("tolerance", default_tolerance(scalar_type_of<C>));
        note_iterations(run, report);
      },
      [&](const char* name, DistMatrix<C>& X, bool is_data) {
        if (arguments.common.save.empty()) return;
        const OperatorPtr<R>& F = is_data ? data_spectra : model_spectra;
        DistMatrix<R> in_time = allocate_matrix<R>(grid, F->domain().layout(X.cols()));
        F->apply_adjoint(1, pairs_of(is_data ? G->range() : G->domain(), X), 0, in_time);
        run.save(name, F->domain(), in_time);
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
               "model divides them. Each product then moves models and data");
  define_use_case(options, arguments->common, {Solver::cgls, Solver::lsqr, Solver::lsmr}, "50");
  options.examples(
      {"mpirun -n 4 gridlops mdd --save mdd --cost mdd/cost.txt",
       "mpirun -n 4 gridlops mdd --kernel kernel.npy --data traces.npy --solver lsqr --save mine",
       "mpirun -n 4 gridlops mdd --sources 9 --independent --report mdd.json"});
  return [arguments](Communicator& world) { return mdd(world, *arguments); };
}

}  // namespace gridlops::program
