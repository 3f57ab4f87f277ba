# SPDX-License-Identifier: BSD-3-Clause
"""What must hold of a solve, whatever its problem. Norms are recomputed in long double, whose range no norm here leaves.

What rounding explains. u is the type's ε. A product of length n is off by about √n·u‖A‖‖x‖ (errors of both signs; the proven bound
n·u is never met), complex arithmetic and sums over ranks cost small factors. A program that computes r = b − Ax in its own type is off by
c·u(‖b‖ + ‖A‖‖x‖), and so is one that has to store x in its type. Its Aᴴr − D²x is off by ‖A‖ times that, and by c·u(‖A‖‖r‖ + D²‖x‖).
c = 16 + 4√(m + n)."""
import numpy as np

from problems import HERMITIAN, SPARSE

SOLVED = {"converged", "stagnated"}
REASONS = SOLVED | {"iteration_limit", "condition_limit", "user_stop", "breakdown", "non_finite", "corrupted"}


class Violation(AssertionError):
    """A property does not hold. Its class has the property's name, since Hypothesis tells faults apart by their classes."""


KINDS = {}


def require(condition, name, *detail):
    if not condition:
        kind = KINDS.setdefault(name, type("Violation_" + "".join(c if c.isalnum() else "_" for c in name), (Violation,), {"name": name}))
        raise kind(name + ": " + " ".join(map(str, detail)))


def wide(X):
    return X.astype(np.clongdouble if np.iscomplexobj(X) else np.longdouble)


def norms(X):
    """Of each column, as long double."""
    return np.sqrt((X.real**2 + X.imag**2).sum(axis=0)) if X.size else np.zeros(X.shape[1], np.longdouble)


def frobenius(X):
    return np.sqrt((X.real**2 + X.imag**2).sum())


class Truth:
    """The norms of a solution from their definitions, and what rounding explains."""

    def __init__(self, problem, X):
        case, A, B, X = problem.case, wide(problem.A), wide(problem.B), wide(X)
        D = np.array(problem.D, np.longdouble)
        m, n = A.shape
        self.hermitian = case["solver"] in HERMITIAN
        r = B - A @ X
        gradient = A.conj().T @ r - D**2 * X
        self.r, self.x, self.b, self.normal = norms(r), norms(X), norms(B), norms(gradient)
        # ‖A‖ of the plain matrix, and its power of two.
        self.norm_A = np.ldexp(np.longdouble(problem.norm_plain), case["scale_A"])
        self.D = D
        c = np.longdouble((16 + 4 * np.sqrt(m + n)) * problem.eps)
        self.unit = c
        # Numbers below the normal ones have an absolute error.
        tiny = np.longdouble(np.finfo(problem.A.dtype).tiny) * problem.eps * np.sqrt(np.longdouble(max(m, n, 1)))
        self.r_error = c * (self.b + self.norm_A * self.x) + self.norm_A * tiny + tiny

        def gradient_error(norm_A):
            r_error = c * (self.b + norm_A * self.x) + norm_A * tiny + tiny
            return norm_A * r_error + c * (norm_A * self.r + D**2 * self.x) + D**2 * tiny + tiny

        error_of, self.normal_error = gradient_error, gradient_error(self.norm_A)
        if self.hermitian:
            self.tested = norms(r - D**2 * X)
            self.tested_error = self.r_error + c * D**2 * self.x
            self.reference = self.b
        else:
            self.tested, self.tested_error = self.normal, self.normal_error
            self.reference = norms(A.conj().T @ B)
        self.reference_error = c * (self.b if self.hermitian else self.norm_A * self.b)
        # With a preconditioner P of least squares the test is that of the problem with AP (docs/solvers.md).
        d = np.ones((n, 1), np.longdouble)
        if problem.d is not None and not self.hermitian:
            d = wide(problem.d)[:, None]
            self.tested, self.reference = norms(d * gradient), norms(d * (A.conj().T @ B))
            # Its solver has z = P⁻¹x in its type, and so ‖AP‖‖z‖ for ‖A‖‖x‖, and ‖P‖‖z‖ for ‖x‖.
            norm_P, z = abs(d).max(initial=0), norms(X / d)

            def preconditioned_error(norm_AP):
                return (norm_AP * (c * (self.b + norm_AP * z + self.r) + (self.norm_A + 1) * tiny)
                        + c * D**2 * norm_P**2 * z + norm_P * D**2 * tiny + norm_P * tiny)

            error_of, self.tested_error = preconditioned_error, preconditioned_error(min(self.norm_A * norm_P, frobenius(A * d.T)))
            self.reference_error = norm_P * self.reference_error
        # LSQR and LSMR know ‖A‖ as that of the bidiagonal matrix, a Frobenius norm (docs/decisions/0037-verdicts.md).
        self.stagnation_error = error_of(frobenius(A * d.T)) if case["solver"] in ("lsqr", "lsmr") else self.tested_error
        self.damped_r = np.hypot(self.r, D * self.x)
        largest_d = abs(d).max(initial=0)
        self.damped_norm = np.hypot(min(self.norm_A * largest_d, frobenius(A * d.T)), D * largest_d)
        self.z = norms(X / d)


