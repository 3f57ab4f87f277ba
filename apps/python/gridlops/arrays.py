# SPDX-License-Identifier: BSD-3-Clause
"""Operators on arrays of several dimensions (:meth:`Space.array`), which may be cut along any of them.

Making an operator is not collective. Wrong arguments raise ShapeError or UsageError on all ranks.
Dimensions count from 0.
"""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np
import numpy.typing as npt

from . import _native
from .grids import Space
from .matrices import Matrix, functions_for
from .operators import Operator


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
    """[∂/∂dim₀; ∂/∂dim₁; …], a vertical stack."""
    spacing = [1.0] * len(space.sizes) if sampling is None else list(sampling)
    return _made(space, dtype, "gradient", space.native, spacing, kind, edge)


def convolution(space: Space, dim: int, filter: Sequence[float], centre: int, *, by_fourier: bool = False,
                dtype: npt.DTypeLike = np.float64) -> Operator:
    """yᵢ = Σₖ fₖ xᵢ₊c₋ₖ along one dimension; ``by_fourier=True`` is faster for long filters."""
    maker = "fourier_convolution" if by_fourier else "convolution"
    return _made(space, dtype, maker, space.native, dim, list(filter), centre)


def box_smoothing(space: Space, dim: int, length: int, *, dtype: npt.DTypeLike = np.float64) -> Operator:
    """The mean of ``length`` neighbours along one dimension, applied forwards and then backwards."""
    return _made(space, dtype, "box_smoothing", space.native, dim, length)


def restriction(space: Space, dim: int, indices: Sequence[int], *, dtype: npt.DTypeLike = np.float64) -> Operator:
    """Takes the samples with these increasing indices along one dimension. Nothing moves between ranks."""
    return _made(space, dtype, "restriction", space.native, dim, list(indices))


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


def fourier(space: Space, dim: int, *, norm: str = "ortho", time_zero: int = 0, frequency_zero: int = 0,
            dtype: npt.DTypeLike = np.complex128) -> Operator:
    """The discrete Fourier transform along one dimension, which must not be cut; scaled by ``"none"``, ``"1/n"``, ``"ortho"``."""
    return _made(space, dtype, "fourier", space.native, dim, norm, time_zero, frequency_zero)


def real_fourier(space: Space, dim: int, frequencies: int = 0, *, time_zero: int = 0,
                 dtype: npt.DTypeLike = np.float64) -> Operator:
    """The Fourier transform of real samples. It keeps norms.

    The output has the frequencies 0, 1, … as pairs of numbers; ``frequencies=0`` keeps all of them.
    """
    return _made(space, dtype, "real_fourier", space.native, dim, frequencies, time_zero)


def paired_space(space: Space) -> Space:
    """The space of real arrays with a last dimension of 2: real and imaginary parts of complex ones."""
    return Space.of(space.grid, _native.paired_space(space.native))


def on_pairs(A: Operator) -> Operator:
    """A complex operator as the real one between pairs."""
    real = np.empty(0, A.dtype).real.dtype
    return _made(A.range, real, "on_pairs", A.native)


def fredholm(kernel: Space, G: Matrix, columns: str = "uncut") -> Operator:
    """d_f = G_f m_f for every slice f.

    G is one column in the space of arrays (slices, ny, nx); the operator uses it in place. Models are arrays (slices,
    ny) and data are arrays (slices, nx), cut like G along the slices. Nothing moves between ranks.
    """
    return _made(kernel, G.dtype, "fredholm", kernel.native, G.native, columns)


def multidimensional_convolution(G: Operator, samples: int, *, model_zero: int = 0, data_zero: int = 0) -> Operator:
    """F₁ᵀ G F: convolution in time of real arrays (samples, ny) with a complex :func:`fredholm` of their spectra."""
    real = np.empty(0, G.dtype).real.dtype
    return _made(G.range, real, "multidimensional_convolution", G.native, samples, model_zero, data_zero)


def straight_rays(sizes: Sequence[int], origin: Sequence[float], spacing: Sequence[float], sources: npt.ArrayLike,
                  receivers: npt.ArrayLike, velocity: float) -> Any:
    """Travel times for :func:`kirchhoff` along straight rays; one coordinate for each dimension of the image."""
    return _native.straight_rays(list(sizes), list(origin), list(spacing), np.asarray(sources, float).tolist(),
                                 np.asarray(receivers, float).tolist(), velocity)


def tabulated_times(from_sources: npt.ArrayLike, to_receivers: npt.ArrayLike) -> Any:
    """Travel times for :func:`kirchhoff` from tables of points × sources and points × receivers."""
    source, receiver = np.asarray(from_sources, float), np.asarray(to_receivers, float)
    return _native.tabulated_times(source.shape[0], source.ravel("F").tolist(), receiver.ravel("F").tolist())


def kirchhoff(data: Space, image: Space, times: Any, *, interval: float, wavelet: Sequence[float], centre: int,
              dtype: npt.DTypeLike = np.float64) -> Operator:
    """Kirchhoff demigration from images to data (sources, receivers, samples); its adjoint is migration."""
    return _made(data, dtype, "kirchhoff", data.native, image.native, times, interval, list(wavelet), centre)
