# SPDX-License-Identifier: BSD-3-Clause
"""Checks `gridlops info`, --help and --version. info_test.py LAUNCH PROGRAM"""
import os
import sys

import program

SUBCOMMANDS = {
    "make-problem": ["--rows", "--cols", "--rhs", "--dtype", "--kind", "--condition", "--noise", "--seed", "--out"],
    "multiply": ["--matrix", "--input", "--output", "--adjoint", "--grid", "--algorithm", "--panel", "--transport",
                 "--device", "--report"],
    "solve": ["--matrix", "--rhs", "--output", "--solver", "--iterations", "--tolerance", "--atol", "--btol", "--conlim",
              "--damp", "--damp-relative", "--storage",
              "--initial", "--batch", "--column-stable", "--dry-run", "--history", "--quiet", "--grid", "--algorithm",
              "--panel", "--transport", "--device", "--report"],
    "calibrate": ["--dtype", "--device", "--transport"],
    "info": ["--scratch"],
}
# Open MPI cannot start with these.
NO_MPI = {"OMPI_MCA_pml": "nothing", "OMPI_MCA_btl": "nothing"}


def check_help(suite):
    whole = suite.run("--help", environment=NO_MPI)
    suite.succeeded(whole)
    missing = [name for name in SUBCOMMANDS if name not in whole.output]
    suite.check(not missing, "--help lacks", missing)
    for name, options in SUBCOMMANDS.items():
        run = suite.run(name, "--help", environment=NO_MPI)
        suite.succeeded(run)
        words = run.output.split()
        missing = [option for option in options if option not in words]
        suite.check(not missing, name, "--help lacks", missing)
    several = suite.run("--help", ranks=3)
    suite.check(several.output == whole.output, "--help on three ranks is not what it is on one:", several.output)


def check_version(suite):
    for words in (["--version"], ["solve", "--version"]):
        run = suite.run(*words, environment=NO_MPI)
        suite.succeeded(run)
        lines = run.output.splitlines()
        suite.check(len(lines) == 3 and lines[0].startswith("gridlops ") and not run.own_lines, "--version:", run.output, run.errors)
    # By the launcher both times: it lets a pinned kernel go, which the third line names.
    alone, together = (suite.run("--version", ranks=ranks).output for ranks in (1, 2))
    suite.check(together == alone, "--version on two ranks is", together, "and on one", alone)


def check_start(suite):
    """Without mpirun the program needs neither Open MPI's daemon nor its session folder, unless the user asks for them."""
    if "Open MPI v4" not in suite.run("--version").output:
        print("not tested: the daemon of Open MPI 4")
        return
    no_daemon = {"OPAL_BINDIR": "/nowhere"}
    suite.succeeded(suite.run("info", environment={**no_daemon, "OMPI_MCA_orte_tmpdir_base": "/dev/null/no/folder"}))
    wanted = suite.run("info", environment={**no_daemon, "OMPI_MCA_ess_singleton_isolated": "0"})
    suite.check(wanted.status != 0, "the user's choice is not heard:", wanted.output)


def check_launch(suite):
    """A process that another MPI has launched, or that a rank has started with its own environment, says so, and ends."""
    if "Open MPI v4" not in suite.run("--version").output:
        print("not tested: launches by another MPI than Open MPI 4")
        return
    for rank in "01":
        run = suite.run("info", environment={"PMI_RANK": rank, "PMI_SIZE": "3"})
        suite.succeeded(run, 2)
        suite.check(run.error_lines == [] if rank == "1" else "as one of 3 ranks by MPICH's mpiexec, or one like it (PMI_SIZE=3)" in run.errors, run.errors)
    suite.succeeded(suite.run("info", environment={"PMI_RANK": "0", "PMI_SIZE": "1"}))
    parent = [sys.executable, "-c", "import subprocess, sys; from mpi4py import MPI; sys.exit(subprocess.run(sys.argv[1:]).returncode)"]
    run = suite.run("info", on_each_rank=parent, ranks=2)
    suite.succeeded(run, 2)
    suite.check("is rank 0 of a program that uses MPI" in run.errors and "MPI_Init" not in run.errors, run.errors)
    suite.succeeded(suite.run("info", on_each_rank=["sh", "-c", '"$@"; exit $?', "sh"], ranks=2))  # whose shell does not use MPI


