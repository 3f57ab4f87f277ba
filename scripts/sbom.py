#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes what a build is made of, as SPDX 2.3 in JSON: sbom.py BUILD_FOLDER [FILE…] > sbom.spdx.json

Names this version, the libraries that Meson found for the build, with their versions and licences, and the checksums of the
files, such as the tarball of the sources. Fails if a library's licence is not known here.
"""
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

# The licence of each library by the name that Meson has for it, as its authors state it, and what it is needed for.
LIBRARIES = {
    "ompi-cxx": ("Open MPI", "BSD-3-Clause-Open-MPI", "DEPENDS_ON"),
    "mpic++": ("Open MPI", "BSD-3-Clause-Open-MPI", "DEPENDS_ON"),  # as Meson finds that of Debian 13
    "mpich": ("MPICH", "mpich2", "DEPENDS_ON"),
    "openblas": ("OpenBLAS", "BSD-3-Clause", "DEPENDS_ON"),
    "blis": ("BLIS", "BSD-3-Clause", "DEPENDS_ON"),
    "fftw3": ("FFTW", "GPL-2.0-or-later", "DEPENDS_ON"),
    "fftw3f": ("FFTW for float", "GPL-2.0-or-later", "DEPENDS_ON"),
    "kissfft-float": ("KISS FFT", "BSD-3-Clause", "CONTAINS"),
    "libxxhash": ("xxHash", "BSD-2-Clause", "CONTAINS"),
    "nlohmann_json": ("JSON for Modern C++", "MIT", "CONTAINS"),
    "hdf5-openmpi": ("HDF5", "BSD-3-Clause", "DEPENDS_ON"),
    "CLI11": ("CLI11", "BSD-3-Clause", "CONTAINS"),
    "fmt": ("fmt", "MIT", "DEPENDS_ON"),
    "spdlog": ("spdlog", "MIT", "DEPENDS_ON"),
    "pybind11": ("pybind11", "BSD-3-Clause", "CONTAINS"),
    "openmp": ("OpenMP of the compiler", "GPL-3.0-or-later WITH GCC-exception-3.1", "DEPENDS_ON"),
    "catch2": ("Catch2", "BSL-1.0", "TEST_DEPENDENCY_OF"),
    "catch2-with-main": ("Catch2 with its main", "BSL-1.0", "TEST_DEPENDENCY_OF"),
}
NO_LIBRARIES = ("threads", "dl", "python-")  # the system's, or Python itself


def introspect(build, what):
    listing = subprocess.run(["meson", "introspect", f"--{what}", str(build)], capture_output=True, text=True, check=True).stdout
    return json.loads(listing)


def package(identifier, name, version, licence):
    """A package of the document, without the files that it consists of."""
    return {"SPDXID": identifier, "name": name, "versionInfo": version, "licenseConcluded": licence, "licenseDeclared": licence,
            "downloadLocation": "NOASSERTION", "copyrightText": "NOASSERTION", "filesAnalyzed": False}


def document(project, dependencies, files):
    """The document, and the libraries whose licence is not known."""
    version = project["version"]
    packages = [package("SPDXRef-gridlops", "gridlops", version, "BSD-3-Clause")]
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-gridlops")]
    unknown = []
    for dependency in dependencies:
        name = dependency["name"]
        if name.startswith(NO_LIBRARIES) or dependency.get("type") == "internal":
            continue
        if name not in LIBRARIES:
            unknown.append(name)
            continue
        title, licence, relation = LIBRARIES[name]
        identifier = "SPDXRef-" + re.sub("[^A-Za-z0-9.-]", "-", name)
        packages.append(package(identifier, title, dependency["version"], licence))
        ends = ("SPDXRef-gridlops", identifier)
        relations.append((ends[1], relation, ends[0]) if relation.endswith("_OF") else (ends[0], relation, ends[1]))
    listed = []
    for number, path in enumerate(files):
        data = path.read_bytes()
        listed.append({"SPDXID": f"SPDXRef-file-{number}", "fileName": f"./{path.name}", "copyrightText": "NOASSERTION",
                       "licenseConcluded": "NOASSERTION",
                       "checksums": [{"algorithm": "SHA1", "checksumValue": hashlib.sha1(data).hexdigest()},
                                     {"algorithm": "SHA256", "checksumValue": hashlib.sha256(data).hexdigest()}]})
        relations.append((f"SPDXRef-file-{number}", "GENERATED_FROM", "SPDXRef-gridlops"))
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"gridlops-{version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/gridlops-{version}-"
                             f"{hashlib.sha256(json.dumps([packages, listed]).encode()).hexdigest()[:32]}",
        "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds)), "creators": ["Tool: gridlops-sbom"]},
        "hasExtractedLicensingInfos": [], "packages": packages, "files": listed,
        "relationships": [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b} for a, kind, b in relations],
    }, unknown


def main(build, files):
    result, unknown = document(introspect(build, "projectinfo"), introspect(build, "dependencies"), files)
    if unknown:
        sys.exit(f"sbom: the licence of {', '.join(unknown)} is not known; add it to LIBRARIES in {__file__}")
    json.dump(result, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
