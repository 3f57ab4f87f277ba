# SPDX-License-Identifier: BSD-3-Clause
"""Surveys in SEG-Y files, as arrays of (source, receiver, time). Needs the package ``segyio``."""
# Reasons: docs/decisions/0049-segy.md.

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

# What is understood of headers (SEG-Y revisions 0 to 2). Fields are named by the byte where they begin, counted from 1.
# Of the file's header: their places and types. Revisions before 2 assign nothing to the last three.
_FILE_FIELDS = {"interval": (3217, "u2"), "samples": (3221, "u2"), "format": (3225, "u2"), "system": (3255, "u2"), "revision": (3501, "u1"),
                "long samples": (3269, "u4"), "long interval": (3273, "f8"), "more headers": (3507, "u4")}
_FORMATS = (1, 2, 3, 5, 8)
_SYSTEMS = {1: "m", 2: "ft"}
# Of the headers of traces.
NUMBER = 0  # no field: the number of the trace in the file, from 1 on
TRACE_KIND, SOURCE_ELEVATION, SOURCE_DEPTH, RECEIVER_ELEVATION, UNITS, START, SAMPLES, INTERVAL = 29, 45, 49, 41, 89, 109, 115, 117
ELEVATION_SCALAR, COORDINATE_SCALAR, TIME_SCALAR = 69, 71, 215
_SCALED = {**dict.fromkeys((41, 45, 49, 53, 57, 61, 65), ELEVATION_SCALAR), **dict.fromkeys((73, 77, 81, 85, 181, 185), COORDINATE_SCALAR),
           **dict.fromkeys(range(95, 114, 2), TIME_SCALAR)}
_UNSIGNED = (SAMPLES, INTERVAL)
DEAD = 2  # of TRACE_KIND
_TIME_SCALARS = [0, *(sign * 10**power for sign in (1, -1) for power in range(5))]
_LENGTHS = (0, 1)  # of UNITS: unstated, and the file's system of measurement
_ANGLES = {2: "seconds of arc", 3: "degrees", 4: "degrees, minutes and seconds"}
FieldValues = Mapping[int, Union[int, Sequence[int]]]


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
    units: str  #: of coordinates: m, ft, an angle, or empty if the headers do not say, or the positions are no coordinates
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
                f"{f'positions in {self.units}; ' if self.units else ''}pairs without a trace: {self.missing}; traces left out: {self.left_out}")


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
            shown = ",".join(map(str, np.sort(wrong)[:50] + 1))
            raise InputError(f"{self.survey.path}: {wrong.size} of the traces have samples that are not finite; the first is trace {wrong.min() + 1}, counted from 1. "
                             f"Leave them out by their numbers, which stand for a field at byte 0: without={{0: [{shown}]}}, or --without 0={shown}; fill=True, or "
                             "--fill, then lets zeros stand in their places")
        return lines.reshape(numbers.shape + times.shape)


@contextlib.contextmanager
def _opened(path: str, little_endian: bool) -> Iterator[Any]:
    try:
        import segyio
    except ImportError as error:
        raise UsageError("SEG-Y files are read by the package segyio: pip install segyio") from error
    try:
        _require_readable(path, little_endian)
        with segyio.open(path, ignore_geometry=True, strict=False, endian="little" if little_endian else "big") as file:
            yield file
    except (RuntimeError, ValueError, OSError, KeyError, IndexError) as error:
        raise error if isinstance(error, Error) else InputError(f"{path} cannot be read as SEG-Y: {error}") from error


def _file_header(path: str, little_endian: bool) -> dict[str, float]:
    """The fields that are understood; zero where the revision does not assign them."""
    with open(path, "rb") as file:
        start = file.read(3600)
    if len(start) < 3600:
        raise InputError(f"{path} has {len(start)} bytes, but the headers of a SEG-Y file have 3600")
    header = {name: np.frombuffer(start, ("<" if little_endian else ">") + kind, 1, byte - 1)[0].item() for name, (byte, kind) in _FILE_FIELDS.items()}
    if header["revision"] != 2:
        header.update(dict.fromkeys(("long samples", "long interval", "more headers"), 0))
    return header


def _obstacle(header: Mapping[str, float]) -> str:
    """Why traces behind such a header are not read: segyio takes some for IBM floats, and ends the process for others. Empty if they are."""
    if header["long samples"] not in (0, header["samples"]):
        return f"traces of {header['samples']} samples by byte 3221, but of {header['long samples']} by byte 3269, and only traces of 1 to 32767, by byte 3221, can be read"
    if not 1 <= header["samples"] <= 32767:
        return f"traces of {header['samples']} samples (byte 3221), but only traces of 1 to 32767 can be read"
    if header["format"] not in _FORMATS:
        return f"samples in format {header['format']} (byte 3225), but only formats {', '.join(map(str, _FORMATS))} can be read"
    if header["more headers"]:
        return f"up to {header['more headers']} more headers for each trace (byte 3507), but only files without them can be read"
    return ""


