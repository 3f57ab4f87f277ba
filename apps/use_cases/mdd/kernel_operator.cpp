// SPDX-License-Identifier: BSD-3-Clause
#include "use_cases/mdd/kernel_operator.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "command_line/grid.hpp"
#include "command_line/station_order.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/compressed/compressed_matrix.hpp"
#include "gridlops/dist/column_arithmetic.hpp"
#include "gridlops/ops/cost_model.hpp"
#include "gridlops/ops/fredholm.hpp"
#include "gridlops/ops/slice_groups.hpp"
#include "machine/machine_file.hpp"
#include "use_cases/mdd/files.hpp"
#include "use_cases/mdd/kernel.hpp"

namespace gridlops::program {

namespace {

/// The kernel as spectra, one column in the space `kernel`, or a plan of it.
template <Scalar R>
DistMatrix<std::complex<R>> spectra_of_kernel(bool is_planned, const MddArguments& arguments,
                                              const Space& kernel) {
  if (is_planned) return planned_matrix<std::complex<R>>(kernel.grid, kernel.layout(1));
  DistMatrix<std::complex<R>> entries =
      arguments.has_own_data() ? read_kernel<R>(arguments, kernel) : make_kernel<R>(arguments, kernel);
  release_scratch(*kernel.grid);  // of what brought the kernel here
  return entries;
}

template <Scalar C>
Index bytes_of(const DistMatrix<C>& matrix) {
  return matrix.local().size() * static_cast<Index>(sizeof(C));
}

/// ‖G‖ of the slices of all groups, of which those of this rank's have the norms norm_of() (collective over
/// the grid).
template <class Slice, class Norm>
double norm_of_slices(const SliceGroups& groups, const std::vector<Slice>& slices, Norm&& norm_of) {
  std::array<double, 1> square{0};
  for (const Slice& slice : slices) square[0] += std::pow(norm_of(slice), 2);
  const ProcessGrid& own = *groups.own_grid();
  if (!own.is_member() || own.comm().rank() > 0) square[0] = 0;  // once for each group
  groups.grid()->comm().all_reduce(square, ReduceOp::sum);
  return std::sqrt(square[0]);
}

template <Scalar C>
std::vector<DistMatrix<C>> planned_slices(const SliceGroups& groups, const MddArguments& arguments) {
  const auto& grid = groups.own_grid();
  std::vector<DistMatrix<C>> slices;
  for (Index k = 0; k < groups.own_slices().size; ++k)
    slices.push_back(
        planned_matrix<C>(grid, matrix_layout(Algorithm::stationary_a, *grid, arguments.ny, arguments.nx)));
  return slices;
}

template <Scalar R>
std::vector<DistMatrix<std::complex<R>>> slices_of_file(const MddArguments& arguments,
                                                        const SliceGroups& groups) {
  using C = std::complex<R>;
  std::vector<DistMatrix<C>> slices = allocate_slices<C>(groups);
  read_slices<R>(arguments, groups, [&](Index k, const ConstDistMatrix<C>& slice) {
    copy(slice, slices[static_cast<std::size_t>(k)]);
  });
  return slices;
}

template <Scalar R, Scalar C>
Index bytes_at_reading_slices(const MddArguments& arguments, const Space& kernel, const SliceGroups& groups,
                              const std::vector<DistMatrix<C>>& slices) {
  const Range own = groups.own_slices();
  const Index block = slices.empty() ? 0 : bytes_of(slices.front()), all = own.size * block;
  if (arguments.kernel_is_complex)
    return all + std::min(std::max(arguments.bytes_read_together(), block), all);
  // Whole slices of some frequencies become blocks of others; what a rank has of both does not travel.
  const Range read = kernel.local_box()[0];
  const Index kept = intersect(read, own).size * block,
              whole = kernel.local_rows() * static_cast<Index>(sizeof(C));
  return whole + std::max(bytes_of_part<R>(arguments, kernel.grid), all + (whole - kept) + (all - kept));
}

/// The ranks that share frequencies, as the cost model divides them; if frequencies are solved alone, each
/// rank for itself.
template <Scalar R>
SliceGroups groups_of(UseCase& run, const MddArguments& arguments,
                      const std::shared_ptr<const ProcessGrid>& grid) {
  const std::vector<ProductShape> slices(
      static_cast<std::size_t>(arguments.frequencies),
      {arguments.ny, arguments.nx, arguments.sources, scalar_type_of<std::complex<R>>});
  const int ranks = grid->shape().size();
  std::vector<RankGroup> groups;
  if (arguments.independent) {
    for (int rank = 0; rank < ranks; ++rank)
      groups.push_back({{1, 1}, Partition::balanced(arguments.frequencies, ranks).size(rank)});
  } else {
    groups = divide_ranks(slices, ranks,
                          with_shared_memory(model_of(read_machine(grid->comm(), ""), grid->comm()), *grid));
    run.figure("groups of ranks", static_cast<double>(groups.size()));
  }
  return {grid, slices, groups};
}

bool one_pass_pays(const SliceGroups& groups) {
  return std::all_of(groups.groups().begin(), groups.groups().end(), [&](const RankGroup& group) {
    return group.shape.size() == 1 || one_pass_is_faster(groups.slices().front(), group.shape);
  });
}

template <Scalar R>
KernelOperator<std::complex<R>> grouped_kernel(UseCase& run, const MddArguments& arguments,
                                               const Space& kernel, double scale) {
  using C = std::complex<R>;
  const auto& grid = kernel.grid;
  const SliceGroups groups = groups_of<R>(run, arguments, grid);
  std::vector<DistMatrix<C>> matrices =
      run.is_dry() ? planned_slices<C>(groups, arguments)
      : arguments.kernel_is_complex
          ? slices_of_file<R>(arguments, groups)
          : slices_of_kernel<C>(groups, kernel, spectra_of_kernel<R>(false, arguments, kernel));
  const Index bytes_at_reading = bytes_at_reading_slices<R>(arguments, kernel, groups, matrices);
  const Storage storage = faster_storage(groups);
  if (!run.is_dry())
    run.figure("norm of kernel", norm_of_slices(groups, matrices, frobenius_norm<C>) / scale);
  return {
      .A = grouped_slices<C>(groups, std::move(matrices), {.storage = storage}),
      .models = into_groups<C>(groups.models(), array_space(grid, {arguments.frequencies, arguments.nx}, 0)),
      .data = into_groups<C>(groups.data(), array_space(grid, {arguments.frequencies, arguments.ny}, 0)),
      .one_pass_pays = one_pass_pays(groups),
      .bytes_at_reading = bytes_at_reading};
}

/// Each frequency of the kernel by itself, and the kernel as it is if compressed ones do not make data.
/// Spectra in a file are never all in memory.
template <Scalar C>
struct SeparateSlices {
  std::vector<CompressedMatrixPtr<C>> compressed{};  // either these
  std::vector<StreamedMatrixPtr<C>> streamed{};      // or these
  std::shared_ptr<StreamedSeries<C>> series{};       // if they are on disks
  OperatorPtr<C> exact{};

