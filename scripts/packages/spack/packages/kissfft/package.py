# SPDX-License-Identifier: BSD-3-Clause
from spack.package import *


class Kissfft(CMakePackage):
    """A fast Fourier transform for any size. GridLOps needs only its C++ header."""

    homepage = "https://github.com/mborgerding/kissfft"
    git = "https://github.com/mborgerding/kissfft.git"

    license("BSD-3-Clause")

    version("131.1.0", tag="131.1.0")

    depends_on("c", type="build")

    def cmake_args(self):
        return [
            self.define("KISSFFT_DATATYPE", "float"),
            self.define("KISSFFT_PKGCONFIG", True),
            self.define("KISSFFT_TEST", False),
            self.define("KISSFFT_TOOLS", False),
        ]
