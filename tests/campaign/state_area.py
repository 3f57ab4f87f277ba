# SPDX-License-Identifier: BSD-3-Clause
"""Checkpoints and saved spaces of the program: damaged, with hashes that say they are not, they are refused or taken, without a
crash and without much memory; and nothing is lost that somebody put into their folders."""
import ctypes
import ctypes.util
import json
import os
import resource
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from properties import require

ENDS = {0, 1, 2, 3, 65}
ROOM = 3 << 30  # far more than such a small problem takes
VALUES = [-1.0, 0.0, 1.0, 0.5, 2.0, 3.0, 7.0, 33.0, 2.0 ** 31, 2.0 ** 32, 2.0 ** 53, 2.0 ** 62, 1e300, -1e300, float("nan"), float("inf")]
COUNTS = [-1, 0, 1, 3, 2 ** 31, 40000000000, 2 ** 62]


def xxh3(data):
    """As manifests write it; None without the library."""
    name = ctypes.util.find_library("xxhash")
    if name is None:
        return None
    function = ctypes.CDLL(name).XXH3_64bits
    function.restype, function.argtypes = ctypes.c_uint64, [ctypes.c_char_p, ctypes.c_size_t]
    return f"{function(data, len(data)):016x}"


def sign(path, manifest):
    manifest.pop("xxh3", None)
    manifest["xxh3"] = xxh3(json.dumps(manifest, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode())
    path.write_text(json.dumps(manifest), encoding="utf-8")


def run(build, folder, *words):
    environment = {**os.environ, "GRIDLOPS_CALIBRATION": "off", "OPENBLAS_NUM_THREADS": "1", "GRIDLOPS_THREADS": "1"}
    done = subprocess.run([str(build / "apps" / "gridlops"), *words], cwd=folder, env=environment, capture_output=True, text=True, errors="replace",
                          timeout=60, check=False, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (ROOM, ROOM)))
    return done.returncode, done.stderr[-500:]


def solve(case, *more):
    words = ["solve", "--matrix", "A.npy", "--rhs", "B.npy", "--output", "X.npy", "--iterations", "12", "--quiet"]
    if case["solver"] == "space":
        return [*words, "--damps", "1e-2:1:3", "--sweep", "space", "--choose", "lcurve", *more]
    return [*words, "--solver", case["solver"], *(["--lambda", "0.1"] if case["solver"] == "fista" else ["--damp", "0.1"]), *more]


def damage_numbers(folder, case):
    """Changes some of the numbers, and all hashes."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    path = folder / manifest["folder"] / "numbers.npy"
    numbers = np.load(path)
    for at, which in case["numbers"]:
        numbers.flat[int(at * numbers.size) % numbers.size] = VALUES[which % len(VALUES)]
    if case["cut"]:
        numbers = numbers[: max(1, int(case["cut"] * len(numbers)))]
    np.save(path, np.asfortranarray(numbers))
    entry = manifest["matrices"]["numbers"]
    entry["rows"] = len(numbers)
    entry["blocks"] = [{"rows": [0, len(numbers)], "cols": [0, 1], "xxh3": xxh3(numbers.tobytes())}]
    sign(folder / "manifest.json", manifest)


def places_of(value, path=()):
    """The places of the numbers and texts in JSON."""
    if isinstance(value, dict):
        return [place for key, inner in sorted(value.items()) for place in places_of(inner, (*path, key))]
    if isinstance(value, list):
        return [place for key, inner in enumerate(value) for place in places_of(inner, (*path, key))]
    return [path]


def damage_manifest(folder, case):
    """Changes some of what a manifest says, and its hash."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    for at, which in case["numbers"]:
        places = places_of(manifest)
        *outer, last = places[int(at * len(places)) % len(places)]
        inside = manifest
        for key in outer:
            inside = inside[key]
        count = COUNTS[which % len(COUNTS)]
        inside[last] = str(count) if isinstance(inside[last], str) else count
    sign(folder / "manifest.json", manifest)


def check_damage(case, build, folder):
    if xxh3(b"") is None:
        return ["no xxhash"]
    if case["solver"] == "compressed":
        status, said = run(build, folder, "compress", "--matrix", "A.npy", "--output", "saved", "--tolerance", "1e-3", "--tile", "4")
        words = ["multiply", "--matrix", "saved", "--input", "X0.npy", "--output", "Y.npy"]
    else:
        status, said = run(build, folder, *solve(case, "--checkpoint", "saved", "--checkpoint-every", "2"))
        words = solve(case, "--restart", "saved", "--tolerance", "1e-12")
    require(status in (0, 1, 3), "state, refused without need", status, said)
    damage_numbers(folder / "saved", case) if case["part"] == "numbers" and case["solver"] != "compressed" else damage_manifest(folder / "saved", case)
    status, said = run(build, folder, *words)
    require(status in ENDS, "state, a damaged one", "status", status, said)
    return [f"{case['part']}, {status}"]


def check_foreign(case, build, folder):
    """Files of somebody else's in the folder are there after the run, or it is refused."""
    there = {}
    for number, name in enumerate(case["names"]):
        path = folder / "saved" / name
        if any(parent.is_file() for parent in path.parents) or path.is_dir():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"somebody's file {number}", encoding="utf-8")
        there[path] = path.read_bytes()
    status, said = run(build, folder, *solve(case, "--checkpoint", "saved", "--checkpoint-every", "2", "--tolerance", "0"))
    require(status in (0, 1, 3, 74), "state, foreign files", "status", status, said)
    for path, text in there.items():
        require(path.is_file() and path.read_bytes() == text, "state, a foreign file is lost", path.relative_to(folder))
    return [f"foreign, {status}"]


def check(case, workers):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        random = np.random.default_rng(case["seed"])
        A = random.standard_normal((11, 8))
        np.save(folder / "A.npy", A)
        np.save(folder / "X0.npy", random.standard_normal((8, 3)))
        np.save(folder / "B.npy", A @ random.standard_normal((8, 3)) + 0.1 * random.standard_normal((11, 3)))
        check_of = check_foreign if case["part"] == "foreign" else check_damage
        return check_of(case, workers.build, folder)
