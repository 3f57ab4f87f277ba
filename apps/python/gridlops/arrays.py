# SPDX-License-Identifier: BSD-3-Clause
"""Operators on arrays of several dimensions (:meth:`Space.array`), which may be cut along any of them.

Making an operator is not collective. Wrong arguments raise ShapeError or UsageError on all ranks.
Dimensions count from 0.
"""

from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np
import numpy.typing as npt

from . import _native
from .errors import ShapeError, UsageError
from .matrices import Matrix, functions_for
from .operators import Operator
from .spaces import Space, zeros


def _made(space: Space, dtype: npt.DTypeLike, maker: str, *args: Any) -> Operator:
    return Operator(space.grid, dtype, getattr(functions_for(dtype), maker)(*args))


def first_derivative(space: Space, dim: int = 0, *, sampling: float = 1, kind: str = "centered", edge: bool = False,
                     order: int = 3, dtype: npt.DTypeLike = np.float64) -> Operator:
    """∂/∂dim by differences: ``"forward"``, ``"backward"`` or ``"centered"`` (of order 3 or 5).

    Rows at the ends are 0; with ``edge`` they are one-sided differences.
    """
    return _made(space, dtype, "first_derivative", space.native, dim, kind, sampling, edge, order)


def second_derivative(space: Space, dim: int = 0, *, sampling: float = 1, kind: str = "centered", edge: bool = False,
                      dtype: npt.DTypeLike = np.float64) -> Operator:
    """∂²/∂dim², otherwise as :func:`first_derivative`."""
    return _made(space, dtype, "second_derivative", space.native, dim, kind, sampling, edge)


def laplacian(space: Space, dims: Sequence[int], *, weights: Sequence[float] | None = None,
              sampling: Sequence[float] | None = None, kind: str = "centered", edge: bool = False,
              dtype: npt.DTypeLike = np.float64) -> Operator:
    """Σ weight · ∂²/∂dim² over these dimensions; weights and samplings are 1 by default."""
    ones = [1.0] * len(dims)
    terms = list(zip(dims, ones if weights is None else weights, ones if sampling is None else sampling, strict=True))
    return _made(space, dtype, "laplacian", space.native, terms, kind, edge)


def gradient(space: Space, *, sampling: Sequence[float] | None = None, kind: str = "centered", edge: bool = False,
             dtype: npt.DTypeLike = np.float64) -> Operator:
    """[∂/∂dim₀; ∂/∂dim₁; …], a vertical stack, whose data are arrays (dimension, …)."""
    spacing = [1.0] * len(space.sizes) if sampling is None else list(sampling)
    return _made(space, dtype, "gradient", space.native, spacing, kind, edge)


def _of_lines(space: Space, dim: int, filters: npt.NDArray[np.float64], own: int) -> npt.NDArray[np.float64]:
    """The filters of all lines, from an array with the dimensions of the space but ``dim``, and ``own`` ones of the filters."""
    lines = tuple(size for k, size in enumerate(space.sizes) if k != dim)
    shape = filters.shape[filters.ndim - own:]
    try:
        return np.ascontiguousarray(np.broadcast_to(filters, lines + shape))
    except ValueError as error:
        raise ShapeError(f"filters of shape {filters.shape} do not fit lines of {lines}, each with {shape}") from error


def convolution(space: Space, dim: int, filter: npt.ArrayLike, centre: int, *, by_fourier: bool = False,
                dtype: npt.DTypeLike = np.float64) -> Operator:
    """yᵢ = Σₖ fₖ xᵢ₊c₋ₖ along one dimension; with ``by_fourier=True`` a single long filter is faster.

    With an array of filters each line has its own. The last dimension of the array has the samples, and the others are those of the
    space but ``dim``; they may be of size 1, where filters are the same.
    """
    filters = np.asarray(filter, float)
    if filters.ndim > 1:
        if by_fourier:
            raise UsageError("convolution by Fourier transforms takes a single filter for all lines")
        every = _of_lines(space, dim, filters, 1)
        return _made(space, dtype, "convolution_of_lines", space.native, dim, every, every.shape[-1], centre)
    maker = "fourier_convolution" if by_fourier else "convolution"
    return _made(space, dtype, maker, space.native, dim, filters.tolist(), centre)


