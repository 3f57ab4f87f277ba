# SPDX-License-Identifier: BSD-3-Clause
"""ADMM and the primal-dual method: what is called solved has an objective that the method's optimality conditions allow.

The convex objective is F(x) = f(Kx − b) + g(Lx). Both methods stop with a y that is a subgradient of one part at a point close to
where it should be, and with residuals below the tolerance (gridlops/solve/proximal.hpp). From the subgradients' definition follows
how far F(x) may be above F(w), for every w. The w here are minimisers that NumPy found."""
import numpy as np

import properties
from problems import TYPES, Problem, integers, laplacian
from properties import SOLVED, norms, require, threshold, wide
from solve_area import answer


BOX = (-0.5, 0.25)  # in every type


class Splitting(Problem):
    """The problem with the second operator L (ADMM), and the weights of penalties, which are the same for all columns."""

    def __init__(self, case):
        super().__init__({**case, "damp": 0, "preconditioner": 0})
        name, cols = case["type"], case["cols"]
        of = case["second"]
        L = {"identity": lambda: np.eye(cols), "difference": lambda: laplacian(of["rows"], cols),
             "integers": lambda: integers(of["seed"], (of["rows"], cols), name)}[of["kind"]]()
        self.L = np.asfortranarray(L.astype(TYPES[name]))
        self.norm_A = float(np.ldexp(self.norm_plain, case["scale_A"]))
        largest = float(abs(wide(self.A).conj().T @ wide(self.B)).max(initial=0)) or 1.0
        self.sigma = case["weight"] * (largest if case["misfit"] == "quadratic" else self.norm_A)
        norm_L = float(np.linalg.norm(self.L.astype(np.result_type(self.L, np.float64)), 2)) if self.L.size else 0.0
        self.norm_L = norm_L
        # The ratio of the two parts of ADMM's least-squares problem is near 1.
        self.tau = case["tau"] * ((norm_L / self.norm_A) ** 2 if norm_L and self.norm_A else 1.0)


def request_of(problem):
    case = problem.case
    options = {"max_iterations": case["iterations"], "batch": case["batch"], "column_stable": case["how"]["column_stable"],
               "tolerance": problem.T if problem.tolerance_varies else case["tolerance"]}
    if case["method"] == "admm":
        options.update(tau=problem.tau, inner_iterations=case["inner"])
    return {"solver": case["method"], "how": case["how"], "A": problem.A, "B": problem.B, "X0": problem.X0, "L": problem.L,
            "misfit": case["misfit"], "penalty": case["penalty"], "sigma": problem.sigma, "box": BOX, "options": options}


def is_out_of_range(problem):
    """Whether a right-hand side is one that methods with a penalty refuse (docs/solvers.md)."""
    sizes, most = np.abs(problem.B).max(axis=0, initial=0), 1e18 if problem.case["type"] in ("f32", "c64") else 1e140
    return any(size > 0 and not 1 / most <= size <= most for size in sizes.astype(float))


def check(case, workers):
    problem = Splitting(case)
    X, report = answer(workers, request_of(problem), "splitting")
    if X is None:
        require(is_out_of_range(problem), f"refused without need, {case['method']}", report)
        return ["refused"]
    properties.complete(problem, X, report)
    properties.finite(problem, X, report)
    truth = properties.Truth(problem, X)
    for j, reason in enumerate(report["reasons"]):
        # These methods know no scale, so squares below the normal numbers are lost.
        properties.same_number(report["residual_norms"][j], truth.r[j], truth.r_error[j] + 1e-154, f"norms, residual, {case['method']}", "column", j, reason)
        if reason in SOLVED:
            (solved_by_admm if case["method"] == "admm" else solved_by_primal_dual)(problem, truth, wide(X), j, reason, report)
    return report["reasons"]


def penalty(problem, v):
    """g(v), and what bounds the norm of its subgradients everywhere (infinity if nothing does)."""
    sigma, kind = np.longdouble(problem.sigma), problem.case["penalty"]
    if kind == "soft":
        return sigma * abs(v).sum(), sigma * np.sqrt(np.longdouble(v.size))
    if kind == "quadratic":
        return sigma / 2 * norms(v[:, None])[0] ** 2, sigma * norms(v[:, None])[0]
    return np.longdouble(0), np.longdouble(np.inf)


