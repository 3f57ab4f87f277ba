# SPDX-License-Identifier: BSD-3-Clause
"""``python3 -m gridlops import``: arrays of SEG-Y files."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import pathlib
import resource
import sys
import tempfile
from typing import Any, Callable, Iterator

import numpy as np
from mpi4py import MPI

from .errors import Error, InputError, OutputError, UsageError
from .segy import Survey, scan

_AXES = ("source", "receiver", "time")
_BUFFER = 64 << 20  # bytes of traces that are in memory


def _bytes(text: str) -> list[int]:
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} are no bytes, such as 73,77,49") from None


def _field_and_value(text: str) -> tuple[int, int]:
    try:
        byte, value = map(int, text.split("="))
        return byte, value
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no byte and value, such as 29=1") from None


def _order(text: str) -> tuple[int, ...]:
    words = text.split(",")
    if sorted(words) != sorted(_AXES):
        raise argparse.ArgumentTypeError(f"{text!r} is no order of source, receiver and time, such as time,receiver,source")
    return tuple(map(_AXES.index, words))


def _values_of(pairs: list[tuple[int, int]]) -> dict[int, list[int]]:
    values: dict[int, list[int]] = {}
    for byte, value in pairs:
        values.setdefault(byte, []).append(value)
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
                         "folder for .npy files. The arrays are traces; sources and receivers, with a row of header values each; positions, those of the "
                         "sources, then of the receivers; numbers, the number of each pair's trace in the file, from 0 on, or -1; and weights, receivers x "
                         "sources, 1 where there is a trace and 0 elsewhere. Attributes of traces, or survey.json, have the interval and the start in seconds")
    command.add_argument("--sources", type=_bytes, default=[73, 77, 49], metavar="BYTES",
                         help="the fields of a trace header that tell sources apart, by the bytes where they begin, from 1 on: x, y and depth [73,77,49]. "
                         "The depth is byte 49 minus the surface elevation in byte 45")
    command.add_argument("--receivers", type=_bytes, default=[81, 85, 41], metavar="BYTES",
                         help="the same for receivers [81,85,41]. The depth is minus the elevation in byte 41. For stacked data use inline and crossline, "
                         "--sources 189 --receivers 193; traces is then (inline, crossline, time)")
    command.add_argument("--order", type=_order, default=(0, 1, 2), metavar="AXES", help="order of the dimensions of traces [source,receiver,time, which lsm takes; mdd takes "
                         "time,receiver,source]")
    command.add_argument("--only", type=_field_and_value, action="append", default=[], metavar="BYTE=VALUE",
                         help="keep only traces with this value in a field of their header, such as 29=1, live seismic traces; given again for the same byte, "
                         "either value. Dead traces are left out anyway")
    command.add_argument("--without", type=_field_and_value, action="append", default=[], metavar="BYTE=VALUE", help="leave such traces out")
    command.add_argument("--round", type=float, default=0, metavar="STEP", help="round positions to multiples of STEP, for files whose headers differ by rounding [0: as they are]")
    command.add_argument("--receivers-of", metavar="OUTPUT", help="an earlier output: stop unless it has the same receivers in the same order")
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


def _copy_traces(survey: Survey, order: tuple[int, ...], make: Callable[[tuple[int, ...], tuple[int, ...]], Callable[[], Any]]) -> None:
    """Makes an array by make(shape, shape of a block), and fills what it returns a function for, some sources at a time."""
    traces = survey.traces
    each = max(1, _BUFFER // max(1, traces.dtype.itemsize * traces.shape[1] * traces.shape[2]))
    each = min(each, traces.shape[0])
    shape = tuple(traces.shape[axis] for axis in order)
    array = make(shape, tuple((each, *traces.shape[1:])[axis] for axis in order))
    for begin in range(0, traces.shape[0], each):
        block = slice(begin, min(begin + each, traces.shape[0]))
        array()[tuple(block if axis == 0 else slice(None) for axis in order)] = traces[block].transpose(order)


def _is_hdf5(path: pathlib.Path) -> bool:
    return path.suffix in (".h5", ".hdf5")


def _open_hdf5(path: pathlib.Path, mode: str) -> Any:
    try:
        import h5py
    except ImportError as error:
        raise UsageError("HDF5 files are read and written by the package h5py: pip install h5py; or name a folder") from error
    return h5py.File(path, mode)


def _require_receivers_of(earlier: pathlib.Path, survey: Survey) -> None:
    """Throws InputError unless an earlier output has the receivers of this survey, in its order."""
    try:
        if _is_hdf5(earlier):
            with _open_hdf5(earlier, "r") as file:
                receivers = file["receivers"][...]
        else:
            receivers = np.load(earlier / "receivers.npy")
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


def _write(survey: Survey, arrays: dict[str, Any], order: tuple[int, ...], output: pathlib.Path) -> None:
    facts = {"interval": survey.interval, "start": survey.start, "axes": ",".join(_AXES[axis] for axis in order)}
    if _is_hdf5(output):
        with _new_file(output) as made, _open_hdf5(made, "w") as file:
            def make_dataset(shape: tuple[int, ...], block: tuple[int, ...]) -> Any:
                # Blocks of sources are contiguous unless sources come later: then a chunk has a part of a block.
                chunks = None if order[0] == 0 else tuple(size if axis == 0 else min(size, 64) for axis, size in zip(order, block))
                dataset = file.create_dataset("traces", shape, survey.dtype, chunks=chunks)
                return lambda: dataset

            _copy_traces(survey, order, make_dataset)
            file["traces"].attrs.update(facts)
            for name, array in arrays.items():
                file[name] = array
        return
    if output.suffix in (".npy", ".hdf", ".he5", ".mat"):
        raise UsageError(f"{output}: the output is an HDF5 file, whose name ends in .h5 or .hdf5, or a folder for .npy files")
    output.mkdir(exist_ok=True)
    with _new_file(output / "traces.npy") as made:
        def make_file(shape: tuple[int, ...], _: tuple[int, ...]) -> Any:
            np.lib.format.open_memmap(made, "w+", survey.dtype, shape)
            with made.open("r+b") as file:  # a full disk is an error here, and would end the process later
                os.posix_fallocate(file.fileno(), 0, made.stat().st_size)
            return lambda: np.lib.format.open_memmap(made, "r+")  # a block at a time stays in memory

        _copy_traces(survey, order, make_file)
    for name, array in arrays.items():
        with _new_file(output / f"{name}.npy") as made, made.open("wb") as file:
            np.save(file, array)
    with _new_file(output / "survey.json") as made:
        made.write_text(json.dumps(facts) + "\n", encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit status (docs/errors.md)."""
    given = _parser().parse_args(arguments)
    try:
        if MPI.COMM_WORLD.size > 1:
            raise UsageError(f"import runs on one process, and not on {MPI.COMM_WORLD.size}")
        survey = scan(given.file, given.sources, given.receivers, _values_of(given.only), _values_of(given.without), given.fill, given.interval,
                      given.little_endian, given.round)
        if given.receivers_of:
            _require_receivers_of(pathlib.Path(given.receivers_of), survey)
        arrays = {"sources": survey.sources, "receivers": survey.receivers, "numbers": survey.numbers,
                  "weights": (survey.numbers.T >= 0).astype(np.float32)}
        if survey.sources.shape[1] == survey.receivers.shape[1]:
            arrays["positions"] = np.concatenate([survey.sources, survey.receivers])
        try:
            _write(survey, arrays, given.order, pathlib.Path(given.output))
        except (OSError, RuntimeError) as error:
            raise error if isinstance(error, Error) else OutputError(f"{given.output} cannot be written: {error}") from error
    except Error as error:
        print(f"gridlops import: {error}", file=sys.stderr)
        return error.status
    print(survey)
    for name, array in itertools.chain([("traces", survey.traces)], arrays.items()):
        print(f"{given.output}: {name}, {' x '.join(str(array.shape[axis]) for axis in (given.order if name == 'traces' else range(array.ndim)))}")
    print(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
