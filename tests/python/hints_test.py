# SPDX-License-Identifier: BSD-3-Clause
"""Whether everything public has a docstring and type hints, and the hints for the module in C++ fit it."""
import ast
import dataclasses
import inspect
import pathlib
import typing

import gridlops as gl
from gridlops import _native


def members(kind):
    """The public functions and properties that a class defines, as (name, what the class has)."""
    for name, member in vars(kind).items():
        if not name.startswith("_") and (callable(member) or isinstance(member, (property, classmethod, staticmethod))):
            yield name, member


def functions(member):
    """What is called for a member that is written in Python."""
    if isinstance(member, property):
        member = member.fget
    elif isinstance(member, (classmethod, staticmethod)):
        member = member.__func__
    return [member] if inspect.isfunction(member) else []


def public():
    """(name, object, the functions of Python that it consists of), of everything that `import gridlops` gives."""
    for name in gl.__all__:
        item = getattr(gl, name)
        yield name, item, functions(item)
        if inspect.isclass(item):
            for member_name, member in members(item):
                yield f"{name}.{member_name}", member, functions(member)


def test_docstrings():
    # Dataclasses and exceptions must have their own, which inspect.getdoc would take from a base or make up.
    missing = [name for name, item, _ in public() if not (inspect.getdoc(item) or "").strip() or
               (inspect.isclass(item) and (item.__doc__ or "").startswith(f"{name}("))]
    assert not missing, missing


def test_hints():
    missing = []
    for name, _, found in public():
        for function in found:
            hints = typing.get_type_hints(function)  # also fails where a hint names nothing
            arguments = [each for each in inspect.signature(function).parameters if each not in ("self", "cls")]
            missing += [f"{name}: {each}" for each in [*arguments, "return"] if each not in hints]
    assert not missing, missing


def test_hints_of_the_native_module():
    text = pathlib.Path(gl.__file__).with_name("_native.pyi").read_text(encoding="utf-8")
    classes = [each for each in ast.parse(text).body if isinstance(each, ast.ClassDef)]
    assert {each.name for each in classes} == {"Cut", "Layout", "Iteration", "Space"}
    for each in classes:
        kind = getattr(_native, each.name)
        hinted = {node.name for node in each.body if isinstance(node, ast.FunctionDef)}
        assert hinted <= set(dir(kind)) | {"__getattr__"}, hinted - set(dir(kind))
        if "__getattr__" not in hinted:
            assert {name for name in vars(kind) if not name.startswith("_")} <= hinted, each.name


def test_options_are_those_of_the_library():
    named = {each.name.rstrip("_") for each in dataclasses.fields(gl.SolveOptions)}
    missing = set(_native.SOLVE_OPTIONS) - named - {"initial_guess"}  # which is the argument x0
    assert not missing, missing


def test_help():
    text = inspect.cleandoc(gl.__doc__ or "")
    assert all(name in text for name in ("Grid", "Matrix", "Operator", "cgls", "mpi4py"))
    assert (pathlib.Path(gl.__file__).parent / "py.typed").exists()
