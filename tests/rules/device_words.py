#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Identifiers of CUDA, cuBLAS, cuFFT and NCCL stand in lib/cuda and in its tests, nowhere else."""
import re

import rule

DEVICE_WORD = re.compile(r"\bcuda[A-Z_]\w*|\bcu(?:blas|fft)\w*|\bnccl[A-Z]\w*|<<<")
ALLOWED = ("lib/cuda/", "lib/no_cuda/", "tests/emulation/", "tests/gpu/")


def check(root):
    failures = []
    for path in filter(rule.is_cpp, rule.project_files(root)):
        if path.as_posix().startswith(ALLOWED):
            continue
        for number, line in enumerate(rule.read(root, path).splitlines(), 1):
            failures += [f"{path}:{number}: {word} belongs in lib/cuda" for word in DEVICE_WORD.findall(line)]
    return failures


GOOD = {
    "lib/cuda/backend.cpp": "cudaStream_t stream; cublasHandle_t handle; ncclComm_t comm;\n",
    "lib/local/backend.cpp": "// CUDA, cuBLAS and NCCL by name are fine\nmake_gpu_backend(0);\n",
    "tests/emulation/runtime.cpp": "cudaError_t cudaMalloc(void**, size_t);\n",
}
PLANTS = [
    ("a CUDA type", {"lib/local/bad.cpp": "cudaStream_t stream;\n"}, "lib/local/bad.cpp:1: cudaStream_t"),
    ("a cuBLAS call", {"apps/bad.cpp": "\ncublasDgemm();\n"}, "apps/bad.cpp:2: cublasDgemm"),
    ("a cuFFT call", {"lib/ops/bad.cpp": "cufftXtExec();\n"}, "lib/ops/bad.cpp:1: cufftXtExec"),
    ("an NCCL call", {"include/gridlops/bad.hpp": "ncclAllReduce();\n"}, "ncclAllReduce"),
    ("a kernel launch", {"bench/bad.cpp": "scale<<<blocks, threads>>>();\n"}, "<<<"),
]

if __name__ == "__main__":
    rule.run(check, GOOD, PLANTS)
