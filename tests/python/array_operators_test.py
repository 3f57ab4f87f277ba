# SPDX-License-Identifier: BSD-3-Clause
"""Operators on arrays, migration, and slices on groups of ranks, against NumPy."""

import numpy as np
from ranks import COMM, TYPES, expect_error, grids, integers, on_root, whole

import gridlops as gl


def test_real_transforms_of_lines_of_every_size():
    sizes = np.array([1e4, 1, np.nan, 1e-4, 1, 1e8])[:, None]
    for n in (1, 2, 7, 8, 45, 64, 500, 1001, 1024):
        x = (sizes * np.random.default_rng(n).standard_normal((6, n))).astype(np.float32)
        exact = np.fft.rfft(x.astype(float), axis=1, norm="ortho")
        exact[:, 1 : (n + 1) // 2] *= np.sqrt(2)
        space = gl.Space.array(gl.Grid(COMM, (COMM.size, 1)), (6, n), 0)
        mine = space.local_box[0]
        F = gl.real_fourier(space, 1, dtype=np.float32)
        Y = F @ gl.from_local(space, np.ascontiguousarray(x[mine]).ravel())
        found = Y.local[:, 0].reshape(-1, n // 2 + 1, 2).astype(float) @ [1, 1j]
        clean = ~np.isnan(sizes[mine, 0])
        assert np.isnan(found[~clean]).any(axis=1).all()
        error = abs(found - exact[mine]).max(axis=1, initial=0)[clean]
        assert (error <= 2e-6 * np.linalg.norm(x[mine][clean].astype(float), axis=1)).all(), (n, error)
        back = (F.H @ Y).local[:, 0].reshape(-1, n)[clean]
        assert (abs(back - x[mine][clean]).max(axis=1, initial=0) <= 4e-6 * np.linalg.norm(x[mine][clean].astype(float), axis=1)).all(), n


def test_arrays():
    grid = gl.Grid(COMM, (COMM.size, 1))
    shape = (4, 5)
    x = whole("float64", 1, 4, 5)
    for cut in (0, 1):
        space = gl.Space.array(grid, shape, cut)
        box = space.local_box
        X = gl.from_local(space, np.ascontiguousarray(x[box]).ravel())
        local = lambda Y: Y.local[:, 0].reshape(x[box].shape)  # noqa: B023,E731
        expected = np.zeros(shape)
        expected[1:-1] = (x[2:] - x[:-2]) / 2
        assert (local(gl.first_derivative(space, 0) @ X) == expected[box]).all()
        expected = np.zeros(shape)
        expected[:, 1:-1] = (x[:, 2:] - 2 * x[:, 1:-1] + x[:, :-2]) / 0.25
        assert (local(gl.second_derivative(space, 1, sampling=0.5) @ X) == expected[box]).all()
        expected += np.vstack([np.zeros(5), x[2:] - 2 * x[1:-1] + x[:-2], np.zeros(5)])
        assert (local(gl.laplacian(space, (0, 1), sampling=(1, 0.5)) @ X) == expected[box]).all()
        smooth = np.apply_along_axis(np.convolve, 1, x, [1, 2, 1], "same")
        assert (local(gl.convolution(space, 1, [1, 2, 1], 1) @ X) == smooth[box]).all()
        smooth = np.apply_along_axis(np.convolve, 1 - cut, x, [1, 2, 1], "same")
        assert np.allclose(local(gl.convolution(space, 1 - cut, [1, 2, 1], 1, by_fourier=True) @ X), smooth[box])
        filters = np.arange(2 * shape[cut]).reshape(shape[cut], 2)  # a filter for each line
        own = np.stack([np.convolve(line, f)[:len(line)] for line, f in zip(np.moveaxis(x, 1 - cut, 1), filters)])
        assert np.allclose(local(gl.convolution(space, 1 - cut, filters, 0) @ X), np.moveaxis(own, 1, 1 - cut)[box])
        smooth = np.apply_along_axis(np.convolve, cut, x, [1, 2, 1], "same")
        assert np.allclose(local(gl.convolution(space, cut, np.array([[1, 2, 1]]), 1) @ X), smooth[box])  # along the cut
        expect_error(gl.ShapeError, lambda: gl.convolution(space, cut, np.ones((3, 2)), 1), "3, 2")  # noqa: B023
        expect_error(gl.UsageError, lambda: gl.convolution(space, cut, np.ones((1, 2)), 2), "2")  # noqa: B023
        expect_error(gl.UsageError, lambda: gl.convolution(space, cut, np.ones((1, 2)), 1, by_fourier=True), "single")  # noqa: B023
        kept = gl.restriction(space, 0, [1, 3])
        assert (space.gather_array(kept.H @ (kept @ X)) is None) == (COMM.rank > 0)
        total = COMM.allreduce(float((kept @ X).local.sum()))
        assert total == x[[1, 3]].sum()
        operators = [gl.gradient(space), gl.box_smoothing(space, 0, 3), gl.halo(space, (1, 1), (1, 0)), kept,
                     gl.crop(space, (1, 1), (1, 0)) @ gl.halo(space, (1, 1), (1, 0))]
        assert ((operators[-1] @ X).local == X.local).all()
        spectrum = gl.fourier(space, 1 - cut)
        Z = gl.from_local(space, np.ascontiguousarray(x[box]).ravel().astype(complex))
        assert np.allclose(local(spectrum @ Z), np.fft.fft(x, axis=1 - cut, norm="ortho")[box])
        operators += [spectrum, gl.on_pairs(spectrum), gl.real_fourier(space, 1 - cut)]
        for op in operators:
            assert op.dot_test()[0], op
    for cut in (0, 1, 2):
        space = gl.Space.array(grid, (4, 5, 6), cut)
        x = whole("float64", 2, 20, 6).reshape(4, 5, 6)
        on_root = lambda array: array if COMM.rank == 0 else None  # noqa: E731
        for norm, theirs in {"none": "backward", "1/n": "forward", "ortho": "ortho"}.items():
            for dims, lengths in {(0, 1, 2): 0, (2, 0): (7, 4), (1,): 8}.items():
                F = gl.fourier(space, dims, lengths=lengths, norm=norm)
                found = F.range.gather_array(F @ space.scatter_array(on_root(x.astype(complex))))
                shape = lengths or None
                expected = np.fft.fftn(x, (shape,) if isinstance(shape, int) else shape, dims, norm=theirs)
                assert found is None or np.allclose(found, expected), (cut, norm, dims)
                G = gl.real_fourier(space, dims, lengths=lengths, norm=norm)
                found = G.range.gather_array(G @ space.scatter_array(on_root(x)))
                expected = np.fft.rfftn(x, (shape,) if isinstance(shape, int) else shape, dims, norm=theirs)
                n = shape if isinstance(shape, int) else shape[-1] if shape else x.shape[dims[-1]]
                twice = np.moveaxis(expected, dims[-1], -1)
                twice[..., 1:(n + 1) // 2] *= np.sqrt(2)
                assert found is None or np.allclose(found @ [1, 1j], expected), (cut, norm, dims)
                assert F.dot_test()[0] and G.dot_test()[0]
        centred = gl.fourier(space, (0, 2), time_zero=(2, 3), frequency_zero=(2, 3))
        found = centred.range.gather_array(centred @ space.scatter_array(on_root(x.astype(complex))))
        expected = np.fft.fftshift(np.fft.fftn(np.fft.ifftshift(x, (0, 2)), axes=(0, 2), norm="ortho"), (0, 2))
        assert found is None or np.allclose(found, expected)
    expect_error(gl.UsageError, lambda: gl.real_fourier(space, (0, 1), 2), "keep 2 frequencies")
    expect_error(gl.UsageError, lambda: gl.fourier(space, (0, 1), lengths=(3, 5)), "which has 4")
    space = gl.Space.array(grid, (4, 5), 1)
    expect_error(gl.ShapeError, lambda: gl.first_derivative(space, 2), "2")
    expect_error(gl.UsageError, lambda: gl.first_derivative(space, 0, kind="upward"), "upward")


def test_samples_and_matrices_along_a_dimension():
    """Against NumPy's own functions, and the loop over samples that PyLops' users know."""
    grid = gl.Grid(COMM, (COMM.size, 1))
    rng = np.random.default_rng(11)
    shape = (7, 5, 6)
    filters, places = rng.standard_normal((3, 5)), (1, 3, 5)
    for dtype in TYPES:
        tolerance = 100 * np.finfo(dtype).eps
        x = (rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else 0)).astype(dtype)
        for cut in range(3):
            space = gl.Space.array(grid, shape, cut)
            X = space.scatter_array(x if COMM.rank == 0 else None)
            for dim, n in enumerate(shape):
                positions = np.unique(np.append(rng.uniform(0, n - 1, 4), [0, n - 1]))
                lines = np.moveaxis(x, dim, -1).reshape(-1, n)
                linear = np.array([np.interp(positions, np.arange(n), line.real) + (1j * np.interp(positions, np.arange(n), line.imag)
                                   if np.iscomplexobj(x) else 0) for line in lines])
                A = rng.standard_normal((4, n)).astype(dtype)
                spread = np.zeros((n, n + 4))
                for j in range(n):
                    spread[j, j:j + 5] = [np.interp(j, places, tap) for tap in filters.T]
                spread = spread[:, 2:-2].T
                for op, matrix in ((gl.restriction(space, dim, [1, 2, 4], dtype=dtype), np.eye(n)[[1, 2, 4]]),
                                   (gl.interpolation(space, dim, positions, dtype=dtype), None),
                                   (gl.interpolation(space, dim, positions, kind="sinc", dtype=dtype), np.sinc(positions[:, None] - np.arange(n))),
                                   (gl.matrix_along(space, dim, A), A),
                                   (gl.nonstationary_convolution(space, dim, filters, places, 2, dtype=dtype), spread)):
                    assert op.dtype == dtype and op.dot_test()[0]
                    found = op.range.gather_array(op @ X)
                    expected = linear if matrix is None else lines @ matrix.T
                    if found is not None:
                        assert np.allclose(np.moveaxis(found, dim, -1).reshape(expected.shape), expected, atol=tolerance, rtol=tolerance), (op, dim, cut)
            # Each line with filters of its own, along a dimension that is cut, too.
            many = rng.standard_normal((7, 5, 2, 3))
            matrices = np.zeros((7, 5, 6, 8))
            for j in range(6):
                share = np.interp(j, (1, 4), (0, 1))
                matrices[:, :, j, j:j + 3] = (1 - share) * many[:, :, 0] + share * many[:, :, 1]
            op = gl.nonstationary_convolution(space, 2, many, (1, 4), 1, dtype=dtype)
            found = op.range.gather_array(op @ X)
            assert op.dot_test()[0]
            if found is not None:
                expected = np.einsum("abj,abji->abi", x, matrices[..., 1:-1])
                assert np.allclose(found, expected, atol=tolerance, rtol=tolerance), cut
    expect_error(gl.UsageError, lambda: gl.nonstationary_convolution(space, 2, many, (1, 3, 4), 1), "3 positions")
    expect_error(gl.UsageError, lambda: gl.interpolation(space, 0, [0.5], kind="cubic"), "cubic")
    expect_error(gl.UsageError, lambda: gl.interpolation(space, 0, [0.5, 6.5]), "6.5")
    expect_error(gl.UsageError, lambda: gl.matrix_along(space, 0, np.ones(7)), "two-dimensional")
    expect_error(gl.ShapeError, lambda: gl.matrix_along(space, 0, np.ones((2, 6))), "2 x 6")
    expect_error(gl.UsageError, lambda: gl.nonstationary_convolution(space, 0, filters, (1, 3, 5), 5), "5")


def test_fredholm_and_migration():
    grid = gl.Grid(COMM, (COMM.size, 1))
    slices, nx, ny = 5, 3, 2
    g = whole(complex, 1, slices * nx * ny, 1).reshape(slices, nx, ny)
    m = whole(complex, 2, slices * ny, 2).reshape(slices, ny, 2)
    for transposed in (False, True):
        array = g.transpose(0, 2, 1) if transposed else g
        kernel = gl.Space.array(grid, array.shape)
        op = gl.fredholm(kernel, kernel.scatter_array(array if COMM.rank == 0 else None), transposed=transposed)
        D = op.range.gather_array(op @ op.domain.scatter_array(m if COMM.rank == 0 else None))
        assert (D is None or (D == g @ m).all()) and op.dot_test()[0]
    across = gl.Space.array(grid, (slices, nx, ny), 1)
    if COMM.size > 1:
        expect_error(gl.ShapeError, lambda: gl.fredholm(across, gl.zeros(across, 1, complex)), "cut along its slices only")
    expect_error(gl.ShapeError, lambda: gl.fredholm(across, gl.zeros(op.domain, 1, complex)), "kernel")
    mdc = gl.multidimensional_convolution(op, 9)
    assert mdc.shape == (9 * nx, 9 * ny) and mdc.dot_test()[0]
    image = gl.Space.array(grid, (4, 3), axis="uncut")
    data = gl.Space.array(grid, (2, 3, 20), 1)
    times = gl.straight_rays((4, 3), (0, 1), (1, 1), [(0, 0), (3, 0)], [(0, 0), (1, 0), (2, 0)], 1.0)
    migrate = gl.kirchhoff(data, image, times, interval=0.5, wavelet=[1.0], centre=0)
    table = [[np.hypot(i - s, 1 + j) for s in (0, 3)] for i in range(4) for j in range(3)]
    back = [[np.hypot(i - r, 1 + j) for r in (0, 1, 2)] for i in range(4) for j in range(3)]
    same = gl.kirchhoff(data, image, gl.tabulated_rays(table, back), interval=0.5, wavelet=[1.0], centre=0)
    point = gl.zeros(image, 1).fill(lambda i, j: i == 5)
    assert migrate.dot_test()[0] and ((migrate @ point).local == (same @ point).local).all()
    traces = (migrate @ point).local.reshape(2, -1, 20)
    t = (table[5][0] + back[5][data.local_box[1].start]) / 0.5 if traces.size else 0
    assert not traces.size or np.isclose(traces[0, 0, int(t)], 1 - (t - int(t)))
    check_weighted_pairs(grid, image, np.array(table), np.array(back))


def check_weighted_pairs(grid, image, table, back):
    """Demigration of listed pairs with weights, from functions and in blocks, is a sum over the points."""
    pairs = np.array([(1, 2), (0, 0), (1, 0), (0, 0), (0, 1)])
    data = gl.Space.array(grid, (len(pairs), 20))
    ends = [(0, 0), (3, 0)], [(0, 0), (1, 0), (2, 0)]
    times = gl.computed_rays(lambda s, points: table[points, s], lambda r, points: back[points, r])
    weights = gl.straight_ray_weights((4, 3), (0, 1), (1, 1), *ends, 2.0)
    model = np.arange(12) - 4.0
    expected = np.zeros((len(pairs), 20))
    depth = 1 + np.arange(12) % 3
    for trace, (s, r) in zip(expected, pairs):
        t = (table[:, s] + back[:, r]) / 0.5
        cosines = depth / table[:, s] + depth / back[:, r]
        echo = model * cosines / 2 / np.sqrt(table[:, s] * back[:, r])
        np.add.at(trace, t.astype(int), (1 - t % 1) * echo)
        np.add.at(trace, t.astype(int) + 1, t % 1 * echo)
    for bytes in (None, 200):
        op = gl.kirchhoff(data, image, times, interval=0.5, wavelet=[1.0], centre=0, traces=pairs, weights=weights, table_bytes=bytes)
        D = data.gather_array(op @ gl.zeros(image, 1).fill(lambda i, j: i - 4.0))
        assert op.dot_test()[0] and (D is None or np.allclose(D.reshape(expected.shape), expected, 1e-13, 1e-13))
    none = gl.straight_rays((4, 3), (0, 1), (1, 1), *ends, 1.0, widest=1e-3)
    op = gl.kirchhoff(data, image, none, interval=0.5, wavelet=[1.0], centre=0, traces=pairs)
    D = data.gather_array(op @ gl.zeros(image, 1).fill(lambda i, j: 1.0))
    assert D is None or (D.reshape(expected.shape).sum(1) == [0, 3, 0, 3, 0]).all(), "rays straight down"
    broken = gl.computed_rays(lambda s, points: table[points, s], lambda r, points: points[:1][points])
    op = gl.kirchhoff(data, image, broken, interval=0.5, wavelet=[1.0], centre=0, traces=pairs)
    expect_error(Exception, lambda: op @ gl.zeros(image, 1), "out of bounds")


def test_slices_on_groups_of_ranks(folder):
    shapes = [(5, 3), (2, 4), (7, 2)]
    dense = np.zeros((14, 9), complex)
    for f, (i, j) in enumerate([(0, 0), (5, 3), (7, 7)]):
        dense[i:i + shapes[f][0], j:j + shapes[f][1]] = whole(complex, f, *shapes[f])
    for dtype in TYPES:
        for grid in grids():
            A = gl.grouped_slices(grid, shapes, lambda f, rows, cols, dtype=dtype: whole(dtype, f, *shapes[f])[rows, cols],
                                  groups=[((1, grid.shape[0] * grid.shape[1]), 3)], dtype=dtype)
            whole_A = (dense if np.dtype(dtype).kind == "c" else dense.real).astype(dtype)
            X = gl.zeros(A.domain, 2, dtype).fill(integers(dtype, 1))
            found = A.range.gather_array(A @ X)
            assert A.shape == dense.shape and A.dot_test()[0]
            assert found is None or (found == whole_A @ whole(dtype, 1, 9, 2)).all()
    # A kernel of equal slices stays in its file, of which each rank reads its parts.
    G = whole(complex, 5, 3 * 4, 6).reshape(3, 4, 6)
    on_root(lambda: np.save(folder / "G.npy", G))
    kernel = np.load(folder / "G.npy", mmap_mode="r")
    for grid in grids():
        op = gl.grouped_slices(grid, [(4, 6)] * 3, lambda f, rows, cols: kernel[f, rows, cols], dtype=complex)
        assert op.domain.sizes == (3, 6) and op.range.sizes == (3, 4)
        found = op.range.gather_array(op @ gl.zeros(op.domain, 1, complex).fill(integers(complex, 2)))
        assert found is None or (found == np.einsum("fxy,fy->fx", G, whole(complex, 2, 18, 1).reshape(3, 6))).all()

    def broken(f, rows, cols):
        return np.zeros((2, 5)) / (COMM.rank or None)

    expect_error(Exception, lambda: gl.grouped_slices(gl.Grid(), [(2, 5)] * COMM.size, broken, groups=[((1, 1), 1)] * COMM.size),
                 "unsupported operand")
    assert gl.divide_ranks([(2000, 1000)] * 2, 2) == [((1, 1), 1), ((1, 1), 1)]
    assert gl.divide_ranks([], 3) == []


def test_points_along_a_hilbert_curve():
    x, y = (a.ravel() for a in np.meshgrid(np.arange(8), np.arange(8), indexing="ij"))
    points = 12.5 * np.stack([x, y], 1)
    order = gl.hilbert_order(points)
    assert order.dtype == np.int64 and sorted(order) == list(range(64))
    assert (abs(np.diff(points[order], axis=0)).sum(axis=1) == 12.5).all()
    assert (gl.hilbert_order(np.asfortranarray(points.astype(np.float32))) == order).all()
    assert gl.hilbert_order([3.0, -1.0, 2.0]).tolist() == [1, 2, 0]
    assert gl.hilbert_order(np.zeros((0, 3))).size == 0
    points[5, 1] = np.inf
    expect_error(gl.UsageError, lambda: gl.hilbert_order(points), "coordinate 1 of point 5 is inf")
    expect_error(gl.UsageError, lambda: gl.hilbert_order(np.zeros((4, 4))), "4 coordinates")
    expect_error(gl.UsageError, lambda: gl.hilbert_order(np.zeros((2, 2, 2))), "(2, 2, 2)")
