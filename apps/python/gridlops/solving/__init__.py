# SPDX-License-Identifier: BSD-3-Clause
"""Solvers, and what they are built on: factors, proximal operators, reports; sweeps over dampings, refinement, ridges."""
