#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Squares of numbers leave their range where the numbers do not. So sums of squares are SquareSum's in lib, and norms of
distributed columns column_norms(). The files below square for another reason, which keeps the numbers in range."""
import re

import rule

OPERAND = r"((?:[A-Za-z_]\w*)(?:(?:\.|->|::)\w+|\[[^\[\]]*\]|\(\w*\))*)"
SQUARE = re.compile(
    r"(?<![\w\]).>] [*/%] )(?<![\w.>])" + OPERAND + r" \* \1(?![\w\[.(]|->| / )"  # x * x, but not n / x * x, which rounds
    r"|(\([^()]*\)) \* \2"
    r"|\bstd::norm\(|\bpow\([^;]*, 2\)|norms?_squared\b|\b(?:norm2|distance2)\(")
HOME = "lib/base/square_sum.hpp"
# Where lib may square, and why no square leaves its range there. A folder ends with a slash.
ALLOWED = {
    "lib/solve/methods/": "a batch is scaled before its method sees it",
    "lib/solve/run/": "a batch is scaled before its norms are taken",
    "lib/solve/regularised/refined_solver.cpp": "a method of a batch that is scaled",
    "lib/solve/regularised/ista.cpp": "require_range_without_scaling() has checked A and B",
    "lib/solve/regularised/primal_dual.cpp": "require_range_without_scaling() has checked K and B",
    "lib/solve/regularised/admm.cpp": "require_range_without_scaling() has checked B",
    "lib/solve/regularised/composed_proximal.cpp": "values of penalties, which are documented as squares",
    "lib/solve/regularised/proximal.cpp": "values of penalties, which are documented as squares",
    "lib/solve/regularised/kept_proximal.hpp": "stands for sums of a rank that failed",
    "lib/solve/regularised/spectrum.cpp": "of tridiagonal matrices whose power is taken out",
    "lib/solve/regularised/space_preconditioner.cpp": "the map itself has σ²",
    "lib/solve/regularised/damping_curve.cpp": "of logarithms, and of shares",
    "lib/solve/factor/": "of a matrix that is multiplied by a power of two where its Gram matrix left the range",
    "lib/solve/robust/misfit.cpp": "of residuals over their scale, whose weights go to 0",
    "lib/solve/ridge/": "of features and targets that are multiplied by a power of two, and sizes",
    "lib/solve/solve_observer.cpp": "of differences from a truth that the user gave",
    "lib/solve/regularised/inversion.cpp": "normal equations have the squares of the weights",
    "lib/solve/regularised/solution_space.cpp": "of a probe of unit length and of its residual",
    "lib/dist/dist_matrix.cpp": "column_norms(), which computes them again from scaled columns where squares are lost",
    "lib/dist/column_arithmetic.cpp": "the sums that methods ask for",
    "lib/local/arrays/": "lengths of transforms, and norms of groups in penalties",
    "lib/ops/array/": "lengths and angles of arrays and rays",
    "lib/local/host_kernels.cpp": "the kernel of column_norms() and of the sums that methods ask for",
    "lib/cuda/": "the kernels of column_norms() and of the sums that methods ask for",
    "lib/compressed/stored_tile.cpp": "of a matrix that is divided by its norm's power of two",
}


def home_of(path):
    return next((home for home in ALLOWED if path == home or home.endswith("/") and path.startswith(home)), None)


def check(root):
    failures, used = [], set()
    for path in rule.project_files(root):
        name = path.as_posix()
        if not name.startswith("lib/") or not rule.is_cpp(path) or name == HOME:
            continue
        for number, line in enumerate(rule.read(root, path).splitlines(), 1):
            code = line.split("//")[0]
            match = SQUARE.search(code)
            if not match:
                continue
            home = home_of(name)
            used.add(home)
            if home is None:
                failures.append(f"{name}:{number}: {match[0]} squares; use SquareSum ({HOME}) or column_norms()")
    if (root / HOME).exists():
        failures += [f"{home}: nothing is squared there any more; take it off the list" for home in ALLOWED if home not in used]
    return failures


if __name__ == "__main__":
    good = {home + "kernel.cpp" if home.endswith("/") else home: "sum += x * x;\n" for home in ALLOWED}
    good |= {HOME: "sum += x * x;\n", "lib/io/files/file.cpp": "n / block * block + (n + 1) * block * sizes.block;  // x * x\n"}
    planted = ["sum += x * x;", "sum += (norm / largest) * (norm / largest);", "sum += a.b[k - 1] * a.b[k - 1];",
               "sum += std::norm(x);", "sum += std::pow(norm / largest, 2);", "kernels.column_norms_squared(y, norms.data());",
               "terms.push_back({SumKind::norms_squared, X, {}, 2, sums});", "run.sum(norm2(x));"]
    rule.run(check, good, [(line, {"lib/io/files/file.cpp": line + "\n"}, "lib/io/files/file.cpp:1") for line in planted] +
             [("a file that squares no more", {"lib/dist/dist_matrix.cpp": "\n"}, "lib/dist/dist_matrix.cpp: nothing")])
