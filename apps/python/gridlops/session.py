# SPDX-License-Identifier: BSD-3-Clause
"""Sessions, which end waits for ranks that never come."""

from __future__ import annotations

import sys
from types import TracebackType

from mpi4py import MPI

from . import _native
from .errors import Error, print_once


class Session:
    """A ``with`` block in which ranks do not wait for each other for ever.

    Beginning and ending the block is collective over ``comm`` (default: ``MPI.COMM_WORLD``). If no rank makes progress
    for ``GRIDLOPS_TIMEOUT`` seconds (default 600; 0: no limit), each rank that waits in this package raises
    :class:`CommunicationError`. The error names the silent ranks, and the operations in which the others wait. A rank
    makes progress when it communicates through this package or calls :func:`keep_alive`. The session does not watch
    ranks that wait in calls of mpi4py itself. With ``end_job``, ranks print the error instead, and the whole job ends
    with status 75; an exception that leaves the block on one rank also ends the job, with its own ``status``, or 70.
    Only one session may exist at a time. If an environment variable ``GRIDLOPS_...`` has a value that it cannot have,
    the block does not begin, and all ranks raise :class:`UsageError`.
    """

    def __init__(self, comm: MPI.Comm | None = None, *, end_job: bool = False) -> None:
        self.comm: MPI.Comm = MPI.COMM_WORLD if comm is None else comm
        self.end_job = end_job

    def __enter__(self) -> Session:
        self._native = _native.Session(MPI._addressof(self.comm), self.end_job)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None or isinstance(error, SystemExit):
            self._native.close()
        elif self.end_job:
            print_once(type(error), error, trace)
            sys.stderr.flush()
            self._native.end_job(error.status if isinstance(error, Error) else 70, f"{type(error).__name__}: {error}")
        else:
            self._native.abandon()


def keep_alive() -> None:
    """Tells the ranks that wait for this rank that it is still at work.

    A rank that computes for longer than ``GRIDLOPS_TIMEOUT`` without communication must call this at least four times
    within that time. Not collective. A call costs as much as reading a clock.
    """
    _native.keep_alive()
