# SPDX-License-Identifier: BSD-3-Clause
"""Waits that do not last for ever."""

from __future__ import annotations

import sys
import traceback
from types import TracebackType

from mpi4py import MPI

from . import _native
from .errors import Error


class Session:
    """A ``with`` block in which ranks that wait for each other in vain say so, and go on no longer.

    Collective over ``comm`` (``MPI.COMM_WORLD`` unless it is given), where the block begins and where it ends. When no rank
    has got on for ``GRIDLOPS_TIMEOUT`` seconds (600 unless the variable is set; 0 for ever), each rank that waits in this
    package raises :class:`CommunicationError`, which says who is silent and in which operation the others are. With
    ``end_job`` each prints that instead, and the whole job ends with status 75; an exception that leaves the block on one
    rank then ends the job, too, with its own ``status``, or 70. Ranks that wait in calls of mpi4py itself are not watched. A
    rank gets on when it communicates through this package, or calls :func:`keep_alive`. One session lives at a time.
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
            traceback.print_exception(kind, error, trace)
            sys.stderr.flush()
            self._native.end_job(error.status if isinstance(error, Error) else 70, f"{type(error).__name__}: {error}")
        else:
            self._native.abandon()


def keep_alive() -> None:
    """Tells the ranks that wait for this one that it is at work.

    A rank that computes for longer than ``GRIDLOPS_TIMEOUT`` between communications must call this meanwhile, at least four
    times in that time. Not collective. It takes the time of reading a clock.
    """
    _native.keep_alive()