def finite(problem, X, report):
    """Finite input gives finite output; what is called non_finite is NaN."""
    for j, reason in enumerate(report["reasons"]):
        require(np.isfinite(X[:, j]).all(), f"finite, {problem.case['solver']}", "column", j, reason, X[:, j], "although all input is finite")
        require(reason != "non_finite", f"finite, {problem.case['solver']}", "column", j, "is called non_finite, although all input is finite")


def complete(problem, X, report, done=0):
    """One entry for each column, names that exist, limits that are kept. done: iterations that there may be already."""
    case, k = problem.case, problem.B.shape[1]
    limit = max(case["iterations"], done)
    name = f"complete, {case['solver']}"
    require(X.shape == (case["cols"], k) and len(report["reasons"]) == k, name, X.shape, report["reasons"])
    require(set(report["reasons"]) <= REASONS, name, report["reasons"])
    iterations = report["column_iterations"]
    require(report["iterations"] == max(iterations, default=0), name, report["iterations"], iterations)
    for reason, taken in zip(report["reasons"], iterations):
        require(0 <= taken <= limit, name, taken, "iterations, where", limit, "are allowed")
        require(reason != "iteration_limit" or case["iterations"] <= taken, name, reason, "after", taken, "of", case["iterations"])


def same_number(reported, true, error, name, *detail):
    if true > np.finfo(float).max:
        return
    require(abs(np.longdouble(reported) - true) <= error + 1e-12 * true, name, *detail, "is reported as", reported, "and is", true, "+-", error)


def true_norms(problem, truth, report):
    """Reported norms are those of the definitions."""
    solver = problem.case["solver"]
    for j, reason in enumerate(report["reasons"]):
        same_number(report["residual_norms"][j], truth.r[j], truth.r_error[j], f"norms, residual, {solver}", "column", j, reason)
        same_number(report["normal_residual_norms"][j], truth.normal[j], truth.normal_error[j], f"norms, gradient, {solver}", "column", j, reason)
        if solver not in SPARSE:
            same_number(report["reference_norms"][j], truth.reference[j], truth.reference_error[j], f"norms, reference, {solver}",
                        "column", j, reason)
            if truth.reference[j] > 2 * truth.reference_error[j]:
                quotient = truth.tested[j] / truth.reference[j]
                error = (truth.tested_error[j] + quotient * truth.reference_error[j]) / truth.reference[j]
                same_number(report["tested_norms"][j], quotient, 2 * error, f"norms, tested, {solver}", "column", j, reason)


def no_larger_than_a_solution(problem, truth, j):
    """Whether ‖x‖ is at most what a solution, or a guess and a solution, can have. So an x that has exploded meets no bound."""
    values = problem.values
    # A is what the type holds, so that values far below its ε are as true as others.
    kept = values[values > 4 * np.finfo(float).eps * max(problem.A.shape) * values[0]] if values.size and values[0] > 0 else values[:0]
    smallest = np.ldexp(np.longdouble(kept[-1]), problem.case["scale_A"]) if kept.size else 0
    if truth.hermitian and truth.D[j] > 0:
        smallest = truth.D[j] ** 2  # A may be singular, and A + D²I is not
    smallest = max(smallest, truth.D[j] if not truth.hermitian else 0) or np.inf
    guess = norms(wide(problem.X0))[j] if problem.X0 is not None else 0
    return truth.x[j] <= 100 * (truth.b[j] / smallest + guess)


