// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "command_line/option_rules.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/ops/array_operators.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "gridlops/solve/inversion.hpp"
#include "gridlops/solve/proximal.hpp"
#include "subcommands.hpp"
#include "use_cases/impedance.hpp"
#include "use_cases/objective.hpp"
#include "use_cases/own_arrays.hpp"
#include "use_cases/use_case.hpp"

namespace gridlops::program {

namespace {

enum class Regularization { none, normal_equations, stacked, tv };
const Names<Regularization> regularizations{{"none", Regularization::none},
                                            {"normal-equations", Regularization::normal_equations},
                                            {"stacked", Regularization::stacked},
                                            {"tv", Regularization::tv}};

struct PoststackArguments {
  UseCaseArguments common;
  ImpedanceArguments impedance;
  std::string data, background, wavelet, weights;  ///< names of arrays; empty: generated, or no weights
  Index samples_of_wavelets = 0;  ///< of an array of wavelets, one for each trace; 0: all traces have one
  std::string regularization = "none";
  double weight = 100;  ///< ε² of the Laplacian
  double sigma = 1e-2, tau = 0.99 / 12;
  Index inner = 20;

  Regularization kind() const { return value_of(regularization, regularizations); }
};

/// d = w ∗ ½(mᵢ₊₁ − mᵢ₋₁) along the samples, as one band.
template <Scalar T>
OperatorPtr<T> poststack_modelling(const Space& space, const std::vector<double>& wavelet) {
  const Index samples = space.dims.size(2), centre = static_cast<Index>(wavelet.size()) / 2;
  return band_operator<T>(space, 2,
                          product(convolution(samples, wavelet, centre), first_derivative(samples)));
}

/// Makes the operator with a wavelet of its own for each trace, in a file. is_planned: without memory.
template <Scalar T>
OperatorPtr<T> modelling_by_traces(const Space& space, const std::string& wavelets, Index length,
                                   bool is_planned) {
  const Dims& dims = space.dims;
  const Index centre = length / 2;
  LineBands convolutions{length - 1 - centre, centre, {}};
  std::vector<T> samples;
  if (!is_planned) {
    const Space own = with_last_dimension(space, length);
    const DistMatrix<T> read = read_own_array<T>(wavelets, own);
    samples.resize(static_cast<std::size_t>(read.local().size()));
    space.grid->backend()->download(read.local().data, samples.data(),
                                    read.local().size() * static_cast<Index>(sizeof(T)));
    convolutions.of = [&, box = own.local_box()](Index trace) {
      const Index line = trace / dims.size(1) - box[0].begin, place = trace % dims.size(1) - box[1].begin;
      const auto first = samples.begin() + (line * box[1].size + place) * length;
      return convolution(dims.size(2), {first, first + length}, centre);
    };
  }
  return product(band_operator<T>(space, 2, convolutions),
                 band_operator<T>(space, 2, first_derivative(dims.size(2))));
}

/// Smooths arrays, one after the other, without a shift: along lines, traces and samples, except along
/// dimensions that are too short.
template <Scalar T>
std::vector<OperatorPtr<T>> smoothing(const Space& space) {
  std::vector<OperatorPtr<T>> operators;
  const Index lengths[] = {5, 30, 20};
  for (int dim = 0; dim < 3; ++dim) {
    const Index length = lengths[dim], samples = space.dims.size(dim);
    if (samples > 3 * length)  // like SciPy's filtfilt, which extends this far
      operators.push_back(band_operator<T>(space, dim, box_smoothing(samples, length)));
  }
  return operators;
}

template <Scalar T>
DistMatrix<T> smoothed(const Space& space, const DistMatrix<T>& m) {
  DistMatrix<T> x = m.clone(), y = allocate_matrix<T>(space.grid, m.layout());
  for (const OperatorPtr<T>& S : smoothing<T>(space)) {
    S->apply(T(1), x, T(0), y);
    std::swap(x, y);
  }
  release_scratch(*space.grid);
  return x;
}

/// Notes the options that this regularization uses.
void note_options(UseCase& run, const PoststackArguments& arguments) {
  run.option("regularization", arguments.regularization);
  if (arguments.kind() == Regularization::none) return;
  if (arguments.kind() != Regularization::tv) return run.option("weight", arguments.weight);
  run.option("sigma", arguments.sigma);
  run.option("tau", arguments.tau);
  run.option("inner", arguments.inner);
}

template <Scalar T>
Index bytes_of_arrays(const Space& space, Index count) {
  return count * space.local_rows() * static_cast<Index>(sizeof(T));
}

/// The inversion of data d = G m, from the current m.
template <Scalar T>
class PoststackInversion {
 public:
  PoststackInversion(const PoststackArguments& arguments, const Space& space, OperatorPtr<T> G)
      : arguments_(arguments), space_(space), G_(std::move(G)) {
    const Regularizer<T> roughness{laplacian<T>(space, {{0}, {1}, {2}}), std::sqrt(arguments.weight)};
    normal_terms_.regularizers = {roughness};
    if (arguments.kind() == Regularization::stacked) terms_.regularizers = {roughness};
    terms_.solver = arguments.common.solver;
  }

