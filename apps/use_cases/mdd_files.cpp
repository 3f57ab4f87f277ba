// SPDX-License-Identifier: BSD-3-Clause
#include "use_cases/mdd_files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "gridlops/io/array_file.hpp"
#include "gridlops/ops/fourier.hpp"
#include "gridlops/ops/fredholm.hpp"
#include "gridlops/ops/operator_algebra.hpp"

namespace gridlops::program {

namespace {

bool is_complex(ScalarType type) { return type == ScalarType::c64 || type == ScalarType::c128; }
bool is_double(ScalarType type) { return type == ScalarType::f64 || type == ScalarType::c128; }

std::string sizes_text(const std::vector<Index>& sizes) { return fmt::format("{}", fmt::join(sizes, " x ")); }

void require_dimensions(const std::string& path, const ArrayHeader& header, const char* option,
                        const char* wanted, std::initializer_list<std::size_t> counts) {
  if (std::find(counts.begin(), counts.end(), header.sizes.size()) == counts.end())
    throw InputError(
        fmt::format("{}: {} must be {}, but is {}", path, option, wanted, sizes_text(header.sizes)));
  if (std::find(header.sizes.begin(), header.sizes.end(), 0) != header.sizes.end())
    throw InputError(fmt::format("{}: {} has no elements: {}", path, option, sizes_text(header.sizes)));
}

/// Turns every slice of this rank's block from rows × cols into cols × rows, both row after row.
template <Scalar T>
void transpose_slices(DistMatrix<T>& G, Index rows, Index cols) {
  Backend& backend = *G.grid()->backend();
  const Index bytes = rows * cols * static_cast<Index>(sizeof(T));
  std::vector<T> slice(static_cast<std::size_t>(rows * cols)), turned(slice.size());
  const MatrixView<T> block = G.local();
  for (Index first = 0; first < block.size(); first += rows * cols) {
    backend.download(block.data + first, slice.data(), bytes);
    for (Index i = 0; i < rows; ++i)
      for (Index j = 0; j < cols; ++j)
        turned[static_cast<std::size_t>(j * rows + i)] = slice[static_cast<std::size_t>(i * cols + j)];
    backend.upload(turned.data(), block.data + first, bytes);
  }
}

template <Scalar C>
void read_spectra(const MddArguments& arguments, const ArrayHeader& header, const Space& kernel,
                  DistMatrix<C>& G) {
  const Index receivers = arguments.ny, sources = arguments.nx;
  const Space in_file = array_space(kernel.grid, {arguments.frequencies, receivers, sources}, 0);
  // Slices lie on the same ranks in both spaces, so the blocks have the same sizes.
  DistMatrix<C> view(kernel.grid, in_file.layout(1), G.local());
  read_array(arguments.kernel, header, in_file.dims, view);
  transpose_slices(G, receivers, sources);
}

/// Spectra G(f) = Σ_t g(t) exp(−2πi f t / n) over the n samples of the data, of a kernel in time.
template <Scalar R>
void read_times(const MddArguments& arguments, const ArrayHeader& header, const Space& kernel,
                DistMatrix<std::complex<R>>& G) {
  using C = std::complex<R>;
  const auto& grid = kernel.grid;
  const Index receivers = arguments.ny, sources = arguments.nx, samples = header.sizes[0];
  const Space in_file = array_space(grid, {samples, receivers, sources}, 1);
  DistMatrix<R> read = allocate_matrix<R>(grid, in_file.layout(1));
  read_array(arguments.kernel, header, in_file.dims, read);
  // A block of receivers, with all sources, is a block of traces. Zeros follow up to the samples of the data.
  std::vector<Index> traces;
  for (int part = 0; part < in_file.dims.blocks(); ++part)
    traces.push_back(in_file.dims.block(part)[1].size * sources);
  const Dims lengthened({Partition::with_sizes({arguments.axis_samples()}), Partition::with_sizes(traces)});
  const Space in_time = array_space(grid, lengthened, Axis::all);
  DistMatrix<R> long_traces = allocate_matrix<R>(grid, in_time.layout(1));
  long_traces.set_zero();
  const MatrixView<R> block = read.local();
  grid->backend()->template kernels<R>().copy(block, long_traces.local().row_block({0, block.rows}));
  read = DistMatrix<R>();

  const Space by_traces = array_space(grid, {arguments.frequencies, receivers * sources}, 0);
  const OperatorPtr<R> F = trace_spectra<R>(by_traces, arguments.axis_samples());
  DistMatrix<R> balanced = allocate_matrix<R>(grid, F->domain().layout(1));
  identity<R>(F->domain(), in_time)->apply(R(1), long_traces, R(0), balanced);
  long_traces = DistMatrix<R>();
  DistMatrix<C> view(grid, by_traces.layout(1), G.local());
  DistMatrix<R> pairs = pairs_of(by_traces, view);
  // The transform keeps norms, with one of every two conjugate frequencies: √(2/n) times the sum, 1/√n where
  // there is no other.
  const auto n = static_cast<double>(arguments.axis_samples());
  F->apply(static_cast<R>(std::sqrt(n / 2)), balanced, R(0), pairs);
  const Range own = by_traces.local_box()[0];
  for (const Index frequency : {Index{0}, arguments.axis_samples() / 2}) {
    const bool is_alone = frequency == 0 || 2 * frequency == arguments.axis_samples();
    if (!is_alone || frequency < own.begin || frequency >= own.end()) continue;
    const Index row = (frequency - own.begin) * receivers * sources;
    const MatrixView<C> slice = view.local().row_block({row, receivers * sources});
    grid->backend()->template kernels<C>().add(static_cast<R>(std::numbers::sqrt2), slice, C(0), slice);
  }
  transpose_slices(G, receivers, sources);
}

}  // namespace

void read_mdd_sizes(Communicator& world, MddArguments& arguments) {
  const ArrayHeader kernel = read_array_header(world, arguments.kernel);
  const ArrayHeader data = read_array_header(world, arguments.data);
  require_dimensions(arguments.kernel, kernel, "--kernel",
                     "frequencies (complex) or samples (real) x receivers x sources", {3});
  require_dimensions(arguments.data, data, "--data", "samples x receivers, or samples x receivers x shots",
                     {2, 3});
  if (is_complex(data.type))
    throw InputError(fmt::format("{}: data are real traces in time", arguments.data));
  arguments.own_samples = data.sizes[0];
  arguments.ny = data.sizes[1];
  arguments.sources = data.sizes.size() == 3 ? data.sizes[2] : 1;
  arguments.nx = kernel.sizes[2];
  if (kernel.sizes[1] != arguments.ny)
    throw InputError(fmt::format("{} has {} receivers ({}), but {} has {} ({})", arguments.kernel,
                                 kernel.sizes[1], sizes_text(kernel.sizes), arguments.data, arguments.ny,
                                 sizes_text(data.sizes)));
  const Index most = arguments.own_samples / 2 + 1;
  const bool in_time = !is_complex(kernel.type);
  if (kernel.sizes[0] > (in_time ? arguments.own_samples : most))
    throw InputError(fmt::format("{} has {} {}, but data of {} samples have {} at most", arguments.kernel,
                                 kernel.sizes[0], in_time ? "samples" : "frequencies", arguments.own_samples,
                                 in_time ? arguments.own_samples : most));
  const Index available = in_time ? most : kernel.sizes[0];
  if (arguments.asked_frequencies > available)
    throw UsageError(
        fmt::format("--nf {} is too many: there are {} frequencies", arguments.asked_frequencies, available));
  if (!in_time && arguments.asked_frequencies > 0 && arguments.asked_frequencies < available)
    throw UsageError(
        fmt::format("--nf {}: {} has {} frequencies, which are read whole; leave some out in its "
                    "name where it is in an HDF5 file, as in K.h5:/G@0:{}",
                    arguments.asked_frequencies, arguments.kernel, available, arguments.asked_frequencies));
  arguments.frequencies = arguments.asked_frequencies > 0 ? arguments.asked_frequencies : available;
  if (arguments.first_sample >= arguments.own_samples)
    throw UsageError(fmt::format("--time-zero {}: the data have {} samples", arguments.first_sample,
                                 arguments.own_samples));
  if (is_double(kernel.type) != is_double(data.type))
    throw InputError(fmt::format("{} is {}, but {} is {}: both must be of one precision", arguments.kernel,
                                 name_of(kernel.type), arguments.data, name_of(data.type)));
  arguments.common.type = is_double(data.type) ? ScalarType::f64 : ScalarType::f32;
}

template <Scalar R>
DistMatrix<std::complex<R>> read_kernel(const MddArguments& arguments, const Space& kernel) {
  DistMatrix<std::complex<R>> G = allocate_matrix<std::complex<R>>(kernel.grid, kernel.layout(1));
  const ArrayHeader header = read_array_header(kernel.grid->comm(), arguments.kernel);
  if (is_complex(header.type))
    read_spectra(arguments, header, kernel, G);
  else
    read_times<R>(arguments, header, kernel, G);
  return G;
}

template <Scalar R>
void read_data(const MddArguments& arguments, const Space& space, DistMatrix<R>& data) {
  read_array(arguments.data, read_array_header(space.grid->comm(), arguments.data), space.dims, data);
}

Table read_pair_weights(const MddArguments& arguments, const std::shared_ptr<const ProcessGrid>& grid) {
  if (arguments.weights.empty()) return {};
  Table weights = read_table(grid, arguments.weights);
  if (weights.rows != arguments.ny || (weights.cols != 1 && weights.cols != arguments.sources))
    throw InputError(fmt::format(
        "{} is {} x {}, but must have a weight for each of the {} receivers, or for each of "
        "them and of the {} shots of {}",
        arguments.weights, weights.rows, weights.cols, arguments.ny, arguments.sources, arguments.data));
  for (const double weight : weights.values)
    if (weight < 0)
      throw InputError(
          fmt::format("{}: a weight is {}, but must not be negative; 0 stands for a missing trace",
                      arguments.weights, weight));
  return weights;
}

#define GRIDLOPS_INSTANTIATE(R)                                                           \
  template DistMatrix<std::complex<R>> read_kernel<R>(const MddArguments&, const Space&); \
  template void read_data(const MddArguments&, const Space&, DistMatrix<R>&);
GRIDLOPS_INSTANTIATE(float)
GRIDLOPS_INSTANTIATE(double)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops::program