def _require_readable(path: str, little_endian: bool) -> None:
    obstacle = _obstacle(_file_header(path, little_endian))
    if obstacle:
        fits_other_order = not _obstacle(_file_header(path, not little_endian))
        raise InputError(f"{path}: its binary header has {obstacle}{f'; is the file {_order(not little_endian)}?' if fits_other_order else ''}")


def _order(little_endian: bool) -> str:
    return "little-endian" if little_endian else "big-endian"


def _field(file: Any, little_endian: bool, byte: int) -> npt.NDArray[np.float64]:
    """A field of all trace headers, scaled as SEG-Y says: multiplied by its scalar, or divided by a negative one."""
    import segyio

    def of_all_traces(byte: int) -> npt.NDArray[np.float64]:
        if little_endian:  # segyio 1.8 gives wrong attributes of two bytes
            return np.array([header[byte] for header in file.header], np.float64)
        return file.attributes(byte)[:].astype(np.float64)

    if byte == NUMBER:
        return np.arange(1.0, file.tracecount + 1)
    if byte not in segyio.tracefield.keys.values():
        raise UsageError(f"no field of a SEG-Y trace header begins at byte {byte}: segyio.tracefield.keys names those that do, and 0 is the number of the trace, from 1 on")
    values = of_all_traces(byte)
    if byte in _UNSIGNED:
        values %= 1 << 16
    if byte in _SCALED:
        scalar = of_all_traces(_SCALED[byte])
        values = np.where(scalar < 0, values / np.where(scalar < 0, -scalar, 1), values * np.where(scalar > 0, scalar, 1))
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
    if interval is not None and not 0 < interval < np.inf:
        raise UsageError(f"an interval of {interval:g} s between samples is impossible: it is a finite number > 0")
    with _opened(path, little_endian) as file:
        header, field = _file_header(path, little_endian), functools.partial(_field, file, little_endian)
        _require_one_length(path, int(header["samples"]), field(SAMPLES))
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
        kinds = np.unique(field(TRACE_KIND)[chosen], return_counts=True)
        start = _start(path, field(START)[chosen], field(TIME_SCALAR)[chosen])
        interval = _interval(path, header, field(INTERVAL)[chosen]) if interval is None else interval
        units = _units(path, header, field(UNITS)[chosen], (only or {}).get(UNITS, ())) if any(_SCALED.get(byte) == COORDINATE_SCALAR for byte in (*sources, *receivers)) else ""
        dtype, samples = ("float64" if file.dtype == np.dtype("i4") else "float32"), len(file.samples)
    pairs, first = np.unique(row * len(columns) + column, return_index=True)
    if pairs.size < traces.size:
        again = np.setdiff1d(np.arange(traces.size), first)[0]
        twin = first[np.searchsorted(pairs, row[again] * len(columns) + column[again])]
        raise InputError(f"{path}: {traces.size - pairs.size} of the traces have the source and the receiver of an earlier one; trace {traces[again] + 1}, counted from "
                         f"1, those of trace {traces[twin] + 1}. Name more fields in sources or receivers, choose by a field: only={{29: 1}}, or --only 29=1; or "
                         f"leave traces out by their numbers: without={{0: {traces[again] + 1}}}, or --without 0={traces[again] + 1}")
    if pairs.size < len(rows) * len(columns) and not fill:
        gaps = np.flatnonzero(pairs != np.arange(pairs.size))
        source, receiver = divmod(int(gaps[0]) if gaps.size else pairs.size, len(columns))
        raise InputError(f"{path}: {len(rows) * len(columns) - pairs.size} of the {len(rows)} x {len(columns)} pairs of a source and a receiver have no trace, or only one "
                         f"that is left out. The first is source {source} at {rows[source].tolist()} with receiver {receiver} at {columns[receiver].tolist()}. fill=True, or --fill, lets "
                         f"zeros stand there{_several(kinds)}")
    numbers = np.full((len(rows), len(columns)), -1, np.int64)
    numbers.flat[pairs] = traces[first]
    return Survey(path, rows, columns, numbers, samples, interval, start, units, dtype, int((~chosen).sum()), little_endian)


def _several(kinds: tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]) -> str:
    if len(kinds[0]) < 2:
        return ""
    counts = ", ".join(f"{count} of code {kind:g}" for kind, count in zip(*kinds))
    return f". There are traces of several kinds (byte {TRACE_KIND}): {counts}; only={{29: 1}}, or --only 29=1, keeps one kind"


