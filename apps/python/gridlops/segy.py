# SPDX-License-Identifier: BSD-3-Clause
"""Surveys in SEG-Y files, as arrays of (source, receiver, time). Needs the package ``segyio``."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
from typing import Any, Callable, Iterator, Mapping, Sequence, Union

import numpy as np
import numpy.typing as npt

from .errors import Error, InputError, UsageError
from .grids import Grid

# Where the fields of a trace header begin, counted from 1 (SEG-Y revision 1, table 3).
TRACE_KIND, SOURCE_ELEVATION, SOURCE_DEPTH, RECEIVER_ELEVATION = 29, 45, 49, 41
ELEVATION_SCALAR, COORDINATE_SCALAR, START = 69, 71, 109
DEAD = 2  # of TRACE_KIND
FieldValues = Mapping[int, Union[int, Sequence[int]]]
_SCALED = {**dict.fromkeys((41, 45, 49, 53, 57, 61, 65), ELEVATION_SCALAR), **dict.fromkeys((73, 77, 81, 85, 181, 185), COORDINATE_SCALAR)}


@dataclasses.dataclass(frozen=True)
class Survey:
    """What the headers of a SEG-Y file say. Indexing ``traces`` reads samples from the file."""

    path: str
    sources: npt.NDArray[np.float64]  #: one row of header values for each source, in ascending order: x, y, depth
    receivers: npt.NDArray[np.float64]  #: the same for each receiver
    numbers: npt.NDArray[np.int64]  #: (sources, receivers): which trace of the file was recorded there, from 0 on, or -1
    samples: int  #: of a trace
    interval: float  #: between samples, in seconds
    start: float  #: the time of the first sample, in seconds
    dtype: str  #: float32, or float64 where samples are integers of 32 bits
    left_out: int  #: traces that are dead, or that ``only`` or ``without`` leaves out
    little_endian: bool

    @property
    def missing(self) -> int:
        """How many pairs of source and receiver have no trace."""
        return int((self.numbers < 0).sum())

    @property
    def traces(self) -> Traces:
        """The array (source, receiver, time), for :func:`gridlops.io.read_array`."""
        return Traces(self)

    def __str__(self) -> str:
        sources, receivers = self.numbers.shape
        return (f"{self.path}: sources x receivers x samples: {sources} x {receivers} x {self.samples}, every {1e3 * self.interval:g} ms from {1e3 * self.start:g} ms on; "
                f"pairs without a trace: {self.missing}; traces left out: {self.left_out}")


class Traces:
    """The array of a survey's traces. Indexing, by slices and integers, reads the traces that it asks for; others are zero."""

    def __init__(self, survey: Survey) -> None:
        self.survey = survey
        self.shape = (*survey.numbers.shape, survey.samples)
        self.ndim = 3
        self.dtype = np.dtype(survey.dtype)

    def __getitem__(self, box: Any) -> npt.NDArray[Any]:
        source, receiver, time = (*(box if isinstance(box, tuple) else (box,)), *[slice(None)] * 3)[:3]
        numbers = np.asarray(self.survey.numbers[source, receiver])
        times = np.arange(self.survey.samples)[time]
        lines = np.zeros((numbers.size, *times.shape), self.dtype)
        with _opened(self.survey.path, self.survey.little_endian) as file:
            for line in np.argsort(numbers, axis=None):  # in the order of the file
                if numbers.flat[line] >= 0:
                    lines[line] = file.trace.raw[int(numbers.flat[line])][time]
        wrong = numbers.flat[~np.isfinite(lines).reshape(numbers.size, -1).all(axis=1)] if numbers.size else numbers
        if wrong.size:
            raise InputError(f"{self.survey.path}: {wrong.size} of the traces have samples that are not finite; the first is trace {wrong.min() + 1}, counted from 1. "
                             "Leave them out by a field of their headers: without={29: 2}, or --without 29=2")
        return lines.reshape(numbers.shape + times.shape)