def solved(problem, truth, report):
    """What is called converged or stagnated is solved: to its tolerance, or to the rounding level of its own b and x."""
    case = problem.case
    solver = case["solver"]
    for j, reason in enumerate(report["reasons"]):
        if reason not in SOLVED:
            continue
        what = ("column", j, "is", reason, "after", report["column_iterations"][j], "iterations:")
        rounding = (truth.stagnation_error if reason == "stagnated" else truth.tested_error)[j]
        bound = problem.T[j] * (truth.reference[j] + truth.reference_error[j]) + rounding if reason == "converged" else rounding
        ok = truth.tested[j] <= bound
        if reason == "converged" and solver in ("lsqr", "lsmr") and not ok:
            # Paige and Saunders's own two tests. Their ‖A‖ is the root of a sum of ‖Av‖² over unit vectors v, one for each iteration,
            # n at most. Rounding lets the same direction come again, so the Frobenius norm of A is no bound.
            norm_A = truth.damped_norm[j] * np.sqrt(max(1, min(report["column_iterations"][j], problem.A.shape[1])))
            ok = (truth.damped_r[j] <= problem.T[j] * (truth.b[j] + norm_A * truth.z[j]) + truth.r_error[j]
                  or truth.tested[j] <= problem.T[j] * norm_A * truth.damped_r[j] + rounding)
        if reason == "converged" and case.get("error") and report["error_bounds"] is not None:
            by_error = report["error_bounds"][j] <= case["error"] * truth.x[j] * (1 + truth.unit)  # errors() checks the bound itself
            asked = np.isfinite(report["error_bounds"][j])  # not where neither D nor σ bounds errors
            require(by_error or problem.T[j] > 0 or not asked, f"solved, bound above --error, {solver}", *what, "bound", report["error_bounds"][j], "x", truth.x[j])
            ok = ok or by_error
        require(ok, f"solved, {reason}, {solver}", *what, "tested norm", truth.tested[j], "reference", truth.reference[j],
                "tolerance", problem.T[j], "rounding", rounding)
        # The residual that CG's tolerance is for says nothing of x in the null space of A.
        # The least solution of a scaled problem is not that of the problem.
        if (reason == "stagnated" or not truth.hermitian) and not problem.case.get("column_norms"):
            require(no_larger_than_a_solution(problem, truth, j), f"solved, exploded, {solver}", *what, "norm of x is", truth.x[j])
        if not truth.hermitian and problem.X0 is None:
            # From x = 0 each method descends: the solution is no worse than the start.
            require(truth.damped_r[j] <= truth.b[j] * (1 + truth.unit) + truth.r_error[j], f"solved, worse than 0, {solver}", *what,
                    "damped residual", truth.damped_r[j], "norm of b", truth.b[j])


def threshold(X, limit):
    """The proximal map of limit·‖x‖₁."""
    size = np.sqrt(X.real**2 + X.imag**2)
    return X * np.where(size > limit, (size - limit) / np.where(size > 0, size, 1), 0)


def sparse_solved(problem, truth, X, report):
    """A step from what is called solved moves it no further than the tolerance, or than rounding. The step is 1/‖A‖² here, longer
    than the solver's, times a factor that is never above the ratio of the two: steps grow with their length, no more than in proportion."""
    case, A, B, X = problem.case, wide(problem.A), wide(problem.B), wide(X)
    solver, step = case["solver"], np.longdouble(report["step"])
    for j, reason in enumerate(report["reasons"]):
        if reason not in SOLVED:
            continue
        x = X[:, j]
        moved = threshold(x + step * (A.conj().T @ (B[:, j] - A @ x)), step * np.longdouble(problem.lambdas[j]))
        update = norms((moved - x)[:, None])[0]
        rounding = truth.unit * (truth.x[j] + np.sqrt(step) * truth.b[j])
        bound = rounding + (problem.T[j] * truth.x[j] if reason == "converged" else 0)
        require(update <= bound, f"solved, {reason}, {solver}", "column", j, "after", report["column_iterations"][j],
                "iterations: a step moves x by", update, "norm of x", truth.x[j], "tolerance", problem.T[j], "rounding", rounding)


