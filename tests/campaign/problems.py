# SPDX-License-Identifier: BSD-3-Clause
"""Makes the arrays of a problem from its description, which is JSON: the same description gives the same arrays."""
import numpy as np

TYPES = {"f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128}
HERMITIAN = {"cg", "pcg", "minres"}
SPARSE = {"ista", "fista"}


def is_complex(name):
    return name.startswith("c")


def random(seed, shape, name):
    """Standard normal numbers, in double precision."""
    rng = np.random.default_rng(seed)
    real = rng.standard_normal(shape)
    return real + 1j * rng.standard_normal(shape) if is_complex(name) else real


def integers(seed, shape, name, largest=2):
    """Small integers, whose products are exact in every type."""
    rng = np.random.default_rng(seed)
    real = rng.integers(-largest, largest + 1, shape).astype(float)
    return real + 1j * rng.integers(-largest, largest + 1, shape) if is_complex(name) else real


def uneven_parts(total, count, seed):
    """The sizes of parts of a whole, some of them often empty."""
    rng = np.random.default_rng(seed)
    chosen = rng.choice(count, rng.integers(1, count + 1), replace=False)
    return np.bincount(rng.choice(chosen, total), minlength=count).tolist()


def orthonormal(seed, rows, cols, name):
    return np.linalg.qr(random(seed, (rows, cols), name))[0] if cols else np.zeros((rows, 0))


def singular_values(of, count):
    """`count` values, the largest 1, of a shape that solvers find hard in different ways."""
    shape, smallest = of["spectrum"], 10.0 ** -of["digits"]
    if count == 0:
        return np.zeros(0)
    if shape == "geometric":
        values = np.geomspace(1, smallest, count) if count > 1 else np.ones(1)
    elif shape == "clusters":  # three, each within a per cent
        values = np.array([1, smallest**0.5, smallest])[np.arange(count) % 3] * (1 - 0.01 * np.arange(count) / count)
    elif shape == "equal":
        values = np.ones(count)
    elif shape == "outlier":
        values = np.full(count, smallest)
        values[0] = 1
    elif shape == "gap":  # half of them are as good as zero
        values = np.where(np.arange(count) < (count + 1) // 2, 1.0, smallest)
    else:
        raise ValueError(shape)
    values[count - min(of["lost_rank"], count):] = 0
    return values


def laplacian(rows, cols):
    """tridiag(-1, 2, -1), on which residuals stay for as many iterations as half the size."""
    return 2 * np.eye(rows, cols) - np.eye(rows, cols, 1) - np.eye(rows, cols, -1)


def matrix(of, rows, cols, name, hermitian):
    """A before it is scaled, in double precision."""
    kind, seed = of["kind"], of["seed"]
    count = min(rows, cols)
    if kind == "zero":
        A = np.zeros((rows, cols))
    elif kind == "identity":
        A = np.eye(rows, cols)
    elif kind == "laplacian":
        A = laplacian(rows, cols)
    elif kind == "integers":
        A = integers(seed, (rows, cols), name)
        if of["lost_rank"]:
            rank = max(count - of["lost_rank"], 0)
            A = integers(seed, (rows, rank), name) @ integers(seed + 1, (rank, cols), name)
        if hermitian:
            A = A.conj().T @ A
            A = A + (0 if of["lost_rank"] else 1) * np.eye(cols)
    elif kind == "svd":
        values = singular_values(of, count)
        if of.get("indefinite"):
            values = values * (-1.0) ** np.arange(count)
        V = orthonormal(seed, cols, count, name)
        A = ((V if hermitian else orthonormal(seed + 1, rows, count, name)) * values) @ V.conj().T
        if hermitian:
            A = 0.5 * (A + A.conj().T)
    else:
        raise ValueError(kind)
    for change in of["columns"]:
        if cols == 0 or hermitian:
            break
        j, other, what = change["at"] % cols, change["from"] % cols, change["what"]
        if what == "zero":
            A[:, j] = 0
        elif what == "equal":
            A[:, j] = A[:, other]
        else:  # graded
            A[:, j] = A[:, j] * 2.0**-20
    return A.astype(complex) if is_complex(name) else A


def singular_values_of(of, A):
    """In double precision; those of the large matrices are known."""
    if of["kind"] == "laplacian" and A.shape[0] == A.shape[1] and not of["columns"]:
        return 2 + 2 * np.cos(np.pi * np.arange(1, A.shape[0] + 1) / (A.shape[0] + 1))
    return np.linalg.svd(A, compute_uv=False) if min(A.shape) else np.zeros(0)


def left_null_space(A):
    """Orthonormal vectors that Aᴴ takes to rounding."""
    if min(A.shape) == 0:
        return np.eye(A.shape[0])
    U, values, _ = np.linalg.svd(A, full_matrices=True)
    rank = int((values > 1e-10 * values[0]).sum()) if values[0] > 0 else 0
    return U[:, rank:]


def right_hand_side(of, A, name, before):
    """b before it is scaled. before: the columns that there are already."""
    rows, cols = A.shape
    kind, seed = of["kind"], of["seed"]
    if kind == "in range":
        return A @ integers(seed, cols, name)
    if kind == "random":
        return random(seed, rows, name)
    if kind == "ones":
        return np.ones(rows)
    if kind == "zero":
        return np.zeros(rows)
    if kind == "unit":  # with a row of zeros in A exactly orthogonal to the range
        return np.eye(rows)[:, seed % rows] if rows else np.zeros(0)
    if kind == "orthogonal":
        N = left_null_space(A)
        return N @ random(seed, N.shape[1], name)
    if kind == "nearly orthogonal":
        N = left_null_space(A)
        return N @ random(seed, N.shape[1], name) + 1e-6 * A @ random(seed + 1, cols, name)
    if kind == "equal":
        return before[seed % len(before)] if before else np.ones(rows)
    raise ValueError(kind)


def solution(A, B, damps):
    """Least squares in double precision, of the least norm."""
    X = np.zeros((A.shape[1], B.shape[1]), B.dtype)
    if 0 in A.shape:
        return X
    U, values, Vh = np.linalg.svd(A, full_matrices=False)
    for j in range(B.shape[1]):
        keep = values > 1e-12 * values[0]
        filtered = np.divide(values, values**2 + damps[j] ** 2, out=np.zeros_like(values), where=keep & (values > 0))
        X[:, j] = Vh.conj().T @ (filtered * (U.conj().T @ B[:, j]))
    return X


class Problem:
    """A, B, X0, d (of a diagonal preconditioner) as arrays of the type; D, T and λ as lists, one for each column."""

    def __init__(self, case):
        self.case = case
        name, solver = case["type"], case["solver"]
        rows, cols = case["rows"], case["cols"]
        hermitian = solver in HERMITIAN
        # What is scaled by powers of two is first rounded to the type, so that every scale has the same problem.
        kind = TYPES[name]
        plain = matrix(case["matrix"], rows, cols, name, hermitian).astype(kind)
        columns = []
        for of in case["rhs"]:
            columns.append(np.asarray(right_hand_side(of, plain.astype(np.result_type(kind, np.float64)), name, columns)))
        wide = np.result_type(kind, np.float64)
        data = np.array(columns, wide).T.reshape(rows, len(columns)).astype(kind)
        scales = [case["scale_B"] + of["scale"] for of in case["rhs"]]
        self.plain = plain.astype(wide)
        self.values = singular_values_of(case["matrix"], self.plain)
        self.norm_plain = float(self.values[0]) if self.values.size else 0.0
        unit = self.norm_plain or 1.0
        relative = case["damp"]
        # D² is added to A where A is Hermitian, and D appended to it elsewhere.
        of_unit, power = (unit**0.5, case["scale_A"] // 2) if hermitian else (unit, case["scale_A"])
        damps = [f * of_unit for f in (relative if isinstance(relative, list) else [relative] * len(columns))][: len(columns)]
        guess = self.guess(case["guess"], plain.astype(wide), data.astype(wide), damps, name)
        p = case["scale_A"]
        self.A = np.asfortranarray(np.ldexp(plain.real, p) + (1j * np.ldexp(plain.imag, p) if is_complex(name) else 0)).astype(kind)
        self.B = scaled(data, scales, kind)
        self.X0 = None if guess is None else scaled(guess.astype(kind), [q - p for q in scales], kind)
        self.D = [float(np.ldexp(D, power)) for D in damps]
        self.d = None
        if case["preconditioner"]:
            # Powers of two around 1/‖A‖ or 1, so that AP and PA are exact.
            exponents = integers(case["preconditioner"], cols, "f64", 3)
            self.d = (2.0**exponents * 2.0 ** (-p if solver == "pcg" else 0)).astype(kind)
        T = case["tolerance"]
        self.T = list(T[: len(columns)]) if isinstance(T, list) else [T] * len(columns)
        self.tolerance_varies, self.damp_varies = isinstance(T, list), isinstance(relative, list)
        self.lambdas = []
        if solver in SPARSE:
            gradients = abs(plain.astype(wide).conj().T @ data.astype(wide)).max(axis=0, initial=0)
            relative = case.get("relative", True)  # else λ is one number
            self.lambdas = [float(np.ldexp(case["lambda"] * g, p + q)) if relative else case["lambda"] for g, q in zip(gradients, scales)]

    @staticmethod
    def guess(of, A, B, damps, name):
        if of is None:
            return None
        shape = (A.shape[1], B.shape[1])
        if of["kind"] == "zero":
            return np.zeros(shape)
        if of["kind"] == "random":
            return random(of["seed"], shape, name)
        X = solution(A, B, damps)
        if of["kind"] == "solution":
            return X
        return X + 10.0 ** of["digits"] * random(of["seed"], shape, name)

    @property
    def eps(self):
        return float(np.finfo(self.A.dtype).eps)


def scaled(X, exponents, kind):
    factors = np.ldexp(1.0, np.array(exponents, int)) if len(exponents) else np.ones(0)
    return np.asfortranarray((X.astype(np.result_type(kind, np.float64)) * factors).astype(kind)).reshape(X.shape, order="A")
