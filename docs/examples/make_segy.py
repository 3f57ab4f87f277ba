#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes a survey as SEG-Y files, as others would write them. Needs NumPy and segyio.

FOLDER/field.segy is the field between 9 sources and 24 receivers, FOLDER/shots.segy what the receivers record of 3 shots,
and FOLDER/response.npy the response (time, source, shot) that deconvolution of the shots by the field should find. With
TIMES there are TIMES as many sources and receivers, at 1/TIMES of the distance."""
import argparse
import pathlib

import numpy as np
import segyio

SAMPLES, INTERVAL, SHOTS = 256, 0.004, 260 + 40.0 * np.arange(3)


def ricker(t, frequency):
    return (1 - 2 * (np.pi * frequency * t) ** 2) * np.exp(-((np.pi * frequency * t) ** 2))


def write(path, gathers, sources, receivers):
    """Writes a gather (receiver, time) for each source, with positions in centimetres, receivers at a depth of 50 m."""
    spec = segyio.spec()
    spec.samples, spec.format, spec.tracecount = 1e3 * INTERVAL * np.arange(SAMPLES), 1, len(sources) * len(receivers)
    with segyio.create(path, spec) as file:
        file.bin[segyio.BinField.Interval] = round(1e6 * INTERVAL)
        for i, gather in enumerate(gathers):
            for j, trace in enumerate(gather.astype(np.float32)):
                field, number = segyio.TraceField, i * len(receivers) + j
                file.header[number] = {field.SourceGroupScalar: -100, field.SourceX: round(100 * sources[i]), field.GroupX: round(100 * receivers[j]),
                                       field.ReceiverGroupElevation: -50}
                file.trace[number] = trace


def main(folder, times=1):
    folder.mkdir(parents=True, exist_ok=True)
    t, spacing = INTERVAL * np.arange(SAMPLES), 12.5 / times
    sources, receivers = 250 + spacing * np.arange(9 * times), 200 + spacing * np.arange(24 * times)
    path = np.hypot(SHOTS[:, None] - sources, 300)  # metres, at 1500 m/s
    response = 0.5 / times * ricker(t - path[..., None] / 1500, 20)  # (shot, source, time)
    spectra = np.zeros((len(SHOTS), len(receivers), SAMPLES // 2 + 1), complex)

    def field():
        for source, of_response in zip(sources, np.fft.rfft(response).swapaxes(0, 1)):
            path = np.hypot(source - receivers, 50)
            gather = ricker(t - 0.06 - path[:, None] / 1500, 25) / np.sqrt(path)[:, None]
            spectra[:] += np.fft.rfft(gather) * of_response[:, None]
            yield gather

    write(folder / "field.segy", field(), sources, receivers)
    write(folder / "shots.segy", np.fft.irfft(spectra, SAMPLES), SHOTS, receivers)
    np.save(folder / "response.npy", response.transpose(2, 1, 0))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="FOLDER", type=pathlib.Path)
    parser.add_argument("times", metavar="TIMES", type=int, nargs="?", default=1)
    asked = parser.parse_args()
    if asked.times < 1:
        parser.error(f"TIMES is {asked.times}, which is less than 1")
    main(asked.folder, asked.times)
