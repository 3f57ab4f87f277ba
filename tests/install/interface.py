#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that the libraries export the same names whatever GPUs were built for: interface.py LIBRARY GPU_LIBRARY

libgridlops_gpu has the functions that make GPU backends and communicators, and no other of ours; libgridlops needs none of
them. Every build runs this test, so that a program finds what it was linked to in the libraries of any build.
"""
import re
import subprocess
import sys

GPU_FUNCTIONS = {"gpu_info", "make_gpu_backend", "make_gpu_communicator"}


def functions(library, which):
    """Our functions among a library's dynamic symbols, without weak ones, which every user of a header has."""
    listing = subprocess.run(["nm", "-D", "-C", which, library], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"^[0-9a-f ]* [TU] gridlops::([\w:~]+)", listing, re.MULTILINE))


def main(library, gpu_library):
    failures = []
    exported, gpu_exported = functions(library, "--defined-only"), functions(gpu_library, "--defined-only")
    if not exported:
        failures.append(f"{library} exports no function")
    if exported & GPU_FUNCTIONS:
        failures.append(f"{library} exports {sorted(exported & GPU_FUNCTIONS)}, which belong into libgridlops_gpu")
    if gpu_exported != GPU_FUNCTIONS:
        failures.append(f"{gpu_library} exports {sorted(gpu_exported)}, not {sorted(GPU_FUNCTIONS)}")
    if needed := functions(library, "--undefined-only"):
        failures.append(f"{library} needs {sorted(needed)} of others")
    print("\n".join(failures) or f"{len(exported)} functions, and {len(gpu_exported)} for GPUs")
    return 1 if failures else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
