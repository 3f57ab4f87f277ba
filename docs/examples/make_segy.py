#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes a survey as SEG-Y files, as others would write them: make_segy.py FOLDER. Needs NumPy and segyio.

FOLDER/field.segy is the field between 9 sources and 24 receivers, FOLDER/shots.segy what the receivers record of 3 shots,
and FOLDER/response.npy the response (time, source, shot) that deconvolution of the shots by the field should find."""
import pathlib
import sys

import numpy as np
import segyio

SAMPLES, INTERVAL = 256, 0.004
SOURCES, RECEIVERS, SHOTS = 250 + 12.5 * np.arange(9), 200 + 12.5 * np.arange(24), 260 + 40.0 * np.arange(3)


def ricker(t, frequency):
    return (1 - 2 * (np.pi * frequency * t) ** 2) * np.exp(-((np.pi * frequency * t) ** 2))


def write(path, traces, sources):
    """Writes traces (source, receiver, time) with positions in centimetres, receivers at a depth of 50 m."""
    spec = segyio.spec()
    spec.samples, spec.format, spec.tracecount = 1e3 * INTERVAL * np.arange(SAMPLES), 1, traces.shape[0] * traces.shape[1]
    with segyio.create(path, spec) as file:
        file.bin[segyio.BinField.Interval] = round(1e6 * INTERVAL)
        for number, (i, j) in enumerate(np.ndindex(traces.shape[:2])):
            field = segyio.TraceField
            file.header[number] = {field.SourceGroupScalar: -100, field.SourceX: round(100 * sources[i]), field.GroupX: round(100 * RECEIVERS[j]),
                                   field.ReceiverGroupElevation: -50}
            file.trace[number] = traces[i, j].astype(np.float32)


def main(folder):
    folder.mkdir(exist_ok=True)
    t = INTERVAL * np.arange(SAMPLES)
    path = np.hypot(SOURCES[:, None] - RECEIVERS, 50)  # metres, at 1500 m/s
    field = ricker(t - 0.06 - path[..., None] / 1500, 25) / np.sqrt(path)[..., None]  # (source, receiver, time)
    path = np.hypot(SHOTS[:, None] - SOURCES, 300)
    response = 0.5 * ricker(t - path[..., None] / 1500, 20)  # (shot, source, time)
    spectra = np.einsum("yxf,syf->sxf", np.fft.rfft(field), np.fft.rfft(response))
    write(folder / "field.segy", field, SOURCES)
    write(folder / "shots.segy", np.fft.irfft(spectra, SAMPLES), SHOTS)
    np.save(folder / "response.npy", response.transpose(2, 1, 0))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]))