def facts(run):
    return {line[:14].strip(): line[14:] for line in run.output.splitlines() if line[:14].strip()}


def check_info(suite):
    run = suite.run("info", ranks=3)
    if not suite.succeeded(run):
        return
    found = facts(run)
    for name, word in {"gridlops": "built with", "MPI": "", "ranks": "3 on 1 host", "transports": "mpi", "BLAS": "/",
                       "kernel": "this CPU has", "own kernels": "", "calibration": "GRIDLOPS_CALIBRATION is off", "threads": "1 per rank, 1 of BLAS", "GPU": "nccl mpi" if program.DEVICE == "gpu" else "none: "}.items():
        suite.check(word in found.get(name, "nothing"), f"info: {name} is", found.get(name), "without", word, "in", run.output)
    known = ("fftw-3", "FFTW ", "KISS FFT 1")
    suite.check(found.get("FFT", "").startswith(known) and found["FFT"].endswith((", GPL 2 or later", ", BSD-3-Clause", ", Intel")),
                "info: FFT is", found.get("FFT"))
    cores = os.cpu_count()
    suite.check(f"3 ranks, 3 threads, {cores} cores" in run.output, "hosts:", run.output)

    threads = suite.run("info", ranks=2, on_each_rank=["env", f"OPENBLAS_NUM_THREADS={cores}"])
    suite.succeeded(threads)
    if facts(threads).get("threads") == f"1 per rank, {cores} of BLAS":
        suite.check(any(f"{2 * cores} threads" in line and "OPENBLAS_NUM_THREADS" in line
                        for line in threads.warning_lines), "no warning of too many threads:", threads.errors)

    threads = suite.run("info", ranks=2, on_each_rank=["env", f"GRIDLOPS_THREADS={cores + 1}"])
    suite.succeeded(threads)
    suite.check(facts(threads).get("threads") == f"{cores + 1} per rank, each with one of BLAS", "threads:", threads.output)
    suite.check(any("GRIDLOPS_THREADS" in line for line in threads.warning_lines), "no warning of too many:", threads.errors)
    for value in ("0", "-1", "two", "2x"):
        wrong = suite.run("info", ranks=2, on_each_rank=["env", f"GRIDLOPS_THREADS={value}"])
        suite.check(wrong.status == 2 and f"GRIDLOPS_THREADS is '{value}'" in wrong.errors, "threads:", wrong.status, wrong.errors)

    if cores > 8:
        print("not tested: more ranks than cores, of which there are", cores)
        return
    # With one thread on each rank the only advice is to start fewer ranks.
    most = "1 rank" if cores == 1 else f"{cores} ranks"
    crowd = suite.run("info", ranks=cores + 1)
    suite.succeeded(crowd)
    lines = [line for line in crowd.warning_lines if " threads" in line]
    suite.check(len(lines) == 1 and f"start {most} at most" in lines[0] and "OPENBLAS_NUM_THREADS" not in lines[0],
                "advice for more ranks than cores:", crowd.errors)
    more_threads = suite.run("info", ranks=cores + 1, on_each_rank=["env", "OPENBLAS_NUM_THREADS=2"])
    if facts(more_threads).get("threads") == "1 per rank, 2 of BLAS":
        suite.check(f"start {most} at most, and set OPENBLAS_NUM_THREADS=1" in more_threads.errors,
                    "advice for more ranks than cores with two threads each:", more_threads.errors)


