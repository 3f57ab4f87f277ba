# SPDX-License-Identifier: BSD-3-Clause
"""Checks that a disk that is full or broken, and a kill at any moment of writing, leave old files whole and nothing half done.
file_faults_test.py LAUNCH PROGRAM [--full]; the variable GRIDLOPS_TEST_INJECTED names the library of tests/faults/injected.cpp."""
import errno
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "apps"))
import program  # noqa: E402  (found by the line before)

try:
    import h5py
except ImportError:  # then only NumPy's files are tested
    h5py = None

BAD_OUTPUT = 74
OLD = b"old"
# All that a run can write, with checkpoints of several iterations.
SOLVE = ["solve", "--matrix", "A.npy", "--rhs", "B.npy", "--tolerance", "1e-10", "--output", "X.npy", "--history", "H.csv",
         "--report", "R.json", "--quiet", "--solver", "lsqr", "--variances", "V.npy", "--checkpoint", "saved", "--checkpoint-every", "3"]
OUTPUTS = ["X.npy", "V.npy", "H.csv", "R.json"]


def with_fault(fault):
    """What a rank's program is run by: fault is RANK:OPERATION:N:KIND of injected.cpp."""
    return ["env", f"LD_PRELOAD={os.environ['GRIDLOPS_TEST_INJECTED']}", f"GRIDLOPS_FAULT={fault}"]


def fresh(suite, old=True):
    """Old outputs and no checkpoint."""
    shutil.rmtree(suite.folder / "saved", ignore_errors=True)
    for name in OUTPUTS:
        (suite.folder / name).unlink(missing_ok=True)
        if old:
            (suite.folder / name).write_bytes(OLD)


def calls_of(suite):
    """How often a run without faults makes a call that can fail."""
    fresh(suite)
    run = suite.run(*SOLVE, on_each_rank=with_fault("0:count:1:0"))
    suite.succeeded(run)
    return int(re.search(r"^calls: (\d+)$", run.errors, re.MULTILINE)[1])


def is_whole(suite, name, expected):
    """Whether a file is as it was before the run, or complete."""
    data = (suite.folder / name).read_bytes()
    if data == OLD or name.endswith(".npy"):
        return data in (OLD, expected[name])
    return data == expected[name] if name.endswith(".csv") else json.loads(data)["schema"] == "gridlops.report/1"


