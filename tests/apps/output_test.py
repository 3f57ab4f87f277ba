# SPDX-License-Identifier: BSD-3-Clause
"""Checks that no output replaces an input or another output, by whatever name, and that the next run that writes an output
removes what a killed run left. output_test.py LAUNCH PROGRAM"""
import os
import shutil
import signal
import stat
import subprocess
import time

import numpy as np

import program

USAGE, BAD_OUTPUT = 2, 74


def write_files(folder):
    rng = np.random.default_rng(5)
    np.save(folder / "A.npy", program.random_matrix(rng, (6, 6), "f64") + 6 * np.eye(6))
    for name in ("B", "X0"):
        np.save(folder / f"{name}.npy", program.random_matrix(rng, (6, 2), "f64"))
    (folder / "folder").mkdir()
    (folder / "link.npy").symlink_to("A.npy")
    (folder / "folder" / "up.npy").symlink_to(folder / "B.npy")
    (folder / "here").symlink_to(".")
    for name in ("first.npy", "second.npy"):
        (folder / name).symlink_to("later.npy")
    os.link(folder / "A.npy", folder / "hard.npy")


def multiply(*words):
    return ["multiply", "--matrix", "A.npy", "--input", "B.npy", *words]


def solve(*words):
    return ["solve", "--matrix", "A.npy", "--rhs", "B.npy", *words]


# Options that are refused, and the two names that the message must have.
SAME = [
    (multiply("--output", "A.npy"), ["--output A.npy", "--matrix A.npy"]),
    (multiply("--output", "./B.npy"), ["--output ./B.npy", "--input B.npy"]),
    (multiply("--output", "o.npy", "--report", "A.npy"), ["--report A.npy", "--matrix A.npy"]),
    (multiply("--output", "./o.npy", "--report", "o.npy"), ["--output ./o.npy", "--report o.npy"]),
    (solve("--output", "folder/../A.npy"), ["--output folder/../A.npy", "--matrix A.npy"]),
    (solve("--output", "link.npy"), ["--output link.npy", "--matrix A.npy"]),
    (solve("--output", "folder/up.npy"), ["--output folder/up.npy", "--rhs B.npy"]),
    (solve("--output", "here/A.npy"), ["--output here/A.npy", "--matrix A.npy"]),
    (solve("--output", "o.npy", "--report", "A.npy"), ["--report A.npy", "--matrix A.npy"]),
    (solve("--output", "o.npy", "--history", "B.npy"), ["--history B.npy", "--rhs B.npy"]),
    (solve("--output", "X0.npy", "--initial", "X0.npy"), ["--output X0.npy", "--initial X0.npy"]),
    (solve("--output", "o.npy", "--solver", "lsqr", "--variances", "here/o.npy"), ["--output o.npy", "--variances here/o.npy"]),
    (solve("--output", "o.npy", "--history", "folder/../here/o.npy"), ["--output o.npy", "--history folder/../here/o.npy"]),
    (solve("--output", "first.npy", "--history", "second.npy"), ["--output first.npy", "--history second.npy"]),
    (solve("--output", "later.npy", "--report", "here/second.npy"), ["--output later.npy", "--report here/second.npy"]),
    (solve("--output", "o.npy", "--checkpoint", ".", "--report", "manifest.json"),
     ["--report manifest.json", "--checkpoint ./manifest.json"]),
]


def contents(folder):
    return {str(path.relative_to(folder)): (path.is_symlink(), path.read_bytes()) for path in sorted(folder.rglob("*")) if path.is_file()}


def check_same(suite):
    before = contents(suite.folder)
    for number, (words, mentions) in enumerate(SAME):
        run = suite.run(*words, ranks=2 if number % 4 == 0 else None)
        suite.succeeded(run, USAGE)
        suite.check(len(run.error_lines) == 1 and all(mention in run.errors for mention in mentions), "the error does not mention",
                    mentions, run.errors)
        if not suite.check(contents(suite.folder) == before, "files were changed by", run.command):
            shutil.rmtree(suite.folder)
            suite.folder.mkdir()
            write_files(suite.folder)
    run = suite.run("make-problem", "--rows", 6, "--cols", 5, "--rhs", 2, "--out", "folder")
    suite.succeeded(run)
    (suite.folder / "folder" / "B.npy").unlink()
    (suite.folder / "folder" / "B.npy").symlink_to("A.npy")
    before = contents(suite.folder)
    suite.succeeded(suite.run("make-problem", "--rows", 7, "--cols", 5, "--rhs", 2, "--out", "folder"), USAGE)
    suite.check(contents(suite.folder) == before, "make-problem wrote two files into one")


