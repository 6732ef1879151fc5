"""Layers: a module imports only from lines above its own, and at module level only.

The order of packages and modules is read from ``docs/architecture.md``; ``WITHIN`` is the order
inside a package. Modules that share a line do not import each other. A module without a line of
its own belongs to the line of its package; without a place in ``WITHIN`` it imports no module of
its package.
"""

import ast
import functools
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from cases import each

ROOT = Path(__file__).parent.parent / "functrans"

LINES = (ROOT.parent / "docs/architecture.md").read_text(encoding="utf-8").partition("```text")[2]
LINES = LINES.partition("```")[0]

WITHIN = {
    "core": """
avals caching deferred lowering source state
analyses axes boundary primitive progress tapes
jaxpr structs
dispatch
values
arguments ownership
calling hidden_state transformed
""",
    "ir": """
encoding parameters printing
check writing
serialize
""",
    "machine": """
system
cache engine intrinsics stack
""",
    "kernels": """
colorings fingerprints loops recurrences scatters
entries table
""",
    "emitter": """
types
slots
builder
complexes halves integers math.common math.geometry math.lanes spare
casts chunks math.double_double math.exponential math.inverse_trigonometry math.logarithm
math.trigonometry
math.gamma math.hyperbolic math.power
floats math.special
complex_functions math
complex_inverses
numbers
routine
""",
    "primitives": """
index_arrays native.fortran native.routine_loops
native.convolution native.cumulative native.dot_plan native.index native.sorting native.ufuncs
native.tiles structural
native.packed native.triangles
family native.dot slicing sorting
elementwise movement special.family threefry
complex_parts creation gather_scatter special.cylinder special.series tapes
block_gather convolution cumulative dot dynamic_slicing fft linalg.common scatter_reduce
special.functions special.hypergeometric
filters indexing linalg.det linalg.parlett linalg.triangular reduction special.elementary
special.gamma torch_elementwise
activations kernels linalg.factor linalg.matrix_functions linalg.solve sparse.products
special.bessel special.polynomials
linalg.banded linalg.equations linalg.spectral sparse.solve special.distributions
linalg.lstsq
linalg.functions
table
""",
    "passes": """
algebra cotangents dce layouts reuse staging
executables simplify value_tracers zeros
evaluate nodes
batch in_place recording transpose work
answers pullback pushforward written
pushing
programs
""",
    "arrays": """
callers masked sparse writes
indexing
items
python_values
operators
""",
    "compiler": """
axes bounds elements equations execution reductions storage symbols threads
rows
schedule
entry invariants merging packs parts products
gathers
functions prepare sharing
places support
cursor
access
accumulators
nests
parallel
bodies rounds
blocks
programs
cost donation exchange standalone
compiled interface
bindings header inspect patterns readme reference
export interop origins
""",
    "control": """
binomial calls closures inline lanes
call_records native
bodies custom_calls
branches rule_conventions
custom_rules loop_bodies
callbacks loops
ranges while_loop
reversal
revolve
checkpoint scanning
custom_vmap
""",
    "rerolling": """
periods
repeats
rolling
rewrite
""",
    "debugging": """
documents
costs explorer
memory pages
""",
    "jitted": """
captured direct explanations guards named_arguments saved signatures
lowered shared steps
imperative
specialize
described staged_calls
jit
caches
""",
    "transforms": """
batch_axes chunks directions linear_functions
reverse
dense forward lanes
inspect jacobian products vectorize
residuals
""",
    "tree": """
keys
registration
""",
    "solvers": """
custom_root external_maps linear_solve
external krylov
implicit kernels
""",
    "higher": """
curvature operators series towers
gauss_newton jet laplacian
""",
    "dask": """
grouping phases scheduling
chunks
running staged
rows totals
exchange
mapping
items shards sums
""",
    "sparse": """
coloring dependence separate
pattern_pages picture values
products
rules
walk
pattern
compression
api
""",
    "numpy": """
array_api_fft at dispatch
common
einstein fft lanes linalg_norms logic products quantiles reductions scimath selection sets shaping
sorting splitting ufuncs
arranging cumulative diagonals joining linalg_products means ufunc_methods
array_api creation elements linalg nan_functions padding
methods polynomial.series polynomials statistics
polynomial.chebyshev polynomial.hermite polynomial.hermite_e polynomial.laguerre
polynomial.legendre polynomial.polynomial tables
polynomial protocols
""",
    "scipy": """
dispatch integrate.odes_methods optimize.objective optimize.traced reprs sparse.arrays
sparse.direct special_records special_sums
fft integrate.odes_loop integrate.odes_results integrate.quadrature interpolate_piecewise
linalg_equations linalg_structured ndimage_filters ndimage_measurements optimize.arguments
sparse.linalg special_common
integrate.odes_adjoint integrate.odes_events interpolate_splines linalg_systems
ndimage_interpolation optimize.drivers optimize.fitting signal_convolution sparse special_bessel
special_gamma special_statistics stats_families stats_summary
integrate.odes interpolate_multivariate linalg_factors ndimage optimize signal_filters special
stats_continuous stats_discrete stats_multivariate stats_positive
integrate interpolate linalg_functions signal_spectra spatial.distance special_ufuncs
stats_relations
linalg signal spatial stats
""",
    "lax": """
contractions elementwise indexed linalg structural
windows
""",
    "random": """
keys
rejection uniform
continuous
discrete gamma permuting
multivariate
""",
    "plain": """
memos sparse.parts standins unreadable users views
decide homes marked sparse.patterns
memory
buffer_methods integrate iterators kinds series solvers_later sparse.dense sparse.writing
sparse.matrices twins
generators implicit library_calls readers sparse.in_memory sparse.in_twins sparse.keys
sparse.operators twin_classes
containers distributions numpy_names sparse.names
libraries
numbers objects optimize
entry scipy_names
explain
""",
    "autograd": """
labels listing memory_order modes profiler_pages sizes
dtypes profiler_events refusals
pictures tensors
hooks jitted.held profiler residuals
overlaps saved_values
nodes
anomaly kinks recording
custom_functions func_modules jitted.session jitted.steps on_values promotion
overrides random
func_batches
engine
api composites function_nodes jitted.closing methods.printing
views
writes
func function graph jitted.staged methods.layouts methods.rows programs
checkpoint forward_ad given_data methods.arithmetic methods.fourier methods.indexing methods.shaping
checks factories methods.blending methods.comparison methods.complex_numbers methods.data
methods.joining methods.parts methods.pointwise methods.reductions methods.state
methods.array_protocol methods.filling methods.gathering methods.legacy_types methods.ordering
methods.products methods.special methods.storages
legacy methods.conversion methods.linear_algebra
""",
    "compat": """
autograd.spaces autograd.table jax.opaque jax.settings jax.table namespaces
autograd.operators autograd.rules jax.values
autograd autograd.tools jax.arrays
jax
torch.autograd.functional torch.dtypes torch.further_names torch.nn.activations
torch.nn.backward_hooks torch.nn.module_texts torch.nn.parameter torch.nn.randomness
torch.not_offered torch.polynomials torch.utils._pytree torch.utils.checkpoint
torch.jit torch.random torch.return_types torch.utils.datasets torch.utils.samplers
torch.nn.packing torch.values
torch.amp torch.archives torch.fft torch.func torch.functional_names torch.linalg torch.nn.init
torch.nn.losses torch.nn.module_hooks torch.nn.recurrent torch.nn.utils
torch.nn.layers torch.optim.updates torch.overrides torch.quasirandom torch.sparse
torch.special torch.submodules torch.testing torch.types
torch.utils.loading
torch.autograd torch.backends torch.cuda torch.nn.attention torch.nn.convolutions
torch.nn.margin_losses torch.nn.noise torch.optim.optimizer
torch.utils.data torch.weights
torch.nn.module torch.nn.pooling torch.numbered_losses torch.optim.algorithms
torch.__main__ torch.nn.parallel torch.nn.tuples torch.optim.lbfgs torch.optim.schedules
torch.saving torch.utils
torch torch.nn.containers torch.nn.module_rows torch.nn.resampling torch.optim.cyclic_schedules
torch.nn.functional torch.optim.lr_scheduler
torch.nn.layer_modules torch.nn.loss_modules torch.nn.resampling_modules torch.optim
torch.nn.activation_modules torch.nn.attention_modules torch.nn.convolution_modules
torch.nn.recurrent_modules
torch.nn.transformer_modules
torch.nn.modules
torch.nn
torch.distributions.constraints torch.distributions.sampling torch.distributions.utils
torch.distributions.distribution torch.distributions.transforms
torch.distributions.constraint_registry torch.distributions.continuous
torch.distributions.discrete torch.distributions.multivariate
torch.distributions.composed
torch.distributions.transformed
torch.distributions.kl
torch.distributions
""",
}

