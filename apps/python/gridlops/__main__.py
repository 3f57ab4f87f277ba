# SPDX-License-Identifier: BSD-3-Clause
"""``python3 -m gridlops import``: arrays of SEG-Y files."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import itertools
import json
import os
import pathlib
import resource
import sys
import tempfile
from typing import Any, Iterator, Sequence

import numpy as np
import numpy.typing as npt
from mpi4py import MPI

from . import _native
from .errors import Error, InputError, OutputError, UsageError
from .segy import Survey, scan

_AXES = ("source", "receiver", "time")
_FOR_LSM, _FOR_MDD = (0, 1, 2), (2, 1, 0)  # orders of the axes
_BUFFER = 64 << 20  # bytes of traces that are in memory, and of what they become
_CHUNK = 64  # receivers in a chunk of an HDF5 file


def _bytes(text: str) -> list[int]:
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} are no bytes, such as 73,77,49") from None


def _field_and_values(text: str) -> tuple[int, list[int]]:
    try:
        byte, values = text.split("=")
        return int(byte), [int(value) for value in values.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no byte and value, such as 29=1") from None


def _order(text: str) -> tuple[int, ...]:
    words = text.split(",")
    if sorted(words) != sorted(_AXES):
        raise argparse.ArgumentTypeError(f"{text!r} is no order of source, receiver and time, such as time,receiver,source")
    return tuple(map(_AXES.index, words))


def _samples(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of samples > 0")
    return int(text)


def _values_of(pairs: list[tuple[int, list[int]]]) -> dict[int, list[int]]:
    values: dict[int, list[int]] = {}
    for byte, of_byte in pairs:
        values.setdefault(byte, []).extend(of_byte)
    return values


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m gridlops", description="Work with files for GridLOps.")
    command = parser.add_subparsers(dest="command", required=True).add_parser(
        "import", help="make arrays of a SEG-Y file", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Makes arrays of a SEG-Y file: the traces, and the positions of sources and receivers, both in ascending order of x, then\n"
                    "y, then depth. Headers are read first, then the traces, a few at a time. Runs on one process.",
        epilog="example (lsm takes x and depth of each position, and must be told the interval and the velocity):\n"
               "  python3 -m gridlops import line.segy line.h5\n"
               "  mpirun -n 4 gridlops lsm --data line.h5:/traces --geometry line.h5:/positions@:,::2 --interval 0.004 --velocity 1500 --save image")
    command.add_argument("file", metavar="FILE.segy")
    command.add_argument("output", metavar="OUTPUT", help="an HDF5 file, whose name ends in .h5 or .hdf5, and which is replaced if it exists; or a "
                         "folder for .npy files. The arrays are traces, or spectra; sources and receivers, with a row of header values each; positions, those of the "
                         "sources, then of the receivers; numbers, the number of each pair's trace in the file, from 0 on, or -1; and weights, receivers x "
                         "sources, 1 where there is a trace and 0 elsewhere. Attributes of traces, or survey.json, have the interval and the start in seconds, "
                         "how many samples a trace has, and the unit of coordinates")
    command.add_argument("--sources", type=_bytes, default=[73, 77, 49], metavar="BYTES",
                         help="the fields of a trace header that tell sources apart, by the bytes where they begin, from 1 on: x, y and depth [73,77,49]. "
                         "The depth is byte 49 minus the surface elevation in byte 45")
    command.add_argument("--receivers", type=_bytes, default=[81, 85, 41], metavar="BYTES",
                         help="the same for receivers [81,85,41]. The depth is minus the elevation in byte 41. For stacked data use inline and crossline, "
                         "--sources 189 --receivers 193; traces is then (inline, crossline, time)")
    result = command.add_mutually_exclusive_group()
    result.add_argument("--order", type=_order, default=_FOR_LSM, metavar="AXES", help="order of the dimensions of traces [source,receiver,time, which lsm takes; mdd takes "
                        "time,receiver,source]")
    result.add_argument("--spectra", type=_samples, nargs="?", const=0, metavar="N", help="write spectra in place of the traces, frequencies x receivers x sources, as "
                        "numpy.fft.rfft makes them of N samples, zeros behind those of the file [as many as the file has]. mdd --kernel takes them, of as many "
                        "samples as its data have, and never has all in memory if it compresses them. The output is an HDF5 file")
    command.add_argument("--only", type=_field_and_values, action="append", default=[], metavar="BYTE=VALUE",
                         help="keep only traces with this value in a field of their header, such as 29=1, live seismic traces, or one of several, as in 29=1,6. Dead "
                         "traces are left out anyway. 0 stands for the number of the trace in the file, from 1 on. Coordinates in degrees or seconds of arc are taken "
                         "only if this asks for their code, as in 89=2")
    command.add_argument("--without", type=_field_and_values, action="append", default=[], metavar="BYTE=VALUE", help="leave such traces out")
    command.add_argument("--round", type=float, default=0, metavar="STEP", help="round positions to multiples of STEP, for files whose headers differ by rounding [0: as they are]")
    command.add_argument("--receivers-of", metavar="OUTPUT", help="an earlier output: stop unless it has the same receivers in the same order and the same "
                         "interval, and, if it or this output has spectra, as many samples")
    command.add_argument("--fill", action="store_true", help="fill pairs without a trace with zeros; such pairs are refused otherwise. Solvers take the zeros for measured "
                         "data, but mdd leaves them out by --weights OUTPUT:/weights")
    command.add_argument("--interval", type=float, metavar="S", help="seconds between samples, if the headers do not say")
    command.add_argument("--little-endian", action="store_true", help="the file has little-endian numbers")
    return parser


@contextlib.contextmanager
def _new_file(path: pathlib.Path) -> Iterator[pathlib.Path]:
    """A temporary file that takes this name at the end, or disappears."""
    path = pathlib.Path(os.path.realpath(path))
    handle, name = tempfile.mkstemp(prefix=path.name + ".", suffix=".part", dir=path.parent)
    made = pathlib.Path(name)
    try:
        os.fchmod(handle, (path.stat().st_mode if path.exists() else 0o666 & ~_umask()) & 0o777)
        os.close(handle)
        yield made
        with made.open("rb") as written:
            os.fsync(written.fileno())
        made.replace(path)
    finally:
        made.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@dataclasses.dataclass(frozen=True)
class _Result:
    """The array that is made of a survey: its traces, in an order of their axes, or spectra of traces of ``spectra_of`` samples, for mdd."""

    survey: Survey
    order: tuple[int, ...]
    spectra_of: int = 0  #: 0: traces

    @property
    def name(self) -> str:
        return "spectra" if self.spectra_of else "traces"

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.result_type(self.survey.dtype, np.complex64) if self.spectra_of else np.dtype(self.survey.dtype)

    @property
    def facts(self) -> dict[str, Any]:
        last = "frequency" if self.spectra_of else "time"
        return {"interval": self.survey.interval, "start": self.survey.start, "samples": self.spectra_of or self.survey.samples,
                "units": self.survey.units, "axes": ",".join(self._in_order(("source", "receiver", last)))}

    @property
    def shape(self) -> tuple[int, ...]:
        return self._in_order((*self.survey.numbers.shape, self._length))

    @property
    def block(self) -> tuple[int, ...]:
        """The shape of a part."""
        return self._in_order((*self._pairs, self._length))

    def parts(self) -> Iterator[tuple[slice, ...]]:
        """What is read and written at once: as many sources as fit the buffer with some receivers, so that a file in the order of either is read in long runs."""
        all_sources, all_receivers = self.survey.numbers.shape
        sources, receivers = self._pairs
        for source, receiver in itertools.product(range(0, all_sources, sources), range(0, all_receivers, receivers)):
            yield self._in_order((slice(source, source + sources), slice(receiver, receiver + receivers), slice(None)))

    def read(self, part: tuple[slice, ...]) -> npt.NDArray[Any]:
        traces = self.survey.traces[tuple(part[self.order.index(axis)] for axis in range(3))]
        return self._spectra(traces) if self.spectra_of else traces.transpose(self.order)

    @property
    def _length(self) -> int:
        return self.spectra_of // 2 + 1 if self.spectra_of else self.survey.samples

    @property
    def _pairs(self) -> tuple[int, int]:
        sources, receivers = self.survey.numbers.shape
        traces = max(1, _BUFFER // (np.dtype(self.survey.dtype).itemsize * max(self.survey.samples, self.spectra_of)))
        chunk = min(_CHUNK, receivers, traces)
        sources = min(traces // chunk, sources)
        return sources, min(traces // sources // chunk * chunk, receivers)

    def _in_order(self, values: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(values[axis] for axis in self.order)

    def _spectra(self, traces: npt.NDArray[Any]) -> npt.NDArray[Any]:
        spectra = np.empty((self._length, *traces.shape[1::-1]), self.dtype)
        for source, gather in enumerate(traces):
            for first in range(0, len(gather), _CHUNK):  # the transforms of a few may be in double precision
                some = slice(first, first + _CHUNK)
                spectra[:, some, source] = np.fft.rfft(gather[some], self.spectra_of).T
        return spectra


def _is_hdf5(path: pathlib.Path) -> bool:
    return path.suffix in (".h5", ".hdf5")


def _open_hdf5(path: pathlib.Path, mode: str, version: str | None = None) -> Any:
    try:
        import h5py
    except ImportError as error:
        raise UsageError("HDF5 files are read and written by the package h5py: pip install h5py; or name a folder") from error
    return h5py.File(path, mode, libver=version)


def _facts_of(earlier: pathlib.Path) -> tuple[npt.NDArray[np.float64], dict[str, Any]]:
    """The receivers of an earlier output, and what it says of its traces."""
    if not _is_hdf5(earlier):
        return np.load(earlier / "receivers.npy"), json.loads((earlier / "survey.json").read_text(encoding="utf-8"))
    with _open_hdf5(earlier, "r") as file:
        return file["receivers"][...], dict(file["spectra" if "spectra" in file else "traces"].attrs)


def _require_fit(earlier: pathlib.Path, result: _Result) -> None:
    """Throws InputError unless an earlier output has the receivers of this survey, in its order, and traces that its traces can be a convolution of."""
    survey, facts = result.survey, result.facts
    try:
        receivers, of_earlier = _facts_of(earlier)
        if "samples" not in of_earlier:
            raise InputError(f"{earlier} is of an earlier version of import: import it again")
        interval, samples, axes = float(of_earlier["interval"]), int(of_earlier["samples"]), str(of_earlier["axes"])
    except (OSError, KeyError, ValueError) as error:
        raise error if isinstance(error, Error) else InputError(f"{earlier} has no receivers of an earlier import: {error}") from error
    if receivers.shape != survey.receivers.shape:
        raise InputError(f"{survey.path} has {len(survey.receivers)} receivers, told apart by {survey.receivers.shape[1]} fields, but {earlier} has an array of "
                         f"{' x '.join(map(str, receivers.shape))}")
    differs = (receivers != survey.receivers).any(axis=1)
    if differs.any():
        first = int(np.argmax(differs))
        raise InputError(f"{differs.sum()} of the {len(differs)} receivers of {survey.path} and of {earlier} differ. The first is receiver {first}, at "
                         f"{survey.receivers[first].tolist()} and at {receivers[first].tolist()}. If they differ by rounding, make both with --round STEP; if one file has "
                         "more, leave those out by --only or --without")
    units = str(of_earlier.get("units", ""))
    if units and survey.units and units != survey.units:
        raise InputError(f"coordinates of {survey.path} are in {survey.units}, but those of {earlier} are in {units}")
    if interval != survey.interval:
        raise InputError(f"{survey.path} has a sample every {1e3 * survey.interval:g} ms, but {earlier} every {1e3 * interval:g} ms, so neither is a convolution of the other")
    if "frequency" in axes + facts["axes"] and samples != facts["samples"]:
        both = {axes: samples, facts["axes"]: facts["samples"]}
        of_data = next((count for name, count in both.items() if "frequency" not in name), max(samples, facts["samples"]))
        raise InputError(f"{result.name} of {survey.path} have {facts['samples']} samples, but {earlier} has {samples}: make spectra of as many samples as the data have, "
                         f"by --spectra {of_data}")


def _write(result: _Result, arrays: dict[str, Any], output: pathlib.Path) -> None:
    if _is_hdf5(output):
        # Since version 1.10, HDF5 needs little memory for many chunks.
        with _new_file(output) as made, _open_hdf5(made, "w", "v110" if result.spectra_of else None) as file:
            if result.spectra_of:  # which are read frequency by frequency
                chunks = (1, *result.block[1:])
            else:  # blocks are contiguous if sources come first; otherwise a chunk has a part of a block
                chunks = None if result.order[0] == 0 else tuple(size if axis == 0 else min(size, _CHUNK) for axis, size in zip(result.order, result.block))
            dataset = file.create_dataset(result.name, result.shape, result.dtype, chunks=chunks)
            for part in result.parts():
                dataset[part] = result.read(part)
            dataset.attrs.update(result.facts)
            for name, array in arrays.items():
                file[name] = array
        return
    if output.suffix in (".npy", ".hdf", ".he5", ".mat"):
        raise UsageError(f"{output}: the output is an HDF5 file, whose name ends in .h5 or .hdf5, or a folder for .npy files")
    if result.spectra_of:
        raise UsageError(f"{output}: spectra are written in chunks of one frequency, to an HDF5 file, whose name ends in .h5 or .hdf5")
    _native.claim_folder(str(output), "survey", {"traces.npy", "survey.json", "positions.npy", *(f"{name}.npy" for name in arrays)})
    with _new_file(output / "traces.npy") as made:
        np.lib.format.open_memmap(made, "w+", result.dtype, result.shape)
        with made.open("r+b") as file:  # a full disk is an error here, and would end the process later
            os.posix_fallocate(file.fileno(), 0, made.stat().st_size)
        for part in result.parts():
            np.lib.format.open_memmap(made, "r+")[part] = result.read(part)  # a part at a time stays in memory
    for name, array in arrays.items():
        with _new_file(output / f"{name}.npy") as made, made.open("wb") as file:
            np.save(file, array)
    with _new_file(output / "survey.json") as made:
        made.write_text(json.dumps(result.facts) + "\n", encoding="utf-8")


def _result(survey: Survey, given: argparse.Namespace) -> _Result:
    if given.spectra is None:
        return _Result(survey, given.order)
    samples = given.spectra or survey.samples
    if samples < survey.samples:
        raise UsageError(f"--spectra {samples}: the traces of {survey.path} have {survey.samples} samples, and spectra of fewer would leave some out")
    return _Result(survey, _FOR_MDD, samples)


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit status (docs/errors.md)."""
    given = _parser().parse_args(arguments)
    try:
        if MPI.COMM_WORLD.size > 1:
            raise UsageError(f"import runs on one process, and not on {MPI.COMM_WORLD.size}")
        survey = scan(given.file, given.sources, given.receivers, _values_of(given.only), _values_of(given.without), given.fill, given.interval,
                      given.little_endian, given.round)
        result = _result(survey, given)
        if given.receivers_of:
            _require_fit(pathlib.Path(given.receivers_of), result)
        arrays = {"sources": survey.sources, "receivers": survey.receivers, "numbers": survey.numbers,
                  "weights": (survey.numbers.T >= 0).astype(np.float32)}
        if survey.sources.shape[1] == survey.receivers.shape[1]:
            arrays["positions"] = np.concatenate([survey.sources, survey.receivers])
        try:
            _write(result, arrays, pathlib.Path(given.output))
        except (OSError, RuntimeError) as error:
            raise error if isinstance(error, Error) else OutputError(f"{given.output} cannot be written: {error}") from error
    except Error as error:
        print(f"gridlops import: {error}", file=sys.stderr)
        return error.status
    print(survey)
    for name, shape in ((result.name, result.shape), *((name, array.shape) for name, array in arrays.items())):
        print(f"{given.output}: {name}, {' x '.join(map(str, shape))}")
    print(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