def clipped(v):
    return np.clip(v.real, *BOX) + (1j * np.clip(v.imag, *BOX) if np.iscomplexobj(v) else 0)


def size(v):
    return norms(v[:, None])[0]


def no_better(problem, name, j, objective, others, bound_of, *detail):
    """F(x) exceeds F(w) by no more than its bound, for each w."""
    for w in others:
        F, bound = objective(w), bound_of(w)
        require(problem.F_of_x <= F + bound, name, "column", j, "has the objective", problem.F_of_x, "where there is", F, "and at most", bound,
                "more is allowed;", *detail)


def solved_by_admm(problem, truth, X, j, reason, report):
    """Boyd et al. 2011, §3.3: y in ∂g(z), ‖Lx − z‖ ≤ T max(‖Lx‖, ‖z‖), ‖Aᴴ(b − Ax) − Lᴴy‖ ≤ T‖Lᴴy‖. So for every w
    ½‖b − Ax‖² + g(z) ≤ F(w) + ‖Aᴴ(b − Ax) − Lᴴy‖‖w − x‖ + ‖y‖‖Lx − z‖."""
    case, A, L, b, x = problem.case, wide(problem.A), wide(problem.L), wide(problem.B)[:, j], X[:, j]
    T = np.longdouble(problem.T[j] if reason == "converged" else 0)
    unit, norm_A, norm_L, tau = truth.unit, truth.norm_A, np.longdouble(problem.norm_L), np.longdouble(problem.tau)
    Lx, r = L @ x, b - A @ x
    gradient = size(A.conj().T @ r)
    data = norms(A.conj().T @ b[:, None])[0]
    model = truth.b[j] ** 2 / data if data > 0 else np.longdouble(0)
    if case["penalty"] == "soft":
        largest_y = penalty(problem, Lx)[1]
    else:  # L is the identity, so y = Aᴴ(b − Ax) but for the residual
        largest_y = (gradient + unit * norm_A * (truth.b[j] + norm_A * truth.x[j]) + unit * data) / (1 - T)
    off = (T * size(Lx) + unit * (norm_L * (truth.x[j] + model) + tau * largest_y)) / (1 - T)
    off_y = unit * (largest_y + (size(Lx) + norm_L * truth.x[j]) / tau)
    slope = (T * norm_L * largest_y + unit * (norm_A * (truth.b[j] + norm_A * truth.x[j]) + data) + norm_L * off_y) / (1 - T)
    name = f"solved, {reason}, admm, {case['penalty']}"
    if case["penalty"] == "box":
        outside = size(Lx - clipped(Lx))
        require(outside <= off, name, "column", j, "is outside of the box by", outside, "where", off, "is allowed")
        lipschitz, g_of_x = 0, 0
    else:
        g_of_x, lipschitz = penalty(problem, Lx)

    def objective(w):
        return size(b - A @ w) ** 2 / 2 + (penalty(problem, L @ w)[0] if case["penalty"] == "soft" else 0)

    def bound(w):
        return (slope * size(w - x) + (largest_y + lipschitz) * off + off_y * (size(L @ w) + size(Lx) + off)
                + unit * (size(b - A @ w) ** 2 + size(r) ** 2 + g_of_x))

    problem.F_of_x = size(r) ** 2 / 2 + g_of_x
    others = [admm_reference(problem, b), np.zeros_like(x)]
    no_better(problem, name, j, objective, others, bound, "after", report["column_iterations"][j], "iterations, tolerance", T)


