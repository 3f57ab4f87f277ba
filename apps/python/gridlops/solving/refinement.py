# SPDX-License-Identifier: BSD-3-Clause
"""Solutions for an operator by an approximation that is cheaper to multiply with."""

from __future__ import annotations

from typing import Any

from ..matrices import Matrix, functions_for, same_type
from ..operators import Operator
from .options import SolveOptions
from .reports import SolveReport
from .solvers import Columns, solved


def solve_refined(A: Operator, approximation: Operator, B: Columns, x0: Columns | None = None, *, inner_iterations: int = 1000,
                  cost_of_A: float = 0, cost_of_approximation: float = 0, out: Matrix | None = None,
                  options: SolveOptions | None = None, **changes: Any) -> tuple[Any, SolveReport]:
    """Minimises ‖A xⱼ − bⱼ‖² + D²‖xⱼ‖² by steps with A, each of which iterates with the approximation. Collective.

    Tests, verdicts and norms are those of :func:`cgls` with A; ``iterations`` are steps, of one product with A and one
    with its adjoint. Every step reduces the error, however poor the approximation is, which must map between the same
    spaces as A. With what products cost, in any unit, such as the bytes of both matrices, a column ends with
    "user_stop" where :func:`cgls` with A is expected to cost less.

    ``report["refinement"]`` has lists with one entry for each column: ``inner_iterations``; ``contractions``, the factor
    by which a step reduces the error, 0 where it was not measured; ``cgls_iterations``, which :func:`cgls` is expected
    to take; ``needed_contractions``, above which columns are refused; ``refused``. ``products_with_A`` and
    ``products_with_approximation`` count products with a block of columns, and ``refusal`` says why columns were refused.
    """
    same_type(A, approximation)
    return solved(A, B, x0, out, options, changes, lambda native, b, x, how: native.solve_refined(
        A.native, approximation.native, b, x, how, inner_iterations, cost_of_A, cost_of_approximation))


def difference_norm(A: Operator, approximation: Operator, *, steps: int = 20) -> float:
    """A lower bound of ‖A − Ã‖₂, a few per cent too small at most, by this many steps of Golub–Kahan. Collective."""
    same_type(A, approximation)
    return float(functions_for(A.dtype).difference_norm(A.native, approximation.native, steps))