def check_different(suite):
    """Outputs that replace nothing."""
    A = np.load(suite.folder / "A.npy")
    expected = A @ np.load(suite.folder / "B.npy")
    # The other name of a hard link keeps its content.
    suite.succeeded(suite.run(*multiply("--output", "hard.npy")))
    suite.check(np.array_equal(np.load(suite.folder / "A.npy"), A), "A was lost by its other name")
    # A symbolic link stays, and the file that it leads to is replaced, by text outputs, too.
    (suite.folder / "target.npy").write_bytes(b"old")
    (suite.folder / "target.json").write_bytes(b"old")
    (suite.folder / "to.npy").symlink_to("target.npy")
    (suite.folder / "to.json").symlink_to("target.json")
    suite.succeeded(suite.run(*multiply("--output", "to.npy", "--report", "to.json")))
    for name in ("hard.npy", "target.npy"):
        suite.close(np.load(suite.folder / name), expected, 1e-13, name)
    suite.check((suite.folder / "to.npy").is_symlink() and (suite.folder / "to.json").is_symlink(), "links were replaced")
    suite.check((suite.folder / "target.json").read_text(encoding="utf-8").startswith("{"), "no report where a link leads to")
    # Links stay that lead to where no file is yet.
    (suite.folder / "new").mkdir()
    for name in ("X.npy", "R.json"):
        (suite.folder / f"to_{name}").symlink_to(f"new/{name}")
    suite.succeeded(suite.run(*multiply("--output", "to_X.npy", "--report", "to_R.json")))
    suite.check((suite.folder / "to_X.npy").is_symlink() and (suite.folder / "to_R.json").is_symlink(), "links were replaced")
    suite.close(np.load(suite.folder / "new" / "X.npy"), expected, 1e-13, "where a link leads")
    suite.check((suite.folder / "new" / "R.json").exists(), "no report where a link leads to")
    # The same name in two folders; a checkpoint that a run restarts from and adds to.
    suite.succeeded(suite.run(*multiply("--output", "folder/o.npy", "--report", "o.npy")))
    for _ in range(2):
        words = ["--restart", "C"] if (suite.folder / "C").exists() else []
        suite.succeeded(suite.run(*solve("--output", "o.npy", "--checkpoint", "C", "--checkpoint-every", 1, *words)))
    for name in ("/dev/null", "."):
        suite.succeeded(suite.run(*multiply("--output", name)), BAD_OUTPUT)


def check_folders(suite):
    """A folder may have anybody's files, but an output replaces only what GridLOps has made there."""
    small = ["--rows", 5, "--cols", 4, "--rhs", 1]
    mdd = ["mdd", "--nx", 7, "--ny", 5, "--samples", 32, "--nf", 5, "--iterations", 2, "--quiet"]
    for words, foreign in ((["make-problem", *small, "--out", "own"], "X_true.npy"), ([*mdd, "--save", "own"], "inverted.npy"),
                           ([*mdd, "--save", "own"], "model.npy")):
        own = suite.folder / "own"
        own.mkdir()
        (own / "thesis.txt").write_text("years")
        (own / foreign).write_text("mine")
        before = contents(own)
        for ranks in (None, 2):
            run = suite.run(*words, ranks=ranks)
            suite.succeeded(run, BAD_OUTPUT)
            suite.check(len(run.error_lines) == 1 and f"own: {foreign} is there, which no output of this kind has made" in run.errors, run.errors)
            left = {name: what for name, what in contents(own).items() if not name.startswith(".gridlops-")}
            suite.check(left == before, "files of", run.command, "became", sorted(left))
        (own / foreign).unlink()
        for _ in range(2):  # what the first one has made, the second may replace
            suite.succeeded(suite.run(*words, ranks=2))
        suite.check((own / foreign).exists() and (own / "thesis.txt").read_text() == "years", "own has", sorted(contents(own)))
        shutil.rmtree(own)


def check_modes(suite):
    """A private file stays private; one that may not be written is kept, before anything else is looked at."""
    folder = suite.folder / "modes"
    folder.mkdir()
    for name, mode in (("private", 0o600), ("shared", 0o664), ("kept", 0o444)):
        for kind in ("npy", "json"):
            (folder / f"{name}.{kind}").write_bytes(b"old")
            (folder / f"{name}.{kind}").chmod(mode)
    for name, mode in (("private", 0o600), ("shared", 0o664)):
        suite.succeeded(suite.run(*multiply("--output", f"modes/{name}.npy", "--report", f"modes/{name}.json"), shell="umask 022; {}"))
        modes = [stat.S_IMODE((folder / f"{name}.{kind}").stat().st_mode) for kind in ("npy", "json")]
        suite.check(modes == [mode, mode] and (folder / f"{name}.npy").read_bytes() != b"old", name, "has modes", [oct(each) for each in modes])
    as_user = ["setpriv", "--reuid", "65534", "--clear-groups"] if os.geteuid() == 0 else []
    if as_user:  # root may write whatever the mode says
        folder.chmod(0o777)
        suite.folder.chmod(0o755)
        if subprocess.run([*as_user, suite.program, "--version"], capture_output=True, check=False).returncode != 0:
            print("not tested, because another user cannot run the program: files that may not be written")
            return
    for option, path in (("--output", "modes/kept.npy"), ("--report", "modes/kept.json")):
        options = {"--output": "modes/o.npy", option: path}
        run = suite.run("multiply", "--matrix", "missing.npy", "--input", "missing.npy", *(word for pair in options.items() for word in pair),
                        on_each_rank=as_user)
        suite.succeeded(run, BAD_OUTPUT)
        suite.check(len(run.error_lines) == 1 and f"{option} {path}: exists and may not be written" in run.errors and "chmod" in run.errors,
                    "one error, with the way out:", run.errors)
        suite.check((suite.folder / path).read_bytes() == b"old", path, "was replaced")
    suite.check(sorted(path.name for path in folder.iterdir())
                == sorted(f"{name}.{kind}" for name in ("private", "shared", "kept") for kind in ("npy", "json")), "files are left")


