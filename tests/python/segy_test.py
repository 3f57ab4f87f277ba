# SPDX-License-Identifier: BSD-3-Clause
"""Surveys in SEG-Y files: arrays and positions are what segyio wrote, and what is not regular is named."""
import json

import numpy as np
import pytest
from ranks import COMM, expect_error, grids, on_root

import gridlops as gl
from gridlops.__main__ import main

segyio = pytest.importorskip("segyio")

SOURCES = np.array([[100.5, 20, 6], [112.5, 20, 6], [124.5, -20, 6], [136.5, -20, 7]])
RECEIVERS = np.array([[300, 0.25, 30], [310, 0.25, 31], [320, 0.5, 32]])
SAMPLES = 7


def header(source, receiver):
    """The header of a trace: coordinates in hundredths, elevations in tenths; sources below a surface 4 above the datum."""
    return {71: -100, 73: round(100 * source[0]), 77: round(100 * source[1]), 81: round(100 * receiver[0]), 85: round(100 * receiver[1]),
            69: -10, 45: 40, 49: round(10 * (source[2] + 4)), 41: round(-10 * receiver[2]), 29: 1}


def survey():
    """Headers of all pairs in an order that is neither's, and the array of their traces."""
    values = np.arange(len(SOURCES) * len(RECEIVERS) * SAMPLES).reshape(len(SOURCES), len(RECEIVERS), SAMPLES) % 97 - 48
    pairs = np.random.default_rng(2).permutation(list(np.ndindex(len(SOURCES), len(RECEIVERS))))
    return [(header(SOURCES[i], RECEIVERS[j]), values[i, j]) for i, j in pairs], values


def write(path, traces, kind=5, endian="big", interval=4000, places=()):
    """Writes a file, and then values into its header, at places (byte from 1 on, bytes, value)."""
    spec = segyio.spec()
    spec.samples, spec.format, spec.tracecount, spec.endian = np.arange(len(traces[0][1])), kind, len(traces), endian
    with segyio.create(path, spec) as file:
        file.bin[segyio.BinField.Interval] = interval
        for number, (fields, samples) in enumerate(traces):
            file.header[number] = fields
            file.trace[number] = np.asarray(samples, file.dtype)
    with open(path, "r+b") as file:
        for byte, size, value in places:
            file.seek(byte - 1)
            file.write(value.to_bytes(size, endian))


def test_arrays_and_positions(folder):
    traces, values = survey()
    for kind, endian in ((1, "big"), (5, "big"), (5, "little"), (2, "big")):
        name = folder / f"line{kind}{endian}.segy"
        on_root(lambda name=name, kind=kind, endian=endian: write(name, traces, kind, endian))
        for grid in grids():
            found = gl.io.open_survey(grid, name, little_endian=endian == "little")
            assert (found.sources == SOURCES).all() and (found.receivers == RECEIVERS).all()
            assert (found.interval, found.start, found.missing, found.left_out) == (0.004, 0, 0, 0)
            for cut in range(3):
                space = gl.Space.array(grid, values.shape, cut)
                X = gl.io.read_array(space, found.traces)
                assert X.dtype == (np.float64 if kind == 2 else np.float32)
                assert (X.local.ravel() == values[space.local_box].ravel()).all() if X.local.size else True


def test_indexing_is_that_of_numpy(folder):
    traces, values = survey()
    on_root(lambda: write(folder / "line.segy", traces))
    found = gl.io.open_survey(gl.Grid(), folder / "line.segy")
    for box in ((slice(None),) * 3, (slice(1, 3), slice(0, 0), slice(None)), (2, slice(None), 3), (slice(3, None, -2), 1, slice(1, 6, 2)),
                1, (0, 1), (0, 1, 2), (slice(0, 2), -1, -1)):
        assert np.array_equal(found.traces[box], values[box]) and found.traces[box].dtype == np.float32


