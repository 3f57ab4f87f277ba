// SPDX-License-Identifier: BSD-3-Clause
#include "use_cases/mdd/files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "command_line/console.hpp"
#include "command_line/finite_checks.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/io/array_file.hpp"
#include "gridlops/local/backend.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "use_cases/mdd/kernel.hpp"

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
  read_array(arguments.kernel, header, {{0, arguments.frequencies}, {0, receivers}, {0, sources}},
             in_file.dims, view);
  require_finite<C>(arguments.kernel, view, {in_file.dims});
  transpose_slices(G, receivers, sources);
}

/// Reads the traces of these receivers, from all sources, and puts their spectra into a kernel.
template <Scalar R>
void read_receivers(const MddArguments& arguments, const ArrayHeader& header, Range receivers,
                    DistMatrix<std::complex<R>>& G) {
  const auto& grid = G.grid();
  const Index sources = arguments.nx, samples = header.sizes[0];
  const Space in_file = array_space(grid, {samples, receivers.size, sources}, 1);
  const auto fill = [&](const Space& space, DistMatrix<R>& X) {
    // A block of receivers, with all sources, is a block of traces. Zeros follow up to the samples of the
    // data.
    std::vector<Index> traces;
    for (int part = 0; part < in_file.dims.blocks(); ++part)
      traces.push_back(in_file.dims.block(part)[1].size * sources);
    const Dims lengthened({Partition::with_sizes({arguments.axis_samples()}), Partition::with_sizes(traces)});
    const Space in_time = array_space(grid, lengthened, Axis::all);
    DistMatrix<R> long_traces = allocate_matrix<R>(grid, in_time.layout(1));
    long_traces.set_zero();
    DistMatrix<R> recorded(grid, in_file.layout(1), long_traces.local().row_block({0, in_file.local_rows()}));
    read_array(arguments.kernel, header, {{0, samples}, receivers, {0, sources}}, in_file.dims, recorded);
    require_finite<R>(arguments.kernel, recorded, {in_file.dims, {0, receivers.begin, 0}});
    identity<R>(space, in_time)->apply(R(1), long_traces, R(0), X);
  };
  DistMatrix<std::complex<R>> spectra =
      spectra_of_traces<R>(arguments, grid, receivers.size * sources, 1, fill);
  transpose_slices(spectra, receivers.size, sources);
  put_slices<std::complex<R>>(arguments, {0, sources}, receivers, spectra, G);
}

/// The largest number of a slice of spectra, and its largest imaginary part.
struct Largest {
  double number = 0, imaginary = 0;
};

/// slice: scratch memory for a frequency of the kernel in this space.
template <Scalar R>
Largest largest_in_slice(const MddArguments& arguments, const ArrayHeader& kernel, const Space& space,
                         DistMatrix<std::complex<R>>& slice, Index frequency) {
  read_array(arguments.kernel, kernel, {{frequency, 1}, {0, arguments.ny}, {0, arguments.nx}}, space.dims,
             slice);
  std::array<double, 2> largest{};
  for (Index k = 0; k < slice.local().size(); ++k) {
    const std::complex<R> element = slice.local().data[k];
    const double real = std::abs(static_cast<double>(element.real())),
                 imaginary = std::abs(static_cast<double>(element.imag()));
    largest = {std::max({largest[0], real, imaginary}), std::max(largest[1], imaginary)};
  }
  space.grid->comm().all_reduce(largest, ReduceOp::max);
  return {largest[0], largest[1]};
}

