// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <limits>
#include <numbers>
#include <numeric>
#include <span>

#include "gridlops/comm/failure.hpp"
#include "gridlops/dist/column_arithmetic.hpp"
#include "gridlops/ops/fourier.hpp"
#include "gridlops/ops/fredholm.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "subcommands.hpp"
#include "use_cases/use_case.hpp"

namespace gridlops::program {

namespace {

/// Lengths in metres, times in seconds. Names follow the axes: models lie along x, data along y.
struct MddArguments {
  UseCaseArguments common;
  Index nx = 121, ny = 201;
  double ox = -300, dx = 5, oy = -500, dy = 5;
  Index samples = 800, half_wavelet = 40, frequencies = 400;
  double interval = 0.002, frequency = 20;
  Index sources = 1;
  std::string domain = "frequency";
  bool independent = false;

  /// The samples of an axis with negative times, whose middle is time 0.
  Index both_sides() const { return 2 * samples - 1; }
  Index time_zero() const { return samples - 1; }
};

/// A reflection: it arrives at √(t₀² + h²/v²) at offset h.
struct Event {
  double time, velocity, amplitude;
};
constexpr std::array<Event, 1> model_events{{{0.2, 1100, 1}}};
constexpr std::array<Event, 3> kernel_events{{{0.2, 1200, 1}, {0.5, 1500, 0.6}, {0.7, 2000, 0.5}}};

/// Adds `amplitude` times a wavelet to a trace, whose samples 0 … are `step` apart, at a time between two
/// samples, by linear interpolation. Samples outside the trace are lost.
template <class R>
void add_event(const Event& event, double offset, double interval, std::span<const double> wavelet,
               double amplitude, R* trace, Index samples, Index step) {
  const double time = std::hypot(event.time, offset / event.velocity) / interval;
  const Index half = static_cast<Index>(wavelet.size()) / 2;
  if (!(time < static_cast<double>(samples + half))) return;
  const Index first = static_cast<Index>(time);
  const double behind = time - static_cast<double>(first);
  for (const auto& [sample, share] : {std::pair{first, 1 - behind}, std::pair{first + 1, behind}}) {
    for (Index k = 0; k < static_cast<Index>(wavelet.size()); ++k) {
      const Index t = sample + k - half;
      if (0 <= t && t < samples)
        trace[t * step] +=
            static_cast<R>(event.amplitude * amplitude * share * wavelet[static_cast<std::size_t>(k)]);
    }
  }
}

/// A taper of n samples whose ends are half Hann windows of five samples; the outermost samples are zero.
double taper(Index i, Index n) {
  constexpr Index width = 5;
  const Index from_end = std::min(i, n - 1 - i);
  if (from_end >= width) return 1;
  return 0.5 - 0.5 * std::cos(std::numbers::pi * static_cast<double>(from_end) / (width - 1));
}

/// Fills this rank's block of real arrays (samples, traces), cut along the traces. trace(j, c, first) adds to
/// the zeros of trace j of column c, whose samples are as far apart as this block has traces.
template <Scalar R, class Trace>
void fill_traces(const Space& space, DistMatrix<R>& X, Trace&& trace) {
  const MatrixView<R> block = X.local();
  const Range traces = space.local_box()[1];
  std::vector<R> values(static_cast<std::size_t>(block.rows));
  for (Index column = 0; column < block.cols; ++column) {
    std::fill(values.begin(), values.end(), R(0));
    for (Index j = 0; j < traces.size; ++j) trace(traces.begin + j, column, values.data() + j, traces.size);
    space.grid->backend()->upload(values.data(), block.column(column),
                                  block.rows * static_cast<Index>(sizeof(R)));
  }
}

/// Reflections, recorded at all y, from sources at all x: their spectra, scaled for the integrals over time.
/// Traces are distributed for their transform, then the frequencies.
template <Scalar R>
DistMatrix<std::complex<R>> make_kernel(const MddArguments& arguments, const Space& kernel) {
  using C = std::complex<R>;
  const auto& grid = kernel.grid;
  const Index traces = arguments.nx * arguments.ny, samples = arguments.both_sides();
  const Space spectra = array_space(grid, {arguments.frequencies, traces}, 0);
  const OperatorPtr<R> F = trace_spectra<R>(spectra, samples);
  DistMatrix<R> in_time = allocate_matrix<R>(grid, F->domain().layout(1));
  const std::vector<double> wavelet = ricker(arguments.frequency, arguments.interval, arguments.half_wavelet);
  fill_traces<R>(F->domain(), in_time, [&](Index trace, Index, R* first, Index step) {
    const Index ix = trace / arguments.ny, iy = trace % arguments.ny;
    const double offset = arguments.ox + arguments.dx * static_cast<double>(ix) - arguments.oy -
                          arguments.dy * static_cast<double>(iy);
    for (const Event& event : kernel_events)
      add_event(event, offset, arguments.interval, wavelet, taper(ix, arguments.nx) * taper(iy, arguments.ny),
                first, arguments.samples, step);
  });
  DistMatrix<C> G = allocate_matrix<C>(grid, spectra.layout(1));
  DistMatrix<R> pairs = pairs_of(spectra, G);
  // The transform keeps norms, with one of every two conjugate frequencies; the sum needed here does not.
  const auto scale = arguments.interval *
                     std::sqrt(static_cast<double>(arguments.samples) * static_cast<double>(samples) / 2);
  F->apply(static_cast<R>(scale), in_time, 0, pairs);
  if (const Range own = spectra.local_box()[0]; own.begin == 0 && own.size > 0) {
    const MatrixView<C> zero = G.local().row_block({0, traces});
    grid->backend()->template kernels<C>().add(static_cast<R>(std::numbers::sqrt2), zero, C(0), zero);
  }
  return G;
}

/// The model of each virtual source: one reflection from a source on the model's line. Sources are evenly
/// spaced around its middle.
template <Scalar R>
void fill_model(const MddArguments& arguments, const Space& space, DistMatrix<R>& model) {
  const double length = arguments.dx * static_cast<double>(arguments.nx - 1);
  constexpr std::array spike{1.0};
  fill_traces<R>(space, model, [&](Index ix, Index source, R* first, Index step) {
    const double place = (static_cast<double>(source) + 0.5) / static_cast<double>(arguments.sources) - 0.5;
    const double offset = arguments.dx * static_cast<double>(ix) - length / 2 - place * length;
    for (const Event& event : model_events)
      add_event(event, offset, arguments.interval, spike, 1, first + arguments.time_zero() * step,
                arguments.samples, step);
  });
}

/// ‖X‖ of all columns together.
template <Scalar T>
double frobenius_norm(const ConstDistMatrix<T>& X) {
  double squares = 0;
  for (const double norm : column_norms(X)) squares += norm * norm;
  return std::sqrt(squares);
}

/// Every frequency is a problem of its own, which its rank solves alone, for all sources: column f · sources
/// + s of the result is source s at frequency f.
template <Scalar T>
class IndependentFrequencies {
 public:
  IndependentFrequencies(const MddArguments& arguments, const Space& kernel, const DistMatrix<T>& G)
      : arguments_(arguments), own_(kernel.local_box()[0]), G_(G), comm_(kernel.grid->comm()) {
    alone_comm_ = comm_.split(comm_.rank(), 0);
    alone_ = std::make_shared<const ProcessGrid>(*alone_comm_, GridShape{1, 1}, kernel.grid->backend());
  }

