# SPDX-License-Identifier: BSD-3-Clause
"""The errors that GridLOps raises. Each is an :class:`Error`, and also the matching built-in exception of Python."""

from __future__ import annotations

import sys
import traceback
from types import TracebackType

from mpi4py import MPI

from . import _native


class Error(RuntimeError):
    """The base of all errors of the library. The text says what is wrong, with the values, why, and what to try.

    Unless a function says otherwise, all ranks that call it raise the same error.
    """

    #: The exit status that a program should end with (docs/errors.md).
    status: int
    #: False if perhaps only this rank knows of the error. The other ranks may then wait for it, so the job must end.
    known_to_all_ranks: bool = True
    #: The rank, in the call's communicator or grid, where the error occurred. None: on all ranks, or unknown.
    rank: int | None = None


class UsageError(Error, ValueError):
    """An argument that no correct program passes: a negative size, an unknown name."""


class ShapeError(UsageError):
    """Operands whose shapes, layouts or grids do not fit together. Raised before anything is sent."""


class InputError(Error, OSError):
    """A file that is missing, damaged, or lacks the data that the call needs."""


class OutputError(Error, OSError):
    """A file that the library could not write."""


class OutOfMemory(Error, MemoryError):
    """There is not enough memory for an array."""


class CommunicationError(Error, ConnectionError):
    """MPI refused an operation. Only the rank that sees it raises the error."""


class Suspended(Error):
    """A solver has saved its state and ended, on request. Nothing is wrong."""


for _name, _status in _native.error_statuses.items():  # each of the library's error types has a class here
    globals()[_name].status = _status


def print_once(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Prints an uncaught error as Python does. One that all ranks share has its traceback on rank 0 of ``MPI.COMM_WORLD``; each
    other rank prints a line with its place, in case it is alone after all."""
    others = isinstance(error, Error) and error.known_to_all_ranks and MPI.Is_initialized() and not MPI.Is_finalized() and MPI.COMM_WORLD.rank > 0
    frames = traceback.extract_tb(trace)
    if not others or not frames:
        sys.__excepthook__(kind, error, trace)
        return
    place = next((frame for frame in reversed(frames) if "/gridlops/" not in frame.filename), frames[0])
    text = str(error).splitlines()
    print(f"rank {MPI.COMM_WORLD.rank}: {place.filename}:{place.lineno}: {kind.__name__}: {text[0] if text else ''}", file=sys.stderr, flush=True)


if sys.excepthook is sys.__excepthook__:  # notebooks, debuggers and other packages keep theirs
    sys.excepthook = print_once
