# SPDX-License-Identifier: BSD-3-Clause
"""Checks bench/compare on small products: every product once, ratios of the times, and the error where the peer is missing.
compare_test.py LAUNCH PEER COMPARE"""
import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "apps"))
import program  # noqa: E402  (found by the line before)

launch, peer, compare = (Path(word).resolve() for word in sys.argv[1:4])
del sys.argv[3]


def run(folder, *options):
    command = [str(compare), "--launch", f"{launch} 2", "--turns", "1", *options, "--json", "C.json", "matmul", "--rows", "65",
               "--cols", "40", "--rhs", "1,3", "--dtype", "f64,c64", "--both", "--reps", "1", "--limit-order", "64",
               "--algorithm", "stationary-a,summa"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)


def test(suite, _):
    done = run(suite.folder, "--programs", str(peer.parent), "--peer-panel", "16,32")
    if suite.check(done.returncode == 0, "status", done.returncode, done.stderr):
        rows = json.loads((suite.folder / "C.json").read_text(encoding="utf-8"))
        keys = {(row["nrhs"], row["dtype"], row["adjoint"]) for row in rows}
        suite.check(len(rows) == len(keys) == 8, "products", keys)
        suite.check(len(done.stdout.splitlines()) == 9, "the table", done.stdout)
        for row in rows:
            ratio = row["scalapack"]["seconds"] / row["gridlops"]["seconds"]
            suite.check(abs(row["ratio"] - ratio) < 1e-12 * ratio, "ratio", row)
            suite.check(row["scalapack"]["panel"] in (16, 32) and row["gridlops"]["algorithm"] in ("stationary-a", "summa"), "names", row)
    done = run(suite.folder, "--programs", str(suite.folder))
    suite.check(done.returncode == 1 and "libscalapack" in done.stderr, "no peer", done.stderr)
    check_peer(suite)


def check_peer(suite):
    for words in (["solve", "--rows", "4", "--cols", "3"], ["matmul", "--rows", "4", "--cols", "3", "--grid", "1x1"],
                  ["matmul", "--rows", "4", "--cols", "0"]):
        refused = suite.run(*words, ranks=2)
        suite.check(refused.status == 2 and "ScaLAPACK" in refused.errors, "refusal", words, refused.errors)
    made = suite.run("matmul", "--rows", "31", "--cols", "23", "--rhs", "2", "--dtype", "f32,f64,c64,c128", "--both", "--panel", "4",
                     "--grid", "2x2,1x4", "--reps", "1", "--limit-order", "64", "--json", "F.json", ranks=4)
    if suite.succeeded(made):
        results = json.loads((suite.folder / "F.json").read_text(encoding="utf-8"))["results"]
        suite.check(len(results) == 16, len(results), "results")
        for result in results:
            suite.check(result["error"] < 100 * program.epsilon(result["dtype"]), "error", result)
            suite.check(result["bytes_sent"] is None and result["algorithm"] == "p?gemm", "names", result)


if __name__ == "__main__":
    program.main(test, __doc__)