def check_odd_names(suite):
    """Names of files may have any bytes. A report shows those that are no UTF-8 as U+FFFD."""
    matrix, output, report = (os.fsdecode(name) for name in (b"caf\xe9.npy", b"\xff\xfe.npy", b"r\xe9port.json"))
    shutil.copy(suite.folder / "A.npy", suite.folder / matrix)
    for ranks in (None, 2):
        words = ["solve", "--matrix", matrix, "--rhs", "B.npy", "--output", output, "--report", report]
        suite.succeeded(suite.run(*words, "--checkpoint", os.fsdecode(b"\xe9"), "--checkpoint-every", 1, ranks=ranks))
        shutil.rmtree(suite.folder / os.fsdecode(b"\xe9"))
        files = suite.report(report, "solve", ranks or 1, (1, ranks or 1))["files"]
        suite.check({"caf\ufffd.npy", "\ufffd\ufffd.npy"} <= {file["path"] for file in files}, "files", files)
        suite.check(np.load(suite.folder / output).shape == (6, 2), "no solution")


class Writer:
    """Starts a run and stops it while it writes A.npy of a folder."""

    def __init__(self, suite, ranks, catch):
        words = ["make-problem", "--rows", 3000, "--cols", 3000, "--rhs", 0, "--out", "big"]
        command = [str(suite.program)] if ranks is None else [str(suite.launch), str(ranks), str(suite.program)]
        before = program.leftovers(suite.folder / "big")
        self.process = subprocess.Popen([*command, *map(str, words)], cwd=suite.folder, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, env={**os.environ, **program.ALWAYS}, start_new_session=True)
        self.files, deadline = [], time.monotonic() + 60
        while not self.files and self.process.poll() is None and time.monotonic() < deadline:
            # The temporary file must be of the first file, not of the trial before.
            self.files = [name for name in program.leftovers(suite.folder / "big")
                          if name not in before and name.startswith("A.npy.tmp.") and size_of(suite.folder / "big" / name) > 10**7]
        self.signal(catch)
        suite.check(self.files and size_of(suite.folder / "big" / self.files[0]) > 10**7, "no run was caught while it wrote")

    def signal(self, number):
        os.killpg(self.process.pid, number)
        if number == signal.SIGKILL:
            self.process.wait()


def size_of(path):
    """0 if it is gone, also a moment ago."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def check_leftovers(suite):
    big = suite.folder / "big"
    big.mkdir()
    write = ["make-problem", "--rows", 3, "--cols", 3, "--rhs", 0, "--out", "big"]
    dead = Writer(suite, None, signal.SIGKILL)
    suite.check(program.leftovers(big) == dead.files, "a killed run has left", program.leftovers(big))
    others = ["A.npy.tmp.1-1-0", "A.npy.tmp.notes", "other.npy." + dead.files[0].split(".", 2)[2], dead.files[0] + "x"]
    for name in others:
        (big / name).write_text("another host's, or somebody's\n")
    alive = Writer(suite, None, signal.SIGSTOP)
    suite.check(dead.files[0] not in program.leftovers(big), "what a dead run left is there still", program.leftovers(big))
    suite.succeeded(suite.run(*write, ranks=2))
    suite.check(program.leftovers(big) == sorted(others + [name for name in program.leftovers(big) if name in alive.files]),
                "what was left is there still, or others' files are gone", program.leftovers(big))
    suite.check(alive.files[0] in program.leftovers(big), "a living run's file was taken away")
    alive.signal(signal.SIGCONT)
    suite.check(alive.process.wait(60) == 0 and np.load(big / "A.npy").shape == (3000, 3000), "the living run could not finish")
    for name in others:
        (big / name).unlink()


def test(suite, _):
    write_files(suite.folder)
    check_same(suite)
    check_different(suite)
    check_folders(suite)
    check_modes(suite)
    check_odd_names(suite)
    check_leftovers(suite)


if __name__ == "__main__":
    program.main(test, __doc__)