  std::vector<OperatorPtr<C>> operators() const {
    std::vector<OperatorPtr<C>> all(compressed.begin(), compressed.end());
    all.insert(all.end(), streamed.begin(), streamed.end());
    return all;
  }
};
/// Their series, without matrices; null unless they go to disks. A fraction of the memory, so that parts that
/// are read ahead take little of it.
template <Scalar C>
std::shared_ptr<StreamedSeries<C>> series_of(const MddArguments& arguments) {
  if (!arguments.on_disk) return nullptr;
  return std::make_shared<StreamedSeries<C>>(
      StreamOptions{.scratch = arguments.scratch, .memory = arguments.memory / 16});
}

template <Scalar R>
SeparateSlices<std::complex<R>> compressed_slices(const MddArguments& arguments, const Space& kernel,
                                                  const SliceGroups& groups) {
  using C = std::complex<R>;
  Communicator& comm = groups.grid()->comm();
  const CompressionOptions options{
      .tolerance = *arguments.compress,
      .row_order = station_order(comm, arguments.receiver_positions, "the kernel", arguments.ny, "receivers"),
      .col_order = station_order(comm, arguments.source_positions, "the kernel", arguments.nx, "sources")};
  SeparateSlices<C> result{.series = series_of<C>(arguments)};
  const auto add = [&](const ConstDistMatrix<C>& slice) {
    result.compressed.push_back(result.series ? compress(slice, options, *result.series)
                                              : compress(slice, options));
  };
  if (arguments.kernel_is_complex) {
    read_slices<R>(arguments, groups, [&](Index, const ConstDistMatrix<C>& slice) { add(slice); });
    return result;
  }
  std::vector<DistMatrix<C>> slices =
      slices_of_kernel<C>(groups, kernel, spectra_of_kernel<R>(false, arguments, kernel));
  attempt(comm, [&] {
    for (DistMatrix<C>& slice : slices) {
      add(slice);
      if (arguments.has_own_data()) slice = DistMatrix<C>();
    }
  });
  if (!arguments.has_own_data()) result.exact = grouped_slices<C>(groups, std::move(slices));
  return result;
}

/// Of a kernel of spectra in a file.
template <Scalar R>
SeparateSlices<std::complex<R>> streamed_slices(const MddArguments& arguments, const SliceGroups& groups) {
  using C = std::complex<R>;
  SeparateSlices<C> result{.series = series_of<C>(arguments)};
  read_slices<R>(arguments, groups, [&](Index, const ConstDistMatrix<C>& slice) {
    result.streamed.push_back(result.series->add(slice));
  });
  return result;
}

/// Notes the norm of the kernel, and what compression made of it (collective over the grid).
template <Scalar C>
void note_compression(UseCase& run, const SliceGroups& groups,
                      const std::vector<CompressedMatrixPtr<C>>& slices, double scale) {
  double norm_squared = 0, error_squared = 0, dense_bytes = 0, bytes = 0;
  std::array<double, 1> largest{0};
  for (const CompressedMatrixPtr<C>& slice : slices) {
    const CompressionReport& report = slice->report();
    norm_squared += std::pow(report.norm, 2);
    error_squared += std::pow(report.error * report.norm, 2);
    dense_bytes += static_cast<double>(report.dense_bytes);
    bytes += static_cast<double>(report.bytes);
    largest[0] = std::max(largest[0], report.error);
  }
  std::array<double, 4> sums{norm_squared, error_squared, dense_bytes, bytes};
  const ProcessGrid& own = *groups.own_grid();
  if (!own.is_member() || own.comm().rank() > 0) sums = {};  // once for each group
  Communicator& comm = groups.grid()->comm();
  comm.all_reduce(sums, ReduceOp::sum);
  comm.all_reduce(largest, ReduceOp::max);
  run.figure("norm of kernel", std::sqrt(sums[0]) / scale);
  run.figure("error of the compressed kernel", sums[0] > 0 ? std::sqrt(sums[1] / sums[0]) : 0);
  run.figure("largest error of a frequency", largest[0]);
  run.figure("times smaller", sums[3] > 0 ? sums[2] / sums[3] : 1);
}

template <Scalar R>
Index bytes_at_separating(const MddArguments& arguments, const Space& kernel, const SliceGroups& groups,
                          const SeparateSlices<std::complex<R>>& separate) {
  using C = std::complex<R>;
  Index bytes = 0;  // with those that are on disks the factors of one
  for (const CompressedMatrixPtr<C>& slice : separate.compressed) bytes += slice->kept_bytes(Partition());
  if (arguments.on_disk)
    for (const CompressedMatrixPtr<C>& slice : separate.compressed)
      bytes = std::max(bytes, slice->report().bytes / groups.own_grid()->shape().size());
  const std::vector<DistMatrix<C>> slices = planned_slices<C>(groups, arguments);
  Index whole = 0;
  for (const DistMatrix<C>& slice : slices) whole += bytes_of(slice);
  const Index read = bytes_at_reading_slices<R>(arguments, kernel, groups, slices);
  return bytes + (arguments.kernel_is_complex ? read - whole : read);
}

/// Frequencies that are compressed, on disks, or both.
template <Scalar R>
KernelOperator<std::complex<R>> separate_kernel(UseCase& run, const MddArguments& arguments,
                                                const Space& kernel, double scale) {
  using C = std::complex<R>;
  const auto& grid = kernel.grid;
  const SliceGroups groups = groups_of<R>(run, arguments, grid);
  const SeparateSlices<C> slices = arguments.compress ? compressed_slices<R>(arguments, kernel, groups)
                                                      : streamed_slices<R>(arguments, groups);
  if (arguments.compress) {
    note_compression<C>(run, groups, slices.compressed, scale);
  } else {
    const auto norm_of = [](const StreamedMatrixPtr<C>& slice) { return slice->frobenius_norm(); };
    run.figure("norm of kernel", norm_of_slices(groups, slices.streamed, norm_of) / scale);
  }
  const std::vector<OperatorPtr<C>> operators = slices.operators();
  KernelOperator<C> G{
      .A = grouped_slices<C>(groups, operators),
      .models = into_groups<C>(groups.models(), array_space(grid, {arguments.frequencies, arguments.nx}, 0)),
      .data = into_groups<C>(groups.data(), array_space(grid, {arguments.frequencies, arguments.ny}, 0)),
      .series = slices.series,
      .exact = slices.exact,
      .one_pass_pays = one_pass_pays(groups),
      .bytes_at_reading = bytes_at_separating<R>(arguments, kernel, groups, slices)};
  if (!arguments.independent) return G;
  // Groups of one rank have the frequencies in their order. Each is a problem in arrays, as the whole is.
  std::vector<OperatorPtr<C>> alone;
  for (const OperatorPtr<C>& slice : operators) {
    const auto one = [&](Index traces) { return array_space(slice->domain().grid, {1, traces}, 0); };
    alone.push_back(product<C>(identity<C>(one(arguments.ny), slice->range()),
                               product<C>(slice, identity<C>(slice->domain(), one(arguments.nx)))));
  }
  return {.A = G.on_arrays(G.A),
          .alone = std::move(alone),
          .series = G.series,
          .exact = slices.exact == nullptr ? nullptr : G.on_arrays(slices.exact),
          .bytes_at_reading = G.bytes_at_reading};
}

template <Scalar R>
KernelOperator<std::complex<R>> whole_kernel(UseCase& run, const MddArguments& arguments, const Space& kernel,
                                             double scale) {
  using C = std::complex<R>;
  KernelOperator<C> G{.entries = spectra_of_kernel<R>(run.is_dry(), arguments, kernel)};
  G.bytes_at_reading =
      bytes_of(G.entries) + (arguments.kernel_is_complex ? 0 : bytes_of_part<R>(arguments, kernel.grid));
  if (!run.is_dry()) run.figure("norm of kernel", frobenius_norm<C>(G.entries) / scale);
  G.A = fredholm<C>(kernel, arguments.independent
                                ? DistMatrix<C>(kernel.grid, G.entries.layout(), G.entries.local())
                                : std::exchange(G.entries, DistMatrix<C>()));
  return G;
}

}  // namespace

template <Scalar R>
KernelOperator<std::complex<R>> kernel_operator(UseCase& run, const MddArguments& arguments,
                                                const Space& kernel) {
  const double scale =
      arguments.has_own_data() ? 1 : arguments.interval * std::sqrt(static_cast<double>(arguments.samples));
  if (arguments.compress || arguments.on_disk) return separate_kernel<R>(run, arguments, kernel, scale);
  return arguments.groups ? grouped_kernel<R>(run, arguments, kernel, scale)
                          : whole_kernel<R>(run, arguments, kernel, scale);
}

template KernelOperator<std::complex<float>> kernel_operator<float>(UseCase&, const MddArguments&,
                                                                    const Space&);
template KernelOperator<std::complex<double>> kernel_operator<double>(UseCase&, const MddArguments&,
                                                                      const Space&);

}  // namespace gridlops::program