def check_windows(suite):
    """One-sided works where MPI has windows, and all ranks refuse it alike where it has none."""
    folder = suite.folder
    suite.succeeded(suite.run("make-problem", "--rows", 50, "--cols", 40, "--rhs", 3, "--out", folder))
    for ranks in (1, 4):
        for way, works in [("", True), ("sm", ranks == 1)]:  # the launcher's way; memory that MPI allocates alone
            environment = {"OMPI_MCA_osc": way}
            run = suite.run("info", ranks=ranks, environment=environment)
            suite.succeeded(run)
            text = "all work here" if works else "not here: one-sided: the transport one-sided needs windows"
            suite.check(text in run.output, ranks, "ranks, osc", way, ": transports", run.output)
            for algorithm in ("stationary-a", "summa"):
                run = suite.run("multiply", "--matrix", f"{folder}/A.npy", "--input", f"{folder}/X_true.npy", "--output",
                                f"{folder}/Y.npy", "--transport", "one-sided", "--algorithm", algorithm, ranks=ranks,
                                environment=environment)
                suite.check(run.status == (0 if works else 2), ranks, "ranks, osc", way, ": status", run.status, run.errors)
                suite.check(works or "--mca osc sm,pt2pt" in run.errors, "no advice:", run.errors)


def check_windows_of_parts(suite):
    """Windows of Open MPI work where rows and columns of a grid have theirs at the same time."""
    plain = {"OMPI_MCA_osc": "rdma", "OMPI_MCA_btl_vader_single_copy_mechanism": "cma"}
    if "all work here" not in suite.run("info", ranks=4, environment=plain).output:
        print("not tested: windows of memory that MPI reads from another process")
        return
    folder = suite.folder
    for _ in range(5):
        suite.succeeded(suite.run("multiply", "--matrix", f"{folder}/A.npy", "--input", f"{folder}/X_true.npy", "--output",
                                  f"{folder}/Y.npy", "--transport", "one-sided", "--algorithm", "stationary-a", "--grid", "2x2",
                                  ranks=4, environment=plain))


def check_way_of_device_memory(suite):
    """Device memory travels by an MPI that takes it, and by one that does not, which the emulation plays."""
    if "GRIDLOPS_TEST_DOUBLE" not in os.environ:
        return
    for ability, way, words in [("plain", "auto", "by way of the host"), ("aware", "auto", "MPI takes device memory"),
                                ("aware", "staged", "by way of the host"), ("boastful", "auto", "by way of the host"),
                                ("refusing", "auto", "by way of the host")]:
        run = suite.run("info", ranks=2, environment={"GRIDLOPS_EMULATION_MPI": ability, "GRIDLOPS_DEVICE_MPI": way})
        suite.check(words in facts(run).get("GPU", ""), "GPU is", facts(run).get("GPU"), "with", ability, way, run.errors)


def check_pinned(suite):
    free = facts(suite.run("info", ranks=1))
    for core, better in {"Haswell": ["AVX-512"], "Nehalem": ["AVX-512", "AVX2"]}.items():
        run = suite.run("info", environment={"OPENBLAS_CORETYPE": core, "OPENBLAS_NUM_THREADS": "1"})
        suite.succeeded(run)
        if not any(facts(run)["kernel"].endswith(name) for name in better) or facts(run)["kernel"] == free["kernel"]:
            print(f"not tested: a kernel pinned to {core}, which is not below this CPU or which this BLAS does not heed")
            continue
        lines = [line for line in run.warning_lines if f"OPENBLAS_CORETYPE={core}" in line]
        suite.check(len(lines) == 1 and "unset OPENBLAS_CORETYPE" in lines[0], "no warning of a pinned kernel:", run.errors)
        suite.check(core in facts(run)["kernel"], "kernel", facts(run)["kernel"], "is not", core)


def check_own_kernels(suite):
    for wish, word in {"auto": "", "blas": "none", "baseline": "baseline, as GRIDLOPS_KERNELS asks"}.items():
        run = suite.run("info", environment={"GRIDLOPS_KERNELS": wish})
        suite.succeeded(run)
        suite.check(word in facts(run).get("own kernels", "nothing"), "own kernels:", run.output)
    run = suite.run("info", environment={"GRIDLOPS_KERNELS": "fast"})
    suite.check(run.status == 2 and "must be auto, blas, baseline" in run.errors, "unknown kernels:", run.status, run.errors)


def test(suite, full):
    check_help(suite)
    check_version(suite)
    check_start(suite)
    check_launch(suite)
    check_info(suite)
    if program.DEVICE != "gpu":
        check_windows(suite)
        check_windows_of_parts(suite)
    check_way_of_device_memory(suite)
    check_pinned(suite)
    check_own_kernels(suite)


if __name__ == "__main__":
    program.main(test, __doc__)
