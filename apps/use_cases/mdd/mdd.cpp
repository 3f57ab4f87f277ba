// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <complex>
#include <limits>
#include <optional>
#include <utility>

#include "command_line/console.hpp"
#include "command_line/finite_checks.hpp"
#include "command_line/option_rules.hpp"
#include "command_line/option_values.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/dist/column_arithmetic.hpp"
#include "gridlops/ops/fredholm.hpp"
#include "machine/limits.hpp"
#include "machine/memory_limit.hpp"
#include "subcommands.hpp"
#include "use_cases/independent_frequencies.hpp"
#include "use_cases/mdd/data.hpp"
#include "use_cases/mdd/files.hpp"
#include "use_cases/mdd/kernel_operator.hpp"
#include "use_cases/mdd/spectra.hpp"
#include "use_cases/pair_weights.hpp"

namespace gridlops::program {

namespace {

/// Inverts data by solve(data, model). Unless they are the user's own, `makes_data` makes them of the model.
/// save(name, X, is_data) keeps a result.
template <Scalar T, class Solve, class Save>
void invert(UseCase& run, const LinearOperator<T>& A, OperatorPtr<T> makes_data, bool has_own_data,
            DistMatrix<T>& model, DistMatrix<T>& data, Solve&& solve, Save&& save) {
  const auto note = [&](const char* name, DistMatrix<T>& X, bool is_data) {
    save(name, X, is_data);
    run.figure(std::string("norm of ") + name, frobenius_norm<T>(X));
  };
  if (has_own_data) {
    run.figure("norm of data", frobenius_norm<T>(data));
  } else {
    note("model", model, false);
    makes_data->apply(1, model, 0, data);
    makes_data = nullptr;
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

template <Scalar R>
class Mdd {
 public:
  /// Reads or makes the kernel, or plans it (collective over the grid).
  Mdd(UseCase& run, const MddArguments& arguments)
      : run_(run),
        arguments_(arguments),
        kernel_(array_space(run.grid(), {arguments.frequencies, arguments.nx, arguments.ny}, 0)),
        weights_(read_pair_weights(arguments, run.grid())),
        G_(kernel_operator<R>(run, arguments, kernel_)),
        times_{arguments.axis_samples(), arguments.time_zero(), arguments.time_zero()},
        models_(array_space(run.grid(), {arguments.frequencies, arguments.nx}, 0), G_.models, times_.samples,
                times_.model_zero),
        data_(array_space(run.grid(), {arguments.frequencies, arguments.ny}, 0), G_.data, times_.samples,
              times_.data_zero) {}

  void invert_in_time() {
    run_.note_kernel(scalar_type_of<C>);
    const OperatorPtr<R> A = multidimensional_convolution<R>(G_.on_arrays(G_.A), times_);
    SolveBytes bytes = solve_weighted_bytes(arguments_.common.solver, A, weights_, arguments_.sources);
    const Index arrays = bytes_of<R>(A->domain()) + bytes_of<R>(A->range());
    start_series(bytes, bytes.vectors + bytes.products + arrays);
    if (run_.plan({.solve = bytes, .arrays = arrays, .otherwise = G_.bytes_at_reading})) return;
    DistMatrix<R> given = given_traces(), other = others<R>(*A);
    invert<R>(
        run_, *A,
        G_.exact == nullptr ? A : multidimensional_convolution<R>(G_.on_arrays(G_.take_exact()), times_),
        own_, own_ ? other : given, own_ ? given : other,
        [&](const DistMatrix<R>& B, DistMatrix<R>& X) {
          run_.solve({A->rows(), A->cols(), B.cols(), scalar_type_of<R>}, [&](const SolveOptions& options) {
            return solve_weighted<R>(arguments_.common.solver, A, nullptr, weights_, B, X, options);
          });
        },
        [&](const char* name, DistMatrix<R>& X, bool is_data) {
          run_.save(name, arguments_.dims_in_file((is_data ? A->range() : A->domain()).dims), X);
        });
    note_series();
  }

  /// The transform of the kept band keeps norms, so the iterations equal those in time.
  void invert_in_frequency() {
    const OperatorPtr<C>& A = G_.A;
    std::optional<IndependentFrequencies<C>> frequencies;
    if (arguments_.independent) frequencies.emplace(arguments_, kernel_, G_, weights_);
    SolveOptions how;
    how.one_pass = reads_once();
    SolveBytes bytes =
        frequencies ? frequencies->bytes()
                    : solve_weighted_bytes(arguments_.common.solver, A, weights_, arguments_.sources, how);
    const Index arrays = bytes_of<C>(A->domain()) + bytes_of<C>(A->range());
    start_series(bytes, std::max(bytes.vectors + bytes.products + arrays, transform_bytes()));
    if (run_.plan(memory_in_frequency(bytes))) return;
    DistMatrix<C> given = (own_ ? data_ : models_).spectra_of(given_traces());
    release_scratch(*run_.grid());  // of the transform
    DistMatrix<C> other = others<C>(*A);
    invert<C>(
        run_, *A, G_.take_exact(), own_, own_ ? other : given, own_ ? given : other,
        [&](const DistMatrix<C>& B, DistMatrix<C>& X) {
          if (frequencies) return solve_alone(*frequencies, B, X);
          run_.solve(
              {A->rows(), A->cols(), arguments_.sources, scalar_type_of<C>}, [&](SolveOptions options) {
                options.one_pass = how.one_pass;
                return solve_weighted<C>(arguments_.common.solver, A, G_.data, weights_, B, X, options);
              });
        },
        [&](const char* name, DistMatrix<C>& X, bool is_data) {
          if (arguments_.common.save.empty()) return;
          const Transform<R>& transform = is_data ? data_ : models_;
          DistMatrix<R> in_time = transform.traces_of(X);
          release_scratch(*run_.grid());
          run_.save(name, arguments_.dims_in_file(transform.traces().dims), in_time);
        });
    note_series();
  }

 private:
  using C = std::complex<R>;

  template <Scalar T>
  Index bytes_of(const Space& space) const {
    return space.local_rows() * arguments_.sources * static_cast<Index>(sizeof(T));
  }
  /// The bytes that a rank has besides the kernel before the inversion in frequencies, or after.
  Index transform_bytes() const {
    const Index of_models = bytes_of<C>(G_.A->domain()), of_data = bytes_of<C>(G_.A->range()),
                columns = arguments_.sources;
    const Index transform = (own_ ? data_ : models_).bytes(columns);
    if (arguments_.common.save.empty()) return transform;
    return std::max(
        {transform, of_data + models_.bytes(columns), own_ ? 0 : of_models + data_.bytes(columns)});
  }
  InversionMemory memory_in_frequency(const SolveBytes& solve) const {
    const Index of_models = bytes_of<C>(G_.A->domain()), of_data = bytes_of<C>(G_.A->range()),
                columns = arguments_.sources, transform = transform_bytes();
    // Frequencies that are solved alone also have a packed slice, during the solve.
    Index kernel = arguments_.independent && G_.alone.empty()
                       ? kernel_.local_rows() * static_cast<Index>(sizeof(C))
                       : solve.operators;
    if (G_.exact != nullptr) kernel += G_.exact->kept_bytes(Partition::with_sizes({columns}));
    return {.solve = solve,
            .arrays = of_models + of_data,
            .otherwise = std::max(G_.bytes_at_reading, kernel + transform)};
  }

  /// Lets kernels on disks have what memory the inversion leaves, and adds that to its operators' (collective
  /// over the grid). inversion: what a rank takes for the inversion without the kernel. Throws UsageError on
  /// all ranks if that leaves too little.
  void start_series(SolveBytes& bytes, Index inversion) {
    if (!arguments_.on_disk) return;
    constexpr Index texts = Index{8} << 20;
    Communicator& comm = run_.grid()->comm();
    StreamedSeries<C>& series = *G_.series;
    const Range all{0, series.count()};
    // MPI has copies of what groups sum. Frequencies were read before, and the orders of compressed ones are
    // resident, but not what products take.
    const Partition columns = Partition::with_sizes({arguments_.sources});
    Index products = arguments_.compress ? 0 : bytes.operators;
    for (const OperatorPtr<C>& A : G_.alone.empty() ? std::vector{G_.A} : G_.alone)
      if (arguments_.compress)
        products = std::max(products, A->kept_bytes(columns) - A->kept_bytes(Partition()));
    const Index copies = bytes_of<C>(G_.A->domain()) + bytes_of<C>(G_.A->range()),
                beside = resident_bytes() + texts + copies + products + inversion;
    const Index least = std::max(peak_bytes(), beside + (all.size > 0 ? series.memory(0, all) : 0));
    std::array<Index, 2> most{beside, least};
    comm.all_reduce(most, ReduceOp::max);
    if (most[1] > arguments_.memory && arguments_.memory_is_given)
      throw UsageError(fmt::format("--memory is {}, but a rank takes at least {} with its kernels on a disk",
                                   bytes_text(arguments_.memory), bytes_text(most[1])));
    G_.series_memory = std::max<Index>(arguments_.memory - most[0], 0);
    attempt(comm, [&] { series.start(G_.series_memory, all); });
    bytes.operators += all.size > 0 ? series.memory(G_.series_memory, all) : 0;
  }
  void note_series() {
    if (!arguments_.on_disk) return;
    const StreamedSeries<C>& series = *G_.series;
    const ProcessGrid& grid = *run_.grid();
    run_.figure("disk_bytes", sum(grid, static_cast<double>(series.bytes_on_disk())));
    run_.figure("disk_bytes_read", sum(grid, static_cast<double>(series.bytes_read())));
    run_.figure("disk_seconds_waited", maximum(grid, series.seconds_waited()));
  }

  /// Whether CGLS reads the kernel once in an iteration. With few sources memory limits the products.
  bool reads_once() const {
    return arguments_.common.solver == Solver::cgls && arguments_.sources <= 4 && weights_.values.empty() &&
           !arguments_.independent && G_.A->has_one_pass() && G_.one_pass_pays;
  }

  /// The user's data, or a model that data are made of.
  DistMatrix<R> given_traces() const {
    const Space& traces = (own_ ? data_ : models_).traces();
    DistMatrix<R> given = allocate_matrix<R>(run_.grid(), traces.layout(arguments_.sources));
    if (own_) {
      read_data<R>(arguments_, traces, given);
      clear_missing<R>(weights_, traces, given);
      require_finite<R>(arguments_.data, given, {arguments_.dims_in_file(traces.dims)});
    } else {
      fill_model<R>(arguments_, traces, given);
    }
    return given;
  }
  /// Memory for the models of given data, or for the data of a given model.
  template <Scalar T>
  DistMatrix<T> others(const LinearOperator<T>& A) const {
    return allocate_matrix<T>(run_.grid(), (own_ ? A.domain() : A.range()).layout(arguments_.sources));
  }

  void solve_alone(IndependentFrequencies<C>& frequencies, const DistMatrix<C>& B, DistMatrix<C>& X) {
    SolveReport report;
    run_.solve({arguments_.ny, arguments_.nx, arguments_.frequencies * arguments_.sources, scalar_type_of<C>},
               [&](const SolveOptions& options) { return report = frequencies.solve(B, X, options); });
    run_.set_costs(frequencies.take_costs());
    if (!arguments_.common.tolerance) run_.option("tolerance", default_tolerance(scalar_type_of<C>));
    note_iterations(run_, report);
  }

  UseCase& run_;
  const MddArguments& arguments_;
  const bool own_ = arguments_.has_own_data();
  const Space kernel_;
  const Table weights_;
  KernelOperator<C> G_;
  const ConvolutionTimes times_;
  const Transform<R> models_, data_;
};

/// Returns the rules about options that exclude each other. The arguments have the sizes of files.
std::vector<Rule> rules_of(const MddArguments& arguments) {
  const Index most = arguments.has_own_data() ? arguments.frequencies : arguments.samples;
  const double error = arguments.compress.value_or(0.5);
  const Asked independent{"--independent", arguments.independent}, disk{"--storage disk", arguments.on_disk},
      compress{"--compress", arguments.compress.has_value()}, dry_run{"--dry-run", arguments.common.dry_run};
  return {
      {arguments.frequencies > most,
       fmt::format("--nf {} is too many: traces of {} samples, and as many negative times but one, have {} "
                   "frequencies",
                   arguments.frequencies, arguments.samples, most)},
      {!(arguments.interval > 0),
       fmt::format("--interval is {}, but samples need time between them", arguments.interval)},
      exclude(independent, {"--domain time", arguments.domain == "time"},
              "in time the frequencies are one problem"),
      {!(error > 0 && error < 1),
       fmt::format("--compress is {}, but the error of a kernel, relative to its norm, must be above 0 and "
                   "below 1",
                   error)},
      exclude(independent, {"--groups", arguments.groups},
              "a rank that shares a frequency cannot solve it alone"),
      {disk.is_so && arguments.common.device != "cpu",
       "--storage disk is for kernels in host memory, on --device cpu"},
      {disk.is_so && !arguments.kernel_is_complex,
       "--storage disk is for a --kernel of spectra: one in time, or one that is generated, becomes spectra "
       "in memory"},
      exclude(compress, dry_run, "how small a kernel becomes shows when it is compressed"),
      exclude(disk, dry_run, "a rank takes what --memory says, or what the machine leaves"),
  };
}

ExitStatus mdd(Communicator& world, const MddArguments& given) {
  MddArguments arguments = given;
  if (arguments.on_disk) return_freed_memory();
  if (arguments.has_own_data())
    read_mdd_sizes(world, arguments);
  else if (arguments.asked_frequencies > 0)
    arguments.frequencies = arguments.asked_frequencies;
  check_rules(rules_of(arguments));
  arguments.memory_is_given = arguments.memory > 0;
  if (arguments.on_disk && !arguments.memory_is_given) {
    const Index of_threads = address_space_of_disk_threads(world);
    arguments.memory = std::max<Index>(available_bytes_per_rank(world) - of_threads, 1);
  }
  std::vector<std::string> saved{"adjoint", "inverted"};
  if (!arguments.has_own_data()) saved.insert(saved.end(), {"model", "data"});
  UseCase run(world, "mdd", arguments.common, {world.size(), 1}, saved,
              {{"--kernel", arguments.kernel},
               {"--data", arguments.data},
               {"--weights", arguments.weights},
               {"--receiver-positions", arguments.receiver_positions},
               {"--source-positions", arguments.source_positions}});
  if ((arguments.compress || arguments.on_disk) && !arguments.independent) arguments.groups = true;
  if (arguments.frequencies < run.grid()->shape().size() && arguments.domain == "frequency" &&
      !arguments.independent)
    arguments.groups = true;
  run.option("domain", arguments.domain);
  run.option("independent", arguments.independent);
  run.option("groups", arguments.groups);
  if (arguments.compress) run.option("compress", *arguments.compress);
  if (arguments.on_disk) run.option("storage", "disk");
  return run.run([&]<Scalar R>() {
    Mdd<R> problem(run, arguments);
    arguments.domain == "time" ? problem.invert_in_time() : problem.invert_in_frequency();
  });
}

void define_own_data(Options& options, MddArguments& mdd) {
  options.group("Own data");
  options.text(
      "--kernel", mdd.kernel, "G",
      "The field between sources and receivers: real, samples x receivers x sources, or its spectra, "
      "complex, frequencies x receivers x sources, as numpy.fft.rfft makes them of as many samples as "
      "the data have. Each rank reads its part");
  options.text(
      "--data", mdd.data, "D",
      "Real traces, samples x receivers, or samples x receivers x shots: each shot is a right-hand "
      "side. The convolution is a sum over samples and sources, periodic in time. --dtype is that of "
      "the files");
  options.text(
      "--weights", mdd.weights, "W",
      "A weight for each trace of the data, which multiplies its residual, 0 where there is no trace: real, "
      "receivers, or receivers x shots");
  options.whole("--time-zero", mdd.first_sample, "K", 0,
                "The sample of the data, and of the model, that is time 0 [0]");
  for (const char* own : {"--data", "--weights", "--time-zero"}) options.need(own, "--kernel");
  options.need("--kernel", "--data");
  options.whole("--nf", mdd.asked_frequencies, "N", 1,
                "How many frequencies are kept, from 0 on [400; own data: all]");
}

void define_generated_data(Options& options, MddArguments& mdd) {
  constexpr double anywhere = std::numeric_limits<double>::lowest();
  options.group("Generated data");
  for (CLI::Option* generated :
       {options.whole("--nx", mdd.nx, "N", 1, "Traces of the model [121]"),
        options.number("--ox", mdd.ox, "M", anywhere, "Where the line of the model begins [-300]"),
        options.number("--dx", mdd.dx, "M", 0, "Metres between its traces [5]"),
        options.whole("--ny", mdd.ny, "N", 1, "Traces of the data [201]"),
        options.number("--oy", mdd.oy, "M", anywhere, "Where the line of the data begins [-500]"),
        options.number("--dy", mdd.dy, "M", 0, "Metres between its traces [5]"),
        options.whole("--samples", mdd.samples, "N", 1, "Samples of a trace; negative times are added [800]"),
        options.number("--interval", mdd.interval, "S", 0, "Seconds between samples [0.002]"),
        options.number("--frequency", mdd.frequency, "F", 0, "Of the Ricker wavelet, in Hz [20]"),
        options.whole("--half-wavelet", mdd.half_wavelet, "N", 0,
                      "Samples of the wavelet on either side of its peak [40]"),
        options.whole(
            "--sources", mdd.sources, "N", 1,
            "Virtual sources, evenly along the model: right-hand sides with a step of their own [1]")})
    generated->excludes(options.find("--kernel"));
}

void define_compression(Options& options, MddArguments& mdd) {
  options.group("Compressed kernel");
  options.number(
      "--compress", mdd.compress, "T", 0,
      "Compresses the kernel of every frequency by itself, and inverts what it becomes: the "
      "Frobenius norm of the error, relative to that of the kernel, is at most T, above 0 and below "
      "1. Implies --groups, unless --independent is given");
  options.text("--receiver-positions", mdd.receiver_positions, "P.npy",
               "Coordinates of the receivers, by which they are ordered for tiles of low rank");
  options.text("--source-positions", mdd.source_positions, "P.npy", "The same for the sources");
  for (const char* positions : {"--receiver-positions", "--source-positions"})
    options.need(positions, "--compress");
}

void define_disks(Options& options, MddArguments& mdd) {
  options.group("Kernel on disks");
  options.parsed(
      "--storage",
      [&mdd](const std::string& text) {
        if (text != "memory" && text != "disk")
          throw UsageError(fmt::format("--storage is {}, but must be memory or disk", text));
        mdd.on_disk = text == "disk";
      },
      "memory|disk",
      "Where a kernel of spectra is, compressed or not; disk: it is never whole in memory; each rank has its "
      "part on a disk, keeps in memory what has room there, and reads the rest ahead. Implies --groups, "
      "unless --independent is given; then a frequency that is solved has all the room [memory]");
  options.parsed(
      "--memory", [&mdd](const std::string& text) { mdd.memory = size_number(text, 1); }, "BYTES",
      "The most memory of a rank, such as 4G [what the machine and its control groups leave]");
  options.text("--scratch", mdd.scratch, "DIR",
               "Where --storage disk puts kernels, which are gone when the run ends [$TMPDIR, or /var/tmp]");
  options.need("--storage", "--kernel");
  for (const char* of_disk : {"--memory", "--scratch"}) options.need(of_disk, "--storage");
}

}  // namespace

Action define_mdd(Options& options) {
  const auto arguments = std::make_shared<MddArguments>();
  MddArguments& mdd = *arguments;
  mdd.common.iterations = 50;
  mdd.common.type = ScalarType::f32;
  define_own_data(options, mdd);
  define_generated_data(options, mdd);
  options.choice("--domain", mdd.domain, words({"frequency", "time"}),
                 "Where it is solved; the iterations are the same [frequency]");
  options.flag("--independent", mdd.independent,
               "Every frequency of a source has a step and a verdict of its own, and nothing is sent; "
               "--tolerance is then 1e-8, with f32 1e-4, if not given");
  options.flag("--groups", mdd.groups,
               "Groups of ranks share frequencies, so that all ranks have work where there are few; the cost "
               "model divides them. With --domain time each product then moves models and data [with fewer "
               "frequencies than ranks, unless --domain time or --independent is given]");
  define_compression(options, mdd);
  define_disks(options, mdd);
  define_use_case(options, mdd.common, {Solver::cgls, Solver::lsqr, Solver::lsmr}, "50");
  options.examples(
      {"mpirun -n 4 gridlops mdd --save mdd --cost mdd/cost.txt",
       "mpirun -n 4 gridlops mdd --kernel kernel.npy --data traces.npy --solver lsqr --save mine",
       "mpirun -n 4 gridlops mdd --sources 9 --independent --report mdd.json",
       "mpirun -n 4 gridlops mdd --compress 1e-3 --report mdd.json"});
  return [arguments](Communicator& world) { return program::mdd(world, *arguments); };
}

}  // namespace gridlops::program
