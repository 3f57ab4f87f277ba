# SPDX-License-Identifier: BSD-3-Clause
"""What GridLOps raises. Every error is an :class:`Error`, and what Python calls the same thing."""

from __future__ import annotations

from . import _native


class Error(RuntimeError):
    """The base of all errors of the library. The text says what is wrong, with the values, why, and what to try.

    Unless a function says otherwise, all ranks that call it raise the same error.
    """

    #: The exit status that a program should end with (docs/errors.md).
    status: int
    #: False if perhaps only this rank knows: then the others may wait for it, and the job must end.
    known_to_all_ranks: bool = True
    #: The rank, of the communicator or grid of the call, where it went wrong; None where that was all ranks, or is not known.
    rank: int | None = None


class UsageError(Error, ValueError):
    """An argument that no correct program passes: a negative size, an unknown name."""


class ShapeError(UsageError):
    """Operands whose shapes, layouts or grids do not fit together. Raised before anything is sent."""


class InputError(Error, OSError):
    """A file that is missing, damaged, or does not hold what is needed."""


class OutputError(Error, OSError):
    """A file that could not be written."""


class OutOfMemory(Error, MemoryError):
    """There is not enough memory for an array."""


class CommunicationError(Error, ConnectionError):
    """MPI refused an operation. Only the rank that saw it raises."""


class Suspended(Error):
    """A solver was asked to save its state and end, and did; nothing is wrong."""


for _name, _status in _native.error_statuses.items():  # every type of error of the library has its class here
    globals()[_name].status = _status
