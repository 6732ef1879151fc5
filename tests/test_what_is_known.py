"""What is known of programs, and what else the library remembers, is listed and forgotten."""

import ast
import pickle
import re
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import functrans as ft
import functrans.autograd as ag
import functrans.numpy as fnp
from functrans.autograd import func
from functrans.compiler.execution import Execution, execution_of
from functrans.control.native import Runs, runs_of
from functrans.core.analyses import analysis, remember
from functrans.debugging.costs import program_cost
from functrans.errors import UnsupportedOperationError
from functrans.jitted.caches import counted
from functrans.jitted.guards import check_all_paths
from functrans.passes.dce import dce
from functrans.passes.evaluate import evaluate, executable
from functrans.passes.executables import last_uses
from functrans.passes.programs import derived
from functrans.passes.simplify import simplify

X = np.arange(1.0, 4.0)
CACHED = re.compile(r"(functools\.)?(lru_)?cache(\(.*\))?")

# Of the library itself and of the machine: users' programs do not make these grow.
CONSTANT = {
    "compat.namespaces._is_installed": "packages that are there",
    "machine.cache._warn_unused": "warnings that were given",
    "machine.engine._keep_text_type": "classes for LLVM",
    "machine.engine._shared_machine": "LLVM's machines",
    "machine.engine._target": "the processor",
    "machine.system._function_address": "addresses, which machine code holds",
    "machine.system._libraries": "systems",
    "compiler.symbols._from_numpy": "addresses, which machine code holds",
    "compiler.symbols._of_ufunc": "addresses, which machine code holds",
    "primitives.native.ufuncs.find_loop": "names of loops of NumPy and SciPy",
    "primitives.native.ufuncs.special_loop": "functions of SciPy, for dtypes",
    "compiler.symbols._from_scipy": "addresses, which machine code holds",
    "emitter.casts.kind_of": "dtypes",
    "emitter.casts.register_type": "dtypes",
    "emitter.types._text": "LLVM's types",
    "emitter.types._vector": "LLVM's types",
    "plain.marked._pattern": "kinds of names",
    "plain.sparse.matrices._copies": "formats of SciPy",
    "plain.twin_classes._class_of_twins": "classes, by which twins are known",
    "primitives.special.family.routine": "functions of SciPy",
    "scipy.dispatch.plain": "functions of SciPy",
    "scipy.dispatch.by_code": "functions of SciPy",
}


def program() -> Any:
    return ft.make_jaxpr(lambda x: fnp.sum(fnp.sin(x) * x))(X)


def use_everything() -> list[Any]:
    """Fill what can be filled; what is returned keeps the programs alive."""
    jaxpr = program()
    jaxpr.cost()
    evaluate(jaxpr, [X])
    evaluate(jaxpr, [X])
    loop = ft.jit(ft.grad(lambda x: ft.lax.scan(lambda c, y: (c * y, c), 1.0, x)[0]))
    path = ft.jit(lambda x: x if x > 0 else -x, specialize=True)
    sparse = ft.sparse_jacobian(lambda x: x * x)
    t = ag.tensor(X, requires_grad=True)
    step = ft.jit(lambda x: (x * 2.0).sum())
    kept = [jaxpr, loop, path, sparse, step, fnp.einsum("ij,j->i", np.eye(3), X)]
    for fun, x in ((loop, X), (path, 2.0), (sparse, X), (step, t), (ft.vmap(np.sin), X)):
        fun(x)
    ft.hessian(lambda x: np.linalg.det(x * np.eye(3)))(X)
    func.grad(lambda x: (x * x).sum())(t)
    return kept


def test_clear_caches_forgets_everything_that_is_listed() -> None:
    kept = use_everything()
    before = counted()
    names = {"simplify", "executable", "last_uses", "program_cost", "prepare", "runs_of"}
    names |= {"programs of jit", "interned programs", "sparse plans"}
    names |= {"_derived", "functrans.passes.pullback._derived_pullback"}
    assert not {name for name in names if not before[name]}
    ft.clear_caches()
    assert {name: count for name, count in counted().items() if count} == {}
    assert kept[0].cache.keys() <= {execution_of, runs_of}
    assert kept[1].cache_size == kept[2].cache_size == kept[4].cache_size == 0