  const LinearOperator<T>& G() const { return *G_; }

  /// Adds what this takes to what its caller has, and calls run.plan().
  bool plan(UseCase& run, InversionMemory memory) const {
    switch (arguments_.kind()) {
      case Regularization::normal_equations:
        memory.solve = normal_equations_inversion_bytes(G_, 1, normal_terms_);
        return run.plan(memory, name_of(Solver::cg));
      case Regularization::tv:
        memory.solve = admm_bytes(G_, gradients_, variation_, 1);
        if (has_costs()) memory.arrays += Objective<T>::bytes(gradients_, space_);
        return run.plan(memory, "admm");
      case Regularization::stacked:
      case Regularization::none:
        break;
    }
    memory.solve = regularized_inversion_bytes(G_, 1, terms_);
    return run.plan(memory);
  }

  void invert(UseCase& run, const DistMatrix<T>& d, DistMatrix<T>& m) const {
    std::shared_ptr<Objective<T>> objective;
    run.solve({G_->rows(), G_->cols(), 1, scalar_type_of<T>}, [&](SolveOptions options) {
      options.initial_guess = true;
      switch (arguments_.kind()) {
        case Regularization::normal_equations:
          return normal_equations_inversion(G_, d, m, normal_terms_, options);
        case Regularization::tv:
          if (has_costs())
            options.observers.push_back(
                objective = std::make_shared<Objective<T>>(variation_, 1, gradients_, space_));
          return admm(G_, gradients_, variation_, d, m,
                      {.common = options, .tau = arguments_.tau, .inner_iterations = arguments_.inner});
        case Regularization::stacked:
        case Regularization::none:
          break;
      }
      return regularized_inversion(G_, d, m, terms_, options);
    });
    if (objective != nullptr) run.set_costs(objective->costs());
  }

 private:
  bool has_costs() const { return !arguments_.common.cost.empty(); }

