"""The table of samples, the tuples of primitives and the records themselves are complete."""

import importlib
import pkgutil
from dataclasses import fields
from itertools import pairwise
from types import ModuleType

import pytest

import functrans
from cases import each
from functrans.core.primitive import Marker, Primitive, linear, multilinear, nondifferentiable
from functrans.ir.encoding import primitive_named
from samples import NOT_SAMPLED, ROWS

# Markers of passes and of imperative nodes: never bound by a user's function, so that they need no
# rules.
INTERNAL = ("output", "composite")
# Fields whose absence needs a written reason; without the others the derived form is used.
RULES = ("jvp", "transpose", "batch")


def _modules() -> list[ModuleType]:
    names = [
        info.name
        for info in pkgutil.walk_packages(functrans.__path__, "functrans.")
        if not info.name.endswith("__main__")
    ]
    return [importlib.import_module(name) for name in sorted(names)]


def _defined() -> dict[int, tuple[Primitive, str]]:
    """Every record that is bound to a module-level name, with the module that it was found in."""
    found: dict[int, tuple[Primitive, str]] = {}
    for module in _modules():
        for value in vars(module).values():
            if isinstance(value, Primitive) and value.name not in INTERNAL:
                found.setdefault(id(value), (value, module.__name__))
    return found


def _listed() -> dict[int, tuple[Primitive, str]]:
    """Every record in a ``PRIMITIVES`` tuple of a family file."""
    found: dict[int, tuple[Primitive, str]] = {}
    for module in _modules():
        listed = vars(module).get("PRIMITIVES", ())
        assert isinstance(listed, tuple), module.__name__
        assert len(set(map(id, listed))) == len(listed), module.__name__
        for primitive in listed:
            assert isinstance(primitive, Primitive)
            found.setdefault(id(primitive), (primitive, module.__name__))
    return found


ALL = [primitive for primitive, _ in _defined().values()]


def test_every_record_is_listed_by_its_family() -> None:
    defined, listed = _defined(), _listed()
    missing = [f"{module}: {p.name}" for key, (p, module) in defined.items() if key not in listed]
    assert not missing, f"not in the PRIMITIVES of their file: {missing}"
    assert len(defined) > 140


def test_the_tables_list_every_record_once() -> None:
    listed = (*functrans.primitives.table.PRIMITIVES, *functrans.tables.HIGHER_ORDER)
    assert len(set(map(id, listed))) == len(listed)
    assert {p.name for p in listed} == {p.name for p in ALL}


def test_every_record_can_be_read_from_a_file() -> None:
    str(functrans.make_jaxpr(lambda x: x)(1.0))  # installs the table
    for primitive in ALL:
        assert primitive_named(primitive.name) is primitive


def test_no_two_records_share_a_name() -> None:
    names = sorted(primitive.name for primitive in ALL)
    assert [name for name, after in pairwise(names) if name == after] == []


def test_every_record_has_one_row() -> None:
    rows = [id(row.primitive) for row in ROWS]
    assert len(set(rows)) == len(rows)
    without = sorted(p.name for p in ALL if id(p) not in rows and p.name not in NOT_SAMPLED)
    assert not without, f"no row in tests/samples for {without}"
    known = {p.name for p in ALL}
    assert sorted(row.name for row in ROWS if row.name not in known) == []


def test_exceptions_are_still_needed() -> None:
    rows = {row.name for row in ROWS}
    known = {p.name for p in ALL}
    for name, reason in NOT_SAMPLED.items():
        assert len(reason) > 20, name
        assert name in known, name
        assert name not in rows, name


@each("primitive", [pytest.param(p, id=p.name) for p in ALL])
def test_absent_rules_have_a_written_reason(primitive: Primitive) -> None:
    reasons = dict(primitive.reasons)
    assert len(reasons) == len(primitive.reasons)
    assert set(reasons) <= {field.name for field in fields(Primitive)}
    for name in RULES:
        if getattr(primitive, name) is None:
            assert reasons.get(name), f"{primitive.name}.{name} is None without a reason"
    for name in reasons:
        assert getattr(primitive, name) is None, f"{primitive.name}.{name} is there, a reason too"


@each("primitive", [pytest.param(p, id=p.name) for p in ALL])
def test_fields_are_consistent(primitive: Primitive) -> None:
    assert primitive.name.isidentifier()
    assert callable(primitive.impl)
    assert callable(primitive.abstract_eval)
    if isinstance(primitive.jvp, Marker):
        assert primitive.jvp in (linear, multilinear, nondifferentiable)
    if primitive.jvp in (linear, multilinear):
        assert primitive.transpose is not None
    if primitive.jvp is nondifferentiable:
        assert primitive.transpose is None
    if primitive.elementwise is not None:
        assert len(primitive.elementwise.partials) == len(primitive.elementwise.saves)
