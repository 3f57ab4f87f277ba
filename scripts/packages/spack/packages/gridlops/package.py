# SPDX-License-Identifier: BSD-3-Clause
from pathlib import Path

from spack.package import *


class Gridlops(MesonPackage):
    """Distributed linear operators and least-squares solvers for many right-hand sides, on MPI, and on GPUs with NCCL."""

    # The repository of this recipe.
    git = Path(__file__).resolve().parents[5].as_uri()

    license("BSD-3-Clause")

    version("main", branch="main")

    variant("programs", default=True, description="the programs gridlops and gridlops-bench")
    variant("shared", default=True, description="shared libraries rather than static ones")
    variant("cuda", default=False, description="GPUs of Nvidia, with NCCL")
    variant("cuda_arch", default="80,90", multi=True, values=("70", "75", "80", "86", "89", "90"), when="+cuda",
            description="compute capabilities")

    variant("hdf5", default=False, description="datasets in HDF5 files")
    variant("fftw", default=True, description="Fourier transforms of FFTW, under the GPL, rather than KISS FFT")

    depends_on("cxx", type="build")
    depends_on("meson@1:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("mpi@3:")
    depends_on("openblas")
    depends_on("fftw@3.3: precision=float,double", when="+fftw")
    depends_on("kissfft@131:", type="build", when="~fftw")
    depends_on("nlohmann-json", type="build")
    depends_on("xxhash", type="build")
    depends_on("cli11", type="build", when="+programs")
    depends_on("fmt", when="+programs")
    depends_on("spdlog", when="+programs")
    depends_on("hdf5@1.10.7:+mpi", when="+hdf5")
    depends_on("cuda@12:", when="+cuda")
    depends_on("nccl@2.18:", when="+cuda")

    conflicts("%gcc@:11", msg="C++20 needs g++ 12 or newer")
    conflicts("%clang@:13", msg="C++20 needs clang++ 14 or newer")

    def setup_build_environment(self, env):
        # For MPIs without a pkg-config file.
        env.set("MPICXX", self.spec["mpi"].mpicxx)

    def meson_args(self):
        spec = self.spec
        args = [
            "-Dtests=disabled",
            "-Dpython=disabled",
            "-Dapps=" + ("enabled" if spec.satisfies("+programs") else "disabled"),
            "-Ddefault_library=" + ("shared" if spec.satisfies("+shared") else "static"),
            "-Dfft=" + ("fftw" if spec.satisfies("+fftw") else "kissfft"),
            "-Dhdf5=" + ("hdf5" if spec.satisfies("+hdf5") else "disabled"),
            "-Dgpu=" + ("enabled" if spec.satisfies("+cuda") else "disabled"),
        ]
        if spec.satisfies("^[virtuals=mpi] mpich"):
            args.append("-Dmpi=mpich")
        if spec.satisfies("+cuda"):
            args += [
                "-Dgpu_root=" + spec["cuda"].prefix,
                "-Dgpu_arch=" + ",".join(spec.variants["cuda_arch"].value),
            ]
        return args