def test_what_is_not_regular(folder):
    grid, (traces, values) = gl.Grid(), survey()
    on_root(lambda: write(folder / "gap.segy", traces[:-2]))
    expect_error(gl.InputError, lambda: gl.io.open_survey(grid, folder / "gap.segy"), "2 of the 4 x 3 pairs", "fill")
    found = gl.io.open_survey(grid, folder / "gap.segy", fill=True)
    holes = found.numbers < 0
    assert found.missing == 2 and (found.traces[:][holes] == 0).all() and (np.abs(found.traces[:][~holes]).sum(axis=-1) > 0).all()

    again = [*traces, (traces[4][0], traces[4][1] + 1)]
    on_root(lambda: write(folder / "again.segy", again))
    expect_error(gl.InputError, lambda: gl.io.open_survey(grid, folder / "again.segy"), "1 of the traces", "trace 13", "of trace 5.", "only", "without")
    components = [({**fields, 29: kind}, samples + kind) for kind in (12, 13) for fields, samples in traces]
    on_root(lambda: write(folder / "components.segy", components))
    for kind in (12, 13):
        found = gl.io.open_survey(grid, folder / "components.segy", only={29: kind})
        assert found.traces[:].sum() == values.sum() + kind * values.size and found.left_out == len(traces)
    expect_error(gl.InputError, lambda: gl.io.open_survey(grid, folder / "components.segy", only={29: 14}), "none of its 24 traces")

    found = gl.io.open_survey(grid, folder / "components.segy", without={29: [12, 5]})
    assert found.traces[:].sum() == values.sum() + 13 * values.size
    on_root(lambda: write(folder / "kinds.segy", components[:-2]))
    expect_error(gl.InputError, lambda: gl.io.open_survey(grid, folder / "kinds.segy", sources=[73, 29]), "12 of code 12, 10 of code 13")
    on_root(lambda: write(folder / "nan.segy", [(fields, samples * (np.nan if number == 4 else 1)) for number, (fields, samples) in enumerate(traces)]))
    expect_error(gl.InputError, lambda: gl.io.open_survey(grid, folder / "nan.segy").traces[:], "trace 5", "not finite", "without={0: [5]}")
    found = gl.io.open_survey(grid, folder / "nan.segy", without={0: [5]}, fill=True)
    assert np.isfinite(found.traces[:]).all() and (found.missing, found.left_out) == (1, 1) and 4 not in found.numbers
    found = gl.io.open_survey(grid, folder / "components.segy", only={0: range(13, 25)})
    assert found.traces[:].sum() == values.sum() + 13 * values.size

    dead = [*traces, ({**header([0, 0, 0], [0, 0, 0]), 29: 2}, traces[0][1])]
    on_root(lambda: write(folder / "dead.segy", dead))
    found = gl.io.open_survey(grid, folder / "dead.segy")
    assert found.traces.shape == values.shape and found.left_out == 1


def test_stacks_by_other_fields(folder):
    image = np.arange(2 * 5 * 3).reshape(2, 5, 3)
    on_root(lambda: write(folder / "stack.segy", [({189: 10 + i, 193: 400 - j}, image[i, j]) for i in range(2) for j in range(5)]))
    found = gl.io.open_survey(gl.Grid(), folder / "stack.segy", sources=[189], receivers=[193])
    assert found.sources.tolist() == [[10], [11]] and found.receivers.ravel().tolist() == [396, 397, 398, 399, 400]
    assert (found.traces[:] == image[:, ::-1]).all()


def test_positions_that_differ_by_rounding(folder):
    grid, (traces, values) = gl.Grid(), survey()
    on_root(lambda: write(folder / "noise.segy", [({**fields, 81: fields[81] + number % 3 - 1, 77: fields[77] - number % 2}, samples)
                                                  for number, (fields, samples) in enumerate(traces)]))
    expect_error(gl.InputError, lambda: gl.io.open_survey(grid, folder / "noise.segy"), "have no trace")
    found = gl.io.open_survey(grid, folder / "noise.segy", rounding=0.25)
    assert np.allclose(found.sources, np.round(4 * SOURCES) / 4) and np.allclose(found.receivers, RECEIVERS)
    assert (found.traces[:] == values).all()
    for rounding in (-1, np.inf, np.nan):
        expect_error(gl.UsageError, lambda rounding=rounding: gl.io.open_survey(grid, folder / "noise.segy", rounding=rounding), "cannot be rounded")


