// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <limits>
#include <utility>

#include "command_line/grid.hpp"
#include "command_line/machine_file.hpp"
#include "gridlops/dist/column_arithmetic.hpp"
#include "gridlops/ops/cost_model.hpp"
#include "gridlops/ops/fourier.hpp"
#include "gridlops/ops/fredholm.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "gridlops/ops/slice_groups.hpp"
#include "subcommands.hpp"
#include "use_cases/independent_frequencies.hpp"
#include "use_cases/mdd_data.hpp"
#include "use_cases/mdd_files.hpp"
#include "use_cases/mdd_kernel.hpp"
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

/// The kernel as spectra, one column in the space `kernel`.
template <Scalar R>
DistMatrix<std::complex<R>> spectra_of_kernel(const MddArguments& arguments, const Space& kernel) {
  DistMatrix<std::complex<R>> entries =
      arguments.has_own_data() ? read_kernel<R>(arguments, kernel) : make_kernel<R>(arguments, kernel);
  release_scratch(*kernel.grid);  // of what brought the kernel here
  return entries;
}

/// A matrix with a block that nobody has, for a plan.
template <Scalar C>
DistMatrix<C> without_memory(const std::shared_ptr<const ProcessGrid>& grid, const Layout& layout) {
  if (!grid->is_member()) return DistMatrix<C>(grid, layout);
  const MatrixView<C> block(nullptr, layout.row_range(*grid, grid->my_row(), grid->my_col()).size,
                            layout.col_range(*grid, grid->my_row(), grid->my_col()).size);
  return DistMatrix<C>(grid, layout, block);
}
template <Scalar C>
Index bytes_of(const DistMatrix<C>& matrix) {
  return matrix.local().size() * static_cast<Index>(sizeof(C));
}

/// ‖G‖ of the slices of all groups (collective over the grid).
template <Scalar C>
double norm_of_slices(const SliceGroups& groups, const std::vector<DistMatrix<C>>& slices) {
  std::array<double, 1> square{0};
  for (const DistMatrix<C>& slice : slices) square[0] += std::pow(frobenius_norm<C>(slice), 2);
  const ProcessGrid& own = *groups.own_grid();
  if (!own.is_member() || own.comm().rank() > 0) square[0] = 0;  // once for each group
  groups.grid()->comm().all_reduce(square, ReduceOp::sum);
  return std::sqrt(square[0]);
}

/// The kernel as an operator on all frequencies. If groups of ranks share them, A takes and makes vectors in
/// the order of the groups, which `models` and `data` bring arrays into; otherwise these are null.
template <Scalar C>
struct KernelOperator {
  OperatorPtr<C> A, models, data;
  bool one_pass_pays = true;  ///< with up to four right-hand sides
  InversionMemory memory{};   ///< of a kernel that is only planned, and most of it while it is read

  OperatorPtr<C> on_arrays() const {
    return models == nullptr ? A : product(adjoint(data), product(A, models));
  }
};

/// The matrices of a rank's slices, if they had memory.
template <Scalar R>
std::vector<DistMatrix<std::complex<R>>> planned_slices(const MddArguments& arguments, const Space& kernel,
                                                        const SliceGroups& groups, InversionMemory& memory) {
  using C = std::complex<R>;
  const Layout layout =
      matrix_layout(Algorithm::stationary_a, *groups.own_grid(), arguments.ny, arguments.nx);
  const Range own = groups.own_slices();
  std::vector<DistMatrix<C>> slices;
  for (Index k = 0; k < own.size; ++k) slices.push_back(without_memory<C>(groups.own_grid(), layout));
  const Index block = slices.empty() ? 0 : bytes_of(slices.front());
  memory.operators = own.size * block;
  if (arguments.kernel_is_complex) {
    memory.otherwise = memory.operators + std::min(std::max<Index>(32 << 20, block), memory.operators);
    return slices;
  }
  // Whole slices of some frequencies become blocks of others; what a rank has of both does not travel.
  const Range read = kernel.local_box()[0];
  const Index kept = intersect(read, own).size * block,
              whole = kernel.local_rows() * static_cast<Index>(sizeof(C));
  memory.otherwise = whole + std::max(bytes_of_part<R>(arguments, kernel.grid),
                                      memory.operators + (whole - kept) + (memory.operators - kept));
  return slices;
}

