# SPDX-License-Identifier: BSD-3-Clause
"""What a killed run has left goes with the next run that writes the same output. output_test.py LAUNCH PROGRAM"""
import os
import signal
import subprocess
import time

import numpy as np

import program


class Writer:
    """A run that is caught while it writes A.npy of a folder."""

    def __init__(self, suite, ranks, catch):
        words = ["make-problem", "--rows", 3000, "--cols", 3000, "--rhs", 0, "--out", "big"]
        command = [str(suite.program)] if ranks is None else [str(suite.launch), str(ranks), str(suite.program)]
        before = program.leftovers(suite.folder / "big")
        self.process = subprocess.Popen([*command, *map(str, words)], cwd=suite.folder, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, env={**os.environ, **program.QUIET}, start_new_session=True)
        self.files, deadline = [], time.monotonic() + 60
        while not self.files and self.process.poll() is None and time.monotonic() < deadline:
            # Of the first file, and not of the trial before.
            self.files = [name for name in program.leftovers(suite.folder / "big")
                          if name not in before and name.startswith("A.npy.tmp.") and size_of(suite.folder / "big" / name) > 10**7]
        self.signal(catch)
        suite.check(self.files and size_of(suite.folder / "big" / self.files[0]) > 10**7, "no run was caught while it wrote")

    def signal(self, number):
        os.killpg(self.process.pid, number)
        if number == signal.SIGKILL:
            self.process.wait()


def size_of(path):
    return path.stat().st_size if path.exists() else 0


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
    check_leftovers(suite)


if __name__ == "__main__":
    program.main(test, __doc__)
