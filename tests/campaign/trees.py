# SPDX-License-Identifier: BSD-3-Clause
"""Operators that are put together at random: made by the package on all ranks, and by NumPy from dense parts beside it.

A node of a tree has a kind and maybe children. grow() makes its operator on a space, and its matrix in the order that the library
gives the rows of spaces. Parts are measured, by a product with the identity; what is put together from them is computed."""
import gridlops as gl
import numpy as np
from mpi4py import MPI
from problems import uneven_parts

COMM = MPI.COMM_WORLD


def everywhere(matrix):
    """A distributed matrix as a whole on every rank, idle ones too; the rows of arrays block by block."""
    return COMM.bcast(matrix.gather_rows(0) if matrix.grid.is_member else None)


def on_rank(grid, array):
    return array if grid.is_member and grid.rank == 0 else None


def in_blocks(space, array):
    """The matrix in a space with these rows, those of arrays block by block."""
    X = gl.zeros(space, array.shape[1], array.dtype)
    X.scatter_rows(on_rank(space.grid, np.asfortranarray(array)), 0)
    return X


def unit_columns(space, dtype):
    return in_blocks(space, np.eye(space.dimension, dtype=dtype))


def forward(op):
    return everywhere(op @ unit_columns(op.domain, op.dtype))


def backward(op):
    return everywhere(op.H @ unit_columns(op.range, op.dtype))


def order_of_stack(spaces):
    """Where the rows of a stack are in the matrices below each other: a part has its rows of each space, one below the other."""
    sizes = [list(space.rows.sizes) for space in spaces]
    first = np.concatenate([[0], np.cumsum([sum(each) for each in sizes])])
    order = [first[k] + sum(each[:p]) + np.arange(each[p]) for p in range(len(sizes[0])) for k, each in enumerate(sizes)]
    return np.concatenate(order).astype(int) if order else np.zeros(0, int)


def integers(seed, shape, dtype):
    rng = np.random.default_rng(seed)
    real = rng.integers(-2, 3, shape)
    return (real + 1j * rng.integers(-2, 3, shape) if np.dtype(dtype).kind == "c" else real).astype(dtype)