  SolveReport solve(const DistMatrix<T>& data, DistMatrix<T>& model, SolveOptions options) {
    options.observers.clear();
    if (!arguments_.common.tolerance) options.tolerance.reset();
    std::vector<SolveReport> mine;
    attempt(comm_, [&] {
      for (Index f = 0; f < own_.size; ++f) mine.push_back(solve_one(f, data, model, options));
    });
    SolveReport report = gather(mine);
    costs_ = sum_costs(mine, report.iterations);
    return report;
  }
  std::vector<std::vector<double>> take_costs() { return std::move(costs_); }

 private:
  SolveReport solve_one(Index f, const DistMatrix<T>& data, DistMatrix<T>& model,
                        const SolveOptions& options) const {
    const Index nx = arguments_.nx, ny = arguments_.ny;
    const Space kernel = array_space(alone_, {1, nx, ny}, 0);
    const MatrixView<const T> slice(G_.local().data + f * nx * ny, nx * ny, 1);
    const OperatorPtr<T> A = fredholm<T>(kernel, DistMatrix<T>(alone_, kernel.layout(1), unconst(slice)));
    const ConstDistMatrix<T> B(alone_, A->range().layout(data.cols()), data.local().row_block({f * ny, ny}));
    DistMatrix<T> X(alone_, A->domain().layout(data.cols()), model.local().row_block({f * nx, nx}));
    return gridlops::solve(arguments_.common.solver, *A, B, X, options);
  }
  /// An operator owns its matrix, although it only reads it.
  static MatrixView<T> unconst(MatrixView<const T> X) { return {const_cast<T*>(X.data), X.rows, X.cols}; }