def check_failures(suite, expected, calls, full):
    """Whatever call fails, and all after it: one error with the file and the reason, the status, and nothing half done."""
    numbers = [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG]
    for call in range(1, calls + 1, 1 if full else 11):
        number = numbers[call // (1 if full else 11) % len(numbers)]
        fresh(suite)
        run = suite.run(*SOLVE, on_each_rank=with_fault(f"0:any:{call}:{number}"))
        suite.succeeded(run, BAD_OUTPUT)
        suite.check(len(run.error_lines) == 1 and os.strerror(number) in run.error_lines[0]
                    and re.search(r"\w\.npy|H\.csv|R\.json|manifest\.json|folder", run.error_lines[0]),
                    "one error, with the file and the reason:", call, run.errors)
        check_state(suite, expected, f"call {call} failed with {errno.errorcode[number]}")
        suite.check(not program.leftovers(suite.folder), "temporary files are left:", call, program.leftovers(suite.folder))
    for rank in (0, 1):
        for call, number in (("write", errno.ENOSPC), ("flush", errno.EIO)):
            fresh(suite)
            run = suite.run(*SOLVE, "--grid", "2x1", ranks=2, on_each_rank=with_fault(f"{rank}:{call}:2:{number}"))
            suite.succeeded(run, BAD_OUTPUT)
            suite.check(len(run.error_lines) == 1 and os.strerror(number) in run.error_lines[0]
                        and (call == "flush" or " at byte " in run.error_lines[0]), "one error:", run.errors)
            check_state(suite, expected, f"{call} failed on rank {rank}")


def check_state(suite, expected, *what):
    for name in OUTPUTS:
        suite.check(is_whole(suite, name, expected), name, "is neither old nor whole:", *what)
    if (suite.folder / "saved" / "manifest.json").exists():
        fresh_outputs = {name: (suite.folder / name).read_bytes() for name in OUTPUTS}
        run = suite.run(*SOLVE, "--restart", "saved", "--dry-run")
        suite.check(run.status == 0, "the checkpoint cannot be read:", *what, run.errors)
        suite.check({name: (suite.folder / name).read_bytes() for name in OUTPUTS} == fresh_outputs, "a dry run wrote", *what)


def check_short_writes(suite, expected):
    fresh(suite)
    suite.succeeded(suite.run(*SOLVE, on_each_rank=with_fault("0:write:1:short")))
    for name in OUTPUTS[:3]:
        suite.check((suite.folder / name).read_bytes() == expected[name], "short writes changed", name)


def newest(folder):
    return max((int(path.name.split("-")[1]) for path in folder.glob("generation-*")), default=0)


def check_kills(suite, expected, calls, full):
    """After a kill before any call a restart goes on from the newest complete checkpoint, and cleans up."""
    saved = suite.folder / "saved"
    warned = 0
    ways = [(call, None, 0) for call in range(1, calls + 1, 1 if full else 13)]
    ways += [(call, 2, call % 2) for call in range(2, 26, 1 if full else 11)]
    for call, ranks, rank in ways:
        fresh(suite)
        on_grid = ["--grid", "2x1"] if ranks else []
        run = suite.run(*SOLVE, *on_grid, ranks=ranks, on_each_rank=with_fault(f"{rank}:any:{call}:kill"))
        suite.check(run.status in (-signal.SIGKILL, 128 + signal.SIGKILL), "no kill:", call, run.status, run.errors)
        for name in OUTPUTS:
            suite.check(is_whole(suite, name, expected), name, "is neither old nor whole after a kill before call", call)
        restart = (saved / "manifest.json").exists()
        complete = int(json.loads((saved / "manifest.json").read_text())["folder"].split("-")[1]) if restart else 0
        left = newest(saved) > complete
        run = suite.run(*SOLVE, *(["--restart", "saved"] if restart else []))
        suite.succeeded(run)
        skipped = [line for line in run.warning_lines if f"saved/generation-{complete + 1} is left out" in line]
        suite.check(len(skipped) == (1 if restart and left else 0), "warnings of what is left out:", call, run.errors)
        warned += len(skipped)
        same = (suite.folder / "X.npy").read_bytes() == expected["X.npy"] if ranks is None else np.allclose(
            np.load(suite.folder / "X.npy"), expected["X"], rtol=1e-8, atol=0)
        suite.check(same, "a restart ends with another solution after a kill before call", call)
        suite.check(not program.leftovers(suite.folder), "temporary files are left:", call, program.leftovers(suite.folder))
        suite.check(len(list(saved.glob("generation-*"))) <= 2, "checkpoints are left:", call, list(saved.iterdir()))
    suite.check(warned > 0, "no kill left an unfinished checkpoint")


def check_order(suite):
    """A file has its name only once its data are on the disk, and its folder is flushed next. What the new manifest names, and that
    name itself, are on the disk before the manifest is."""
    fresh(suite)
    run = suite.run(*SOLVE, on_each_rank=with_fault("0:record:1:0"))
    suite.succeeded(run)
    events = [(word, os.path.realpath(suite.folder / path)) for line in run.errors.splitlines()
              for word, _, path in [line.partition(" ")] if word in ("flushed", "renamed", "to")]
    saved = os.path.realpath(suite.folder / "saved")
    manifests = named = 0
    for k, (word, path) in enumerate(events):
        if word != "renamed":
            continue
        named += 1
        target = events[k + 1][1]
        suite.check(("flushed", path) in events[:k], target, "had its name before its data were on the disk")
        suite.check(events[k + 2:k + 3] == [("flushed", os.path.dirname(target))], "the folder was not flushed after the name of", target)
        if os.path.dirname(target) == saved:
            manifests += 1
            last = max(j for j in range(k) if events[j][0] == "to" and re.search(r"/generation-\d+/manifest.json$", events[j][1]))
            suite.check(("flushed", saved) in events[last:k], "a manifest names a folder whose own name may be lost")
    suite.check(manifests > 1 and named > 4 * manifests, "names of files", named, "of manifests", manifests)


def check_small_disk(suite):
    """A disk of its own that is too small; only root can make one, and not everywhere."""
    disk = suite.folder / "disk"
    disk.mkdir()
    mount = f"mount -t tmpfs -o size=256k none {disk} && "
    if subprocess.run(["unshare", "-m", "sh", "-c", mount + "true"], capture_output=True, check=False).returncode != 0:
        print("not tested, because it takes root: a small disk")
        return
    make = ["make-problem", "--rows", 300, "--cols", 300, "--rhs", 1, "--out", "disk"]
    script = mount + f': > {disk}/.gridlops-problem; echo old > {disk}/A.npy; "$@"; status=$?; ls -A {disk} >&2; cat {disk}/A.npy >&2; exit $status'
    run = suite.run(*make, shell=f"exec unshare -m sh -c '{script}' sh {{}}")
    suite.succeeded(run, BAD_OUTPUT)
    suite.check(len(run.error_lines) == 1 and all(text in run.errors for text in (os.strerror(errno.ENOSPC), "A.npy", "at byte")),
                "one error:", run.errors)
    suite.check(run.errors.splitlines()[-3:] == [".gridlops-problem", "A.npy", "old"], "the old file alone should be there:", run.errors)


def check_hdf5(suite, full):
    """Whatever call fails, or kills, while a dataset is written into a file that has another one: the other one stays, and the new
    one is there as a whole or not at all."""
    if h5py is None or "built without HDF5" in suite.run("info").output:
        print("not tested, because HDF5 is not built, or there is no h5py: faults of HDF5 files")
        return
    write = ["multiply", "--matrix", "A.npy", "--input", "I.npy", "--output", "R.h5:/results/Y"]
    path = suite.folder / "R.h5"
    A = np.load(suite.folder / "A.npy")

    def state(*what):
        with h5py.File(path, "r") as file:
            suite.check(np.array_equal(file["old"][...], np.arange(50.0)), "a dataset was lost:", *what)
            whole = "results" in file and np.array_equal(file["results/Y"][...], A)
            suite.check(whole or "results" not in file, "half a dataset:", *what)
            return whole

    for is_new in (False, True):
        def fresh_file(made=not is_new):
            path.unlink(missing_ok=True)
            if made:
                with h5py.File(path, "w") as file:
                    file["old"] = np.arange(50.0)

        fresh_file()
        run = suite.run(*write, on_each_rank=with_fault("0:count:1:0"))
        suite.succeeded(run)
        calls = int(re.search(r"^calls: (\d+)$", run.errors, re.MULTILINE)[1])
        suite.check(calls > 5, "calls", calls)
        for call in range(1, calls + 1, 1 if full else 3):
            fresh_file()
            number = (errno.ENOSPC, errno.EIO)[call % 2]
            run = suite.run(*write, on_each_rank=with_fault(f"0:any:{call}:{number}"))
            suite.succeeded(run, BAD_OUTPUT)
            suite.check(len(run.error_lines) == 1 and os.strerror(number) in run.error_lines[0]
                        and ("R.h5" in run.error_lines[0] or "the names in this folder" in run.error_lines[0]),
                        "one error, with the file and the reason:", call, run.errors)
            suite.check(not program.leftovers(suite.folder) and not (suite.folder / "R.h5.lock").exists(), "files are left:", call)
            # If the folder alone cannot be flushed, the new file stays.
            suite.check(is_new or state(call) in (False, call == calls), "written all the same:", call)
            suite.check(not is_new or call == calls or not path.exists(), "a new file is left:", call)
        for call in range(2, calls + 1, 1 if full else 4):
            fresh_file()
            run = suite.run(*write, on_each_rank=with_fault(f"0:any:{call}:kill"))
            suite.check(run.status in (-signal.SIGKILL, 128 + signal.SIGKILL), "no kill:", call, run.status, run.errors)
            if not is_new:
                state("killed before call", call)
            suite.succeeded(suite.run(*write))
            suite.check(is_new or state("after a kill before call", call), "not written after a kill")
            suite.check(not program.leftovers(suite.folder) and not (suite.folder / "R.h5.lock").exists(), "files are left:", call)


def check_compressed(suite, full):
    """Whatever call of a compression fails, or kills: what it wrote is taken as a whole or not at all, and a second run makes it."""
    saved = suite.folder / "C"
    compress = ["compress", "--matrix", "A.npy", "--output", "C", "--tolerance", "1e-3", "--tile", 4]
    takers = [["multiply", "--matrix", "C", "--input", "I.npy", "--output", "Y.npy"], ["plan", "--matrix", "C", "--rhs", 1, "--ranks", 2],
              ["solve", "--matrix", "C", "--rhs", "B.npy", "--output", "Z.npy", "--damp", 0.1, "--quiet"]]

    def product():
        (suite.folder / "Y.npy").unlink(missing_ok=True)
        return np.load(suite.folder / "Y.npy") if suite.succeeded(suite.run(*takers[0])) else np.nan

    shutil.rmtree(saved, ignore_errors=True)
    run = suite.run(*compress, on_each_rank=with_fault("0:count:1:0"))
    suite.succeeded(run)
    calls = int(re.search(r"^calls: (\d+)$", run.errors, re.MULTILINE)[1])
    expected = product()
    suite.check(calls > 30, "calls", calls)
    wholes = 0
    ways = [(call, None, 0) for call in range(1, calls + 1, 1 if full else 7)] + [(calls, None, 0)]
    ways += [(call, 2, 0) for call in range(2, calls // 2, 1 if full else 19)] + [(call, 2, 1) for call in (1, 2)]
    for call, ranks, rank in ways:
        shutil.rmtree(saved, ignore_errors=True)
        run = suite.run(*compress, ranks=ranks, on_each_rank=with_fault(f"{rank}:any:{call}:kill"))
        suite.check(run.status in (-signal.SIGKILL, 128 + signal.SIGKILL), "no kill:", call, run.status, run.errors)
        whole = (saved / "manifest.json").exists()
        wholes += whole
        for taker in takers:
            run = suite.run(*taker)
            suite.succeeded(run, 0 if whole else 65)
            suite.check(whole or "C" in run.errors, "a reason:", call, run.errors)
        run = suite.run(*compress)
        suite.succeeded(run, BAD_OUTPUT if whole else 0)
        same = np.allclose(product(), expected, rtol=0, atol=1e-12 if ranks is None else 1e-2)
        suite.check(same, "another matrix after a kill before call", call)
        left = [path.name for path in saved.glob("generation-*")]
        suite.check(len(left) == 1 and not program.leftovers(suite.folder), "files are left:", call, left, program.leftovers(suite.folder))
    suite.check(0 < wholes < len(ways), "kills after which the matrix was whole:", wholes, "of", len(ways))
    for call in range(1, calls + 1, 1 if full else 9):
        shutil.rmtree(saved, ignore_errors=True)
        number = (errno.ENOSPC, errno.EIO)[call % 2]
        run = suite.run(*compress, on_each_rank=with_fault(f"0:any:{call}:{number}"))
        suite.succeeded(run, BAD_OUTPUT)
        suite.check(len(run.error_lines) == 1 and os.strerror(number) in run.error_lines[0], "one error, with the reason:", call, run.errors)
        if (saved / "manifest.json").exists():  # if its name alone may be lost
            suite.check(np.allclose(product(), expected, rtol=0, atol=1e-12), "another matrix after a failure of call", call)
        else:
            suite.check(not list(saved.glob("generation-*")), "files are left:", call)


def check_permissions(suite):
    fresh(suite, old=False)
    suite.succeeded(suite.run(*SOLVE, shell="umask 027; {}"))
    saved = [path for path in (suite.folder / "saved").rglob("*") if path.is_file()]
    suite.check(len(saved) > 2, "no checkpoints")
    for path in [*(suite.folder / name for name in OUTPUTS), *saved]:
        mode = stat.S_IMODE(path.stat().st_mode)
        suite.check(mode == (0o600 if path in saved else 0o640), path, "has mode", oct(mode))


def check_streams(suite):
    """Texts go to whatever can take them; arrays need files."""
    multiply = ["multiply", "--matrix", "A.npy", "--input", "I.npy", "--output", "Y.npy", "--report"]
    for ranks, shell in ((None, "{}"), (2, "{}"), (None, "{} | cat"), (None, "{} > text; cat text")):
        run = suite.run(*multiply, "/dev/stdout", ranks=ranks, shell=shell)
        suite.succeeded(run)
        report, _ = json.JSONDecoder().raw_decode(run.output[run.output.index("{\n"):])
        suite.check(report["schema"] == "gridlops.report/1", "no report on", shell, run.output)
    for name in ("/dev/null", "/dev/stderr"):
        suite.succeeded(suite.run(*multiply, name))
    fresh(suite)
    suite.succeeded(suite.run(*("/dev/null" if word in ("H.csv", "R.json") else word for word in SOLVE)))
    pipe = suite.folder / "pipe"
    os.mkfifo(pipe)
    run = suite.run(*multiply, "pipe")
    suite.succeeded(run, BAD_OUTPUT)
    suite.check("nobody reads it" in run.errors, run.errors)
    texts = []
    reader = threading.Thread(target=lambda: texts.append(pipe.read_text(encoding="utf-8")), daemon=True)
    reader.start()
    suite.succeeded(suite.run(*multiply, "pipe"))
    reader.join(30)
    suite.check(texts and json.loads(texts[0])["schema"] == "gridlops.report/1", "a pipe got", texts)
    suite.succeeded(suite.run(*multiply, "/dev/full"), BAD_OUTPUT)
    for name in ("pipe", "/dev/null", "/dev/stdout"):
        run = suite.run(*multiply[:-2], name)
        suite.succeeded(run, BAD_OUTPUT)
    suite.check(stat.S_ISCHR(os.stat("/dev/null").st_mode) and stat.S_ISFIFO(pipe.stat().st_mode), "a device was replaced")


def test(suite, full):
    rng = np.random.default_rng(7)
    A = program.random_matrix(rng, (12, 7), "f64")
    np.save(suite.folder / "A.npy", A)
    np.save(suite.folder / "B.npy", program.random_matrix(rng, (12, 2), "f64"))
    np.save(suite.folder / "I.npy", np.eye(7))
    calls = calls_of(suite)
    expected = {name: (suite.folder / name).read_bytes() for name in OUTPUTS}
    expected["X"] = np.load(suite.folder / "X.npy")
    suite.close(expected["X"], np.linalg.lstsq(A, np.load(suite.folder / "B.npy"), rcond=None)[0], 1e-8, "without faults")
    check_failures(suite, expected, calls, full)
    check_short_writes(suite, expected)
    check_order(suite)
    check_kills(suite, expected, calls, full)
    check_compressed(suite, full)
    check_small_disk(suite)
    check_permissions(suite)
    check_streams(suite)
    check_hdf5(suite, full)


if __name__ == "__main__":
    program.main(test, __doc__)