def nonstationary_convolution(space: Space, dim: int, filters: npt.ArrayLike, positions: Sequence[float], centre: int, *,
                              dtype: npt.DTypeLike = np.float64) -> Operator:
    """yᵢ = Σⱼ hⱼ[i + c − j] xⱼ along one dimension: each sample j spreads over the output by a filter hⱼ of its own.

    ``filters`` has a row for each of the increasing positions, which are counted in samples. hⱼ is interpolated linearly between the two
    filters next to sample j; before the first and behind the last it is that filter. As in PyLops, whose centre is ``length // 2``.
    With more dimensions before the rows, as in :func:`convolution`, each line has such filters of its own.
    """
    array = np.asarray(filters, float)
    if array.ndim <= 2:
        return _made(space, dtype, "nonstationary_convolution", space.native, dim, array.tolist(), list(positions), centre)
    if array.shape[-2] != len(positions):
        raise UsageError(f"filters of shape {array.shape} at {len(positions)} positions: each of the last dimension but one has a position")
    every = _of_lines(space, dim, array, 2)
    return _made(space, dtype, "nonstationary_convolution_of_lines", space.native, dim, every, every.shape[-1], list(positions), centre)


def box_smoothing(space: Space, dim: int, length: int, *, dtype: npt.DTypeLike = np.float64) -> Operator:
    """The mean of ``length`` neighbours along one dimension, applied forwards and then backwards."""
    return _made(space, dtype, "box_smoothing", space.native, dim, length)


def restriction(space: Space, dim: int, indices: Sequence[int], *, dtype: npt.DTypeLike = np.float64) -> Operator:
    """Takes the samples with these increasing indices along one dimension. Nothing moves between ranks."""
    return _made(space, dtype, "restriction", space.native, dim, list(indices))


def interpolation(space: Space, dim: int, positions: Sequence[float], *, kind: str = "linear",
                  dtype: npt.DTypeLike = np.float64) -> Operator:
    """Values at these increasing positions along one dimension, counted in samples, from 0 to that of the last sample.

    With ``"linear"`` each comes from the two samples next to it; with ``"sinc"`` from all samples, by sin(πx)/(πx). Each rank gets the
    values at positions from its own first sample up to the next rank's.
    """
    return _made(space, dtype, "interpolation", space.native, dim, list(positions), kind)


def matrix_along(space: Space, dim: int, matrix: npt.ArrayLike, *, dtype: npt.DTypeLike | None = None) -> Operator:
    """The product with a dense matrix, the same on all ranks, along one dimension: ``np.moveaxis(np.tensordot(matrix, x, (1, dim)), 0, dim)``.

    Nothing moves if the dimension is not cut. If it is, the array is redistributed first and cut along the longest of its other
    dimensions, as the data are then, too.
    """
    array = np.asarray(matrix)
    kind = np.result_type(array.dtype, np.float32) if dtype is None else np.dtype(dtype)
    return _made(space, kind, "matrix_along", space.native, dim, np.asfortranarray(array, kind))


def _widths(before: Sequence[int], behind: Sequence[int], beyond_array: bool) -> Any:
    return _native.HaloWidths(list(before), list(behind), beyond_array)


def halo(space: Space, before: Sequence[int], behind: Sequence[int], *, beyond_array: bool = True,
         dtype: npt.DTypeLike = np.float64) -> Operator:
    """Adds to each block this many cells of its neighbours, before and after it along each dimension.

    The ends of the array get cells of zeros, or none without ``beyond_array``. The adjoint sums the copies of a cell.
    """
    return _made(space, dtype, "halo", space.native, _widths(before, behind, beyond_array))


def crop(space: Space, before: Sequence[int], behind: Sequence[int], *, beyond_array: bool = True,
         dtype: npt.DTypeLike = np.float64) -> Operator:
    """Removes such halos from blocks: crop @ halo = I."""
    return _made(space, dtype, "crop", space.native, _widths(before, behind, beyond_array))


def _axes(dims: Sequence[int], lengths: int | Sequence[int], time_zero: int | Sequence[int],
          frequency_zero: int | Sequence[int]) -> list[tuple[int, int, int, int]]:
    """What is given as one number holds for all dimensions."""
    def each(values: int | Sequence[int]) -> list[int]:
        return list(values) if isinstance(values, Sequence) else [values] * len(dims)

    return list(zip(dims, each(lengths), each(time_zero), each(frequency_zero), strict=True))