# Third parties that may be imported when functrans is; all others at first use.
THIRD_PARTIES = ("numpy", "typing_extensions")
# The public names of ``functrans`` and those of ``deferred`` are imported at first use there, and
# the submodules of torch's namespace that a program does not name.
MAY_DEFER = ("namespaces", "compat.torch")


def _name(path: Path) -> str:
    """``core.avals``; ``ir`` for ``ir/__init__.py``; ``functrans`` for the package itself."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts) or "functrans"


FILES = {_name(path): path for path in sorted(ROOT.rglob("*.py"))}
MODULES = list(FILES)


@functools.cache
def _tree(name: str) -> ast.Module:
    return ast.parse(FILES[name].read_text(encoding="utf-8"))


def _imported(node: ast.AST) -> Iterator[str]:
    """Modules of functrans that an import statement names, without the package's name."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.name.split(".")[0] == "functrans":
                yield alias.name.partition(".")[2] or "functrans"
    elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "functrans":
        package = (node.module or "").partition(".")[2]
        for alias in node.names:
            inner = f"{package}.{alias.name}".lstrip(".")
            yield inner if inner in FILES else package or "functrans"


def _run_time(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those that only type checkers see."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            continue
        yield node
        yield from _run_time(node)


def _loads(name: str) -> set[str]:
    """Modules that are imported with a module."""
    return {module for node in _run_time(_tree(name)) for module in _imported(node)} - {name}


@functools.cache
def _imports(name: str) -> set[str]:
    """Modules that a module imports, also for its annotations only.

    What a package shows type checkers of its own modules, which it imports late, does not count.
    """
    tree = _tree(name)
    first = {module for node in _run_time(tree) for module in _imported(node)}
    all_of_them = {module for node in ast.walk(tree) for module in _imported(node)} - {name}
    return {x for x in all_of_them if x in first or not x.startswith(f"{name}.")}


def _places(text: str) -> dict[str, int]:
    return {name: number for number, line in enumerate(text.splitlines()) for name in line.split()}


LINE_OF = _places(LINES)


def _line(name: str) -> str:
    """The name on a line that a module belongs to: itself or the package around it."""
    while name not in LINE_OF:
        name, dot, _ = name.rpartition(".")
        assert dot, "no line"
    return name


def test_every_module_has_a_line() -> None:
    without = [name for name in FILES if name not in LINE_OF and name.split(".")[0] not in LINE_OF]
    assert not without, f"give them a line in LINES: {without}"
    gone = [name for name in LINE_OF if name not in FILES]
    assert not gone, f"no longer there: {gone}"
    for package, order in WITHIN.items():
        missing = [name for name in _places(order) if f"{package}.{name}" not in FILES]
        assert not missing, f"no longer in {package}: {missing}"


@each("name", MODULES)
def test_imports_go_up(name: str) -> None:
    own = _line(name)
    for imported in sorted(_imports(name)):
        other = _line(imported)
        if other != own:
            assert LINE_OF[other] < LINE_OF[own], f"{name} ({own}) imports {imported} ({other})"
        elif imported != own and name != own:
            places = _places(WITHIN.get(own, ""))
            mine, its = name.removeprefix(f"{own}."), imported.removeprefix(f"{own}.")
            assert mine in places, f"{name} imports {imported}: give it a place in WITHIN[{own!r}]"
            assert places.get(its, -1) < places[mine], f"{name} imports {imported} below it"


@each("name", MODULES)
def test_packages_are_not_imported_for_their_modules(name: str) -> None:
    """``from functrans.ir import Var`` would read the package; modules are named."""
    for imported in sorted(_loads(name)):
        is_package = FILES[imported].name == "__init__.py"
        names = (
            "numpy", "scipy", "scipy.integrate", "scipy.optimize", "scipy.spatial", "scipy.sparse",
            "lax",
            "functrans", "numpy.polynomial", "tree",
        )  # fmt: skip
        assert not is_package or imported in names, imported


@each("name", MODULES)
def test_no_import_of_functrans_is_deferred(name: str) -> None:
    """Not inside functions, and not by name."""
    if name in MAY_DEFER:
        return
    tree = _tree(name)
    at_top = {id(node) for node in tree.body}
    for node in _run_time(tree):
        for imported in _imported(node):
            assert id(node) in at_top, f"line {node.lineno}: {imported}"  # type: ignore[attr-defined]  # statements have one
        if isinstance(node, ast.Call):
            text = ast.unparse(node.func)
            assert not text.endswith(("import_module", "__import__")), f"line {node.lineno}: {text}"


@each("name", MODULES)
def test_no_relative_imports(name: str) -> None:
    for node in ast.walk(_tree(name)):
        assert not (isinstance(node, ast.ImportFrom) and node.level), ast.unparse(node)


@each("name", MODULES)
def test_slow_libraries_are_imported_at_first_use(name: str) -> None:
    for node in _tree(name).body:
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        for imported in names:
            top = imported.split(".")[0]
            if top == "optree" and _line(name) == "tree":  # imported when users ask for it only
                asking = [module for module in MODULES if "tree" in map(_line, _loads(module))]
                others = [module for module in asking if _line(module) != "tree"]
                assert others == ["compat.jax.arrays", "compat.jax.opaque"]  # likewise
                continue
            assert top in ("functrans", *THIRD_PARTIES) or top in sys.stdlib_module_names, imported


@each("name", MODULES)
def test_the_emitter_is_read_by_the_compiler_only(name: str) -> None:
    """Rules of lowering are given it, so that importing functrans does not import it."""
    if name.split(".")[0] not in ("emitter", "machine", "compiler"):
        assert not [module for module in _loads(name) if module.split(".")[0] == "emitter"]


def test_the_reading_list_is_short() -> None:
    """What one reads of ``grad``, ``jvp``, ``vmap`` and ``jit``, as the page says."""
    page = (ROOT.parent / "docs/architecture.md").read_text(encoding="utf-8")
    part = page.partition("## What to read")[2].partition("\n## ")[0]
    files = re.findall(r"`(\w+/\w+\.py)`", part)
    lines = [len((ROOT / name).read_text(encoding="utf-8").splitlines()) for name in files]
    assert len(set(files)) == len(files) == 26
    assert sum(lines) <= 7000


def test_the_test_sees_an_upward_import() -> None:
    """So that it cannot pass by finding nothing."""
    assert "core.avals" in _imports("core.primitive")
    assert "errors" in _imports("core.dispatch")
    assert "pytrees" in _imports("transforms.reverse")
    assert LINE_OF[_line("core.avals")] < LINE_OF[_line("primitives.dot")]
    assert sum(len(_imports(name)) for name in FILES) > 300
