#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""No layer includes a header of one above it: solve → ops → dist → comm → local → base, and solve → io → dist.

Public headers belong to layers too, by the table below: a new one must be entered.
"""

import rule

# For each layer the ones it may include besides itself.
BELOW = {
    "base": set(),
    "local": {"base"},
    "comm": {"local", "base"},
    "dist": {"comm", "local", "base"},
    "ops": {"dist", "comm", "local", "base"},
    "solve": {"ops", "io", "dist", "comm", "local", "base"},
    "io": {"dist", "comm", "local", "base"},
    "cuda": {"comm", "local", "base"},
    "no_cuda": {"comm", "local", "base"},
}
WINGS = {"cuda", "no_cuda"}  # implement what others declare; nobody includes them

PUBLIC = {
    "base": ["counters", "elements", "error", "export", "random", "trace", "types", "version"],
    "local": ["backend", "buffer", "matrix_view", "overlap", "threshold"],
    "comm": ["communicator", "failure", "gpu", "mpi", "process_grid"],
    "dist": ["block_cyclic", "column_arithmetic", "dims", "dist_matrix", "layout", "non_finite", "partition", "redistribute"],
    "ops": ["algorithm", "array_operators", "band", "block_hash", "cost_model", "dot_test", "fourier", "fredholm", "kirchhoff", "linear_operator", "local_operator", "matrix_mult", "operator_algebra", "space"],
    "solve": ["checkpoint", "damping_curve", "inversion", "plan", "proximal", "solve_observer", "solve_options", "solver", "solver_table", "sparse_solver", "spectrum"],
    "io": ["calibration", "npy", "text_file", "trace_report"],
}
LAYER_OF_PUBLIC = {f"{name}.hpp": layer for layer, names in PUBLIC.items() for name in names}

MPI_USERS = {"include/gridlops/mpi.hpp"}  # and lib/comm


def layer_of_header(name):
    """The layer of an included name, or None if it is not ours."""
    first, _, rest = name.partition("/")
    if first == "gridlops":
        return LAYER_OF_PUBLIC.get(rest)
    return first if rest and first in BELOW else None


def check_lib_or_public(path, layer, text, is_public):
    for line, name in rule.includes(text):
        where = f"{path}:{line}"
        if name == "mpi.h" and layer != "comm":
            yield f"{where}: <mpi.h> in layer {layer}; only comm speaks MPI, so that other transports can take its place"
        if name == "mpi.h" and is_public and path.as_posix() not in MPI_USERS:
            yield f"{where}: public headers other than gridlops/mpi.hpp must not need <mpi.h>"
        target = layer_of_header(name)
        if target is None:
            continue
        if is_public and not name.startswith("gridlops/"):
            yield f"{where}: a public header includes {name}, which is not installed"
        if target in WINGS and target != layer:
            yield f"{where}: includes {name}; {target} is reached through factories of public headers only"
        elif target != layer and target not in BELOW[layer]:
            yield f"{where}: layer {layer} includes {name} of layer {target}, which is above it"


def check_public_user(path, text):
    for line, name in rule.includes(text):
        if layer_of_header(name) is not None and not name.startswith("gridlops/"):
            yield f"{path}:{line}: includes {name}; programs see public headers only"


def check(root):
    failures = []
    for path in filter(rule.is_cpp, rule.project_files(root)):
        text = rule.read(root, path)
        top, *inner = path.parts
        if top == "lib" and len(inner) > 1 and inner[0] in BELOW:
            failures += check_lib_or_public(path, inner[0], text, is_public=False)
        elif top == "lib":
            failures.append(f"{path}: in no layer; lib has {', '.join(BELOW)}")
        elif path.parts[:2] == ("include", "gridlops"):
            layer = LAYER_OF_PUBLIC.get(path.name.removesuffix(".in"))
            if layer is None:
                failures.append(f"{path}: its layer is not known; enter it in the table of tests/rules/layers.py")
            else:
                failures += check_lib_or_public(path, layer, text, is_public=True)
        elif top in {"apps", "bench"}:
            failures += check_public_user(path, text)
        for line, name in rule.includes(text):
            if name.startswith("gridlops/") and layer_of_header(name) is None:
                failures.append(f"{path}:{line}: {name} is in no layer; enter it in the table of tests/rules/layers.py")
    return failures


GOOD = {
    "include/gridlops/types.hpp": "#include <complex>\n",
    "include/gridlops/version.hpp.in": "#pragma once\n",
    "include/gridlops/mpi.hpp": '#include <mpi.h>\n#include "gridlops/types.hpp"\n',
    "lib/solve/cgls.cpp": '#include "solve/step.hpp"\n#include "gridlops/types.hpp"\n#include "comm/failure.hpp"\n',
    "lib/comm/mpi_session.cpp": '#include "gridlops/mpi.hpp"\n',
    "lib/cuda/backend.cpp": '#include "cuda/handles.hpp"\n#include "gridlops/backend.hpp"\n',
    "apps/main.cpp": '#include "gridlops/mpi.hpp"\n#include "options.hpp"\n',
}
PLANTS = [
    ("an upward include in lib", {"lib/dist/bad.cpp": '#include "ops/product.hpp"\n'}, "which is above it"),
    ("an upward include of a public header", {"lib/comm/bad.cpp": "#include <gridlops/solver.hpp>\n"},
     "which is above it"),
    ("io above dist", {"lib/io/bad.cpp": '#include "gridlops/matrix_mult.hpp"\n'}, "which is above it"),
    ("an upward include in a public header", {"include/gridlops/types.hpp": '#include "gridlops/layout.hpp"\n'},
     "layer base includes gridlops/layout.hpp of layer dist"),
    ("a private header in a public one", {"include/gridlops/layout.hpp": '#include "dist/cut.hpp"\n'}, "not installed"),
    ("an unknown public header", {"include/gridlops/news.hpp": ""}, "its layer is not known"),
    ("an include of an unknown public header", {"lib/ops/bad.cpp": '#include "gridlops/news.hpp"\n'}, "is in no layer"),
    ("an include of the CUDA wing", {"lib/ops/bad.cpp": '#include "cuda/handles.hpp"\n'}, "through factories"),
    ("a private header in a program", {"apps/bad.cpp": '#include "comm/failure.hpp"\n'}, "public headers only"),
    ("MPI in a public header", {"include/gridlops/process_grid.hpp": "#include <mpi.h>\n"}, "must not need <mpi.h>"),
    ("MPI above comm", {"lib/ops/bad.cpp": "#include <mpi.h>\n"}, "only comm speaks MPI"),
    ("a file outside the layers", {"lib/misc/bad.cpp": ""}, "in no layer"),
]

if __name__ == "__main__":
    rule.run(check, GOOD, PLANTS)
