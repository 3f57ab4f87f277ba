# SPDX-License-Identifier: BSD-3-Clause
"""What Hypothesis draws: descriptions of cases, as JSON. The first of several is what it shrinks to."""
from hypothesis import strategies as st
from problems import HERMITIAN

SOLVERS = ("cgls", "lsqr", "lsmr", "block-cgls", "direct", "cg", "pcg", "minres", "ista", "fista")
LEAST_SQUARES = ("cgls", "lsqr", "lsmr", "block-cgls", "direct")
seeds = st.integers(0, 999)


def one_of(*values):
    return st.sampled_from(values)


def one_in(n):
    """True once in n times. The ends of a range would be drawn more often."""
    return st.integers(0, n - 1).map(lambda k: k == n // 2)


@st.composite
def matrices(draw, hermitian):
    kind = draw(one_of("integers", "svd", "svd", "identity", "laplacian", "zero"))
    return {"kind": kind, "seed": draw(seeds), "lost_rank": draw(one_of(0, 0, 1, 3)),
            "spectrum": draw(one_of("geometric", "equal", "clusters", "outlier", "gap")),
            "digits": draw(one_of(0, 1, 3, 6, 8, 10)) if kind == "svd" else 0,
            "columns": [] if hermitian else draw(st.lists(st.fixed_dictionaries(
                {"at": st.integers(0, 30), "from": st.integers(0, 30), "what": one_of("zero", "equal", "graded")}), max_size=2))}


def right_hand_sides(largest, single):
    powers = (0, 0, 0, 10, -10, 20, -20) if single else (0, 0, 0, 10, -10, 60, -60)
    kinds = one_of("in range", "random", "ones", "zero", "unit", "orthogonal", "nearly orthogonal", "equal")
    return st.lists(st.fixed_dictionaries({"kind": kinds, "seed": seeds, "scale": one_of(*powers)}),
                    min_size=0, max_size=largest)


def sizes():
    return st.one_of(st.integers(1, 6), st.integers(0, 1), st.integers(7, 40))


@st.composite
def shapes(draw, square):
    rows = draw(sizes())
    return rows, rows if square or draw(st.booleans()) else draw(sizes())


@st.composite
def scales(draw, name, solver):
    """Powers of two for A and B, even, so that A and D² fit: up to 1e±147, in single precision 1e±27. Methods with a penalty have
    narrower ranges (docs/solvers.md), of which columns of B with scales of their own take a part."""
    largest, within = (490, 860) if name in ("f64", "c128") else (70, 60)
    if solver in ("ista", "fista", "bounded"):
        largest, within = (230, 400) if name in ("f64", "c128") else (8, 16)
    even = st.integers(-largest // 2, largest // 2).map(lambda half: 2 * half)
    # The solution has the scale q − p, and must fit the type; gradients have p + q.
    return draw(st.tuples(even, even).filter(lambda pq: abs(pq[1] - pq[0]) <= within and abs(pq[0] + pq[1]) <= within))


@st.composite
def widest_scales(draw, name):
    """The same for a space: up to 1e±200, in single precision 1e±30, as long as X fits the type and norms a double."""
    largest, within, of_gradient = (664, 900, 900) if name in ("f64", "c128") else (100, 70, 200)
    even = st.integers(-largest // 2, largest // 2).map(lambda half: 2 * half)
    return draw(st.tuples(even, even).filter(lambda pq: abs(pq[1] - pq[0]) <= within and abs(pq[0] + pq[1]) <= of_gradient))


@st.composite
def ways(draw, ranks, solver, type_name="f32"):
    """How it is computed: what must not change the answer."""
    storages = ("columns", "packed", "planes") if type_name in ("f64", "c128") else ("columns", "packed")
    P = draw(st.integers(1, ranks))
    grid = [P, draw(st.integers(1, ranks // P))]
    algorithm = "stationary-a" if solver == "block-cgls" else draw(one_of("stationary-a", "summa", "stationary-b", "block"))
    return {"ranks": ranks, "grid": grid, "algorithm": algorithm,
            "transport": draw(one_of("mpi", "chain", "shared", "one-sided", "mixed", "auto")),
            "storage": draw(one_of(*storages)) if algorithm == "stationary-a" else "columns",
            "panel": draw(one_of(0, 1, 3)), "column_stable": draw(st.booleans()), "cuts": draw(seeds) if draw(one_in(3)) else None}


@st.composite
def plateaus(draw):
    """Problems whose norms stay for hundreds of iterations: half the size of tridiag(-1, 2, -1)."""
    case = draw(solves(("f64", "f32"), ("cg", "cgls", "lsqr", "lsmr")))
    size = 1100
    case.update(condition_limit=0, rows=size, cols=size,
                rhs=[{"kind": "ones", "seed": 0, "scale": 0}], guess=None, other=None, damp=0, tolerance=1e-3,
                matrix={**case["matrix"], "kind": "laplacian", "columns": []}, iterations=1200, preconditioner=0, one_pass=False,
                batch=0, scale_A=0, scale_B=0, out_is_B=False, variances=False, error=0)
    case["how"].update(ranks=1, grid=[1, 1], algorithm="stationary-a", panel=0)
    return case


@st.composite
def changes(draw):
    """A that the caller changes in place between two products, in two ways to compute them."""
    rows, cols = draw(shapes(False))
    type_name = draw(one_of("f64", "f32", "c128", "c64"))
    return {"area": "change", "type": type_name, "rows": rows, "cols": cols, "seed": draw(seeds),
            "columns": draw(one_of(1, 3, 20)), **{name: {**draw(ways(draw(one_of(1, 2, 4, 3, 6)), "cgls", type_name)), "cuts": None} for name in ("how", "other")}}


@st.composite
def wide_in_one_pass(draw):
    """A few rows, damping and tolerances that rounding may not allow: one step takes nearly all of the residual."""
    case = draw(solves(solvers=("cgls",)))
    rows, single = draw(st.integers(1, 5)), case["type"] in ("f32", "c64")
    case.update(one_pass=True, rows=rows, cols=draw(st.integers(rows, 40)), matrix=draw(matrices(False)),
                rhs=draw(right_hand_sides(20, single)), damp=draw(one_of(0, 1e-3, 1e-2, 0.1)), guess=None, preconditioner=0,
                tolerance=draw(one_of(0, 1e-8, 1e-4) if single else one_of(0, 1e-15, 1e-12)), condition_limit=0, variances=False, error=0)
    case["how"]["algorithm"] = "stationary-a"
    if (case["other"] or {}).get("how"):
        case["other"]["how"]["algorithm"] = "stationary-a"
    return case


@st.composite
def hermitian(draw):
    """CG and MINRES where systems are singular, also without a solution, or nearly so."""
    case = draw(solves(("f32", "f32", "c64", "f64"), ("minres", "cg")))
    size, single = draw(sizes()), case["type"] != "f64"
    of_matrix = {**draw(matrices(True)), "kind": draw(one_of("svd", "svd", "integers")), "digits": draw(one_of(0, 1, 3, 5, 6, 8)),
                 "indefinite": case["solver"] == "minres" and draw(st.booleans())}
    case.update(rows=size, cols=size, matrix=of_matrix, damp=0, rhs=draw(right_hand_sides(6, single)), tolerance=draw(one_of(1e-4, 1e-6, 1e-8, 0)),
                error=0, guess=None if draw(st.booleans()) else case["guess"])
    if (case["other"] or {}).get("change") != "scale":
        case["other"] = None  # how long a singular system takes to break down is rounding's choice
    return case


@st.composite
def spectra(draw):
    """Hermitian matrices of every scale."""
    case = draw(solves(solvers=("cg",)))
    size = draw(sizes())
    least, most = (-1000, 1010) if case["type"] in ("f64", "c128") else (-100, 110)
    case.update(area="spectrum", rows=size, cols=size, rhs=[], guess=None, damp=0, tolerance=0, other=None,
                matrix={**draw(matrices(True)), "indefinite": draw(st.booleans())}, scale_A=2 * draw(st.integers(least // 2, most // 2)), scale_B=0)
    return case


def all_solves():
    return one_in(100).flatmap(lambda large: plateaus() if large else solves())


@st.composite
def solves(draw, names=("f64", "f32", "c128", "c64"), solvers=SOLVERS):
    name, solver = draw(one_of(*names)), draw(one_of(*solvers))
    hermitian, single = solver in HERMITIAN, name in ("f32", "c64")
    rows, cols = draw(shapes(hermitian))
    rhs = draw(right_hand_sides(12 if draw(one_in(4)) else 4, single))
    p, q = draw(scales(name, solver)) if draw(one_in(3)) else (0, 0)
    kinds = one_of("zero", "random", "solution", "near", "far")
    guess = draw(st.none() | st.fixed_dictionaries({"kind": kinds, "seed": seeds, "digits": one_of(0)}))
    if guess and guess["kind"] == "near":
        guess["digits"] = draw(one_of(-3, -8))
    if guess and guess["kind"] == "far":
        guess["digits"] = draw(one_of(3, 8, 10, 12))
    damp = draw(one_of(0, 0, 0.1, 1e-4, 10)) if solver not in ("ista", "fista") else 0
    if damp and solver in ("cgls", "cg", "minres", "lsqr", "lsmr") and draw(st.booleans()):
        damp = draw(st.lists(one_of(0, 1e-3, 0.1, 1), min_size=len(rhs), max_size=len(rhs)))
    tolerances = one_of(1e-4, 1e-2, 1e-5, 1e-12) if single else one_of(1e-8, 1e-2, 1e-12, 1e-15)
    tolerance = draw(tolerances)
    if draw(one_in(5)):
        tolerance = draw(st.lists(tolerances, min_size=len(rhs), max_size=len(rhs)))
    how = draw(ways(draw(one_of(1, 1, 2, 4, 3, 6)), solver, name))
    preconditioned = solver == "pcg" or (solver in LEAST_SQUARES and solver != "direct" and not isinstance(damp, list) and draw(one_in(6)))
    of_matrix = draw(matrices(hermitian))
    if solver == "minres" and not damp:  # with D² an indefinite A may be singular
        of_matrix["indefinite"] = draw(st.booleans())
    case = {"area": "solve", "type": name, "solver": solver, "rows": rows, "cols": cols, "matrix": of_matrix,
            "rhs": rhs, "scale_A": p, "scale_B": q, "guess": guess, "damp": damp, "tolerance": tolerance,
            "iterations": draw(one_of(500, 500, 500, 1, 3, 0) if how["ranks"] < 3 else one_of(100, 100, 1, 0)), "batch": draw(one_of(0, 0, 1, 3)),
            "preconditioner": draw(st.integers(1, 99)) if preconditioned else 0,
            "one_pass": solver == "cgls" and not preconditioned and draw(one_in(4)),
            "lambda": draw(one_of(0, 0.01, 0.1, 0.9, 1.1)), "backtracking": draw(st.booleans()),
            "monotone": solver == "fista" and draw(st.booleans()),
            "how": how, "other": None, "out_is_B": draw(one_in(30)),
            "condition_limit": draw(one_of(0, 0, 1e8)) if solver in ("lsqr", "lsmr") else 0,
            "variances": solver == "lsqr" and not preconditioned and draw(one_in(3)),
            "error": draw(one_of(0, 0, 1e-2, 1e-5)) if solver in (*LEAST_SQUARES, "cg") and not preconditioned and not isinstance(damp, list) else 0}
    if case["one_pass"]:
        how["algorithm"] = "stationary-a"
    change = draw(one_of(None, "order", "way", "batch", "scale", "alone"))
    if change == "way":
        case["other"] = {"change": "way", "how": draw(ways(draw(one_of(1, 2, 4, 3, 6)), solver, name))}
        if case["one_pass"]:
            case["other"]["how"]["algorithm"] = "stationary-a"
    elif change == "scale":
        case["other"] = {"change": "scale", "to": list(draw(scales(name, solver)))}
    elif change:
        case["other"] = {"change": change}
    return case


@st.composite
def bounded(draw):
    """Many right-hand sides whose errors have bounds, by a damping or by what is known of A, with guesses near and far, down to what
    rounding allows."""
    case = draw(solves())
    solver = draw(one_of("cgls", "cgls", "cg", "lsqr", "lsmr", "block-cgls"))
    rhs = draw(right_hand_sides(20, case["type"] in ("f32", "c64")))
    rhs = [{**of, "seed": of["seed"] + more} for of in rhs for more in (0, 1000)]
    damps = st.lists(one_of(1e-6, 1e-4, 1e-2, 0.1, 1), min_size=len(rhs), max_size=len(rhs))
    case.update(solver=solver, rhs=rhs, damp=draw(one_of(0, 1e-6, 1e-4, 1e-2, 0.1, 1)), other=None, out_is_B=False, variances=False, preconditioner=0,
                condition_limit=0, one_pass=False, tolerance=draw(one_of(1e-4, 1e-2, 1e-7, 0) if case["type"] in ("f32", "c64") else one_of(1e-12, 1e-8, 1e-2, 1e-15, 0)),
                error=draw(one_of(0, 1e-1, 1e-2, 1e-5, 1e-12)), iterations=draw(one_of(500, 100, 30, 10, 3, 1)), matrix=draw(matrices(solver == "cg")))
    case["guess"] = draw(st.none() | st.fixed_dictionaries({"kind": one_of("near", "far"), "seed": seeds, "digits": one_of(1, -3, -8, 3, 5, 8)}))
    case["rows"], case["cols"] = draw(shapes(solver == "cg"))
    if solver != "block-cgls" and draw(st.booleans()):
        case["damp"] = draw(damps)
    if solver == "block-cgls":
        case["how"]["algorithm"] = "stationary-a"
    return case


@st.composite
def sweeps(draw):
    """One right-hand side with several dampings, of which a rule chooses one."""
    case = draw(solves())
    rule = draw(one_of("discrepancy", "gcv", "lcurve"))
    solver = draw(one_of("cgls", "lsqr", "lsmr"))
    dampings = st.lists(one_of(0, 1e-3, 0.01, 0.03, 0.1, 0.3, 1, 10), min_size=1, max_size=6)
    case.update(area="sweep", solver=solver, rule=rule, one=(draw(right_hand_sides(1, case["type"] in ("f32", "c64"))) or
                [{"kind": "random", "seed": 0, "scale": 0}])[0], noise=draw(one_of(0.1, 0.5, 0.9, 1.1, 0)), damp=draw(dampings), guess=None,
                tolerance=draw(one_of(1e-4, 1e-6) if case["type"] in ("f32", "c64") else one_of(1e-8, 1e-11)), other=None, out_is_B=False,
                variances=False, one_pass=False, preconditioner=0, condition_limit=0, error=0, rhs=[], matrix=draw(matrices(False)))
    if rule == "gcv":
        case["scale_A"] = case["scale_B"] = case["one"]["scale"] = 0
    case["rows"], case["cols"] = draw(shapes(False))
    return case


@st.composite
def spaces(draw):
    """Several right-hand sides, each with a damping of its own, in one space that may be too small."""
    case = draw(solves())
    case.update(area="space", solver="cgls", guess=None, other=None, out_is_B=False, variances=False, one_pass=False, preconditioner=0,
                condition_limit=0, batch=0, matrix=draw(matrices(False)), limit=draw(one_of(0, 0, 0, 1, 5)), others=draw(one_in(3)),
                more=draw(st.lists(one_of(0, 1e-3, 0.1, 1, 10), max_size=4)), nan=draw(one_in(5)),
                saved=draw(one_of(None, None, "as it is", "after the rest", "other rows")))
    case["scale_A"], case["scale_B"] = draw(widest_scales(case["type"])) if draw(st.booleans()) else (0, 0)
    case["rows"], case["cols"] = draw(shapes(False))
    case["damp"] = draw(st.lists(one_of(0, 1e-3, 0.1, 1), min_size=len(case["rhs"]), max_size=len(case["rhs"])))
    case["error"] = 0
    case["how"]["algorithm"] = "stationary-a"
    return case


@st.composite
def states(draw):
    """What damages a checkpoint, a saved space or a compressed matrix, or foreign files where one is saved."""
    part = draw(one_of("numbers", "manifest", "foreign"))
    solver = draw(one_of("space", "cgls", "block-cgls", "lsqr", "fista", *(["compressed"] if part == "manifest" else [])))
    names = one_of("generation-1/best.txt", "generation-2/x.npy", "generation-3/manifest.json", "generation-4/sub/x.npy", "generation-5/unfinished",
                   "generation-18446744073709551615/a", "generation-18446744073709551614/b", "lock", "manifest.json", "x.npy", "notes/n.txt",
                   "generation-7")
    return {"area": "state", "part": part, "solver": solver, "seed": draw(seeds), "cut": draw(one_of(0, 0, 0, 0.3, 0.9)),
            "numbers": draw(st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 15)).map(list), min_size=1, max_size=3)),
            "names": draw(st.lists(names, min_size=1, max_size=4, unique=True)),
            "how": {"transport": "mpi", "grid": [1, 1], "ranks": 1}}


@st.composite
def boxed(draw):
    """Least squares with bounds, which may be infinite, equal, or so tight that all of x is on them."""
    case = draw(solves(("f64", "f32"), ("bounded",)))
    damps = one_of(0, 1e-3, 0.1, 1)
    case.update(area="boxed", other=None, out_is_B=False, error=draw(one_of(0, 0, 0, 1e-3)),
                box={"kind": draw(one_of("nonnegative", "nonnegative", "box", "mixed", "touching", "fixed", "tight")), "seed": draw(seeds)},
                damp=draw(damps) if case["error"] or draw(st.booleans()) else draw(st.lists(damps, min_size=len(case["rhs"]), max_size=len(case["rhs"]))))
    return case


@st.composite
def ridges(draw):
    """Ridges with features and targets that may be constant, folds of any rows, and dampings from 0 to 1e±30."""
    name = draw(one_of("f64", "f32", "c128", "c64"))
    folds = draw(one_of("contiguous", "uneven", "with rows in none", "leave-one-out", "gcv"))
    how = {**draw(ways(draw(one_of(1, 1, 2, 4, 3, 6)), "block-cgls")), "cuts": None, "algorithm": draw(one_of("stationary-a", "block"))}
    if how["algorithm"] == "block":
        how["storage"] = "columns"
    alphas = st.lists(one_of(1, 10, 0.1, 1e3, 1e-3, 1e6, 1e-6, 0, 1e-30, 1e30), min_size=1, max_size=5, unique=True)
    return {"area": "ridge", "type": name, "rows": draw(st.integers(1, 6) | st.integers(12, 30)), "cols": draw(st.integers(1, 12) | st.integers(20, 40)), "matrix": draw(matrices(False)),
            "offset": draw(one_of(0, 0, 1, 100)), "rhs": draw(st.lists(one_of("explained", "noise", "constant", "zero"), max_size=5)),
            "weights": draw(one_of(None, None, "real", "whole")), "folds": folds, "count": draw(st.integers(2, 5)), "seed": draw(seeds),
            "score": draw(one_of("r2", "correlation", "negative-mse")), "alphas": draw(alphas), "groups": draw(one_of(0, 0, 1, 2)),
            "one_standard_error": draw(one_in(4)), "intercept": draw(one_of(True, True, False)), "standardize": draw(st.booleans()),
            "batch": draw(one_of(0, 0, 1, 2)), "how": how}


@st.composite
def splittings(draw):
    """Objectives of two parts, f(Kx − b) + g(Lx), for ADMM and for the primal-dual method."""
    name, method = draw(one_of("f64", "f32", "c128", "c64")), draw(one_of("admm", "primal-dual"))
    rows, cols = draw(shapes(False))
    how = draw(ways(draw(one_of(1, 1, 2, 4, 3, 6)), method))
    tolerances = one_of(1e-2, 1e-4, 1e-7) if name in ("f32", "c64") else one_of(1e-2, 1e-4, 1e-8, 1e-15)
    rhs = draw(right_hand_sides(4, True))
    penalty = draw(one_of("soft", "box") if method == "admm" else one_of("soft", "box", "quadratic"))
    second = {"kind": draw(one_of("identity", "difference", "integers")), "rows": draw(st.integers(1, 20)), "seed": draw(seeds)}
    if method == "primal-dual" or penalty == "box":
        second["kind"] = "identity"
    kinds = one_of("zero", "random", "solution")
    p, q = draw(scales(name, "ista")) if draw(one_in(4)) else (0, 0)
    return {"area": "splitting", "type": name, "solver": method, "method": method, "rows": rows, "cols": cols, "matrix": draw(matrices(False)),
            "rhs": rhs, "scale_A": p, "scale_B": q, "second": second, "penalty": penalty,
            "misfit": "quadratic" if method == "admm" else draw(one_of("soft", "quadratic")),
            "weight": draw(one_of(0.1, 0.01, 0.5, 1.5, 0)), "tau": draw(one_of(1, 0.1, 10)), "inner": draw(one_of(20, 3)),
            "guess": draw(st.none() | st.fixed_dictionaries({"kind": kinds, "seed": seeds})),
            "tolerance": draw(tolerances) if draw(one_in(5)) is False else draw(st.lists(tolerances, min_size=len(rhs), max_size=len(rhs))),
            "iterations": draw(one_of(200, 200, 200, 1, 3, 0) if how["ranks"] < 3 else one_of(60, 60, 1, 0)), "batch": draw(one_of(0, 0, 1, 3)),
            "how": how, "other": None}


def leaves(has_dims, algorithms):
    """Operators from a space of arrays, or of no arrays. algorithms: those whose columns are cut as those of the space."""
    dims = {"dim": st.integers(0, 2)}
    differences = {**dims, "how": one_of("centered", "forward", "backward"), "edge": st.booleans()}
    kinds = [st.just({"kind": "identity"}), st.fixed_dictionaries({"kind": st.just("diagonal"), "seed": seeds}), st.just({"kind": "zero"}),
             st.fixed_dictionaries({"kind": st.just("python"), "by": one_of(1, 2, -3)})]
    if algorithms:
        kinds.append(st.fixed_dictionaries({"kind": st.just("matrix"), "seed": seeds, "rows": st.integers(1, 9),
                                            "algorithm": one_of(*algorithms)}))
    if "stationary-a" in algorithms:
        group = st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(0, 3)).map(list)
        kinds.append(st.fixed_dictionaries({"kind": st.just("slices"), "seed": seeds, "cuts": st.lists(st.integers(0, 99), max_size=4),
                                            "rows": st.lists(st.integers(0, 6), min_size=5, max_size=5), "groups": st.lists(group, max_size=4)}))
    if has_dims:
        kinds += [st.fixed_dictionaries({"kind": st.just("recut"), "cut": st.integers(0, 2), "uneven": st.none() | seeds}),
                  st.fixed_dictionaries({"kind": one_of("first_derivative", "second_derivative", "laplacian", "gradient"), **differences}),
                  st.fixed_dictionaries({"kind": st.just("convolution"), **dims, "centre": st.integers(0, 4),
                                         "filter": st.lists(st.integers(-2, 2).map(float), min_size=1, max_size=5)}),
                  st.fixed_dictionaries({"kind": st.just("smoothing"), **dims, "length": one_of(1, 3)}),
                  st.fixed_dictionaries({"kind": st.just("restriction"), **dims, "at": st.lists(st.integers(0, 9), min_size=1, max_size=3)}),
                  st.fixed_dictionaries({"kind": st.just("interpolation"), **dims, "how": one_of("linear", "sinc"),
                                         "at": st.lists(st.integers(0, 72), min_size=1, max_size=4)}),
                  st.fixed_dictionaries({"kind": st.just("along"), **dims, "rows": st.integers(1, 6), "seed": seeds}),
                  st.fixed_dictionaries({"kind": st.just("nonstationary"), **dims, "centre": st.integers(0, 2), "at": st.integers(-2, 6), "step": st.integers(1, 4),
                                         "filters": st.lists(st.lists(st.integers(-2, 2).map(float), min_size=3, max_size=3), min_size=1, max_size=3)}),
                  st.fixed_dictionaries({"kind": st.just("halo"), "width": st.integers(0, 2)})]
    return st.one_of(kinds)


KEEPS_DIMS = {"identity", "diagonal", "zero", "python", "recut", "first_derivative", "second_derivative", "laplacian", "convolution", "smoothing",
              "nonstationary", "restriction", "interpolation", "along", "scale", "sum", "normal", "horizontal"}
ENDS_WHERE_IT_BEGINS = KEEPS_DIMS - {"recut", "restriction", "interpolation", "along"}


def keeps_dims(node):
    """Whether the range of a node is one of arrays where its domain is."""
    kind = node["kind"]
    if kind == "product":
        return all(map(keeps_dims, node["of"]))
    if kind in ("normal", "horizontal"):
        return True
    if kind == "scale":
        return keeps_dims(node["of"])
    if kind == "sum":
        return keeps_dims(node["of"][0])
    return kind in KEEPS_DIMS


def ends_where_it_begins(node):
    kind = node["kind"]
    if kind == "product":
        return all(map(ends_where_it_begins, node["of"]))
    if kind == "scale":
        return ends_where_it_begins(node["of"])
    if kind == "sum":
        return ends_where_it_begins(node["of"][0])
    return kind in ENDS_WHERE_IT_BEGINS


@st.composite
def nodes(draw, depth, has_dims, algorithms):
    kind = draw(one_of("leaf", "product", "scale", "sum", "normal", "vertical", "horizontal", "blocks", "damped")) if depth > 0 else "leaf"
    if kind == "leaf":
        return draw(leaves(has_dims, algorithms))
    if kind == "product":
        first = draw(nodes(depth - 1, has_dims, algorithms))
        return {"kind": kind, "of": [first, draw(nodes(depth - 1, has_dims and keeps_dims(first), algorithms))]}
    if kind == "sum":
        first = draw(nodes(depth - 1, has_dims, algorithms))
        more = nodes(depth - 1, has_dims and keeps_dims(first), algorithms).filter(ends_where_it_begins)
        return {"kind": kind, "of": [first, draw(more)]}
    if kind == "scale":
        return {"kind": kind, "by": draw(one_of(1, 2, -1, 0)), "power": 0, "of": draw(nodes(depth - 1, has_dims, algorithms))}
    if kind == "damped":
        return {"kind": kind, "damp": draw(one_of(1, 0.5, 0)), "of": draw(nodes(depth - 1, has_dims, algorithms))}
    if kind == "normal":
        return {"kind": kind, "of": draw(nodes(depth - 1, has_dims, algorithms))}
    return {"kind": kind, "of": draw(st.lists(nodes(depth - 1, has_dims, algorithms), min_size=1, max_size=3))}


@st.composite
def turned(draw):
    """An operator whose data are along other ranks than its models, so that damping moves the model."""
    first = draw(leaves(True, []).filter(ends_where_it_begins))
    matrix = {"kind": "matrix", "seed": draw(seeds), "rows": draw(st.integers(1, 9)), "algorithm": "stationary-a"}
    node = {"kind": "product", "of": [first, matrix]}
    return {"kind": "damped", "damp": draw(one_of(1, 0.5)), "of": node} if draw(st.booleans()) else node


@st.composite
def trees(draw):
    ranks = draw(one_of(1, 1, 2, 4, 3, 6))
    P = draw(st.integers(1, ranks))
    axis, columns = draw(one_of(("all", "uncut"), ("all", "uncut"), ("grid_rows", "uncut"), ("grid_rows", "grid_cols"),
                                 ("all_transposed", "uncut")))
    name = draw(one_of("f64", "f32", "c128", "c64"))
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    algorithms = {("all", "uncut"): ["stationary-a"], ("grid_rows", "grid_cols"): ["summa", "stationary-b"]}.get((axis, columns), [])
    node = draw(turned() if axis == "all_transposed" else nodes(draw(st.integers(0, 3)), True, algorithms))
    # Squares of numbers leave the range of double precision from 2^512 on.
    power = draw(one_of(0, 0, 0, 100, -100)) if name in ("f32", "c64") else draw(one_of(0, 0, 0, 500, -500, 530, -530))
    if power:
        node = {"kind": "scale", "by": 1, "power": power, "of": node}
    return {"area": "tree", "type": name, "sizes": sizes, "cut": draw(st.integers(0, 2)), "axis": axis, "columns": columns, "tree": node,
            "power": power, "seed": draw(seeds), "wrong": draw(st.booleans()),
            "solve": None if power else draw(one_of(None, None, "cgls", "regularized")),
            "how": {"ranks": ranks, "grid": [P, draw(st.integers(1, ranks // P))], "transport": draw(one_of("mpi", "chain", "shared", "auto"))}}


@st.composite
def compressed(draw):
    """Matrices whose blocks have tiles of low rank, dense tiles, and empty ones; grids that leave ranks without rows; damage to files."""
    ranks = draw(one_of(1, 2, 4, 3, 6))
    grids = st.integers(1, ranks).flatmap(lambda P: st.tuples(st.just(P), st.integers(1, ranks // P))).map(list)
    name = draw(one_of("f64", "f32", "c128", "c64"))
    sizes = st.one_of(st.integers(0, 6), st.integers(7, 60), st.integers(61, 150))
    power = draw(one_of(0, 0, 0, 60, -60)) if name in ("f32", "c64") else draw(one_of(0, 0, 0, 400, -400))
    bad = {"row": st.integers(0, 200), "col": st.integers(0, 200), "value": one_of("nan", "inf", "-inf")}
    damage = {"how": one_of("cut", "flip", "longer", "remove", "zero"), "file": st.integers(0, 9), "back": st.one_of(st.integers(1, 40), st.integers(41, 2000)), "bit": st.integers(0, 7)}
    return {"area": "compressed", "type": name, "rows": draw(sizes), "cols": draw(sizes), "seed": draw(seeds), "power": power,
            "kinds": draw(st.lists(one_of("waves", "random", "outer", "zero"), min_size=1, max_size=4)),
            "tolerance": draw(one_of(1e-3, 1e-1, 1e-2, 0.5, 0.9, 1e-6, 1e-9, 1e-13)), "tile": draw(one_of(16, 5, 1, 40, 256)),
            "orders": draw(st.tuples(st.booleans(), st.booleans()).map(list)), "columns": draw(one_of(1, 0, 3)),
            "from_file": draw(one_of(None, "C", "F")), "bad": draw(st.fixed_dictionaries(bad)) if draw(one_in(8)) else None,
            "damage": draw(st.fixed_dictionaries(damage)) if draw(one_in(3)) else None, "damp": draw(one_of(0, 0.3, 0.03)), "reader": draw(grids),
            "how": {"ranks": ranks, "grid": draw(grids), "transport": draw(one_of("mpi", "chain", "shared", "auto"))}}


@st.composite
def files(draw):
    """Folders with files of others, and files of which parts are missing."""
    ranks = draw(one_of(1, 2, 3))
    kind = draw(one_of("make-problem", "mdd", "tiles", "compress", "checkpoint", "space", "virtual", "external", "netcdf", "object"))
    case = {"area": "files", "kind": kind, "seed": draw(seeds), "how": {"ranks": ranks, "grid": [ranks, 1], "transport": "mpi"}}
    if kind in ("virtual", "external", "netcdf", "object"):
        case.update(type=draw(one_of("f8", "f4")), holes=draw(one_of(0, 0.01, 0.1)), pieces=draw(st.integers(1, 5)), chunked=draw(st.booleans()),
                    damage=draw(st.lists(one_of("none", "none", "none", "gone", "shorter", "renamed", "nested"), min_size=1, max_size=5)),
                    rows=draw(st.tuples(st.integers(0, 23), st.integers(0, 23)).map(list)), what=draw(one_of("plain", "masked", "filled", "transposed")),
                    attribute=draw(one_of("_FillValue", "missing_value", "valid_max", "valid_range", "scale_factor", "add_offset")))
    else:
        case.update(own_first=draw(st.booleans()), foreign=draw(st.lists(st.tuples(st.integers(0, 8), one_of("file", "folder", "link")).map(list), max_size=4)))
    return case


@st.composite
def programs(draw, device):
    """Cases for the program: a solve without what only the Python package has, and a scenario."""
    case = draw(solves(solvers=[solver for solver in SOLVERS if device != "gpu" or solver != "direct"]))
    case.update(area="program", device=device, vector=draw(st.booleans()), c_order=draw(st.booleans()), other=None, preconditioner=0, error=0)
    case["relative"] = draw(one_of(False, False, True))  # --damp-relative and --lambda-relative
    case["column_norms"] = case["solver"] in LEAST_SQUARES and case["solver"] != "direct" and draw(one_in(4))
    case["guard"] = draw(one_of(0, 0, 1, 3))
    if case["solver"] == "pcg":
        case["solver"] = "cg"
    case["rows"], case["cols"] = max(case["rows"], 1), max(case["cols"], 1)
    case["rhs"] = case["rhs"] or [{"kind": "in range", "seed": 0, "scale": 0}]
    if isinstance(case["damp"], list):
        case["damp"] = case["damp"][0] if case["damp"] else 0
    if isinstance(case["tolerance"], list):
        case["tolerance"] = case["tolerance"] + [1e-2] * (len(case["rhs"]) - len(case["tolerance"]))
    if not case["relative"] and (case["scale_A"] or case["scale_B"]):
        case["lambda"] = 0  # it is one number, and has a scale
    how = case["how"]
    if device == "gpu":
        how["transport"], how["storage"] = draw(one_of("mpi", "nccl")), "columns"
        how["ranks"] = draw(one_of(1, 2, 3))
        how["grid"] = [how["ranks"], 1]
    kind = draw(one_of("plain", "restarted", "bad", "killed", "again", "two_jobs"))
    scenario = {"kind": kind, "every": draw(one_of(5, 1, 2))}
    if kind not in ("plain", "bad"):
        case["iterations"] = min(case["iterations"], 50)  # each checkpoint waits for the disk
    if kind == "restarted":
        scenario["before"] = {"iterations": draw(one_of(1, 3, 50)), "tolerance": draw(one_of(case["tolerance"], 0.1)),
                              "damp": draw(one_of(case["damp"], 1)) if case["solver"] not in ("ista", "fista") else 0,
                              "lambda": draw(one_of(case["lambda"], case["lambda"] / 2))}
    elif kind == "killed":
        scenario.update(signal=draw(one_of("SIGKILL", "SIGTERM", "SIGUSR1")), after=draw(one_of(0.3, 0.1, 0.6, 1.0)))
    elif kind == "bad":
        scenario["wrong"] = draw(one_of("rows", "cut short", "integers", "tolerance", "damp", "grid", "restart"))
    case["scenario"] = scenario
    return case
