#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that the build configures with no, part of or all of the CUDA toolkit and NCCL: configure.py SOURCE_ROOT COMPILER…

Each case is an imitated toolkit. The machine's own toolkit is hidden: PATH has no nvcc, and the compiler finds headers and
libraries of GPUs only in folders that it is given.
"""
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

HEADERS = ("cuda_runtime_api.h", "cublas_v2.h", "cufftXt.h", "nccl.h", "nvtx3/nvToolsExt.h")
LIBRARIES = ("cudart", "cublas", "cufft", "nccl")
NVCC = ("bin/nvcc",)
TOOLKIT_HEADERS = ("include/cuda_runtime_api.h", "include/cublas_v2.h", "include/cufftXt.h", "include/nvtx3/nvToolsExt.h")
TOOLKIT = (*NVCC, *TOOLKIT_HEADERS, "lib64/libcudart.so", "lib64/libcublas.so", "lib64/libcufft.so")
NCCL = ("include/nccl.h", "lib64/libnccl.so")
WHEEL = ("wheel/include/nccl.h", "wheel/lib/libnccl.so.2")

# (what is there, files of the imitated root, option gpu, other options, whether it configures, words that the output must
# have, words that it must not have)
CASES = [
    ("nothing", (), "auto", {}, True,
     ["none; not found: nvcc, cuda_runtime_api.h, libcudart, cublas_v2.h, libcublas, cufftXt.h, libcufft, nccl.h, libnccl, nvtx3/nvToolsExt.h"], []),
    ("the compiler alone", NVCC, "auto", {}, True, ["none; not found: cuda_runtime_api.h, libcudart,"], ["not found: nvcc"]),
    ("no libraries", (*NVCC, *TOOLKIT_HEADERS, NCCL[0]), "auto", {}, True, ["none; not found: libcudart, libcublas, libcufft, libnccl"], []),
    ("no compiler", (*TOOLKIT[1:], *NCCL), "auto", {}, True, ["none; not found: nvcc\n"], []),
    ("no NCCL", TOOLKIT, "auto", {}, True, ["none; not found: nccl.h, libnccl\n"], []),
    ("all", (*TOOLKIT, *NCCL), "auto", {}, True, ["CUDA by ROOT/bin/nvcc"], ["not found:"]),
    ("all, NCCL as a wheel", (*TOOLKIT, *WHEEL), "enabled", {"nccl_root": "ROOT/wheel"}, True,
     ["CUDA by ROOT/bin/nvcc", "NCCL in ROOT/wheel"], ["not found:"]),
    ("nothing", (), "enabled", {}, False, ["ERROR", "Not found: nvcc, cuda_runtime_api.h", "-Dgpu_root"], []),
    ("a wheel without its library", (*TOOLKIT, WHEEL[0]), "enabled", {"nccl_root": "ROOT/wheel"}, False,
     ["ERROR", "Not found: ROOT/wheel/lib/libnccl.so.2", "-Dnccl_root"], []),
]

# A compiler that knows no folders of GPU libraries.
BLINKERED = """#!/bin/sh
hidden=
for word; do
  case $word in
    --print-search-dirs | -print-search-dirs) echo 'libraries: ='; exit 0 ;;
    LIBRARY_WORDS) [ -e "ROOT/lib64/lib${word#-l}.so" ] || exit 1 ;;
    *.cpp) if grep -q -e HEADER_WORDS "$word"; then hidden='-nostdinc -nostdinc++'; fi ;;
  esac
done
exec COMPILER $hidden "$@"
"""


def make_executable(path, text):
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def path_without_nvcc(scratch):
    """PATH, where a folder that has nvcc is replaced by one of links to all the rest."""
    folders = []
    for number, folder in enumerate(os.environ["PATH"].split(os.pathsep)):
        if (Path(folder) / "nvcc").exists():
            links = scratch / f"path{number}"
            links.mkdir()
            for program in Path(folder).iterdir():
                if program.name != "nvcc":
                    (links / program.name).symlink_to(program)
            folder = str(links)
        folders.append(folder)
    return os.pathsep.join(folders)


def make_root(root, files, compiler):
    root.mkdir()
    for name in files:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("nvcc"):
            make_executable(path, "#!/bin/sh\nexit 1\n")
        elif ".so" in name:
            subprocess.run([*compiler, "-shared", "-fPIC", "-x", "c++", os.devnull, "-o", path], check=True)
        else:
            path.write_text("", encoding="utf-8")
    text = BLINKERED.replace("LIBRARY_WORDS", " | ".join(f"-l{name}" for name in LIBRARIES))
    text = text.replace("HEADER_WORDS", " -e ".join(HEADERS)).replace("ROOT", str(root))
    make_executable(root / "c++", text.replace("COMPILER", shlex.join(compiler)))


def configure(source, scratch, root, option, others):
    options = {"gpu": option, "gpu_root": str(root), "tests": "disabled", "apps": "disabled", **others}
    command = ["meson", "setup", scratch / f"build-{root.name}", source]
    command += [f"-D{name}={value.replace('ROOT', str(root))}" for name, value in options.items()]
    environment = {name: value for name, value in os.environ.items() if name not in ("CXXFLAGS", "LDFLAGS", "LIBRARY_PATH")}
    environment.update(CXX=str(root / "c++"), PATH=path_without_nvcc(root))
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)


def main(source, compiler):
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        for number, (what, files, option, others, succeeds, words, other_words) in enumerate(CASES):
            root = scratch / f"root{number}"
            make_root(root, files, compiler)
            run = configure(source, scratch, root, option, others)
            missing = [word for word in words if word.replace("ROOT", str(root)) not in run.stdout]
            present = [word for word in other_words if word in run.stdout]
            if (run.returncode == 0) != succeeds or missing or present:
                failures += 1
                print(f"FAILED: gpu={option} with {what}: status {run.returncode}, without {missing}, with {present}:\n"
                      + "\n".join(run.stdout.splitlines()[-25:]))
    print(f"{len(CASES)} cases, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2:]))