def admm_reference(problem, b, iterations=400):
    """The same minimum by ADMM with a direct solver in double precision."""
    double = np.result_type(problem.A, np.float64)
    A, L, b = problem.A.astype(double), problem.L.astype(double), b.astype(double)
    tau = (problem.norm_L / problem.norm_A) ** 2 if problem.norm_L and problem.norm_A else 1.0
    inverse = np.linalg.pinv(A.conj().T @ A + L.conj().T @ L / tau, hermitian=True)
    z = u = np.zeros(L.shape[0], double)
    x = np.zeros(A.shape[1], double)
    for _ in range(iterations):
        x = inverse @ (A.conj().T @ b + L.conj().T @ (z - u) / tau)
        v = L @ x + u
        z = threshold(v, tau * problem.sigma) if problem.case["penalty"] == "soft" else clipped(v)
        u = v - z
    return wide(clipped(x) if problem.case["penalty"] == "box" else x)


def solved_by_primal_dual(problem, truth, X, j, reason, report):
    """y in ∂f(u), s in ∂g(x₊), ‖Kx − b − u‖ ≤ T(‖K‖‖x‖ + ‖b‖), ‖Kᴴy + s‖ ≤ T‖K‖‖y‖, and ‖x − x₊‖ = τ‖Kᴴy + s‖. So for every w
    f(u) + g(x₊) ≤ F(w) + ‖y‖(‖Kx − b − u‖ + ‖K‖‖x − x₊‖) + ‖Kᴴy + s‖‖w − x₊‖."""
    case, K, b, x = problem.case, wide(problem.A), wide(problem.B)[:, j], X[:, j]
    T = np.longdouble(problem.T[j] if reason == "converged" else 0)
    unit, norm_K = truth.unit, truth.norm_A
    r = K @ x - b
    extent = norm_K * truth.x[j] + truth.b[j]
    off = 2 * (T + unit) * extent
    if case["misfit"] == "soft":  # ‖·‖₁
        largest_y = lipschitz = np.sqrt(np.longdouble(len(b)))
    else:  # ½‖·‖²
        largest_y = lipschitz = size(r) + off
    off += unit * largest_y * norm_K  # u is found as (v − y)/σ, and σ = 1/‖K‖
    slope = 2 * (T + unit) * norm_K * largest_y + unit * norm_K * truth.x[j]
    step = 2 * slope / norm_K if norm_K > 0 else np.longdouble(0)
    name = f"solved, {reason}, primal-dual, {case['misfit']}, {case['penalty']}"
    if case["penalty"] == "box":
        require((x == clipped(x)).all(), name, "column", j, "is outside of the box:", x)
        g_of_x, slope_of_g = np.longdouble(0), np.longdouble(0)
    else:
        g_of_x, slope_of_g = penalty(problem, x)
        slope_of_g += problem.sigma * step if case["penalty"] == "quadratic" else 0

    def misfit(v):
        return abs(v).sum() if case["misfit"] == "soft" else size(v) ** 2 / 2

    def objective(w):
        return misfit(K @ w - b) + (0 if case["penalty"] == "box" else penalty(problem, w)[0])

    def bound(w):
        return ((largest_y + lipschitz) * off + largest_y * norm_K * step + slope * (size(w - x) + step) + slope_of_g * step
                + unit * (misfit(K @ w - b) + misfit(r) + g_of_x))

    problem.F_of_x = misfit(r) + g_of_x
    others = [primal_dual_reference(problem, b), np.zeros_like(x)]
    no_better(problem, name, j, objective, others, bound, "after", report["column_iterations"][j], "iterations, tolerance", T)


def primal_dual_reference(problem, b, iterations=500):
    """The same minimum by the same method in double precision, with steps of another size."""
    case, double = problem.case, np.result_type(problem.A, np.float64)
    K, b = problem.A.astype(double), b.astype(double)
    x, y = np.zeros(K.shape[1], double), np.zeros(K.shape[0], double)
    if problem.norm_A == 0:
        return wide(x)
    step = 0.99 / problem.norm_A
    ahead = x
    for _ in range(iterations):
        v = y + step * (K @ ahead - b)
        y = v / np.maximum(1, abs(v)) if case["misfit"] == "soft" else v / (1 + step)
        v = x - step * (K.conj().T @ y)
        new = {"soft": lambda v: threshold(v, step * problem.sigma), "box": clipped, "quadratic": lambda v: v / (1 + step * problem.sigma)}[case["penalty"]](v)
        ahead, x = 2 * new - x, new
    return wide(x)