def _require_one_length(path: str, samples: int, of_traces: npt.NDArray[np.float64]) -> None:
    """Where each trace begins follows from the lengths of those before it. 0 is common, and says nothing."""
    others = np.flatnonzero((of_traces != 0) & (of_traces != samples))
    if others.size:
        raise InputError(f"{path}: its binary header has traces of {samples} samples (byte 3221), but {others.size} of the {of_traces.size} trace headers say otherwise (byte "
                         f"{SAMPLES}). The first is that of trace {others[0] + 1}, counted from 1, with {of_traces[others[0]]:g}. Only files whose traces all have the same "
                         f"length can be read; if it is that of the binary header, write it, or 0, to byte {SAMPLES} of these headers")


def _start(path: str, starts: npt.NDArray[np.float64], scalars: npt.NDArray[np.float64]) -> float:
    """The time of the first sample in seconds."""
    unknown = scalars[(starts != 0) & ~np.isin(scalars, _TIME_SCALARS)]
    if unknown.size:
        raise InputError(f"{path}: traces begin later than at 0 (byte {START}), by times whose scalar (byte {TIME_SCALAR}) is {unknown[0]:g}: it is 0, 1, 10, 100, 1000 or "
                         "10000, or the negative of one. Correct it, or write 0 there if it is no scalar")
    first, last = starts.min(), starts.max()
    if first != last:
        raise InputError(f"{path}: traces begin at different times, from {first:g} to {last:g} ms (byte {START} of their headers)")
    return float(first) / 1e3


def _interval(path: str, header: Mapping[str, float], of_traces: npt.NDArray[np.float64]) -> float:
    """In seconds."""
    stated = np.unique([header["interval"], header["long interval"], *np.unique(of_traces)])
    stated = stated[stated != 0]
    if len(stated) != 1 or not 0 < stated[0] < np.inf:
        shown = [f"{value:g}" for value in stated[:5]] + ["more"] * (len(stated) > 5)
        raise InputError(f"{path}: its headers (byte 3217 of the file's, in revision 2 also 3273, and byte {INTERVAL} of the traces') have {' and '.join(shown) or 'no'} "
                         "microseconds between samples. Say how many seconds it is between all samples: interval=0.004, or --interval 0.004; or choose traces of one "
                         f"interval: only={{{INTERVAL}: 4000}}, or --only {INTERVAL}=4000")
    return float(stated[0]) / 1e6


def _units(path: str, header: Mapping[str, float], of_traces: npt.NDArray[np.float64], asked: int | Sequence[int]) -> str:
    """The unit of coordinates. Angles are taken only if `only` asks for them, since programs take positions for lengths."""
    codes = np.unique(of_traces)
    others = codes[~np.isin(codes, [*_LENGTHS, *np.atleast_1d(asked)])]
    if others.size:
        raise InputError(f"{path}: coordinates are {' and '.join(_ANGLES.get(int(code), f'in an unknown unit of code {code:g}') for code in others)} (byte {UNITS} of the trace "
                         f"headers), and no lengths. They tell traces apart, but lsm would take them for lengths. only={{{UNITS}: {others[0]:g}}}, or --only {UNITS}={others[0]:g}, "
                         "takes them as they are; or name other fields in sources and receivers")
    angles = [_ANGLES.get(int(code), "an unknown unit") for code in codes if code not in _LENGTHS]
    return " and ".join(angles) or _SYSTEMS.get(int(header["system"]), "")


def open_survey(grid: Grid, path: str | os.PathLike[str], sources: Sequence[int] = (73, 77, 49), receivers: Sequence[int] = (81, 85, 41),
                only: FieldValues | None = None, without: FieldValues | None = None, fill: bool = False, interval: float | None = None, little_endian: bool = False,
                rounding: float = 0) -> Survey:
    """The survey in a SEG-Y file. Rank 0 reads all trace headers (collective over ``grid.comm``; errors are raised on all ranks).

    Traces with equal values in the header fields ``sources``, which are named by the byte where they begin, counted from 1, have
    one source, and likewise for ``receivers``; both are in ascending order of these values. Coordinates are scaled as their headers
    say. The depth of a source is byte 49 minus the surface elevation in byte 45; that of a receiver is minus the elevation in byte 41.
    For stacked data take inline and crossline: ``sources=[189], receivers=[193]``. ``rounding`` takes positions to the nearest of its
    multiples, for files whose headers differ by rounding. ``units`` is the unit of coordinates; angles are refused unless ``only``
    asks for their code, as by ``only={89: 2}``.

    Dead traces (2 in byte 29) are left out. ``only={29: 1}`` keeps the traces with this value, or one of several, in a field of their
    headers, and ``without={9: [998, 999]}`` leaves such traces out; 0 stands for the number of the trace in the file, from 1 on. Each pair of source and receiver must then have one trace; with
    ``fill`` it may have none (``numbers`` is -1), and zeros stand there, which a solver takes for measured data unless they get no weight.
    """
    found: list[Survey] = []
    grid.told_by(0, lambda: found.append(scan(path, sources, receivers, only, without, fill, interval, little_endian, rounding)))
    survey: Survey = grid.comm.bcast(found[0] if found else None)
    return survey
