#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the commands of docs/use-cases.md that lead from SEG-Y files to a compressed deconvolution and its picture, as they stand, on
one rank and on four, and what the page says of a kernel in memory; and sees that the import of a larger file has little of it in memory:
segy_commands.py SOURCE_ROOT BUILD. Skips where the program, the package or segyio is missing."""
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

CAN_DRAW = importlib.util.find_spec("matplotlib") is not None
ROOT, BUILD = (pathlib.Path(word).resolve() for word in sys.argv[1:])
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(BUILD / "apps/python")}


def commands():
    section = (ROOT / "docs/use-cases.md").read_text(encoding="utf-8").split("**From SEG-Y.**")[1]
    return re.findall(r"^    (.+)$", section.split("\n**")[0], re.MULTILINE)


def page():
    """The page from these commands on, with single spaces."""
    return " ".join((ROOT / "docs/use-cases.md").read_text(encoding="utf-8").split("**From SEG-Y.**")[1].split())


def in_memory(command):
    """The command for a kernel of traces, without compression."""
    return command.replace("--spectra", "--order time,receiver,source").replace(":/spectra", ":/traces").replace("--compress 1e-3 ", "")


def on(ranks, changed=str):
    """Changes a command to run on this many ranks."""
    return lambda command: changed(command).replace("mpirun -n 2", f"{ROOT}/tests/support/launch {ranks}")


def run(folder, changed=str):
    """What the commands print, and the model that they find. One shell runs them, with the variables that the README names, in a
    folder with the source tree and its build folder."""
    for name, target in {"docs": ROOT / "docs", "scripts": ROOT / "scripts", "build": BUILD}.items():
        (folder / name).symlink_to(target)
    lines = [changed(command) for command in commands() if CAN_DRAW or not command.startswith("scripts/pictures")]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
                    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
                    "OMPI_MCA_mpi_yield_when_idle": "1", "OMPI_MCA_hwloc_base_binding_policy": "none",  # beside other tests
                    "PRTE_MCA_hwloc_default_binding_policy": "none", "OMPI_MCA_orte_tmpdir_base": str(folder), "PRTE_MCA_prte_tmpdir_base": str(folder)}
    done = subprocess.run(["bash", "-euc", "\n".join(lines)], cwd=folder, env=environment, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, (lines, done.returncode, done.stdout, done.stderr)
    return done.stdout, np.load(folder / "survey/inverted.npy")


PEAKS = """
import re
import gridlops.__main__ as program

program._BUFFER = 2 << 20
peaks = []
for sources in (2, 64):
    program.main(["import", f"{sources}.segy", f"{sources}.h5", "--spectra"])
    peaks.append(int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1]) / 1024)
print("MiB", peaks[1] - peaks[0])
"""


def write_survey(path, sources, receivers, samples):
    gather = np.zeros(receivers, np.dtype({"names": ["source", "receiver", "samples"], "formats": [">i4", ">i4", (">f4", samples)],
                                           "offsets": [72, 80, 240], "itemsize": 240 + 4 * samples}))
    gather["receiver"], gather["samples"] = np.arange(receivers), 1
    head = bytearray(3600)
    for place, value in ((3216, 4000), (3220, samples), (3224, 5)):
        head[place: place + 2] = value.to_bytes(2, "big")
    with path.open("wb") as file:
        file.write(head)
        for gather["source"] in range(sources):
            file.write(gather.tobytes())


def memory_of_a_larger_file(folder):
    """How many MiB more the import of 75 MiB of traces takes than that of 2 MiB, with a buffer of 2 MiB."""
    for sources in (2, 64):
        write_survey(folder / f"{sources}.segy", sources, 300, 1001)
    done = subprocess.run([sys.executable, "-c", PEAKS], cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, encoding="utf-8", check=True)
    return float(done.stdout.split()[-1])


def check_help():
    """--help is a help, and makes no folder."""
    with tempfile.TemporaryDirectory() as scratch:
        done = subprocess.run([sys.executable, ROOT / "docs/examples/make_segy.py", "--help"], cwd=scratch, capture_output=True, encoding="utf-8", check=True)
        assert "response.npy" in done.stdout and not list(pathlib.Path(scratch).iterdir()), done.stdout


def main():
    for module in ("segyio", "h5py", "mpi4py"):
        if importlib.util.find_spec(module) is None:
            print(f"skipped: {sys.executable} has no {module}")
            return 77
    if not (BUILD / "apps/gridlops").exists() or not list((BUILD / "apps/python/gridlops").glob("_native*")):
        print("skipped: the program or the Python package was not built")
        return 77
    assert len(commands()) == 7
    check_help()
    found, said = {}, {}
    for name, ranks, changed in (("as it stands", 2, str), ("on one rank", 1, on(1)), ("on four", 4, on(4)), ("in memory", 4, on(4, in_memory))):
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            printed, found[name] = run(folder, changed)
            kernel = "traces, 256 x 192 x 72" if name == "in memory" else "spectra, 129 x 192 x 72"
            assert kernel in printed and "traces, 256 x 192 x 3" in printed, printed
            assert re.search(r"^3 converged after", printed, re.MULTILINE) and f" on {ranks} x 1 ranks" in printed, printed
            assert all(int(peak) < 1000 for peak in re.findall(r"peak memory: (\d+) MiB", printed)), printed
            assert not CAN_DRAW or (folder / "survey/mdd.png").stat().st_size > 10000
            response = np.load(folder / "survey/response.npy")
            cost = np.loadtxt(folder / "survey/cost.txt")
            said[name] = printed
            # The kernel itself, without compression, predicts what the cost file says; compression adds its error.
            share, cost = float((re.search(r"residual has (\S+) %", printed) or [0, 0])[1]), 100 * cost[-1, 1] / cost[0, 1]
            assert not CAN_DRAW or abs(share - cost) < (0.001 if name == "in memory" else 0.1), (name, share, cost)
    with tempfile.TemporaryDirectory() as scratch:
        memory = memory_of_a_larger_file(pathlib.Path(scratch))

    def apart(one, other):
        return np.linalg.norm(one - other) / np.linalg.norm(response)

    errors = {name: apart(model, response) for name, model in found.items()}
    of_ranks, of_compression = (apart(found["on four"], found[name]) for name in ("on one rank", "in memory"))
    # What the page says, in its digits.
    smaller = float(re.search(r"times smaller: (\S+)", said["as it stands"])[1])
    for sentence in (f"a kernel {smaller:.1f} times smaller", f"`survey/response.npy`, by {100 * errors['as it stands']:.1f} %"):
        assert sentence in page(), sentence
    print(f"Models differ from the response by {errors}, those of one and of four ranks by {of_ranks:.1e}, those with and without compression by "
          f"{of_compression:.1e}. A larger import takes {memory:.1f} MiB more.")
    return 0 if max(errors.values()) < 0.05 and of_ranks < 1e-2 and of_compression < 0.02 and memory < 12 else 1


sys.exit(main())
