# SPDX-License-Identifier: BSD-3-Clause
"""Checks that each rule of solve, plan and mdd about options that exclude each other refuses what breaks it, with its text and status
2, alike on one rank and on two, and writes nothing. Rules that no case here breaks are found in the sources. rules_test.py LAUNCH
PROGRAM"""
import re
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import program  # noqa: E402  (found by the line before)

SWEEP = ["--damps", "0.1:1:4"]
EACH = [*SWEEP, "--choose", "gcv", "--sweep"]
SPACE = ["--space", "space"]
SHARED = "right-hand sides that share a space lie together"
SCALED = "--precondition", "column-norms"
SPECTRA = ["--kernel", "G.npy", "--data", "D.npy"]
SOLVE = [
    (["--storage", "disk", "--algorithm", "summa"], "--storage disk works with --algorithm stationary-a only, not with summa"),
    (["--one-pass", "on", "--algorithm", "block"], "--one-pass works with --algorithm stationary-a only, not with block"),
    (["--solver", "block-cgls", "--algorithm", "summa"], "--solver block-cgls works with --algorithm stationary-a only, not with summa"),
    (["--one-pass", "on", "--storage", "columns"],
     "--one-pass on and --storage columns exclude each other: one pass reads A packed; leave --storage out"),
    (["--weights", "W.npy", "--solver", "direct"],
     "--weights gives every column an operator of its own, and these share no factor: take another solver than direct"),
    (["--holes", "nan", "--solver", "block-cgls"],
     "--holes nan gives every column an operator of its own, and these share no space: take another solver than block-cgls"),
    (["--solver", "lsqr", "--variances", "V.npy", *SCALED],
     "--variances and --precondition exclude each other: with scaled columns the estimates are those of the scaled X"),
    ([*SWEEP, *SCALED], "--damps and --precondition exclude each other: with scaled columns the damping is part of the operator, "
                        "which all columns share"),
    (["--solver", "cg", *SWEEP, "--choose", "gcv"], "--choose gcv is for least squares, and means nothing to cg"),
    (["--solver", "bounded", "--nonnegative", *SWEEP, "--choose", "gcv"],
     "--choose gcv needs an X that is linear in B, and with bounds none is; take lcurve or discrepancy"),
    (["--one-pass", "on", "--weights", "W.npy"],
     "--one-pass on and --weights exclude each other: one pass gives A^H A P, without the weights between"),
    (["--weights", "W.npy", *SCALED], "--weights and --precondition exclude each other: the columns of diag(w) A have other norms for "
                                      "each column w of W"),
    (["--holes", "nan", *SWEEP, "--choose", "gcv"],
     "--choose gcv counts all rows of A, and excludes --weights and --holes, which leave some out"),
    ([*SPACE, "--holes", "nan"], "--space and --holes nan exclude each other: columns with weights of their own have operators of "
                                 "their own, which share nothing"),
    (["--misfit", "huber", "--solver", "block-cgls"],
     "--misfit gives every column an operator of its own, and these share no space: take another solver than block-cgls"),
    (["--misfit", "huber", "--solver", "direct"],
     "--misfit gives every column an operator of its own, and these share no factor: take another solver than direct"),
    (["--misfit", "huber", *SWEEP], "--misfit and --damps exclude each other: every damping would have weights of its own, so that "
                                    "residuals do not compare"),
    (["--misfit", "huber", "--restart", "saved"], "--misfit and --restart exclude each other: a checkpoint belongs to one solve, and a "
                                                  "misfit takes several"),
    (["--misfit", "huber", "--error", 1e-3, "--damp", 1], "--misfit and --error exclude each other: weights follow X, and sigma_min of "
                                                          "diag(w) A is not known; with --damp the report has a misfit_distance"),
    (["--misfit-scale", 1], "--misfit-scale needs --misfit"),
    (["--misfit", "huber", "--misfit-scale", 0], "--misfit-scale is 0; residuals are divided by it: it must be > 0"),
    (["--certify", "A.npy", "--weights", "W.npy"], "--certify and --weights exclude each other"),
    ([*SWEEP, "--choose", "discrepancy"], "--choose discrepancy and --noise, the norm of the noise in B, need each other"),
    ([*SWEEP, "--choose", "lcurve", "--noise", 1], "--choose discrepancy and --noise, the norm of the noise in B, need each other"),
    ([*SWEEP, "--choose", "gcv", "--space-dimension", 5], "--space-dimension needs --sweep space or auto, which make a space"),
    ([*SWEEP, "--sweep", "auto"], "--sweep auto needs --choose: X has one solution for each right-hand side"),
    ([*EACH, "space", "--solver", "lsqr"], "--sweep space is for cgls, not for lsqr"),
    ([*EACH, "direct", "--solver", "cgls"], "--sweep direct is for direct, not for cgls"),
    ([*SPACE, "--algorithm", "summa"], f"--space needs --algorithm stationary-a, and not summa: {SHARED}"),
    ([*SPACE, "--dry-run"], "--space and --dry-run exclude each other"),
    ([*EACH, "auto", "--initial", "X0.npy"], "--sweep auto and --initial exclude each other"),
    ([*EACH, "space", "--tolerances", "T.npy"], "--sweep space and --tolerances exclude each other"),
    ([*SPACE, *SCALED], "--space and --precondition exclude each other"),
    ([*EACH, "direct", "--batch", 2], "--sweep direct and --batch exclude each other"),
    ([*EACH, "direct", "--checkpoint", "saved"], "--sweep direct and --checkpoint exclude each other"),
    ([*SPACE, "--restart", "saved"], "--space and --restart exclude each other"),
    (["--certify", "A.npy", "--solver", "lsqr"], "--certify takes conjugate gradients with both matrices, not --solver lsqr"),
    (["--certify", "A.npy", *SPACE], "--certify and a space, of --sweep or --space, exclude each other"),
    (["--error", 0.01, "--damp", 1, *SCALED],
     "--error and --precondition exclude each other: the solver finds z of x = P z, and the error is that of x"),
    (["--sigma-min", "proven", "--algorithm", "summa"],
     "--sigma-min proven needs --algorithm stationary-a or block, and not summa: it reads whole rows of A"),
    (["--sigma-min", "proven", "--device", "gpu"], "--sigma-min proven is for --device cpu, not for gpu"),
    (["--error", 0.01], "nothing bounds errors without damping, unless --sigma-min says that no singular value of A is near 0"),
    (["--solver", "bounded"], "--solver bounded needs --nonnegative, --lower or --upper; without bounds cgls takes fewer iterations"),
    (["--solver", "ista"], "--solver ista needs --lambda, the weight of the penalty that makes X sparse, or --lambda-relative, 0.1 "
                           "say; 0 would be least squares, which lsqr solves in far fewer iterations"),
]
MDD = [
    (["--samples", 20, "--nf", 30], "--nf 30 is too many: traces of 20 samples, and as many negative times but one, have 20 frequencies"),
    (["--interval", 0, "--nf", 9], "--interval is 0, but samples need time between them"),
    (["--independent", "--domain", "time"],
     "--independent and --domain time exclude each other: in time the frequencies are one problem"),
    (["--compress", 2], "--compress is 2, but the error of a kernel, relative to its norm, must be above 0 and below 1"),
    (["--independent", "--groups"],
     "--independent and --groups exclude each other: a rank that shares a frequency cannot solve it alone"),
    ([*SPECTRA, "--storage", "disk", "--device", "gpu"], "--storage disk is for kernels in host memory, on --device cpu"),
    (["--kernel", "traces.npy", "--data", "D.npy", "--storage", "disk"],
     "--storage disk is for a --kernel of spectra: one in time, or one that is generated, becomes spectra in memory"),
    (["--compress", 0.1, "--dry-run"],
     "--compress and --dry-run exclude each other: how small a kernel becomes shows when it is compressed"),
    ([*SPECTRA, "--storage", "disk", "--dry-run"],
     "--storage disk and --dry-run exclude each other: a rank takes what --memory says, or what the machine leaves"),
]
# The functions that have rules, and the cases that break these.
SOURCES = [("apps/command_line/option_rules.cpp", r"rules_of\(const IterationRequest.*?\n}\n", SOLVE),
           ("apps/solve/task/solve_rules.cpp", r"rules_of_\w+\(const SolveArguments.*?\n}\n", SOLVE),
           ("apps/use_cases/mdd/mdd.cpp", r"rules_of\(const MddArguments.*?\n}\n", MDD)]