  /// The columns of all ranks.
  SolveReport gather(const std::vector<SolveReport>& mine) const {
    constexpr std::size_t facts = 4;
    std::vector<double> sent;
    for (const SolveReport& one : mine)
      for (const ColumnReport& column : one.columns)
        for (const double fact : {static_cast<double>(column.reason), static_cast<double>(column.iterations),
                                  column.residual_norm, column.normal_residual_norm})
          sent.push_back(fact);
    std::vector<Index> counts(static_cast<std::size_t>(comm_.size()));
    const std::array<Index, 1> count{static_cast<Index>(sent.size())};
    comm_.all_gather(count, counts);
    std::vector<double> all(
        static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), Index{0})));
    comm_.all_gather_v(sent, all, counts);
    SolveReport report;
    report.solver = name_of(arguments_.common.solver);
    for (std::size_t k = 0; k < all.size(); k += facts) {
      ColumnReport column;
      column.reason = static_cast<StopReason>(static_cast<int>(all[k]));
      column.iterations = static_cast<Index>(all[k + 1]);
      column.residual_norm = all[k + 2];
      column.normal_residual_norm = all[k + 3];
      report.iterations = std::max(report.iterations, column.iterations);
      report.columns.push_back(column);
    }
    return report;
  }

  /// The same as costs_of(), for one problem: norms over all frequencies, including those that have ended.
  std::vector<std::vector<double>> sum_costs(const std::vector<SolveReport>& mine, Index iterations) const {
    const auto sources = static_cast<std::size_t>(arguments_.sources);
    std::vector<double> squares(static_cast<std::size_t>(iterations + 1) * sources);
    for (const SolveReport& one : mine) {
      const std::vector<std::vector<double>> costs = costs_of(one);
      for (std::size_t k = 0; k * sources < squares.size(); ++k) {
        const std::vector<double>& norms = costs[std::min(k, costs.size() - 1)];
        for (std::size_t s = 0; s < sources; ++s)
          squares[k * sources + s] += std::pow(norms[norms.size() - sources + s], 2);
      }
    }
    comm_.all_reduce(squares, ReduceOp::sum);
    std::vector<std::vector<double>> costs;
    for (std::size_t k = 0; k * sources < squares.size(); ++k) {
      const std::span<const double> of_sources(squares.data() + k * sources, sources);
      costs.push_back({std::sqrt(std::accumulate(of_sources.begin(), of_sources.end(), 0.0))});
      if (sources > 1)
        for (const double square : of_sources) costs.back().push_back(std::sqrt(square));
    }
    return costs;
  }

  const MddArguments& arguments_;
  Range own_;
  const DistMatrix<T>& G_;
  Communicator& comm_;
  std::unique_ptr<Communicator> alone_comm_;
  std::shared_ptr<const ProcessGrid> alone_;
  std::vector<std::vector<double>> costs_;
};