template <Scalar R>
KernelOperator<std::complex<R>> grouped_kernel(UseCase& run, const MddArguments& arguments,
                                               const Space& kernel, double scale) {
  using C = std::complex<R>;
  const auto& grid = kernel.grid;
  const std::vector<ProductShape> slices(static_cast<std::size_t>(arguments.frequencies),
                                         {arguments.ny, arguments.nx, arguments.sources, scalar_type_of<C>});
  const MachineModel machine =
      with_shared_memory(model_of(read_machine(grid->comm(), ""), grid->comm()), *grid);
  const SliceGroups groups(grid, slices, divide_ranks(slices, grid->shape().size(), machine));
  InversionMemory memory;
  std::vector<DistMatrix<C>> matrices =
      run.is_dry() ? planned_slices<R>(arguments, kernel, groups, memory)
      : arguments.kernel_is_complex
          ? read_slices<R>(arguments, groups)
          : slices_of_kernel<C>(groups, kernel, spectra_of_kernel<R>(arguments, kernel));
  const Storage storage = faster_storage(groups);
  if (!run.is_dry()) run.figure("norm of kernel", norm_of_slices<C>(groups, matrices) / scale);
  if (storage == Storage::packed) memory.operators = 0;  // the operator keeps copies
  run.figure("groups of ranks", static_cast<double>(groups.groups().size()));
  return {grouped_slices<C>(groups, std::move(matrices), {.storage = storage}),
          into_groups<C>(groups.models(), array_space(grid, {arguments.frequencies, arguments.nx}, 0)),
          into_groups<C>(groups.data(), array_space(grid, {arguments.frequencies, arguments.ny}, 0)),
          std::all_of(groups.groups().begin(), groups.groups().end(),
                      [&](const RankGroup& group) {
                        return group.shape.size() == 1 || one_pass_is_faster(slices.front(), group.shape);
                      }),
          memory};
}

/// Between real traces and their spectra, in the order of a kernel's operator.
template <Scalar R>
class Transform {
 public:
  using C = std::complex<R>;

  /// Spectra are arrays in this space, or what `into`, if it is not null, makes of them.
  Transform(Space arrays, OperatorPtr<C> into, Index samples, Index time_zero)
      : arrays_(std::move(arrays)),
        into_(std::move(into)),
        F_(trace_spectra<R>(arrays_, samples, time_zero)) {}

  const Space& traces() const { return F_->domain(); }
  /// The bytes of so many traces, of their spectra, and of scratch memory, on this rank.
  Index bytes(Index columns) const {
    const Partition cut = Partition::with_sizes({columns});
    Index scratch =
        std::max(F_->scratch_bytes(ProductKind::forward, cut), F_->scratch_bytes(ProductKind::adjoint, cut));
    Index spectra = arrays_.local_rows();
    if (into_ != nullptr) {
      spectra += into_->range().local_rows();
      for (const ProductKind kind : {ProductKind::forward, ProductKind::adjoint})
        scratch = std::max(scratch, into_->scratch_bytes(kind, cut));
    }
    return columns * (traces().local_rows() * static_cast<Index>(sizeof(R)) +
                      spectra * static_cast<Index>(sizeof(C))) +
           scratch;
  }

  DistMatrix<C> spectra_of(const DistMatrix<R>& traces) const {
    DistMatrix<C> spectra = allocate_matrix<C>(arrays_.grid, arrays_.layout(traces.cols()));
    DistMatrix<R> pairs = pairs_of(arrays_, spectra);
    F_->apply(1, traces, 0, pairs);
    if (into_ == nullptr) return spectra;
    DistMatrix<C> grouped = allocate_matrix<C>(arrays_.grid, into_->range().layout(traces.cols()));
    into_->apply(1, spectra, 0, grouped);
    return grouped;
  }
  DistMatrix<R> traces_of(DistMatrix<C>& spectra) const {
    DistMatrix<R> traces = allocate_matrix<R>(arrays_.grid, F_->domain().layout(spectra.cols()));
    if (into_ == nullptr) {
      F_->apply_adjoint(1, pairs_of(arrays_, spectra), 0, traces);
      return traces;
    }
    DistMatrix<C> arrays = allocate_matrix<C>(arrays_.grid, arrays_.layout(spectra.cols()));
    into_->apply_adjoint(1, spectra, 0, arrays);
    F_->apply_adjoint(1, pairs_of(arrays_, arrays), 0, traces);
    return traces;
  }

 private:
  Space arrays_;
  OperatorPtr<C> into_;
  OperatorPtr<R> F_;
};

/// Whether CGLS reads the kernel once in an iteration. With few sources memory limits the products.
template <Scalar C>
bool reads_once(const MddArguments& arguments, const KernelOperator<C>& G) {
  return arguments.common.solver == Solver::cgls && arguments.sources <= 4 && arguments.weights.empty() &&
         G.A->has_one_pass() && G.one_pass_pays;
}

