# SPDX-License-Identifier: BSD-3-Clause
"""ReFrame tests of GridLOps (https://reframe-hpc.readthedocs.io, version 4): products, solvers and use cases on a growing number
of ranks.

    GRIDLOPS_PROGRAMS=$PWD/build reframe -C SITE.py -c bench/reframe -r -S ranks_per_node=64

Performance is GFLOP/s, seconds, or the fraction of the roofline that the same ranks measured in the same run.
References belong to a machine, so this file has none."""
import json
import os
from pathlib import Path

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import deferrable, parameter, performance_function, run_after, sanity_function, variable


def program(name, room):
    """Finds a program in GRIDLOPS_PROGRAMS, which is a build folder or holds the programs, or on PATH."""
    folder = os.environ.get("GRIDLOPS_PROGRAMS")
    if not folder:
        return name
    built = Path(folder, room, name)
    return str(built if built.exists() else Path(folder, name))


class OnRanks(rfm.RunOnlyRegressionTest):
    """A program that writes its figures as JSON. Each rank has one core."""
    ranks = parameter([1, 2, 4])
    ranks_per_node = variable(int, value=0)  # 0: the system chooses
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    env_vars = {"GRIDLOPS_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    keep_files = ["figures.json"]

    @run_after("init")
    def set_tasks(self):
        self.num_tasks = self.ranks
        self.num_cpus_per_task = 1
        if self.ranks_per_node > 0:
            self.num_tasks_per_node = min(self.ranks, self.ranks_per_node)

    @deferrable
    def figures(self):
        return json.loads(Path(self.stagedir, "figures.json").read_text(encoding="utf-8"))


class Bench(OnRanks):
    """gridlops-bench, with a block of 1024 rows of A on each rank: weak scaling."""
    form = parameter(["1-D", "2-D"])

    @run_after("init")
    def set_program(self):
        self.executable = program("gridlops-bench", "bench")
        self.executable_opts = [self.subcommand, "--rows", str(1024 * self.ranks), "--cols", "1024", "--rhs", "16", "--transport", "mpi",
                                "--algorithm", "stationary-a", "--limit-order", "512", "--json", "figures.json"]
        if self.form == "1-D":
            self.executable_opts += ["--grid", f"{self.ranks}x1"]

    @sanity_function
    def is_right(self):
        return sn.all(sn.map(lambda result: sn.assert_lt(result["error"], 1e-10), sn.getitem(self.figures(), "results")))

    @deferrable
    def median_of(self, name):
        results = sorted(result[name] for result in self.figures().evaluate()["results"])
        return results[len(results) // 2]

    @performance_function("GFLOP/s")
    def rate(self):
        return self.median_of("gflops")

    @performance_function("of the roofline")
    def fraction(self):
        return self.median_of("roofline_fraction")


@rfm.simple_test
class Products(Bench):
    """A X and A^H Y."""
    subcommand = "matmul"

    @run_after("init", always_last=True)
    def both_directions(self):
        self.executable_opts += ["--both"]


@rfm.simple_test
class Iterations(Bench):
    """Iterations of CGLS."""
    subcommand = "solve"


@rfm.simple_test
class Migration(OnRanks):
    """Least-squares migration with ten sources per rank: weak scaling."""

    @run_after("init")
    def set_program(self):
        self.executable = program("gridlops", "apps")
        self.executable_opts = ["lsm", "--quiet", "--iterations", "50", "--sources", str(10 * self.ranks), "--report", "figures.json"]

    @sanity_function
    def has_all_iterations(self):
        return sn.assert_eq(sn.getitem(self.figures(), "command"), "lsm")

    @performance_function("s")
    def seconds(self):
        return sn.getitem(sn.getitem(self.figures(), "seconds"), "compute")