def effective_condition(problem, truth, j):
    """Of the singular values that the tolerance can see, with damping and preconditioner; infinity where it cannot be told."""
    case, p = problem.case, problem.case["scale_A"]
    if not min(problem.A.shape):
        return 1.0
    values = problem.values
    if problem.d is not None:
        A = np.ldexp(problem.A.real.astype(float), -p) + (1j * np.ldexp(problem.A.imag.astype(float), -p) if np.iscomplexobj(problem.A) else 0)
        root = np.sqrt(np.ldexp(problem.d.real.astype(float), p))
        values = np.linalg.svd(root[:, None] * A * root if truth.hermitian else A * problem.d, compute_uv=False)
    D = float(np.ldexp(truth.D[j], -(p // 2 if truth.hermitian else p)))
    if problem.d is not None and D > 0:
        return np.inf  # D²P² is no multiple of I
    values = values + D**2 if truth.hermitian else np.hypot(values, D)
    if values[0] == 0:
        return 1.0
    if D == 0:
        # b excites a direction by at most σ‖b‖ in the gradient. Where that is far below the tolerance it need not be solved.
        plain_b, scale = truth.b[j], np.ldexp(truth.reference[j], 0 if truth.hermitian else -p)
        seen = values * float(plain_b / scale) > 0.01 * problem.T[j] if scale > 0 else values > 0
        if truth.hermitian:
            seen = values > 4 * problem.eps * max(problem.A.shape) * values[0]
        values = values[seen]
    return float(values[0] / values[-1]) if values.size else 1.0


def conditions(problem, truth, report):
    """LSQR and LSMR estimate a condition that A with its damping can have. It is that of the bidiagonal matrix in the Frobenius norm: at
    most n times the condition while its vectors are orthogonal, and more with every iteration afterwards (Paige, Saunders 1982, §5.4)."""
    solver, values, p = problem.case["solver"], problem.values, problem.case["scale_A"]
    if solver not in ("lsqr", "lsmr") or problem.d is not None or not values.size or values[0] == 0:
        return
    for j, reason in enumerate(report["reasons"]):
        # A guess brings in what A does not see, and so does rounding once the bidiagonal matrix has all that A sees.
        beyond = problem.X0 is not None or report["column_iterations"][j] > len(values)
        unseen = beyond and problem.A.shape[1] > len(values)
        damped = np.hypot([*values, 0] if unseen else values, float(np.ldexp(truth.D[j], -p)))
        if damped[-1] <= 1e-10 * damped[0]:
            continue
        largest = float(damped[0] / damped[-1]) * len(values) * (1 + report["column_iterations"][j])
        require(report["conditions"][j] <= largest, f"conditions, {solver}", "column", j, report["conditions"][j], "where at most", largest, "can be")
        limit = problem.case["condition_limit"]
        require(reason != "condition_limit" or largest >= limit > 0, f"conditions, limit, {solver}", "column", j, limit, largest)


def sigma_min(problem):
    """What a user may know of A's singular values; None where no bound of errors is asked for."""
    case, values = problem.case, problem.values
    if problem.case["solver"] in SPARSE | {"minres"} or not values.size or not problem.B.shape[1]:
        return None
    if problem.case["solver"] in HERMITIAN and np.linalg.eigvalsh(problem.plain)[0] < -1e-14 * values[0]:
        return None  # rounding has made it indefinite
    tall = case["rows"] >= case["cols"] and values[-1] > 1e-8 * values[0]
    return float(np.ldexp(0.9 * values[-1], case["scale_A"])) if tall and case["rows"] % 2 else 0.0


def sketched(problem, report):
    """What a sketch of A finds is not above the smallest singular value, but for the rounding of that. Returns whether it was compared."""
    found, p = report["probable_sigma_min"], problem.case["scale_A"]
    if found is None or not np.isfinite(problem.values).all():
        return False
    least = np.ldexp(np.longdouble(problem.values[-1] + 1e-14 * problem.values[0]), p)
    require(found <= least, "sketch", found, "where the smallest singular value is", least)
    return True


def solution(A, b, D):
    """The x that minimises ‖Ax − b‖² + D²‖x‖², to the last digits of double precision: the augmented system is refined with residuals in
    long double (Björck 1996, §2.9.3)."""
    m, n = A.shape
    K = np.vstack([A, D * np.eye(n)])
    f = np.concatenate([b, np.zeros(n)])
    Q, R = np.linalg.qr(K.astype(np.complex128 if np.iscomplexobj(K) else np.float64))
    inverse = np.linalg.inv(R)
    x, r = np.zeros(n, wide(K).dtype), wide(f)
    for _ in range(8):
        first, second = (f - r - wide(K) @ x).astype(Q.dtype), -(wide(K).conj().T @ r).astype(Q.dtype)
        h, q = inverse.conj().T @ second, Q.conj().T @ first
        x = x + inverse @ (q - h)
        r = r + (first - Q @ q + Q @ h)
    return x


def definite_solution(A, b, D):
    """The x of (A + D²I) x = b in the same way."""
    M = A + np.longdouble(D) ** 2 * np.eye(len(A))
    inverse = np.linalg.inv(M.astype(np.complex128 if np.iscomplexobj(M) else np.float64))
    x = np.zeros(len(A), wide(M).dtype)
    for _ in range(8):
        x = x + inverse @ (b - wide(M) @ x).astype(inverse.dtype)
    return x


def is_out_of_penalty_range(problem):
    """Whether methods with a penalty may refuse A or a column of B (docs/solvers.md), but for a few powers of two, since they only
    estimate ‖A‖."""
    of_A, of_B, of_both, few = (44, 64, 100, 4) if problem.case["type"] in ("f32", "c64") else (240, 470, 500, 4)
    power_A = np.log2(float(problem.norm_plain)) + problem.case["scale_A"] if problem.norm_plain else 0
    sizes = np.abs(problem.B).max(axis=0, initial=0).astype(float)
    powers_B = np.log2(sizes[sizes > 0])
    return bool(abs(power_A) > of_A - few or (abs(powers_B) > of_B - few).any() or (abs(power_A + powers_B) > of_both - few).any())


def scaled_down(problem):
    """A before it was multiplied by its power of two."""
    p = -problem.case["scale_A"]
    return np.ldexp(wide(problem.A).real, p) + (1j * np.ldexp(wide(problem.A).imag, p) if np.iscomplexobj(problem.A) else 0)


def error_of(A, b, D, power, x, solution_of=solution):
    """The solution for A times this power of two, and how far x is from it."""
    b = wide(b)
    size = max(norms(b[:, None])[0], np.longdouble(np.finfo(float).tiny))
    # b is brought near to 1, so that double precision has it.
    x_star = solution_of(A, b / size, D) * np.ldexp(size, -power)
    return x_star, norms((wide(x) - x_star)[:, None])[0]


def errors(problem, X, report):
    """No error is above its bound, where the problem has one solution that can be computed. Returns the number of these columns."""
    case, bounds, compared = problem.case, report["error_bounds"], 0
    if bounds is None:
        return 0
    p, A = case["scale_A"], scaled_down(problem)
    sigma = float(np.ldexp(sigma_min(problem), -p))
    for j, reason in enumerate(report["reasons"]):
        is_definite = case["solver"] in HERMITIAN
        D = float(np.ldexp(problem.D[j], -(p // 2) if is_definite else -p))
        if D == 0 and sigma == 0:
            require(np.isinf(bounds[j]), "errors, a bound without a reason", bounds[j])
            continue
        if (D**2 + sigma if is_definite else np.hypot(D, sigma)) < 1e-8 * (problem.norm_plain or 1):
            continue
        _, error = error_of(A, problem.B[:, j], D, p, X[:, j], definite_solution if is_definite else solution)
        tiny = np.longdouble(np.finfo(problem.A.dtype).tiny) * np.sqrt(np.longdouble(max(case["cols"], 1)))
        require(error <= np.longdouble(bounds[j]) * (1 + 1e-12) + tiny, f"errors, {case['solver']}", "column", j, "is", reason, "and off by", error, "where at most",
                bounds[j], "was said")
        compared += 1
    return compared


def orthogonal_data(problem, truth, report):
    """Where b is orthogonal to the range of A, 0 is the solution, and is called so."""
    if truth.hermitian or problem.case["solver"] in SPARSE or problem.X0 is not None or problem.case["iterations"] < 5:
        return
    for j, reason in enumerate(report["reasons"]):
        if truth.reference[j] <= 0.1 * truth.reference_error[j]:
            require(reason in SOLVED, f"orthogonal data, {reason}, {problem.case['solver']}", "column", j, "reference", truth.reference[j],
                    "rounding", truth.reference_error[j])


def ends(problem, truth, report):
    """Problems that are well conditioned are solved where iterations suffice: CG's error falls by (κ − 1)/(κ + 1) an iteration, for
    least squares κ is cond(A) (Björck 1996, §7.4), and the tolerance is far above rounding."""
    case = problem.case
    if case["solver"] in SPARSE:
        return
    for j, reason in enumerate(report["reasons"]):
        if reason in SOLVED or problem.X0 is not None or problem.T[j] * truth.reference[j] < 10 * (truth.tested_error[j] + truth.reference_error[j]):
            continue
        if truth.hermitian and truth.D[j] == 0 and problem.values[-1] <= 4 * problem.eps * case["cols"] * problem.values[0]:
            continue  # a singular system need not have a solution
        kappa = effective_condition(problem, truth, j)
        root = np.sqrt(kappa) if truth.hermitian else kappa
        needed = 20 + 2 * root * np.log(4 * kappa**2 / problem.T[j])
        require(not (kappa < 100 and case["iterations"] >= needed), f"ends, {reason}, {case['solver']}", "column", j, "is", reason, "after",
                report["column_iterations"][j], "iterations, where a condition of", kappa, "lets", needed, "suffice")


def worse_than_zero(problem, truth, report):
    """An unsolved column has no longer a residual than x = 0, but for CG, whose residuals may rise by √κ, where κ < 1/ε."""
    case = problem.case
    if case["solver"] in SPARSE or problem.d is not None:
        return
    for j, reason in enumerate(report["reasons"]):
        if reason in SOLVED or report["column_iterations"][j] == 0 or reason == "non_finite":
            continue
        found, rounding = (truth.tested[j], truth.tested_error[j]) if truth.hermitian else (truth.damped_r[j], truth.r_error[j])
        may_rise = case["solver"] == "cg" and reason != "breakdown"
        allowed = 1 / np.sqrt(problem.eps) if may_rise else 1 + 2 * np.sqrt(problem.eps)
        if not truth.hermitian and truth.tested[j] <= truth.reference[j] + truth.tested_error[j] + truth.reference_error[j]:
            continue  # the norm that is tested is better
        require(found <= allowed * truth.b[j] + rounding, f"worse than 0, {case['solver']}", "column", j, reason, found, "where 0 has", truth.b[j])
        require(truth.x[j] * truth.norm_A <= 100 / problem.eps * truth.b[j] or found <= truth.b[j] + rounding, f"exploded, {case['solver']}", "column", j,
                reason, truth.x[j], truth.b[j])


def variances(problem, report):
    """Estimates of the diagonal of (AᴴA + D²I)⁻¹ are finite and not negative. The first iterations add orthogonal directions of the
    range of Aᴴ, so from a zero guess they are from below, in exact arithmetic."""
    case, V = problem.case, report["variances"]
    name = "variances"
    require(V.shape == (case["cols"], problem.B.shape[1]) and not V.imag.any(), name, V)
    require((V.real >= 0).all() and np.isfinite(V.real).all(), name, V)
    if case["guess"] is not None or case["scale_A"] or not V.size or case["rows"] == 0:
        return
    _, values, Vh = np.linalg.svd(problem.A.astype(np.result_type(problem.A, np.float64)), full_matrices=False)
    for j, taken in enumerate(report["column_iterations"]):
        D = problem.D[j]
        damped = values**2 + D**2
        # Directions that rounding hides have any size.
        if taken > 3 or problem.T[j] < 1e3 * problem.eps or damped[-1] < (1e3 * problem.eps * values[0]) ** 2 or damped[-1] == 0:
            continue
        true = (abs(Vh) ** 2 / damped[:, None]).sum(axis=0)
        require((V[:, j].real <= 1.01 * true).all(), f"{name}, from below", "column", j, V[:, j].real, "where", true, "is true")