/// Makes data of the model by A, and inverts them by solve(data, model). save(name, X, is_data) stores a
/// result.
template <Scalar T, class Solve, class Save>
void invert(UseCase& run, const LinearOperator<T>& A, DistMatrix<T>& model, Solve&& solve, Save&& save) {
  const auto note = [&](const char* name, DistMatrix<T>& X, bool is_data) {
    run.figure(std::string("norm of ") + name, frobenius_norm<T>(X));
    save(name, X, is_data);
  };
  note("model", model, false);
  DistMatrix<T> data = allocate_matrix<T>(run.grid(), A.range().layout(model.cols()));
  A.apply(1, model, 0, data);
  note("data", data, true);
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

template <Scalar R>
void run_mdd(UseCase& run, const MddArguments& arguments) {
  using C = std::complex<R>;
  const auto& grid = run.grid();
  const Space kernel = array_space(grid, {arguments.frequencies, arguments.nx, arguments.ny}, 0);
  DistMatrix<C> made = make_kernel<R>(arguments, kernel);
  run.figure("norm of kernel", frobenius_norm<C>(made) /
                                   (arguments.interval * std::sqrt(static_cast<double>(arguments.samples))));
  DistMatrix<C> entries(grid, made.layout(), made.local());  // a view of what the operator takes over
  const OperatorPtr<C> G = fredholm<C>(kernel, std::move(made));
  const ConvolutionTimes times{arguments.both_sides(), arguments.time_zero(), arguments.time_zero()};
  const OperatorPtr<R> model_spectra = trace_spectra<R>(G->domain(), times.samples, times.model_zero);
  const OperatorPtr<R> data_spectra = trace_spectra<R>(G->range(), times.samples, times.data_zero);
  DistMatrix<R> model = allocate_matrix<R>(grid, model_spectra->domain().layout(arguments.sources));
  fill_model<R>(arguments, model_spectra->domain(), model);

  if (arguments.domain == "time") {
    const OperatorPtr<R> A = multidimensional_convolution<R>(G, times);
    invert<R>(
        run, *A, model, [&](const DistMatrix<R>& data, DistMatrix<R>& X) { run.solve(*A, data, X); },
        [&](const char* name, DistMatrix<R>& X, bool is_data) {
          run.save(name, is_data ? A->range() : A->domain(), X);
        });
    return;
  }
  // The spectra of the kept band have the norms of the traces, so the iterations equal those in time.
  DistMatrix<C> spectra = allocate_matrix<C>(grid, G->domain().layout(arguments.sources));
  DistMatrix<R> pairs = pairs_of(G->domain(), spectra);
  model_spectra->apply(1, model, 0, pairs);
  invert<C>(
      run, *G, spectra,
      [&](const DistMatrix<C>& data, DistMatrix<C>& X) {
        const ProductShape shape{G->rows(), G->cols(), arguments.sources, scalar_type_of<C>};
        if (!arguments.independent) {
          return run.solve(shape, [&](SolveOptions options) {
            // With few sources, products wait for memory to deliver the kernel, and one pass reads it once.
            options.one_pass = arguments.common.solver == Solver::cgls && arguments.sources <= 4;
            return solve(arguments.common.solver, *G, data, X, options);
          });
        }
        IndependentFrequencies<C> frequencies(arguments, kernel, entries);
        SolveReport report;
        run.solve({arguments.ny, arguments.nx, arguments.frequencies * arguments.sources, scalar_type_of<C>},
                  [&](const SolveOptions& options) { return report = frequencies.solve(data, X, options); });
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

ExitStatus mdd(Communicator& world, const MddArguments& arguments) {
  const Index most = arguments.samples;
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
  UseCase run(world, "mdd", arguments.common, {world.size(), 1}, {"model", "data", "adjoint", "inverted"});
  run.option("domain", arguments.domain);
  run.option("independent", arguments.independent);
  return run.run([&]<Scalar R>() { run_mdd<R>(run, arguments); });
}

}  // namespace

Action define_mdd(Options& options) {
  const auto arguments = std::make_shared<MddArguments>();
  arguments->common.iterations = 50;
  arguments->common.type = ScalarType::f32;
  constexpr double anywhere = std::numeric_limits<double>::lowest();
  options.group("Data");
  options.whole("--nx", arguments->nx, "N", 1, "Traces of the model [121]");
  options.number("--ox", arguments->ox, "M", anywhere, "Where the line of the model begins [-300]");
  options.number("--dx", arguments->dx, "M", 0, "Metres between its traces [5]");
  options.whole("--ny", arguments->ny, "N", 1, "Traces of the data [201]");
  options.number("--oy", arguments->oy, "M", anywhere, "Where the line of the data begins [-500]");
  options.number("--dy", arguments->dy, "M", 0, "Metres between its traces [5]");
  options.whole("--samples", arguments->samples, "N", 1,
                "Samples of a trace; negative times are added [800]");
  options.number("--interval", arguments->interval, "S", 0, "Seconds between samples [0.002]");
  options.number("--frequency", arguments->frequency, "F", 0, "Of the Ricker wavelet, in Hz [20]");
  options.whole("--half-wavelet", arguments->half_wavelet, "N", 0,
                "Samples of the wavelet on either side of its peak [40]");
  options.whole("--nf", arguments->frequencies, "N", 1, "How many frequencies are kept, from 0 on [400]");
  options.whole("--sources", arguments->sources, "N", 1,
                "Virtual sources, evenly along the model: right-hand sides with a step of their own [1]");
  options.choice("--domain", arguments->domain, words({"frequency", "time"}),
                 "Where it is solved; the iterations are the same [frequency]");
  options.flag("--independent", arguments->independent,
               "Every frequency of a source has a step and a verdict of its own, and nothing is sent; "
               "--tolerance is then 1e-8, with f32 1e-4, if not given");
  define_use_case(options, arguments->common, {Solver::cgls, Solver::lsqr, Solver::lsmr}, "50");
  options.examples({"mpirun -n 4 gridlops mdd --save mdd --cost mdd/cost.txt",
                    "mpirun -n 4 gridlops mdd --sources 9 --independent --report mdd.json"});
  return [arguments](Communicator& world) { return mdd(world, *arguments); };
}

}  // namespace gridlops::program