/// Throws InputError unless spectra can be those of real traces of as many samples as the data have: then
/// frequency 0 is real, and so is half the sampling rate, the last frequency of an even number of samples
/// and of no odd one. Others would make complex traces, or have other frequencies than the data.
template <Scalar R>
void check_spectra(Communicator& world, const MddArguments& arguments, const ArrayHeader& kernel) {
  const Index samples = arguments.own_samples, last = kernel.sizes[0] - 1;
  const auto grid =
      std::make_shared<const ProcessGrid>(world, GridShape{world.size(), 1}, make_host_backend());
  const Space space = array_space(grid, {1, arguments.ny, arguments.nx}, 1);
  DistMatrix<std::complex<R>> scratch = allocate_matrix<std::complex<R>>(grid, space.layout(1));
  const auto largest_at = [&](Index frequency) {
    return largest_in_slice<R>(arguments, kernel, space, scratch, frequency);
  };
  const Largest first = largest_at(0), end = largest_at(last);
  Largest between;
  constexpr Index steps = 8;
  for (Index step = 1; step < steps; ++step) {
    const Largest slice = largest_at(last * step / steps);
    between = {std::max(between.number, slice.number), std::max(between.imaginary, slice.imaginary)};
  }
  // Half of the digits: phases of shifted traces have lost some.
  const double rounding = std::sqrt(static_cast<double>(std::numeric_limits<R>::epsilon())) *
                          std::max({first.number, between.number, end.number});
  if (first.imaginary > rounding)
    throw InputError(fmt::format(
        "{}: frequency 0 has imaginary parts up to {:.3g}, but that of spectra of real traces is real",
        arguments.kernel, first.imaginary));
  if (last != samples / 2 || last == 0) return;
  const bool is_real = end.imaginary <= rounding;
  const bool tells = std::min(end.number, between.imaginary) > 10 * rounding;  // it is not real by itself
  if (samples % 2 == 0 ? is_real : !is_real || !tells) return;
  throw InputError(fmt::format(
      "{}: frequency {}, the last, is {}, so these are not the spectra of {} samples, which {} has, but "
      "perhaps of {}: make spectra of as many samples as the data have",
      arguments.kernel, last,
      is_real ? "real" : fmt::format("not real, with imaginary parts up to {:.3g}", end.imaginary), samples,
      arguments.data, is_real ? samples - 1 : samples + 1));
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
  arguments.counts_one_shot = data.sizes.size() == 3 && arguments.sources == 1;
  arguments.nx = kernel.sizes[2];
  if (kernel.sizes[1] != arguments.ny)
    throw InputError(fmt::format("{} has {} receivers ({}), but {} has {} ({})", arguments.kernel,
                                 kernel.sizes[1], sizes_text(kernel.sizes), arguments.data, arguments.ny,
                                 sizes_text(data.sizes)));
  const Index most = arguments.own_samples / 2 + 1;
  arguments.kernel_is_complex = is_complex(kernel.type);
  const bool in_time = !arguments.kernel_is_complex;
  if (kernel.sizes[0] > (in_time ? arguments.own_samples : most))
    throw InputError(fmt::format("{} has {} {}, but data of {} samples have {} at most", arguments.kernel,
                                 kernel.sizes[0], in_time ? "samples" : "frequencies", arguments.own_samples,
                                 in_time ? arguments.own_samples : most));
  const Index available = in_time ? most : kernel.sizes[0];
  if (arguments.asked_frequencies > available)
    throw UsageError(
        fmt::format("--nf {} is too many: there are {} frequencies", arguments.asked_frequencies, available));
  arguments.frequencies = arguments.asked_frequencies > 0 ? arguments.asked_frequencies : available;
  if (arguments.first_sample >= arguments.own_samples)
    throw UsageError(fmt::format("--time-zero {}: the data have {} samples", arguments.first_sample,
                                 arguments.own_samples));
  if (is_double(kernel.type) != is_double(data.type))
    throw InputError(fmt::format("{} is {}, but {} is {}: both must be of one precision", arguments.kernel,
                                 name_of(kernel.type), arguments.data, name_of(data.type)));
  arguments.common.type = is_double(data.type) ? ScalarType::f64 : ScalarType::f32;
  if (arguments.kernel_is_complex)
    is_double(kernel.type) ? check_spectra<double>(world, arguments, kernel)
                           : check_spectra<float>(world, arguments, kernel);
}