@contextlib.contextmanager
def _opened(path: str, little_endian: bool) -> Iterator[Any]:
    try:
        import segyio
    except ImportError as error:
        raise UsageError("SEG-Y files are read by the package segyio: pip install segyio") from error
    try:
        _check_binary_header(path, little_endian)
        with segyio.open(path, ignore_geometry=True, strict=False, endian="little" if little_endian else "big") as file:
            yield file
    except (RuntimeError, ValueError, OSError, KeyError, IndexError) as error:
        raise error if isinstance(error, Error) else InputError(f"{path} cannot be read as SEG-Y: {error}") from error


def _check_binary_header(path: str, little_endian: bool) -> None:
    """Refuses what segyio takes for IBM floats, or ends the process for."""
    with open(path, "rb") as file:
        start = file.read(3226)
    samples, kind = (int.from_bytes(start[place: place + 2], "little" if little_endian else "big", signed=True) for place in (3220, 3224))
    if len(start) == 3226 and (samples <= 0 or kind not in (1, 2, 3, 5, 8)):
        raise InputError(f"{path}: its binary header has traces of {samples} samples in format {kind}, but 1 to 32767 samples in format 1, 2, 3, 5 or 8 can be "
                         f"read; is the file {'big' if little_endian else 'little'}-endian?")


def _field(file: Any, little_endian: bool, byte: int) -> npt.NDArray[np.float64]:
    """A field of all trace headers, scaled as SEG-Y says: by a factor, or by the reciprocal of a negative one."""
    import segyio

    def of_all_traces(byte: int) -> npt.NDArray[np.float64]:
        if little_endian:  # segyio 1.8 gives wrong attributes of two bytes
            return np.array([header[byte] for header in file.header], np.float64)
        return file.attributes(byte)[:].astype(np.float64)

    if byte not in segyio.tracefield.keys.values():
        raise UsageError(f"no field of a SEG-Y trace header begins at byte {byte}: segyio.tracefield.keys names those that do")
    values = of_all_traces(byte)
    if byte in _SCALED:
        scalar = of_all_traces(_SCALED[byte])
        values *= np.where(scalar > 0, scalar, 1 / np.where(scalar < 0, -scalar, 1))
    return values


def _positions(field: Callable[[int], npt.NDArray[np.float64]], fields: Sequence[int], chosen: npt.NDArray[np.bool_], rounding: float) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """The different values of these fields, rounded, in ascending order, and which of them each trace has."""
    columns = []
    for byte in fields:
        values = field(byte)
        if byte == SOURCE_DEPTH:
            values -= field(SOURCE_ELEVATION)
        columns.append(-values if byte == RECEIVER_ELEVATION else values)
    rows = np.stack(columns, axis=1)[chosen]
    if rounding:
        rows = np.round(rows / rounding) * rounding
    values, which = np.unique(rows + 0.0, axis=0, return_inverse=True)
    return values, which.ravel()