template <Scalar R>
void plan_mdd(UseCase& run, const MddArguments& arguments, const KernelOperator<std::complex<R>>& G,
              const Transform<R>& models, const Transform<R>& data, const ConvolutionTimes& times) {
  using C = std::complex<R>;
  const Index columns = arguments.sources;
  const auto plan = [&]<Scalar T>(const LinearOperator<T>& A, bool one_pass) {
    InversionMemory memory = G.memory;
    const Index of_models = A.domain().local_rows() * columns * static_cast<Index>(sizeof(T)),
                of_data = A.range().local_rows() * columns * static_cast<Index>(sizeof(T));
    memory.arrays = of_models + of_data;
    // Weighted data are a copy, products are weighted in scratch memory, and there is a column of weights.
    if (!arguments.weights.empty())
      memory.arrays += 2 * of_data + A.range().local_rows() * static_cast<Index>(sizeof(T));
    const Index kept = memory.operators + A.kept_bytes(Partition::with_sizes({columns}));
    if (is_complex<T>)
      memory.otherwise = std::max(
          {memory.otherwise, kept + of_data + models.bytes(columns), kept + of_models + data.bytes(columns)});
    run.plan(A, columns, one_pass, memory);
  };
  arguments.domain == "time" ? plan(*multidimensional_convolution<R>(G.on_arrays(), times), false)
                             : plan(*G.A, reads_once<C>(arguments, G));
}

template <Scalar R>
void run_mdd(UseCase& run, const MddArguments& arguments) {
  using C = std::complex<R>;
  const auto& grid = run.grid();
  const Space kernel = array_space(grid, {arguments.frequencies, arguments.nx, arguments.ny}, 0);
  const bool own = arguments.has_own_data();
  const Table weights = read_pair_weights(arguments, grid);
  const double scale = own ? 1 : arguments.interval * std::sqrt(static_cast<double>(arguments.samples));
  DistMatrix<C> entries;  // only where frequencies are solved alone
  KernelOperator<C> G;
  if (arguments.groups) {
    G = grouped_kernel<R>(run, arguments, kernel, scale);
  } else if (run.is_dry()) {
    entries = without_memory<C>(grid, kernel.layout(1));
    G.memory.operators = bytes_of(entries);
    G.memory.otherwise =
        G.memory.operators + (arguments.kernel_is_complex ? 0 : bytes_of_part<R>(arguments, grid));
    G.A = fredholm<C>(kernel, std::move(entries));
  } else {
    entries = spectra_of_kernel<R>(arguments, kernel);
    run.figure("norm of kernel", frobenius_norm<C>(entries) / scale);
    G.A = fredholm<C>(kernel, arguments.independent ? DistMatrix<C>(grid, entries.layout(), entries.local())
                                                    : std::exchange(entries, DistMatrix<C>()));
  }
  const ConvolutionTimes times{arguments.axis_samples(), arguments.time_zero(), arguments.time_zero()};
  const Transform<R> model_transform(array_space(grid, {arguments.frequencies, arguments.nx}, 0), G.models,
                                     times.samples, times.model_zero);
  const Transform<R> data_transform(array_space(grid, {arguments.frequencies, arguments.ny}, 0), G.data,
                                    times.samples, times.data_zero);
  if (run.is_dry()) return plan_mdd<R>(run, arguments, G, model_transform, data_transform, times);
  // Own data are given, or a model that data are made of.
  const Transform<R>& transform_of_given = own ? data_transform : model_transform;
  DistMatrix<R> given = allocate_matrix<R>(grid, transform_of_given.traces().layout(arguments.sources));
  if (own) {
    read_data<R>(arguments, data_transform.traces(), given);
    clear_missing<R>(weights, data_transform.traces(), given);
  } else {
    fill_model<R>(arguments, model_transform.traces(), given);
  }

  if (arguments.domain == "time") {
    const OperatorPtr<R> A = multidimensional_convolution<R>(G.on_arrays(), times);
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
  if (arguments.independent && arguments.common.dry_run)
    throw UsageError("--dry-run has no plan of --independent, which takes less memory than one problem");
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
  define_dry_run(options, arguments->common);
  options.examples(
      {"mpirun -n 4 gridlops mdd --save mdd --cost mdd/cost.txt",
       "mpirun -n 4 gridlops mdd --kernel kernel.npy --data traces.npy --solver lsqr --save mine",
       "mpirun -n 4 gridlops mdd --sources 9 --independent --report mdd.json"});
  return [arguments](Communicator& world) { return mdd(world, *arguments); };
}

}  // namespace gridlops::program