def test_scalars_divide(folder):
    """One position by two scalars is one position; a delay has a scalar, too."""
    grid, places = gl.Grid(), [10.3, 10.6, 10.7]
    traces = [({71: -scalar, 73: (5 + i) * scalar, 81: round(x * scalar), 109: 50 * (scalar // 10), 215: -(scalar // 10)}, [i, x])
              for i, scalar in ((0, 10), (1, 100)) for x in places]
    on_root(lambda: write(folder / "scalars.segy", traces))
    found = gl.io.open_survey(grid, folder / "scalars.segy")
    assert found.receivers[:, 0].tolist() == places and found.sources[:, 0].tolist() == [5, 6]
    assert found.start == 0.05 and (found.traces[:, :, 0] == [[0], [1]]).all()
    for scalar, start in ((10, 0.5), (0, 0.05), (-1, 0.05), (7, None)):
        on_root(lambda scalar=scalar: write(folder / "delay.segy", [({**fields, 109: 50, 215: scalar}, samples) for fields, samples in traces]))
        if start is None:
            expect_error(gl.InputError, lambda: gl.io.open_survey(grid, folder / "delay.segy"), "byte 215", "is 7")
        else:
            assert gl.io.open_survey(grid, folder / "delay.segy").start == start
    on_root(lambda: write(folder / "unassigned.segy", [({**fields, 109: 0, 215: 7}, samples) for fields, samples in traces]))
    assert gl.io.open_survey(grid, folder / "unassigned.segy").start == 0
    on_root(lambda: write(folder / "later.segy", [({**fields, 109: 500, 215: -(fields[71] // -10)}, samples) for fields, samples in traces]))
    expect_error(gl.InputError, lambda: gl.io.open_survey(grid, folder / "later.segy"), "from 50 to 500 ms")


def test_headers_that_disagree(folder):
    grid, (traces, values) = gl.Grid(), survey()

    def opened(changed=lambda number, fields: {}, places=(), **how):
        on_root(lambda: write(folder / "file.segy", [({**fields, **changed(number, fields)}, samples) for number, (fields, samples) in enumerate(traces)], places=places))
        return gl.io.open_survey(grid, folder / "file.segy", **how)

    def refused(*words, **how):
        expect_error(gl.InputError, lambda: opened(**how), *words)

    for count in (0, SAMPLES):
        assert (opened(lambda number, fields, count=count: {115: count}).traces[:] == values).all()
    refused("7 samples", "byte 115", "1 of the 12", "trace 4", "with 5", changed=lambda number, fields: {115: 5 if number == 3 else 0})

    assert opened(lambda number, fields: {117: 4000 if number % 2 else 0}).interval == 0.004
    refused("4000 and 40000 micro", changed=lambda number, fields: {117: 40000})
    assert opened(lambda number, fields: {117: 40000}, [(3217, 2, 40000)]).interval == 0.04
    of_two = {"changed": lambda number, fields: {117: 2000 if fields[73] == 10050 else 4000}}
    refused("2000 and 4000 micro", "only={117", **of_two)
    assert opened(**of_two, only={117: 4000}).sources.shape == (3, 3) and opened(**of_two, interval=0.003).interval == 0.003
    for wrong in (-0.004, 0, np.nan, np.inf):
        expect_error(gl.UsageError, lambda wrong=wrong: opened(interval=wrong), "interval")

    second = (3501, 2, 0x0200)
    refused("4000 and 5000 micro", places=[second, (3273, 8, int.from_bytes(np.array(5000, ">f8").tobytes(), "big"))])
    assert opened(places=[(3273, 8, int.from_bytes(np.array(5000, ">f8").tobytes(), "big")), (3269, 4, 9), (3507, 4, 1)]).interval == 0.004
    assert opened(places=[second, (3269, 4, 7)]).samples == 7
    refused("7 samples by byte 3221, but of 9", places=[second, (3269, 4, 9)])
    refused("more headers", places=[second, (3507, 4, 1)])


def test_units_of_coordinates(folder):
    grid, (traces, _) = gl.Grid(), survey()

    def opened(code, system=1, **how):
        on_root(lambda: write(folder / "file.segy", [({**fields, 89: code(fields) if callable(code) else code}, samples) for fields, samples in traces],
                              places=[(3255, 2, system)]))
        return gl.io.open_survey(grid, folder / "file.segy", **how)

    for code, system, units in ((0, 1, "m"), (1, 1, "m"), (1, 2, "ft"), (0, 0, ""), (1, 7, "")):
        found = opened(code, system)
        assert found.units == units and ("positions in ft" in str(found)) == (units == "ft")
    for code, name in ((2, "seconds of arc"), (3, "degrees"), (4, "minutes"), (9, "code 9")):
        expect_error(gl.InputError, lambda code=code: opened(code), name, f"only={{89: {code}}}")
        assert opened(code, only={89: code}).units != "m" and opened(code, sources=[45], receivers=[0]).units == ""
    expect_error(gl.InputError, lambda: opened(lambda fields: 2 if fields[73] == 10050 else 1), "seconds of arc")


def test_questions_of_byte_order(folder):
    """The file's order is asked for only where the other one can be read."""
    grid, (traces, _) = gl.Grid(), survey()

    def refused(name, *words, **how):
        with pytest.raises(gl.InputError) as raised:
            gl.io.open_survey(grid, folder / name, **how)
        assert all(word in str(raised.value) for word in words), str(raised.value)
        return "-endian?" in str(raised.value)

    for order, other in (("little", False), ("big", True)):
        on_root(lambda order=order: write(folder / f"{order}.segy", traces, endian=order))
        assert refused(f"{order}.segy", f"{order}-endian?", little_endian=other)
    for places, words in (([(3225, 2, 6)], ("format 6", "1, 2, 3, 5, 8")), ([(3221, 2, 40000)], ("40000 samples", "1 to 32767")),
                          ([(3221, 2, 0), (3269, 4, 40000), (3501, 2, 0x0200)], ("0 samples", "40000", "1 to 32767"))):
        on_root(lambda places=places: write(folder / "other.segy", traces, places=places))
        assert not refused("other.segy", *words)


def test_wrong_files_and_arguments(folder):
    grid, (traces, _) = gl.Grid(), survey()
    name = folder / "line.segy"
    on_root(lambda: write(name, traces))
    expect_error(gl.InputError, lambda: gl.io.open_survey(grid, folder / "none.segy"), "none.segy")
    expect_error(gl.UsageError, lambda: gl.io.open_survey(grid, name, sources=[74]), "byte 74")
    expect_error(gl.UsageError, lambda: gl.io.open_survey(grid, name, sources=[]), "name the byte")
    on_root(lambda: write(folder / "starts.segy", [({**fields, 109: 8 * (number == 3)}, samples) for number, (fields, samples) in enumerate(traces)]))
    expect_error(gl.InputError, lambda: gl.io.open_survey(grid, folder / "starts.segy"), "from 0 to 8 ms")
    on_root(lambda: write(folder / "no_interval.segy", traces, interval=0))
    expect_error(gl.InputError, lambda: gl.io.open_survey(grid, folder / "no_interval.segy"), "interval")
    assert gl.io.open_survey(grid, folder / "no_interval.segy", interval=0.002).interval == 0.002


@pytest.mark.skipif(COMM.size > 1, reason="one process is enough")
def test_damaged_files(folder):
    """Whatever a file holds, it is read, or refused by an error of ours."""
    rng = np.random.default_rng(1)
    write(folder / "line.segy", survey()[0])
    good = (folder / "line.segy").read_bytes()
    refused = 0
    for number in range(600):
        damaged = bytearray(good)
        if number % 2:
            del damaged[rng.integers(len(good)):]
        else:
            places = rng.integers(3200, len(good), 8)
            places[:2] = 3200 + rng.integers(12, 30, 2)  # the binary header's sizes and format
            for place in places:
                damaged[place] = rng.integers(256)
        (folder / "damaged.segy").write_bytes(damaged)
        try:
            found = gl.io.open_survey(gl.Grid(), folder / "damaged.segy", fill=True)
            if found.numbers.size * found.samples < 10**7:
                assert found.traces[:].shape == found.traces.shape
        except (gl.InputError, gl.UsageError):
            refused += 1
    assert refused > 100


@pytest.mark.skipif(COMM.size > 1, reason="import runs on one process")
def test_import(folder, capsys, monkeypatch):
    traces, values = survey()
    write(folder / "line.segy", traces, places=[(3255, 2, 1)])
    found = gl.io.open_survey(gl.Grid(), folder / "line.segy")
    wanted = found.traces[:]
    monkeypatch.setattr("gridlops.__main__._BUFFER", 2 * 4 * values[0].size)  # two sources at a time
    for axes in ("source,receiver,time", "time,receiver,source", "receiver,time,source"):
        order = [("source", "receiver", "time").index(axis) for axis in axes.split(",")]
        assert main(["import", str(folder / "line.segy"), str(folder / "arrays"), "--order", axes]) == 0
        assert (np.load(folder / "arrays/traces.npy") == wanted.transpose(order)).all()
        assert (np.load(folder / "arrays/positions.npy") == np.concatenate([found.sources, found.receivers])).all()
        assert json.loads((folder / "arrays/survey.json").read_text()) == {"interval": 0.004, "start": 0, "samples": SAMPLES, "units": "m", "axes": axes}
        assert " x ".join(str(values.shape[axis]) for axis in order) in capsys.readouterr().out
        h5py = pytest.importorskip("h5py")
        assert main(["import", str(folder / "line.segy"), str(folder / "line.h5"), "--order", axes]) == 0
        with h5py.File(folder / "line.h5") as file:
            assert (file["traces"][...] == wanted.transpose(order)).all() and file["traces"].attrs["interval"] == 0.004
            assert (file["sources"][...] == found.sources).all() and (file["receivers"][...] == found.receivers).all()
    (folder / "own").mkdir()
    (folder / "own/sources.npy").write_text("mine", encoding="utf-8")
    assert main(["import", str(folder / "line.segy"), str(folder / "own")]) == 74
    assert "sources.npy is there, which no output of this kind has made" in capsys.readouterr().err
    assert [(path.name, path.read_text(encoding="utf-8")) for path in (folder / "own").iterdir()] == [("sources.npy", "mine")]
    assert sorted(path.name for path in folder.iterdir()) == ["arrays", "line.h5", "line.segy", "own"]


@pytest.mark.skipif(COMM.size > 1, reason="import runs on one process")
@pytest.mark.parametrize("sources, receivers, samples", [(5, 11, 9), (1, 11, 8), (5, 1, 1)])
@pytest.mark.parametrize("kind", [5, 2])
def test_import_of_spectra(folder, capsys, monkeypatch, sources, receivers, samples, kind):
    h5py = pytest.importorskip("h5py")
    values = np.random.default_rng(3).integers(-50, 50, (sources, receivers, samples))
    write(folder / "field.segy", [(header((10 * i, 0, 0), (j, 0, 0)), values[i, j]) for i in reversed(range(sources)) for j in range(receivers)], kind)
    monkeypatch.setattr("gridlops.__main__._CHUNK", 2)
    size = 8 if kind == 2 else 4  # bytes of a sample in memory
    for wanted in (None, samples, samples + 1, 3 * samples):
        length = wanted or samples
        for traces in (0, 1, 3, 5, receivers, 2 * receivers + 1, 1000):
            monkeypatch.setattr("gridlops.__main__._BUFFER", traces * size * length)
            assert main(["import", str(folder / "field.segy"), str(folder / "field.h5"), "--spectra", *([str(wanted)] if wanted else [])]) == 0
            assert f"spectra, {length // 2 + 1} x {receivers} x {sources}" in capsys.readouterr().out
            with h5py.File(folder / "field.h5") as file:
                spectra = file["spectra"]
                assert "traces" not in file and spectra.dtype == (np.complex128 if kind == 2 else np.complex64)
                chunk = spectra.chunks
                assert chunk[0] == 1 and chunk[1] * chunk[2] <= max(traces, 1) and (chunk[1] == receivers or chunk[1] % min(2, max(traces, 1)) == 0)
                assert chunk[2] == min(sources, max(traces, 1) // min(2, receivers, max(traces, 1)))
                assert {**spectra.attrs} == {"interval": 0.004, "start": 0, "samples": length, "units": "", "axes": "frequency,receiver,source"}
                expected = np.fft.rfft(values, length).transpose(2, 1, 0)
                assert np.abs(spectra[...] - expected).max() <= 8 * np.finfo(spectra.dtype).eps * 50 * samples
    assert sorted(path.name for path in folder.iterdir()) == ["field.h5", "field.segy"]


@pytest.mark.skipif(COMM.size > 1, reason="import runs on one process")
def test_import_of_a_file_with_the_receivers_of_another(folder, capsys):
    pytest.importorskip("h5py")
    traces, _ = survey()
    write(folder / "field.segy", traces, places=[(3255, 2, 1)])
    write(folder / "shots.segy", [({**fields, 73: fields[73] + 500}, samples) for fields, samples in traces])
    write(folder / "fewer.segy", [(fields, samples) for fields, samples in traces if fields[81] > 30000])
    write(folder / "moved.segy", [({**fields, 85: fields[85] + (fields[81] == 31000)}, samples) for fields, samples in traces])

    def status(name, *arguments):
        return main(["import", str(folder / name), str(folder / "out.h5"), *arguments])

    for output in ("field.h5", "field"):
        assert main(["import", str(folder / "field.segy"), str(folder / output)]) == 0
        of_field = ("--receivers-of", str(folder / output))
        assert status("shots.segy", *of_field) == 0
        (folder / "out.h5").unlink()
        capsys.readouterr()
        for name, words in (("fewer.segy", ("has 2 receivers", "3 x 3")), ("moved.segy", ("1 of the 3 receivers", "receiver 1, at [310.0, 0.26, 31.0] and at [310.0, 0.25, 31.0]"))):
            assert status(name, *of_field) == 65
            printed = capsys.readouterr().err
            assert all(word in printed for word in words), printed
            assert not (folder / "out.h5").exists()
    assert status("shots.segy", "--receivers-of", str(folder / "none")) == 65 and "no receivers" in capsys.readouterr().err

    write(folder / "faster.segy", [({**fields, 73: fields[73] + 500}, samples) for fields, samples in traces], interval=2000)
    assert status("faster.segy", *of_field) == 65 and "every 2 ms" in capsys.readouterr().err
    write(folder / "feet.segy", [({**fields, 73: fields[73] + 500}, samples) for fields, samples in traces], places=[(3255, 2, 2)])
    assert status("feet.segy", *of_field) == 65 and "are in ft, but" in capsys.readouterr().err
    write(folder / "longer.segy", [(fields, np.append(samples, 1)) for fields, samples in traces])
    assert status("longer.segy", *of_field) == 0  # zeros follow shorter traces
    for samples, of_shots, of_data in ((7, "longer.segy", 8), (8, "longer.segy", 8), (8, "shots.segy", 7)):
        found = 0 if samples == of_data else 65
        assert main(["import", str(folder / "field.segy"), str(folder / "field.h5"), "--spectra", str(samples)]) == 0
        assert status(of_shots, "--receivers-of", str(folder / "field.h5")) == found
        assert found == 0 or f"--spectra {of_data}" in capsys.readouterr().err
    for of_shots in ("longer.segy", "shots.segy"):  # the other way around
        assert main(["import", str(folder / of_shots), str(folder / "shots.h5"), "--order", "time,receiver,source"]) == 0
        assert status("field.segy", "--spectra", "--receivers-of", str(folder / "shots.h5")) == (65 if of_shots == "longer.segy" else 0)


@pytest.mark.skipif(COMM.size > 1, reason="import runs on one process")
def test_import_that_fails_leaves_nothing(folder, capsys):
    write(folder / "gap.segy", survey()[0][:-2])
    for arguments, status, word in ((["gap.segy", "out.h5"], 65, "2 of the 4 x 3 pairs"), (["none.segy", "out.h5"], 65, "none.segy"), (["gap.segy", "none/out.h5", "--fill"], 74, "none"),
                                    (["gap.segy", "out.h5", "--sources", "74"], 2, "byte 74"), (["gap.segy", "out.npy", "--fill"], 2, "folder"),
                                    (["gap.segy", "out.d", "--fill", "--spectra"], 2, "HDF5"), (["gap.segy", "out.h5", "--fill", "--spectra", "6"], 2, "7 samples")):
        assert main(["import", *(str(folder / name) if "." in name else name for name in arguments)]) == status
        assert word in capsys.readouterr().err
        assert [path.name for path in folder.iterdir()] == ["gap.segy"]
    assert main(["import", str(folder / "gap.segy"), str(folder / "gap"), "--fill", "--order", "time,receiver,source"]) == 0
    weights, traces = np.load(folder / "gap/weights.npy"), np.load(folder / "gap/traces.npy")
    assert weights.dtype == "f4" and (weights == traces.any(axis=0)).all() and weights.shape == (3, 4) and weights.sum() == 10
    for option, value in (("--order", "time,time,source"), ("--only", "29"), ("--only", "29=1,"), ("--sources", "x"), ("--spectra", "0"), ("--spectra", "1.5")):
        with pytest.raises(SystemExit) as ended:
            main(["import", "a", "b", option, value])
        assert ended.value.code == 2 and repr(value) in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main(["import", "a", "b", "--spectra", "--order", "time,receiver,source"])
    assert ended.value.code == 2 and "not allowed with" in capsys.readouterr().err


@pytest.mark.skipif(COMM.size == 1, reason="about several processes")
def test_import_on_several_processes(folder, capsys):
    assert main(["import", "line.segy", str(folder / "line.h5")]) == 2 and "one process" in capsys.readouterr().err