def fourier(space: Space, dim: int | Sequence[int], *, lengths: int | Sequence[int] = 0, norm: str = "ortho",
            time_zero: int | Sequence[int] = 0, frequency_zero: int | Sequence[int] = 0,
            dtype: npt.DTypeLike = np.complex128) -> Operator:
    """The discrete Fourier transform along one dimension, which must not be cut, or along several, which may be.

    It is scaled by ``"none"``, ``"1/n"`` or ``"ortho"``. Zeros are added until a dimension has its length; 0 adds none.
    """
    if not isinstance(dim, Sequence) and lengths == 0:
        return _made(space, dtype, "fourier", space.native, dim, norm, time_zero, frequency_zero)
    dims = dim if isinstance(dim, Sequence) else [dim]
    return _made(space, dtype, "fourier_along", space.native, _axes(dims, lengths, time_zero, frequency_zero), norm)


def real_fourier(space: Space, dim: int | Sequence[int], frequencies: int = 0, *, lengths: int | Sequence[int] = 0,
                 norm: str = "ortho", time_zero: int | Sequence[int] = 0, frequency_zero: int | Sequence[int] = 0,
                 dtype: npt.DTypeLike = np.float64) -> Operator:
    """The Fourier transform of real samples; with ``norm="ortho"`` it keeps norms.

    The output has the frequencies 0, 1, … of the last dimension as pairs of numbers; along one dimension,
    ``frequencies=0`` keeps all of them. Along several, or with other norms or lengths, otherwise as :func:`fourier`.
    """
    if not isinstance(dim, Sequence) and lengths == 0 and norm == "ortho" and frequency_zero == 0:
        return _made(space, dtype, "real_fourier", space.native, dim, frequencies, time_zero)
    if frequencies != 0:
        raise UsageError(f"only a transform along one dimension, with norm 'ortho', can keep {frequencies} frequencies: "
                         "keep all, and take some of them by restriction()")
    dims = dim if isinstance(dim, Sequence) else [dim]
    return _made(space, dtype, "real_fourier_along", space.native, _axes(dims, lengths, time_zero, frequency_zero), norm)


def paired_space(space: Space) -> Space:
    """The space of real arrays with a last dimension of 2: real and imaginary parts of complex ones."""
    return Space.of(space.grid, _native.paired_space(space.native))


def on_pairs(A: Operator) -> Operator:
    """A complex operator as the real one between pairs."""
    real = np.empty(0, A.dtype).real.dtype
    return _made(A.range, real, "on_pairs", A.native)


def fredholm(kernel: Space, G: Matrix, columns: str = "uncut", *, transposed: bool = False) -> Operator:
    """d_f = G_f m_f for every slice f, where G_f is nx × ny. Models are arrays (slices, ny), data are arrays (slices, nx).

    G is one column in ``kernel``, the space of arrays (slices, nx, ny), as in PyLops, cut along the slices only:
    ``gl.fredholm(kernel, kernel.scatter_array(G))``. The operator keeps a transposed copy (collective). With
    ``transposed``, G is one column of arrays (slices, ny, nx), which the operator uses in place (not collective). Models
    and data are cut like G along the slices. Nothing moves between ranks.
    """
    if transposed:
        return _made(kernel, G.dtype, "fredholm", kernel.native, G.native, columns)
    kernel, G = _transposed_slices(kernel, G)
    return _made(kernel, G.dtype, "fredholm_taking", kernel.native, G.native, columns)


def _transposed_slices(kernel: Space, G: Matrix) -> tuple[Space, Matrix]:
    """The space of (slices, ny, nx) and G in it, for a G of (slices, nx, ny)."""
    if len(kernel.sizes) != 3:
        raise ShapeError(f"a kernel is an array (slices, nx, ny), and its space is {kernel!r}")
    slices, nx, ny = kernel.sizes
    boxes = kernel.native.boxes
    if any(box[1:] != (slice(0, nx, 1), slice(0, ny, 1)) for box in boxes):
        raise ShapeError(f"a kernel is cut along its slices only, not as {kernel!r}")
    cuts = [[box[0].stop - box[0].start for box in boxes], [ny], [nx]]
    space = Space.array_with_cuts(kernel.grid, cuts, axis=kernel.rows.axis, columns=kernel.columns)
    if G.layout != kernel.layout(1):
        raise ShapeError(f"the kernel, {G!r}, is not one column in {kernel!r}: kernel.scatter_array(G) makes one")
    result = zeros(space, 1, G.dtype)
    if G.local.size:
        result.take_local(G.host_copy().reshape(-1, nx, ny).transpose(0, 2, 1).reshape(-1, 1))
    return space, result


