# SPDX-License-Identifier: BSD-3-Clause
"""Checks that a .npy file of which a bit of the header is wrong, or that is cut off, is refused, or read as NumPy reads it.
headers_as_numpy.py READ_HEADERS, which is the program of read_headers.cpp"""
import contextlib
import io
import random
import subprocess
import sys

import numpy as np

HEADER = 128
TYPES = {"f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128}


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
            file_of(whole[:12].reshape(3, 4)).replace(b"<f8", b"=f8"),
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


def main(reader):
    chance = random.Random(19)
    files = [data for sound in sound_files() for data in [sound, *damaged(sound, chance)]]
    run = subprocess.run([reader], input="\n".join(data.hex() for data in files) + "\n", capture_output=True, text=True, check=True)
    lines = run.stdout.splitlines()
    assert len(lines) == len(files), (len(lines), len(files))
    read = 0
    for data, line in zip(files, lines):
        if line == "refused":
            continue
        read += 1
        offset, dtype, fortran, *sizes = line.split()
        array = np.frombuffer(data[int(offset):], TYPES[dtype]).reshape(tuple(map(int, sizes)), order="CF"[int(fortran)])
        expected = as_numpy_reads(data)
        assert expected is not None and expected.dtype == array.dtype and np.array_equal(array, expected), \
            f"NumPy reads it otherwise: {data[:HEADER]}: {expected}"
    assert len(sound_files()) <= read < len(files) / 2, f"{read} of {len(files)} are read"
    print(f"{len(files)} files, {read} read")


if __name__ == "__main__":
    main(sys.argv[1])