def test_what_was_forgotten_is_found_out_anew() -> None:
    jaxpr = program()
    before = [simplify(jaxpr), last_uses(jaxpr), evaluate(jaxpr, [X]), jaxpr.cost().flops]
    ft.clear_caches()
    after = [simplify(jaxpr), last_uses(jaxpr), evaluate(jaxpr, [X]), jaxpr.cost().flops]
    assert after[1:] == before[1:]
    assert str(after[0]) == str(before[0])


def test_what_programs_were_told_is_not_forgotten() -> None:
    f = ft.jit(lambda x: x if x > 0 else -x, specialize=True)
    lowered = f.lower(2.0)
    ft.clear_caches()
    with pytest.raises(UnsupportedOperationError, match="that of one path"):
        check_all_paths(lowered.jaxpr, "compile")
    execution = Execution(is_one_path=True)
    execution.forget()
    assert execution.is_one_path
    runs = Runs(interpreted_s=1.0, codes={False: None})
    runs.forget()
    assert (runs.interpreted_s, len(runs)) == (None, 0)


def test_functions_work_on_after_their_caches_are_cleared() -> None:
    f = ft.jit(lambda x: fnp.sin(x) * x)
    lowered = f.lower(X)
    compiled = lowered.compile()
    expected = f(X)
    ft.clear_caches()
    for function in (compiled, lowered.compile(), f):
        np.testing.assert_array_equal(function(X), expected)


def test_every_cache_of_a_function_is_listed() -> None:
    found = set()
    root = Path(ft.__file__).parent
    for path in root.rglob("*.py"):
        module = ".".join(path.relative_to(root).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef) or not node.args.args:
                continue
            if any(CACHED.fullmatch(ast.unparse(decorator)) for decorator in node.decorator_list):
                found.add(f"{module}.{node.name}")
    assert found == CONSTANT.keys()


# analyses ---------------------------------------------------------------------------------------


def test_an_analysis_is_computed_once_for_each_program_and_key() -> None:
    calls = []

    @analysis
    def length(jaxpr: Any) -> int:
        """Length."""
        calls.append(jaxpr)
        return len(jaxpr.eqns)

    @analysis
    def product(jaxpr: Any, factor: int) -> int:
        calls.append(factor)
        return factor * len(jaxpr.eqns)

    first, second = program(), program()
    assert [length(first), length(first), length(second)] == [3, 3, 3]
    assert [product(first, 2), product(first, 2), product(second, 2), product(first, 3)] == [
        6, 6, 6, 9,
    ]  # fmt: skip
    assert calls == [first, second, 2, 2, 3]
    assert (length.__name__, length.__doc__) == ("length", "Length.")
    remember(first, length, 7)
    assert (length(first), length(second)) == (7, 3)


def test_programs_that_are_their_own_result_make_no_cycle() -> None:
    result = simplify(program())
    assert simplify(result) is result
    assert dce(result, (True,)) is result
    assert all(value is not result for value in result.cache.values())


def test_a_program_that_replaces_another_knows_nothing_of_it() -> None:
    jaxpr = program()
    assert len(last_uses(jaxpr)) == 3
    shorter = replace(jaxpr, eqns=jaxpr.eqns[:1], outvars=jaxpr.eqns[0].outputs, cache={})
    assert len(last_uses(shorter)) == 1
    assert last_uses in jaxpr.cache
    assert shorter.cache.keys() == {last_uses}


def test_files_and_comparisons_do_not_see_what_is_known() -> None:
    jaxpr, other = program(), program()
    program_cost(jaxpr)
    executable(jaxpr)
    derived(jaxpr, "key", lambda: 1)
    assert jaxpr.structurally_equal(other)
    assert jaxpr != other  # by identity
    copy = pickle.loads(pickle.dumps(jaxpr))
    assert not copy.cache.keys() & {program_cost, executable}
    assert repr(jaxpr) == repr(other)


def test_caches_may_be_cleared_while_other_threads_call() -> None:
    f = ft.jit(lambda x: fnp.cumsum(fnp.sin(x)) * x)
    g = ft.jit(ft.grad(lambda x: ft.lax.scan(lambda c, y: (c * y, c), 1.0, x)[0]))
    expected = [f(X), g(X)]
    errors = []

    def call() -> None:
        try:
            for _ in range(20):
                for fun, value in zip((f, g), expected, strict=True):
                    np.testing.assert_allclose(fun(X), value)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=call) for _ in range(3)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        ft.clear_caches()
    for thread in threads:
        thread.join()
    assert errors == []
