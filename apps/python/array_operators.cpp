// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/ops/array_operators.hpp"

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gridlops/ops/fourier.hpp"
#include "gridlops/ops/fredholm.hpp"
#include "gridlops/ops/kirchhoff.hpp"
#include "native.hpp"

namespace gridlops::python {
namespace {

Derivative::Kind parse_kind(const std::string& name) {
  if (name == "forward") return Derivative::Kind::forward;
  if (name == "backward") return Derivative::Kind::backward;
  if (name == "centered") return Derivative::Kind::centered;
  throw UsageError("there is no derivative of kind '" + name + "': take forward, backward or centered");
}

FourierNorm parse_norm(const std::string& name) {
  if (name == "none") return FourierNorm::none;
  if (name == "1/n") return FourierNorm::by_n;
  if (name == "ortho") return FourierNorm::ortho;
  throw UsageError("there is no scale '" + name + "' of Fourier transforms: take none, 1/n or ortho");
}

Interpolation parse_interpolation(const std::string& name) {
  if (name == "linear") return Interpolation::linear;
  if (name == "sinc") return Interpolation::sinc;
  throw UsageError("there is no interpolation of kind '" + name + "': take linear or sinc");
}

/// Throws ShapeError if the arrays have no such dimension.
Index size_along(const Space& space, int dim) {
  if (dim < 0 || dim >= space.dims.count()) {
    throw ShapeError("there is no dimension " + std::to_string(dim) + " in " + space.describe() +
                     ": dimensions are counted from 0");
  }
  return space.dims.size(dim);
}

/// Calls function(end, points, values), with memoryviews.
AtPoints at_points(py::object function) {
  return
      [kept = keep(std::move(function))](Index end, std::span<const Index> points, std::span<double> values) {
        if (points.empty()) return;
        const py::gil_scoped_acquire lock;
        const auto count = static_cast<py::ssize_t>(points.size());
        (*kept)(end, py::memoryview::from_buffer(points.data(), {count}, {sizeof(Index)}),
                py::memoryview::from_buffer(values.data(), {count}, {sizeof(double)}));
      };
}

void bind_rays(py::module_& native) {
  py::class_<RayValues>(native, "RayValues");
  native.def("straight_rays", [](const std::vector<Index>& sizes, const Position& origin,
                                 const Position& spacing, const std::vector<Position>& sources,
                                 const std::vector<Position>& receivers, double velocity, double widest) {
    return straight_rays(sizes, {origin, spacing}, sources, receivers, velocity, widest);
  });
  native.def("straight_ray_weights", [](const std::vector<Index>& sizes, const Position& origin,
                                        const Position& spacing, const std::vector<Position>& sources,
                                        const std::vector<Position>& receivers, double velocity) {
    return straight_ray_weights(sizes, {origin, spacing}, sources, receivers, velocity);
  });
  native.def("straight_ray_delays",
             [](const std::vector<Index>& sizes, const Position& origin, const Position& spacing,
                const std::vector<Position>& sources, const std::vector<Position>& receivers, double velocity,
                double between_sources, double between_receivers) {
               return straight_ray_delays(sizes, {origin, spacing}, sources, receivers, velocity,
                                          between_sources, between_receivers);
             });
  native.def("tabulated_rays", tabulated_rays);
  native.def("computed_rays", [](py::object from_source, py::object to_receiver) {
    return RayValues{at_points(std::move(from_source)), at_points(std::move(to_receiver))};
  });
}

void bind_spaces_of_arrays(py::module_& native) {
  native.def("restricted_space", restricted_space);
  native.def("paired_space", paired_space);
  py::class_<HaloWidths>(native, "HaloWidths").def(py::init<std::vector<Index>, std::vector<Index>, bool>());
  native.def("halo_space", halo_space);
  bind_rays(native);
}

/// The operator with of(numbers of line k), of an array that has this many numbers for each line.
template <Scalar T, class BandOf>
OperatorPtr<T> of_lines(const Space& space, int dim, const py::buffer_info& numbers, Index per_line,
                        const BandOf& of) {
  const auto* const first = static_cast<const double*>(numbers.ptr);
  const std::vector<double> zeros(static_cast<std::size_t>(per_line));
  const Band any = of(zeros.data());  // throws on all ranks alike
  return band_operator<T>(space, dim, LineBands{any.lower(), any.upper(), [&](Index line) {
                                                  return of(first + line * per_line);
                                                }});
}

template <Scalar T>
void bind_bands(py::module_ native) {
  using A = Operator<T>;
  native.def("first_derivative", [](const Space& space, int dim, const std::string& kind, double sampling,
                                    bool edge, int order) {
    const Band band = first_derivative(size_along(space, dim), {parse_kind(kind), sampling, edge, order});
    return A{band_operator<T>(space, dim, band)};
  });
  native.def("second_derivative", [](const Space& space, int dim, const std::string& kind, double sampling,
                                     bool edge) {
    const Band band = second_derivative(size_along(space, dim), {parse_kind(kind), sampling, edge});
    return A{band_operator<T>(space, dim, band)};
  });
  native.def("convolution", [](const Space& space, int dim, const std::vector<double>& filter, Index centre) {
    return A{band_operator<T>(space, dim, convolution(size_along(space, dim), filter, centre))};
  });
  native.def("fourier_convolution",
             [](const Space& space, int dim, const std::vector<double>& filter, Index centre) {
               return A{fourier_convolution<T>(space, dim, filter, centre)};
             });
  native.def("convolution_of_lines", [](const Space& space, int dim, const py::buffer& filters, Index length,
                                        Index centre) {
    const Index n = size_along(space, dim);
    const py::buffer_info info = filters.request();
    const auto of = [&](const double* first) { return convolution(n, {first, first + length}, centre); };
    return A{of_lines<T>(space, dim, info, length, of)};
  });
  native.def("nonstationary_convolution", [](const Space& space, int dim,
                                             const std::vector<std::vector<double>>& filters,
                                             const std::vector<double>& positions, Index centre) {
    const Index n = size_along(space, dim);
    return A{band_operator<T>(space, dim, nonstationary_convolution(n, filters, positions, centre))};
  });
  native.def("nonstationary_convolution_of_lines",
             [](const Space& space, int dim, const py::buffer& filters, Index length,
                const std::vector<double>& positions, Index centre) {
               const Index n = size_along(space, dim), count = static_cast<Index>(positions.size());
               const py::buffer_info info = filters.request();
               const auto of = [&](const double* first) {
                 std::vector<std::vector<double>> own;
                 for (Index k = 0; k < count; ++k)
                   own.emplace_back(first + k * length, first + (k + 1) * length);
                 return nonstationary_convolution(n, own, positions, centre);
               };
               return A{of_lines<T>(space, dim, info, count * length, of)};
             });
  native.def("box_smoothing", [](const Space& space, int dim, Index length) {
    return A{band_operator<T>(space, dim, box_smoothing(size_along(space, dim), length))};
  });
  native.def("laplacian", [](const Space& space, const std::vector<std::tuple<int, double, double>>& terms,
                             const std::string& kind, bool edge) {
    std::vector<LaplacianTerm> all;
    for (const auto& [dim, weight, sampling] : terms) all.push_back({dim, weight, sampling});
    return A{laplacian<T>(space, all, parse_kind(kind), edge)};
  });
  native.def("gradient", [](const Space& space, const std::vector<double>& sampling, const std::string& kind,
                            bool edge) { return A{gradient<T>(space, sampling, parse_kind(kind), edge)}; });
}

template <Scalar T>
void bind_samples(py::module_ native) {
  using A = Operator<T>;
  native.def("restriction", [](const Space& space, int dim, const std::vector<Index>& indices) {
    return A{restriction<T>(space, dim, indices)};
  });
  native.def("interpolation",
             [](const Space& space, int dim, const std::vector<double>& positions, const std::string& kind) {
               return A{interpolation<T>(space, dim, positions, parse_interpolation(kind))};
             });
  native.def("matrix_along", [](const Space& space, int dim, const py::buffer& matrix) {
    const py::buffer_info info = matrix.request();
    return A{matrix_along<T>(space, dim, view_of<T>(info))};
  });
  native.def("halo", [](const Space& space, const HaloWidths& widths) { return A{halo<T>(space, widths)}; });
  native.def("crop", [](const Space& space, const HaloWidths& widths) { return A{crop<T>(space, widths)}; });
  native.def("fredholm",
             [](const Space& kernel, const std::shared_ptr<Matrix<T>>& G, const std::string& columns) {
               return A{keep_alive(fredholm<T>(kernel, share(G), parse_axis(columns)), G)};
             });
  // Leaves G empty.
  native.def("fredholm_taking",
             [](const Space& kernel, const std::shared_ptr<Matrix<T>>& G, const std::string& columns) {
               return A{fredholm<T>(kernel, std::exchange(G->matrix, DistMatrix<T>()), parse_axis(columns))};
             });
  native.def("kirchhoff", [](const Space& data, const Space& image, const RayValues& times, double interval,
                             const std::vector<double>& wavelet, Index centre,
                             const std::optional<std::vector<std::pair<Index, Index>>>& traces,
                             const std::vector<RayValues>& weights, std::optional<Index> table_bytes,
                             const std::optional<RayValues>& delays, Index widest) {
    Recording recording{interval, wavelet, centre};
    if (traces)
      recording.ends = [pairs = *traces](Index trace) {
        const auto& [source, receiver] = pairs.at(static_cast<std::size_t>(trace));
        return TraceEnds{source, receiver};
      };
    KirchhoffOptions options{weights};
    if (table_bytes) options.table_bytes = *table_bytes;
    if (delays) options.spread = {*delays, widest};
    return A{kirchhoff<T>(data, image, times, recording, options)};
  });
}

/// A transform has its argument's type.
template <class R>
void bind_transforms(py::module_& root) {
  using C = std::complex<R>;
  py::module_ real = submodule_of<R>(root), complex = submodule_of<C>(root);
  complex.def("fourier", [](const Space& space, int dim, const std::string& norm, Index time_zero,
                            Index frequency_zero) {
    return Operator<C>{fourier<R>(space, dim, {parse_norm(norm), time_zero, frequency_zero})};
  });
  const auto axes_of = [](const std::vector<std::tuple<int, Index, Index, Index>>& axes) {
    std::vector<FourierAxis> all;
    for (const auto& [dim, length, time_zero, frequency_zero] : axes)
      all.push_back({dim, length, time_zero, frequency_zero});
    return all;
  };
  using AxisTuples = std::vector<std::tuple<int, Index, Index, Index>>;
  complex.def("fourier_along",
              [axes_of](const Space& space, const AxisTuples& axes, const std::string& norm) {
                return Operator<C>{fourier<R>(space, axes_of(axes), parse_norm(norm))};
              });
  real.def("real_fourier_along",
           [axes_of](const Space& space, const AxisTuples& axes, const std::string& norm) {
             return Operator<R>{real_fourier<R>(space, axes_of(axes), parse_norm(norm))};
           });
  real.def("real_fourier", [](const Space& space, int dim, Index frequencies, Index time_zero) {
    return Operator<R>{real_fourier<R>(space, dim, frequencies, time_zero)};
  });
  real.def("on_pairs", [](const Operator<C>& A) { return Operator<R>{on_pairs<R>(A.ptr)}; });
  real.def("multidimensional_convolution",
           [](const Operator<C>& G, Index samples, Index model_zero, Index data_zero) {
             return Operator<R>{multidimensional_convolution<R>(G.ptr, {samples, model_zero, data_zero})};
           });
}

}  // namespace

void bind_array_operators(py::module_& native) {
  bind_spaces_of_arrays(native);
  for_each_type(native, []<Scalar T>(py::module_ module) {
    bind_bands<T>(module);
    bind_samples<T>(module);
  });
  bind_transforms<float>(native);
  bind_transforms<double>(native);
}

}  // namespace gridlops::python