template <Scalar R>
DistMatrix<std::complex<R>> read_kernel(const MddArguments& arguments, const Space& kernel) {
  DistMatrix<std::complex<R>> G = allocate_matrix<std::complex<R>>(kernel.grid, kernel.layout(1));
  const ArrayHeader header = read_array_header(kernel.grid->comm(), arguments.kernel);
  if (arguments.kernel_is_complex) {
    read_spectra(arguments, header, kernel, G);
    return G;
  }
  const Partition parts = parts_of_kernel<R>(arguments, *kernel.grid, arguments.ny, arguments.nx);
  for (int part = 0; part < parts.parts(); ++part) read_receivers<R>(arguments, header, parts.range(part), G);
  return G;
}

template <Scalar R>
void read_slices(const MddArguments& arguments, const SliceGroups& groups,
                 const UseSlice<std::complex<R>>& use) {
  using C = std::complex<R>;
  Communicator& comm = groups.grid()->comm();
  const ArrayHeader header = read_array_header(comm, arguments.kernel);
  attempt(comm, [&] {
    if (groups.own_slices().size == 0) return;
    // Several slices at a time lie one after the other in every column.
    const auto& grid = groups.own_grid();
    const Layout one = matrix_layout(Algorithm::stationary_a, *grid, arguments.ny, arguments.nx);
    const Partition& rows = one.rows.partition;
    const Index bytes = rows.largest() * one.cols.partition.largest() * Index{sizeof(C)};
    const Index own = groups.own_slices().size;
    const Index batch = std::clamp<Index>(arguments.bytes_read_together() / bytes, 1, own);
    for (Index first = 0; first < own; first += batch) {
      const Index count = std::min(batch, own - first);
      std::vector<Partition> cuts{Partition::with_sizes({count}), rows};
      if (arguments.nx == 1) cuts.push_back(Partition::with_sizes({1}));
      const Dims dims(cuts);
      Layout several = one;
      several.rows.partition = dims.rows();
      DistMatrix<C> read = allocate_matrix<C>(grid, several);
      read_array(arguments.kernel, header,
                 {{groups.own_slices().begin + first, count}, {0, arguments.ny}, {0, arguments.nx}}, dims,
                 read);
      require_finite<C>(arguments.kernel, read,
                        {dims, {groups.own_slices().begin + first}, comm.rank() - grid->comm().rank()});
      const Index height = rows.size(grid->my_row());
      for (Index k = 0; k < count; ++k)
        use(first + k, {grid, one, MatrixView<const C>(read.local()).row_block({k * height, height})});
    }
  });
}

template <Scalar R>
void read_data(const MddArguments& arguments, const Space& space, DistMatrix<R>& data) {
  read_array(arguments.data, read_array_header(space.grid->comm(), arguments.data),
             arguments.dims_in_file(space.dims), data);
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
  std::vector<Index> missing;
  for (Index shot = 0; shot < weights.cols; ++shot) {
    const auto first = weights.values.begin() + shot * weights.rows;
    if (std::all_of(first, first + weights.rows, [](double weight) { return weight == 0; }))
      missing.push_back(shot);
  }
  if (grid->is_member() && grid->comm().rank() == 0) warn_of_no_data("shot", missing, "the model");
  return weights;
}

#define GRIDLOPS_INSTANTIATE(R)                                                                            \
  template DistMatrix<std::complex<R>> read_kernel<R>(const MddArguments&, const Space&);                  \
  template void read_slices<R>(const MddArguments&, const SliceGroups&, const UseSlice<std::complex<R>>&); \
  template void read_data(const MddArguments&, const Space&, DistMatrix<R>&);
GRIDLOPS_INSTANTIATE(float)
GRIDLOPS_INSTANTIATE(double)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops::program