class Garden:
    """What all nodes of a tree need."""

    def __init__(self, grid, dtype):
        self.grid, self.dtype = grid, np.dtype(dtype)

    def leaf(self, op):
        return op, forward(op).astype(np.result_type(self.dtype, np.float64))

    def grow(self, node, space):
        return getattr(self, node["kind"])(node, space)

    def identity(self, node, space):
        return gl.identity(space, dtype=self.dtype), np.eye(space.dimension)

    def zero(self, node, space):
        return gl.zero(space, dtype=self.dtype), np.zeros((space.dimension,) * 2)

    def diagonal(self, node, space):
        d = integers(node["seed"], (space.dimension, 1), self.dtype)
        matrix = gl.Matrix(self.grid, gl.Space(self.grid, space.rows).layout(1), self.dtype).scatter(on_rank(self.grid, d))
        return gl.diagonal(space, matrix), np.diag(d[:, 0])

    def matrix(self, node, space):
        """From this space to the data of a matrix product, whatever lies between."""
        A = integers(node["seed"], (node["rows"], space.dimension), self.dtype)
        layout = self.grid.matrix_layout(*A.shape, node["algorithm"])
        op = gl.matrix_mult(gl.Matrix(self.grid, layout, self.dtype).scatter(on_rank(self.grid, A)), node["algorithm"])
        return self.of_vectors(op, A, space)

    def of_vectors(self, op, A, space):
        """The operator after what puts the models of this space into its own."""
        if space.sizes:  # cut along the first dimension, arrays have the order of vectors
            first = gl.Space.array(self.grid, space.sizes, 0, axis=space.rows.axis, columns=space.columns)
            where = gl.identity(op.domain, first, dtype=self.dtype) @ gl.identity(first, space, dtype=self.dtype)
        else:
            where = gl.identity(op.domain, space, dtype=self.dtype)
        return op @ where, A @ self.leaf(where)[1]

    def slices(self, node, space):
        """A block diagonal on groups of ranks, of slices of this space's vectors."""
        ends = [0, *sorted(cut % (space.dimension + 1) for cut in node["cuts"]), space.dimension]
        shapes = [(rows, end - begin) for rows, begin, end in zip(node["rows"], ends, ends[1:])]
        blocks = [integers([node["seed"], f], shape, self.dtype) for f, shape in enumerate(shapes)]
        groups, ranks, rest = [], self.grid.shape[0] * self.grid.shape[1], len(shapes)
        for P, Q, share in node["groups"]:
            if P * Q <= ranks and rest > 0:
                groups.append([(P, Q), min(share, rest)])
                ranks, rest = ranks - P * Q, rest - groups[-1][1]
        if groups:
            groups[-1][1] += rest
        op = gl.grouped_slices(self.grid, shapes, lambda f, rows, cols: blocks[f][rows, cols], groups=groups or None, dtype=self.dtype)
        A = np.zeros(op.shape, np.result_type(self.dtype, np.float64))
        first = np.cumsum([0, *(rows for rows, _ in shapes)])
        for f, block in enumerate(blocks):
            A[first[f]:first[f + 1], ends[f]:ends[f + 1]] = block
        return self.of_vectors(op, A, space)

    def recut(self, node, space):
        cut = node["cut"] % len(space.sizes)
        if node["uneven"] is None:
            other = gl.Space.array(self.grid, space.sizes, cut, axis=space.rows.axis, columns=space.columns)
        else:
            parts = [[size] for size in space.sizes]
            parts[cut] = uneven_parts(space.sizes[cut], len(space.rows.sizes), node["uneven"])
            other = gl.Space.array_with_cuts(self.grid, parts, axis=space.rows.axis, columns=space.columns)
        return self.leaf(gl.identity(other, space, dtype=self.dtype))

    def first_derivative(self, node, space):
        return self.leaf(gl.first_derivative(space, node["dim"] % len(space.sizes), kind=node["how"], edge=node["edge"], dtype=self.dtype))

    def second_derivative(self, node, space):
        return self.leaf(gl.second_derivative(space, node["dim"] % len(space.sizes), kind=node["how"], edge=node["edge"], dtype=self.dtype))

    def laplacian(self, node, space):
        return self.leaf(gl.laplacian(space, range(len(space.sizes)), kind=node["how"], edge=node["edge"], dtype=self.dtype))

    def convolution(self, node, space):
        dim, centre = node["dim"] % len(space.sizes), node["centre"] % len(node["filter"])
        return self.leaf(gl.convolution(space, dim, node["filter"], centre, dtype=self.dtype))

    def smoothing(self, node, space):
        dim = node["dim"] % len(space.sizes)
        return self.leaf(gl.box_smoothing(space, dim, min(node["length"], (space.sizes[dim] + 1) // 2 * 2 - 1), dtype=self.dtype))

    def restriction(self, node, space):
        dim = node["dim"] % len(space.sizes)
        return self.leaf(gl.restriction(space, dim, sorted({i % space.sizes[dim] for i in node["at"]} if space.sizes[dim] else []), dtype=self.dtype))

    def interpolation(self, node, space):
        dim = node["dim"] % len(space.sizes)
        last = space.sizes[dim] - 1
        positions = sorted({min(i / 8, last) for i in node["at"]} if last >= 0 else [])
        return self.leaf(gl.interpolation(space, dim, positions, kind=node["how"], dtype=self.dtype))

    def along(self, node, space):
        dim = node["dim"] % len(space.sizes)
        matrix = integers(node["seed"], (node["rows"], space.sizes[dim]), self.dtype)
        return self.leaf(gl.matrix_along(space, dim, matrix, dtype=self.dtype))

    def nonstationary(self, node, space):
        places = [node["at"] + node["step"] * k for k in range(len(node["filters"]))]
        return self.leaf(gl.nonstationary_convolution(space, node["dim"] % len(space.sizes), node["filters"], places, node["centre"], dtype=self.dtype))

    def halo(self, node, space):
        widths = [node["width"]] * len(space.sizes)
        return self.leaf(gl.halo(space, widths, widths, dtype=self.dtype))

    def gradient(self, node, space):
        return self.leaf(gl.gradient(space, kind=node["how"], edge=node["edge"], dtype=self.dtype))

    def scale(self, node, space):
        op, D = self.grow(node["of"], space)
        factor = node["by"] * 2.0 ** node["power"]
        return factor * op, factor * D

    def product(self, node, space):
        first, D = self.grow(node["of"][0], space)
        second, E = self.grow(node["of"][1], first.range)
        return second @ first, E @ D

    def sum(self, node, space):
        """A + E A, so that both have one range."""
        op, D = self.grow(node["of"][0], space)
        more, E = self.grow(node["of"][1], op.range)
        return op + more @ op, D + E @ D

    def normal(self, node, space):
        op, D = self.grow(node["of"], space)
        return op.H @ op, D.conj().T @ D

    def vertical(self, node, space):
        parts = [self.grow(each, space) for each in node["of"]]
        return gl.vertical_stack([op for op, _ in parts]), np.vstack([D for _, D in parts])[order_of_stack([op.range for op, _ in parts])]

    def horizontal(self, node, space):
        """[A₁ᴴ A₂ᴴ …] of what has this domain, after its own adjoint: Σ AᵢᴴAᵢ in another order."""
        parts = [self.grow(each, space) for each in node["of"]]
        D = np.vstack([D for _, D in parts])
        return (gl.horizontal_stack([op.H for op, _ in parts]) @ gl.vertical_stack([op for op, _ in parts]), D.conj().T @ D)

    def blocks(self, node, space):
        """A block-diagonal operator between what puts the model into its domain and takes data from its range."""
        parts = [self.grow(each, space) for each in node["of"]]
        copies = gl.vertical_stack([gl.identity(space, dtype=self.dtype)] * len(parts))
        D = np.vstack([D for _, D in parts])[order_of_stack([op.range for op, _ in parts])]
        return gl.block_diagonal([op for op, _ in parts]) @ copies, D

    def damped(self, node, space):
        op, D = self.grow(node["of"], space)
        made = gl.damped(op, node["damp"])
        # The identity may redistribute, so the lower part is measured: what of the stack is not A.
        measured = self.leaf(made)[1]
        return made, measured

    def python(self, node, space):
        """A local operator in Python."""
        factor = node["by"]

        def times(X, Y):
            Y.local[...] = factor * X.local

        return gl.function_operator(space, space, times, times, self.dtype), factor * np.eye(space.dimension)


def measure(grid, request):
    """What the driver compares: products with identities, and what NumPy makes of the parts."""
    dtype = np.dtype(request["dtype"])
    space = gl.Space.array(grid, request["sizes"], request["cut"] % len(request["sizes"]), axis=request["axis"], columns=request["columns"])
    garden = Garden(grid, dtype)
    op, D = garden.grow(request["tree"], space)
    found = {"expected": D, "forward": forward(op), "backward": backward(op), "dot": op.dot_test(columns=2, seed=request["seed"]),
             "norm": op.estimate_norm(steps=10), "shape": op.shape}
    X, Y = in_blocks(op.domain, integers(1, (op.shape[1], 3), dtype)), in_blocks(op.range, integers(2, (op.shape[0], 3), dtype))
    op.apply(X, Y, alpha=2, beta=-1)
    found["apply"] = everywhere(Y), integers(1, (op.shape[1], 3), dtype), integers(2, (op.shape[0], 3), dtype)
    if request["wrong"]:
        found["wrong"] = wrong_adjoint(op).dot_test(columns=2, seed=request["seed"])
    if op.domain == op.range:
        value, vector, _, converged = op.power_iteration(max_iterations=60, tolerance=1e-5)
        found["power"] = value, everywhere(vector)[:, 0], converged
    if request["solve"]:
        B = in_blocks(op.range, integers(3, (op.shape[0], 2), dtype))
        if request["solve"] == "regularized":
            more = gl.identity(op.domain, dtype=dtype)
            x, report = gl.regularized_inversion(op, B, regularizers=[(more, 0.5)], max_iterations=200)
        else:
            x, report = gl.cgls(op, B, damp=0.5, max_iterations=200)
        if grid.is_member:
            found["solve"] = integers(3, (op.shape[0], 2), dtype), report["reasons"]
        found["x"] = everywhere(x)
    return found if grid.is_member else None


def wrong_adjoint(op):
    """The same operator, with twice its adjoint."""
    def times(X, Y):
        op.apply(X, Y)

    def back(Y, X):
        op.apply_adjoint(Y, X, alpha=2)

    return gl.function_operator(op.range, op.domain, times, back, op.dtype)