  const PoststackArguments& arguments_;
  const Space& space_;
  const OperatorPtr<T> G_, gradients_ = gradient<T>(space_, {1, 1, 1}, Derivative::Kind::forward);
  const ProximalPtr<T> variation_ = threshold_penalty<T>(Threshold::soft, arguments_.sigma);
  NormalEquationsTerms<T> normal_terms_;
  RegularizedTerms<T> terms_;
};

/// The model, the data and the inversion are there.
template <Scalar T>
InversionMemory memory_of_generated(const Impedance& impedance) {
  const Space& space = impedance.space();
  const Partition column = Partition::with_sizes({1});
  InversionMemory memory{.arrays = bytes_of_arrays<T>(space, 3) + impedance.bytes(),
                         .otherwise = impedance.bytes_at_reading()};
  Index kept = 0, products = 0;
  for (const OperatorPtr<T>& S : smoothing<T>(space)) {
    kept += S->kept_bytes(column);
    products = std::max(products, S->scratch_bytes(ProductKind::forward, column));
  }
  memory.otherwise = std::max(memory.otherwise, memory.arrays + kept + products);
  return memory;
}

/// Generates data, and inverts them from a smoothed model.
template <Scalar T>
void invert_generated(UseCase& run, const PoststackArguments& arguments) {
  const Impedance impedance(run.grid(), arguments.impedance, run.is_dry());
  const Space& space = impedance.space();
  const PoststackInversion<T> inversion(arguments, space, poststack_modelling<T>(space, trace_wavelet()));
  if (inversion.plan(run, memory_of_generated<T>(impedance))) return;
  const DistMatrix<T> model = impedance.model<T>();
  DistMatrix<T> m = smoothed(space, model);
  DistMatrix<T> d = allocate_matrix<T>(run.grid(), model.layout());
  inversion.G().apply(T(1), model, T(0), d);
  run.save("model", space.dims, model);
  run.save("background", space.dims, m);
  run.save("data", space.dims, d);
  const double norm = column_norms(model)[0];
  run.figure("norm of the model", norm);
  run.figure("norm of the background", column_norms(m)[0]);
  run.figure("norm of the data", column_norms(d)[0]);
  const auto error = [&] {
    DistMatrix<T> difference = m.clone();
    difference -= model;
    return column_norms(difference)[0] / norm;
  };
  if (norm > 0) run.figure("relative error of the background", error());
  inversion.invert(run, d, m);
  run.save("inverted", space.dims, m);
  if (norm > 0) run.figure("relative model error", error());
}

/// Reads data and the impedance to begin with, and inverts.
template <Scalar T>
void invert_own(UseCase& run, const PoststackArguments& arguments, const std::vector<Index>& sizes) {
  const Space space = array_space(run.grid(), sizes, arguments.impedance.cut);
  const Index length = arguments.samples_of_wavelets;
  const OperatorPtr<T> modelling =
      length > 0 ? modelling_by_traces<T>(space, arguments.wavelet, length, run.is_dry())
                 : poststack_modelling<T>(space, read_wavelet(run.grid(), arguments.wavelet));
  const auto [G, d] = read_own_data<T>(modelling, arguments.data, arguments.weights, run.is_dry());
  const PoststackInversion<T> inversion(arguments, space, G);
  InversionMemory memory{.arrays = bytes_of_arrays<T>(space, 2)};
  if (length > 0) {  // wavelets are read and copied, and the operator is made of the copy
    const Index wavelets = bytes_of_arrays<T>(with_last_dimension(space, length), 1);
    memory.otherwise = wavelets + std::max(wavelets, modelling->kept_bytes(Partition::with_sizes({1})));
  }
  if (inversion.plan(run, memory)) return;
  DistMatrix<T> m = read_own_array<T>(arguments.background, space);
  attempt(run.grid()->comm(), [&] {
    std::vector<T> values(static_cast<std::size_t>(m.local().size()));
    const Index bytes = m.local().size() * static_cast<Index>(sizeof(T));
    run.grid()->backend()->download(m.local().data, values.data(), bytes);
    for (T& value : values) {
      if (!(value > 0) || std::isinf(value))
        throw InputError(
            fmt::format("{}: an impedance is {}; all must be finite and > 0", arguments.background, value));
      value = std::log(value);
    }
    run.grid()->backend()->upload(values.data(), m.local().data, bytes);
  });
  run.figure("norm of the background", column_norms(m)[0]);
  run.figure("norm of the data", column_norms(d)[0]);
  inversion.invert(run, d, m);
  run.save("inverted", space.dims, m);
}

/// The sizes of the user's data, and of the background, which must be the same (collective over world).
std::vector<Index> own_sizes(Communicator& world, PoststackArguments& arguments) {
  const std::vector<const char*> dimensions{"lines", "traces", "samples"};
  const ArrayHeader data = read_own_header(world, arguments.data, "--data", dimensions),
                    background = read_own_header(world, arguments.background, "--background", dimensions);
  if (data.sizes != background.sizes || data.type != background.type)
    throw InputError(fmt::format("{} is {} of {}, but {} is {} of {}", arguments.data,
                                 fmt::join(data.sizes, " x "), name_of(data.type), arguments.background,
                                 fmt::join(background.sizes, " x "), name_of(background.type)));
  arguments.common.type = data.type;
  if (const std::vector<Index> wavelets = read_array_header(world, arguments.wavelet).sizes;
      wavelets.size() == 3) {
    const ArrayHeader header =
        read_own_header(world, arguments.wavelet, "--wavelet", {"lines", "traces", "samples of a wavelet"});
    if (wavelets[0] != data.sizes[0] || wavelets[1] != data.sizes[1] || wavelets[2] % 2 == 0 ||
        header.type != data.type)
      throw InputError(
          fmt::format("{} is {} of {}, but wavelets of the traces of {} are {} x {} of {}, each of "
                      "odd length",
                      arguments.wavelet, fmt::join(wavelets, " x "), name_of(header.type), arguments.data,
                      data.sizes[0], data.sizes[1], name_of(data.type)));
    arguments.samples_of_wavelets = wavelets[2];
  }
  return data.sizes;
}

ExitStatus poststack(Communicator& world, PoststackArguments arguments) {
  if (arguments.common.iterations < 0)
    arguments.common.iterations = arguments.kind() == Regularization::tv ? 40 : 100;
  const bool has_own_solver =
      arguments.kind() == Regularization::normal_equations || arguments.kind() == Regularization::tv;
  if (has_own_solver && arguments.common.solver != Solver::cgls)
    throw UsageError(
        fmt::format("--solver {} means nothing here: --regularization normal-equations is solved by CG, and "
                    "tv by ADMM with CGLS",
                    name_of(arguments.common.solver)));
  const bool has_own_data = !arguments.data.empty();
  const std::vector<Index> sizes = has_own_data ? own_sizes(world, arguments) : std::vector<Index>();
  std::vector<std::string> saved{"inverted"};
  if (!has_own_data) saved.insert(saved.end(), {"model", "background", "data"});
  UseCase run(world, "poststack", arguments.common, {world.size(), 1}, saved,
              {{"--model", arguments.impedance.model},
               {"--data", arguments.data},
               {"--background", arguments.background},
               {"--wavelet", arguments.wavelet},
               {"--weights", arguments.weights}});
  note_options(run, arguments);
  return run.run([&]<Scalar T>() {
    has_own_data ? invert_own<T>(run, arguments, sizes) : invert_generated<T>(run, arguments);
  });
}

}  // namespace

Action define_poststack(Options& options) {
  const auto arguments = std::make_shared<PoststackArguments>();
  arguments->common.iterations = -1;
  const auto by_regularization = std::make_shared<DependentOptions>("--regularization");
  options.group("Own data");
  options.text("--data", arguments->data, "D",
               "Real traces, lines x traces x samples; --dtype is that of the files");
  options.text("--background", arguments->background, "M0",
               "The acoustic impedance to begin with, > 0, in an array like that of the data");
  options.text("--wavelet", arguments->wavelet, "W",
               "A vector of odd length, in the samples of the data, whose middle is time 0, or lines x "
               "traces of these, one for each trace [a Ricker wavelet of 15 Hz in samples of 4 ms; own data "
               "need theirs]");
  define_weights(options, arguments->weights);
  for (const char* of_data : {"--background", "--wavelet"}) options.need("--data", of_data);
  options.need("--background", "--data");
  for (CLI::Option* generated : define_impedance(options, arguments->impedance))
    generated->excludes(options.find("--data"));
  options.group("Regularization");
  options.choice("--regularization", arguments->regularization, words(texts(regularizations)),
                 "A Laplacian, or total variation by ADMM, 40 iterations [none]");
  by_regularization->only(
      {"normal-equations", "stacked"},
      options.number("--weight", arguments->weight, "E", 0, "of the squared norm of the Laplacian [100]"));
  by_regularization->only(
      {"tv"}, options.number("--sigma", arguments->sigma, "S", 0, "of the total variation [0.01]"));
  by_regularization->only({"tv"}, options.number("--tau", arguments->tau, "T", 0, "of ADMM [0.0825]"));
  by_regularization->only(
      {"tv"}, options.whole("--inner", arguments->inner, "K", 1, "iterations of CGLS in each of ADMM [20]"));
  define_use_case(options, arguments->common, {Solver::cgls, Solver::lsqr, Solver::lsmr}, "100, of tv 40");
  options.examples(
      {"mpirun -n 4 gridlops poststack --save poststack",
       "mpirun -n 4 gridlops poststack --regularization tv --save poststack-tv",
       "mpirun -n 4 gridlops poststack --data section.npy --background smooth.npy --wavelet wavelet.npy "
       "--save mine"});
  return [arguments, by_regularization](Communicator& world) {
    check_rules(by_regularization->rules(arguments->regularization));
    return poststack(world, *arguments);
  };
}

}  // namespace gridlops::program
