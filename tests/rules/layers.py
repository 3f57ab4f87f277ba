#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""No layer includes a header of one above it: solve → ops → dist → comm → local → base, and solve → io → dist.

A layer is a folder of lib, and the folder of the same name in include/gridlops. gridlops.hpp there has all headers, for users
alone. Reasons: docs/decisions/0045-rooms.md.
"""

import rule

# For each layer the ones it may include besides itself.
BELOW = {
    "base": set(),
    "local": {"base"},
    "comm": {"local", "base"},
    "dist": {"comm", "local", "base"},
    "ops": {"dist", "comm", "local", "base"},
    "compressed": {"streamed", "ops", "io", "dist", "comm", "local", "base"},
    "streamed": {"ops", "io", "dist", "comm", "local", "base"},
    "solve": {"ops", "io", "dist", "comm", "local", "base"},
    "io": {"dist", "comm", "local", "base"},
    "cuda": {"comm", "local", "base"},
    "no_cuda": {"comm", "local", "base"},
    "hdf5": {"io", "dist", "comm", "local", "base"},
    "no_hdf5": {"io", "dist", "comm", "local", "base"},
}
WINGS = {"cuda", "no_cuda", "hdf5", "no_hdf5"}  # implement what others declare; nobody includes them
PUBLIC = BELOW.keys() - WINGS

EVERYTHING = "include/gridlops/gridlops.hpp"
ITS_USERS = {("docs", "examples"), ("tests", "install")}

MPI_USERS = {"include/gridlops/comm/mpi.hpp"}  # and lib/comm

DEVICES = {"bench/simulation/modelled_device.cpp"}  # take the place of lib/cuda, and may include what it may


def layer_of_header(name):
    """The layer of an included name, or None if it is not ours."""
    top, *inner = name.split("/")
    if top == "gridlops":
        top, *inner = inner
        return top if inner and top in PUBLIC else None
    return top if inner and top in BELOW else None


def check_lib_or_public(path, layer, text, is_public):
    for line, name in rule.includes(text):
        where = f"{path}:{line}"
        if name == "mpi.h" and layer != "comm":
            yield f"{where}: <mpi.h> in layer {layer}; only comm speaks MPI, so that other transports can take its place"
        if name == "mpi.h" and is_public and path.as_posix() not in MPI_USERS:
            yield f"{where}: public headers other than gridlops/comm/mpi.hpp must not need <mpi.h>"
        if (name == "hdf5.h" or name.startswith("H5")) and layer != "hdf5":
            yield f"{where}: <{name}> in layer {layer}; only lib/hdf5 speaks HDF5, which is optional"
        target = layer_of_header(name)
        if target is None:
            continue
        if is_public and not name.startswith("gridlops/"):
            yield f"{where}: a public header includes {name}, which is not installed"
        if target in WINGS and target != layer:
            yield f"{where}: includes {name}; {target} is reached through factories of public headers only"
        elif target != layer and target not in BELOW[layer]:
            yield f"{where}: layer {layer} includes {name} of layer {target}, which is above it"


def check_public_user(path, text, own):
    """Programs may have folders with the names of layers, with headers of their own."""
    for line, name in rule.includes(text):
        if layer_of_header(name) is not None and not name.startswith("gridlops/") and name not in own:
            yield f"{path}:{line}: includes {name}; programs see public headers only"


def check_device(path, text):
    for line, name in rule.includes(text):
        if layer_of_header(name) not in BELOW["cuda"] | {None}:
            yield f"{path}:{line}: a device includes {name}, which lib/cuda may not"


def check_everything(text, public):
    included = [name for _, name in rule.includes(text)]
    for name in sorted(public - set(included)):
        yield f"{EVERYTHING}: lacks {name}"
    if included != sorted(included):
        yield f"{EVERYTHING}: its headers are not in alphabetical order"


def check(root):
    failures = []
    paths = list(filter(rule.is_cpp, rule.project_files(root)))
    own = {path.relative_to("apps").as_posix() for path in paths if path.parts[0] == "apps"}
    for path in paths:
        text = rule.read(root, path)
        top, *inner = path.parts
        if top == "lib" and len(inner) > 1 and inner[0] in BELOW:
            failures += check_lib_or_public(path, inner[0], text, is_public=False)
        elif top == "lib":
            failures.append(f"{path}: in no layer; lib has {', '.join(BELOW)}")
        elif path.as_posix() == EVERYTHING:
            failures += check_everything(text, {header.relative_to("include").as_posix().removesuffix(".in") for header in paths
                                                if header.parts[0] == "include" and header != path})
        elif path.parts[:2] == ("include", "gridlops"):
            if len(inner) > 2 and inner[1] in PUBLIC:
                failures += check_lib_or_public(path, inner[1], text, is_public=True)
            else:
                failures.append(f"{path}: in no layer; include/gridlops has a folder for each")
        elif path.as_posix() in DEVICES:
            failures += check_device(path, text)
        elif top in {"apps", "bench"}:
            failures += check_public_user(path, text, own)
        for line, name in rule.includes(text):
            if name == "gridlops/gridlops.hpp":
                if path.parts[:2] not in ITS_USERS:
                    failures.append(f"{path}:{line}: includes all headers; only users' programs may")
            elif name.startswith("gridlops/") and layer_of_header(name) is None:
                failures.append(f"{path}:{line}: {name} is in no layer")
    return failures


GOOD = {
    "include/gridlops/base/types.hpp": "#include <complex>\n",
    "include/gridlops/base/version.hpp.in": "#pragma once\n",
    "include/gridlops/comm/mpi.hpp": '#include <mpi.h>\n#include "gridlops/base/types.hpp"\n',
    "include/gridlops/gridlops.hpp": '#include "gridlops/base/types.hpp"\n#include "gridlops/base/version.hpp"\n'
                                     '#include "gridlops/comm/mpi.hpp"\n',
    "docs/examples/mine.cpp": '#include "gridlops/gridlops.hpp"\n',
    "lib/solve/methods/cgls.cpp": '#include "solve/run/step.hpp"\n#include "gridlops/base/types.hpp"\n#include "comm/failure/agreement.hpp"\n',
    "lib/comm/mpi/mpi_session.cpp": '#include "gridlops/comm/mpi.hpp"\n',
    "lib/cuda/backend.cpp": '#include "cuda/handles.hpp"\n#include "gridlops/local/backend.hpp"\n',
    "apps/solve/task.hpp": "",
    "bench/simulation/modelled_device.cpp": '#include "gridlops/comm/gpu.hpp"\n#include "local/arrays/array_kernels.hpp"\n',
    "apps/main.cpp": '#include "gridlops/comm/mpi.hpp"\n#include "solve/task.hpp"\n',
}
PLANTS = [
    ("an upward include in lib", {"lib/dist/bad.cpp": '#include "ops/product.hpp"\n'}, "which is above it"),
    ("an upward include of a public header", {"lib/comm/bad.cpp": "#include <gridlops/solve/solver.hpp>\n"},
     "which is above it"),
    ("io above dist", {"lib/io/bad.cpp": '#include "gridlops/ops/matrix_mult.hpp"\n'}, "which is above it"),
    ("an upward include in a public header", {"include/gridlops/base/types.hpp": '#include "gridlops/dist/layout.hpp"\n'},
     "layer base includes gridlops/dist/layout.hpp of layer dist"),
    ("a private header in a public one", {"include/gridlops/dist/layout.hpp": '#include "dist/cut.hpp"\n'}, "not installed"),
    ("a public header outside the layers", {"include/gridlops/news.hpp": ""}, "include/gridlops/news.hpp: in no layer"),
    ("a header that is not among all", {"include/gridlops/base/news.hpp": ""}, "gridlops.hpp: lacks gridlops/base/news.hpp"),
    ("all headers in the library", {"lib/ops/bad.cpp": '#include "gridlops/gridlops.hpp"\n'}, "only users' programs may"),
    ("a public header of a wing", {"include/gridlops/cuda/news.hpp": ""}, "include/gridlops/cuda/news.hpp: in no layer"),
    ("an include of a public header outside the layers", {"lib/ops/bad.cpp": '#include "gridlops/news.hpp"\n'}, "is in no layer"),
    ("an include of the CUDA wing", {"lib/ops/bad.cpp": '#include "cuda/handles.hpp"\n'}, "through factories"),
    ("a private header in a program", {"apps/bad.cpp": '#include "comm/agreement.hpp"\n'}, "public headers only"),
    ("operators in a device", {"bench/simulation/modelled_device.cpp": '#include "ops/array/padding.hpp"\n'}, "lib/cuda may not"),
    ("MPI in a public header", {"include/gridlops/comm/process_grid.hpp": "#include <mpi.h>\n"}, "must not need <mpi.h>"),
    ("HDF5 in another layer", {"lib/io/bad.cpp": "#include <hdf5.h>\n"}, "only lib/hdf5 speaks HDF5"),
    ("MPI above comm", {"lib/ops/bad.cpp": "#include <mpi.h>\n"}, "only comm speaks MPI"),
    ("a file outside the layers", {"lib/misc/bad.cpp": ""}, "in no layer"),
]

if __name__ == "__main__":
    rule.run(check, GOOD, PLANTS)