def scan(path: str | os.PathLike[str], sources: Sequence[int] = (73, 77, 49), receivers: Sequence[int] = (81, 85, 41),
         only: FieldValues | None = None, without: FieldValues | None = None, fill: bool = False, interval: float | None = None, little_endian: bool = False,
         rounding: float = 0) -> Survey:
    """:func:`open_survey` on one rank alone."""
    path = os.fspath(path)
    if not sources or not receivers:
        raise UsageError("sources and receivers are told apart by fields of the trace header: name the byte where one begins")
    if not 0 <= rounding < np.inf:
        raise UsageError(f"positions cannot be rounded to multiples of {rounding:g}: take a length > 0, or 0 for positions as they are")
    with _opened(path, little_endian) as file:
        field = functools.partial(_field, file, little_endian)
        chosen = np.ones(file.tracecount, bool)
        for byte, values in (only or {}).items():
            chosen &= np.isin(field(byte), values)
        for byte, values in (without or {}).items():
            chosen &= ~np.isin(field(byte), values)
        if TRACE_KIND not in (only or {}):
            chosen &= field(TRACE_KIND) != DEAD
        if not chosen.any():
            raise InputError(f"{path}: none of its {chosen.size} traces is left to be read")
        rows, row = _positions(field, sources, chosen, rounding)
        columns, column = _positions(field, receivers, chosen, rounding)
        traces = np.flatnonzero(chosen)
        starts, kinds = np.unique(field(START)[chosen]), np.unique(field(TRACE_KIND)[chosen], return_counts=True)
        if len(starts) > 1:
            raise InputError(f"{path}: traces begin at different times, from {starts[0]:g} to {starts[-1]:g} ms (byte {START} of their headers)")
        interval = _interval(file, path) if interval is None else interval
        dtype, samples = ("float64" if file.dtype == np.dtype("i4") else "float32"), len(file.samples)
    pairs, first = np.unique(row * len(columns) + column, return_index=True)
    if pairs.size < traces.size:
        again = np.setdiff1d(np.arange(traces.size), first)[0]
        twin = first[np.searchsorted(pairs, row[again] * len(columns) + column[again])]
        raise InputError(f"{path}: {traces.size - pairs.size} of the traces have the source and the receiver of an earlier one; trace {traces[again] + 1}, counted from "
                         f"1, those of trace {traces[twin] + 1}. Name more fields in sources or receivers, or choose by a field: only={{29: 1}}, or --only 29=1, and "
                         "without={9: 999}, or --without 9=999")
    if pairs.size < len(rows) * len(columns) and not fill:
        gaps = np.flatnonzero(pairs != np.arange(pairs.size))
        source, receiver = divmod(int(gaps[0]) if gaps.size else pairs.size, len(columns))
        raise InputError(f"{path}: {len(rows) * len(columns) - pairs.size} of the {len(rows)} x {len(columns)} pairs of a source and a receiver have no trace, or only a dead "
                         f"one. The first is source {source} at {rows[source].tolist()} with receiver {receiver} at {columns[receiver].tolist()}. fill=True, or --fill, lets "
                         f"zeros stand there{_several(kinds)}")
    numbers = np.full((len(rows), len(columns)), -1, np.int64)
    numbers.flat[pairs] = traces[first]
    return Survey(path, rows, columns, numbers, samples, interval, float(starts[0]) / 1e3, dtype, int((~chosen).sum()), little_endian)


def _several(kinds: tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]) -> str:
    if len(kinds[0]) < 2:
        return ""
    counts = ", ".join(f"{count} of code {kind:g}" for kind, count in zip(*kinds))
    return f". There are traces of several kinds (byte {TRACE_KIND}): {counts}; only={{29: 1}}, or --only 29=1, keeps one kind"


def _interval(file: Any, path: str) -> float:
    import segyio

    stated = {file.bin[segyio.BinField.Interval], file.header[0][segyio.TraceField.TRACE_SAMPLE_INTERVAL]} - {0}
    if len(stated) != 1:
        raise InputError(f"{path}: the headers of the file and of its first trace have {' and '.join(map(str, sorted(stated))) or 'no'} microseconds between "
                         "samples; say how many seconds it is: interval=0.004, or --interval 0.004")
    return float(stated.pop()) / 1e6


def open_survey(grid: Grid, path: str | os.PathLike[str], sources: Sequence[int] = (73, 77, 49), receivers: Sequence[int] = (81, 85, 41),
                only: FieldValues | None = None, without: FieldValues | None = None, fill: bool = False, interval: float | None = None, little_endian: bool = False,
                rounding: float = 0) -> Survey:
    """The survey in a SEG-Y file. Rank 0 reads all trace headers (collective over ``grid.comm``; errors are raised on all ranks).

    Traces with equal values in the header fields ``sources``, which are named by the byte where they begin, counted from 1, have
    one source, and likewise for ``receivers``; both are in ascending order of these values. Coordinates are scaled as their headers
    say. The depth of a source is byte 49 minus the surface elevation in byte 45; that of a receiver is minus the elevation in byte 41.
    For stacked data take inline and crossline: ``sources=[189], receivers=[193]``. ``rounding`` takes positions to the nearest of its
    multiples, for files whose headers differ by rounding.

    Dead traces (2 in byte 29) are left out. ``only={29: 1}`` keeps the traces with this value, or one of several, in a field of their
    headers, and ``without={9: [998, 999]}`` leaves such traces out. Each pair of source and receiver must then have one trace; with
    ``fill`` it may have none (``numbers`` is -1), and zeros stand there, which a solver takes for measured data unless they get no weight.
    """
    found: list[Survey] = []
    grid.told_by(0, lambda: found.append(scan(path, sources, receivers, only, without, fill, interval, little_endian, rounding)))
    survey: Survey = grid.comm.bcast(found[0] if found else None)
    return survey
