# SPDX-License-Identifier: BSD-3-Clause
"""Checks that a .npy file of which a bit of the header is wrong, or that is cut off, is refused, or read as NumPy reads it.
damage_test.py LAUNCH PROGRAM [--full]; the variable GRIDLOPS_TEST_READ_HEADERS names tests/fuzz/read_headers.cpp's program."""
import contextlib
import io
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "apps"))
import program  # noqa: E402  (found by the line before)

BAD_INPUT = 65
CUTS = 64
HEADER = 128


def file_of(array, version=(1, 0)):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version=version)
    return file.getvalue()


def sound_files():
    whole = np.arange(120.0)
    return [file_of(whole[:12].reshape(3, 4)), file_of(np.asfortranarray(whole[:35].reshape(7, 5)), (2, 0)),
            file_of(whole[:7].astype("c16")), file_of(whole.astype("f4").reshape(2, 3, 4, 5)),
            file_of(whole[:6].astype("c8").reshape(1, 6, 1), (3, 0)), file_of(np.zeros((0, 5))),
            file_of(whole[:35].reshape(7, 5)).replace(b"(7, 5), } ", b"(7L, 5L)} "),
            file_of(whole[:12].reshape(3, 4)).replace(b"'descr': '<f8',", b"'descr':u'<f8',"),
            file_of(whole[:12].reshape(3, 4)).replace(b"'<f8', ", b"'f8',  "),
            file_of(whole[:12].astype("c16").reshape(3, 4)).replace(b"'<c16', ", b"'|D',   ")]


def with_bit(data, bit):
    return data[:bit // 8] + bytes([data[bit // 8] ^ 1 << bit % 8]) + data[bit // 8 + 1:]


def as_numpy_reads(data):
    """None if NumPy refuses it."""
    with contextlib.suppress(Exception):  # NumPy refuses files by exceptions of many kinds
        return np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    # Lengths such as 7L go through Python's tokenizer, which takes no white space but blanks since version 3.12.
    words = data[10:HEADER]
    blank = words.translate(bytes.maketrans(b"\v\f\r", b"   "))
    return as_numpy_reads(data[:10] + blank + data[HEADER:]) if b"L" in words and blank != words else None


def damaged(data, chance):
    """Every header with one bit wrong; headers that are cut off; and some with other damage."""
    length = data.index(b"\n") + 1
    yield from (with_bit(data, bit) for bit in range(8 * length))
    yield from (data[:size] for size in range(length))
    for _ in range(1000):
        changed = bytearray(data)
        for _ in range(chance.randrange(1, 4)):
            changed[chance.randrange(10, length)] = ord(chance.choice("0123456789 ,()'{}L\n\t\v\f\r=<|f"))
        yield bytes(changed)


def check_parser(suite):
    """Of all damaged headers what the library's parser reads is what NumPy reads."""
    chance = random.Random(19)
    files = [data for sound in sound_files() for data in [sound, *damaged(sound, chance)]]
    reader = subprocess.run([os.environ["GRIDLOPS_TEST_READ_HEADERS"]], input="\n".join(data.hex() for data in files) + "\n",
                            capture_output=True, text=True, check=True)
    lines = reader.stdout.splitlines()
    suite.check(len(lines) == len(files), "lines", len(lines), "of files", len(files))
    read = 0
    for data, line in zip(files, lines):
        if line == "refused":
            continue
        read += 1
        offset, dtype, fortran, *sizes = line.split()
        array = np.frombuffer(data[int(offset):], program.TYPES[dtype]).reshape(tuple(map(int, sizes)), order="CF"[int(fortran)])
        expected = as_numpy_reads(data)
        suite.check(expected is not None and expected.dtype == array.dtype and np.array_equal(array, expected),
                    "NumPy reads it otherwise:", data[:HEADER], expected)
    suite.check(len(sound_files()) <= read < len(files) / 2, "read", read, "of", len(files))


def check_program(suite, full):
    """The program refuses them by its status, or computes with what NumPy reads."""
    vectors = np.eye(4)
    sound = file_of(np.arange(1.0, 13).reshape(3, 4))
    np.save(suite.folder / "X.npy", vectors)
    flips = range(0, 8 * HEADER, 1 if full else 101)
    cuts = [len(sound) * k // CUTS for k in range(0, CUTS, 1 if full else 9)]
    harmless = 0
    # The last one is harmless: "=" for the order of bytes is this machine's.
    for data in [*(with_bit(sound, bit) for bit in flips), *(sound[:size] for size in cuts), sound.replace(b"<f8", b"=f8")]:
        (suite.folder / "A.npy").write_bytes(data)
        (suite.folder / "Y.npy").unlink(missing_ok=True)
        run = suite.run("multiply", "--matrix", "A.npy", "--input", "X.npy", "--output", "Y.npy")
        if run.status == 0:
            harmless += 1
            suite.check(np.array_equal(np.load(suite.folder / "Y.npy"), as_numpy_reads(data)), "not as NumPy reads it:", data[:HEADER])
        else:
            suite.succeeded(run, BAD_INPUT)
            suite.check(len(run.error_lines) == 1 and "A.npy" in run.error_lines[0] and not (suite.folder / "Y.npy").exists(),
                        "one error, and no output:", run.errors)
    suite.check(1 <= harmless <= 3, harmless, "damaged headers are harmless")
    for end in (b" \x0b", b"  "):
        (suite.folder / "A.npy").write_bytes(sound[:HEADER - 2] + end + sound[HEADER:])
        run = suite.run("multiply", "--matrix", "A.npy", "--input", "X.npy", "--output", "Y.npy", ranks=2)
        suite.succeeded(run, BAD_INPUT)


def test(suite, full):
    check_parser(suite)
    check_program(suite, full)


if __name__ == "__main__":
    program.main(test, __doc__)
