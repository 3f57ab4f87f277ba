# SPDX-License-Identifier: BSD-3-Clause
"""A plug-in of pytest that puts our functions in the place of PyLops-MPI's before its tests import them.

Every rank runs pytest. The first one prints what came of the tests; the others print what failed."""
import os
import sys

import pylops_mpi
import pylops_mpi.basicoperators
import pylops_mpi.optimization.basic
import pylops_mpi.optimization.sparsity
from mpi4py import MPI
from ranks import end_job_on_failure

import gridlops.pylops_mpi as ours

PLACES = {"MPIMatrixMult": [pylops_mpi.basicoperators, pylops_mpi],
          "cg": [pylops_mpi, pylops_mpi.optimization.basic], "cgls": [pylops_mpi, pylops_mpi.optimization.basic],
          "ista": [pylops_mpi, pylops_mpi.optimization.sparsity], "fista": [pylops_mpi, pylops_mpi.optimization.sparsity]}
for name, modules in PLACES.items():
    for module in modules:
        setattr(module, name, getattr(ours, name))

results = {}


def pytest_collection_finish(session):
    for module in {item.module for item in session.items}:
        taken = [name for name in PLACES if hasattr(module, name)]
        assert taken and all(getattr(module, name) is getattr(ours, name) for name in taken), (module, taken)


def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        results[report.nodeid] = report.outcome
    end_job_on_failure(report)


def pytest_sessionfinish(session, exitstatus):
    """A test counts as passed if it passed on all ranks."""
    everywhere = MPI.COMM_WORLD.gather(results)
    if everywhere is not None:
        names = {name for each in everywhere for name in each}
        worst = {name: {each.get(name, "missing") for each in everywhere} for name in names}
        count = {outcome: sum(1 for each in worst.values() if each == {outcome}) for outcome in ("passed", "skipped")}
        failed = sorted(name for name, each in worst.items() if len(each) > 1 or each - {"passed", "skipped"})
        print(f"\nPEERS {os.path.basename(str(session.config.args[0]))}: {count['passed']} passed, {count['skipped']} skipped, "
              f"{len(failed)} failed {failed}", file=sys.__stdout__, flush=True)