def multidimensional_convolution(G: Operator, samples: int, *, model_zero: int = 0, data_zero: int = 0) -> Operator:
    """F₁ᵀ G F: d(t, x) = Σ_y ∫ g(t − t′, x, y) m(t′, y) dt′, periodic in time. Models are real (samples, ny), data (samples, nx).

    G is a complex :func:`fredholm`, whose slices are the first frequencies of the kernel, as ``numpy.fft.rfft`` of its samples gives
    them, times all factors due to sampling. Time 0 is the kernel's sample 0, the model's ``model_zero`` and the data's ``data_zero``:
    ``samples // 2`` where an axis has negative times, and time 0 in the middle.
    """
    real = np.empty(0, G.dtype).real.dtype
    return _made(G.range, real, "multidimensional_convolution", G.native, samples, model_zero, data_zero)


def _geometry(sizes: Sequence[int], origin: Sequence[float], spacing: Sequence[float], sources: npt.ArrayLike,
              receivers: npt.ArrayLike, velocity: float) -> tuple[Any, ...]:
    return (list(sizes), list(origin), list(spacing), np.asarray(sources, float).tolist(),
            np.asarray(receivers, float).tolist(), velocity)


def straight_rays(sizes: Sequence[int], origin: Sequence[float], spacing: Sequence[float], sources: npt.ArrayLike,
                  receivers: npt.ArrayLike, velocity: float, *, widest: float = 90) -> Any:
    """Travel times for :func:`kirchhoff` along straight rays; positions have a coordinate for each dimension of the image,
    the depth last. No waves arrive at more than ``widest`` degrees from the vertical."""
    return _native.straight_rays(*_geometry(sizes, origin, spacing, sources, receivers, velocity), widest)


def straight_ray_weights(sizes: Sequence[int], origin: Sequence[float], spacing: Sequence[float], sources: npt.ArrayLike,
                         receivers: npt.ArrayLike, velocity: float) -> list[Any]:
    """Geometric spreading and obliquity of straight rays, for the ``weights`` of :func:`kirchhoff`."""
    return _native.straight_ray_weights(*_geometry(sizes, origin, spacing, sources, receivers, velocity))


def straight_ray_delays(sizes: Sequence[int], origin: Sequence[float], spacing: Sequence[float], sources: npt.ArrayLike,
                        receivers: npt.ArrayLike, velocity: float, *, between_sources: float, between_receivers: float) -> Any:
    """The longest delays of waves between neighbours so far apart, for the ``delays`` of :func:`kirchhoff`."""
    return _native.straight_ray_delays(*_geometry(sizes, origin, spacing, sources, receivers, velocity), between_sources,
                                       between_receivers)


def tabulated_rays(from_sources: npt.ArrayLike, to_receivers: npt.ArrayLike) -> Any:
    """Travel times or weights for :func:`kirchhoff` from tables of points × sources and points × receivers."""
    source, receiver = np.asarray(from_sources, float), np.asarray(to_receivers, float)
    return _native.tabulated_rays(source.shape[0], source.ravel("F").tolist(), receiver.ravel("F").tolist())


def computed_rays(from_source: Callable[[int, Any], Any], to_receiver: Callable[[int, Any], Any]) -> Any:
    """Travel times or weights for :func:`kirchhoff`: each function takes the number of a source or receiver and an array of
    the numbers of points, and returns a number for each of the points."""
    def of(function: Callable[[int, Any], Any]) -> Callable[[int, Any, Any], None]:
        def fill(end: int, points: Any, values: Any) -> None:
            np.asarray(values)[:] = function(end, np.asarray(points))
        return fill

    return _native.computed_rays(of(from_source), of(to_receiver))


def kirchhoff(data: Space, image: Space, times: Any, *, interval: float, wavelet: Sequence[float], centre: int,
              traces: npt.ArrayLike | None = None, weights: Sequence[Any] = (), table_bytes: int | None = None,
              delays: Any = None, widest: int = 8, dtype: npt.DTypeLike = np.float64) -> Operator:
    """Kirchhoff demigration from images to data (sources, receivers, samples); its adjoint is migration.

    With ``traces``, a row (source, receiver) for each trace, data are (traces, samples). The weight of a point is the sum
    over ``weights`` of the products of its numbers at the source and at the receiver. With ``table_bytes`` times and
    weights are computed anew in each product, for as many points at once as fit into this memory of a rank. With
    ``delays`` an arrival is spread, against aliasing, over a triangle whose half base is the sum of the two delays, rounded
    to 1 … ``widest`` samples.
    """
    pairs = None if traces is None else np.asarray(traces, int).reshape(-1, 2).tolist()
    return _made(data, dtype, "kirchhoff", data.native, image.native, times, interval, list(wavelet), centre, pairs,
                 list(weights), table_bytes, delays, widest)