def texts_of(source):
    """The texts in a source, but for those with which values are compared; a value stands for each {}."""
    source = re.sub(r'[!=]= "[^"]*"', "", source)
    for text in re.findall(r'"[^"]*"(?:\s*"[^"]*")*', source):
        yield ".*".join(map(re.escape, re.sub(r'"\s*"', "", text)[1:-1].split("{}")))


def check_completeness(suite):
    for path, function, cases in SOURCES:
        bodies = re.findall(function, (program.ROOT / path).read_text(encoding="utf-8"), re.DOTALL)
        texts = [text for body in bodies for text in texts_of(body)]
        suite.check(len(texts) > 3, "no rules in", path)
        for text in texts:
            suite.check(any(re.search(text, said) for _, said in cases), path, "has a rule that no case breaks:", text)


def write_files(folder):
    rng = np.random.default_rng(9)
    for name, array in {"A": rng.standard_normal((12, 8)), "B": rng.standard_normal((12, 3)), "X0": np.ones((8, 3)), "T": np.ones(3),
                        "G": np.ones((5, 4, 3), np.complex64), "traces": np.ones((8, 4, 3), np.float32),
                        "D": np.ones((8, 4), np.float32)}.items():
        np.save(folder / f"{name}.npy", array)


def test(suite, full):
    check_completeness(suite)
    write_files(suite.folder)
    before = sorted(suite.folder.iterdir())
    for head, cases in ((["solve", "--matrix", "A.npy", "--rhs", "B.npy", "--output", "X.npy"], SOLVE), (["mdd", "--save", "mine"], MDD)):
        for words, said in cases:
            for ranks in (None, 2):
                run = suite.run(*head, *words, ranks=ranks)
                suite.succeeded(run, 2)
                suite.check(run.error_lines == [f"gridlops: error: {said}"], run.command, "says", run.error_lines, "but should say", said)
    suite.check(sorted(suite.folder.iterdir()) == before, "files were written:", sorted(suite.folder.iterdir()))


if __name__ == "__main__":
    program.main(test, __doc__)
