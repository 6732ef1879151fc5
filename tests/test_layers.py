"""Layers: a module imports only from lines above its own, and at module level only.

``LINES`` is the order of packages and modules, ``WITHIN`` the order inside a package. Modules that
share a line do not import each other. A module without a line of its own belongs to the line of its
package; without a place in ``WITHIN`` it imports no module of its package. What only type checkers
import does not count.
"""

import ast
import functools
import sys
from collections.abc import Iterator
from pathlib import Path

from cases import each

ROOT = Path(__file__).parent.parent / "functrans"

LINES = """
namespaces
deferred
caching errors quiet state conventions
tree
ir
kernels
emitter
trace
primitives
staging
masked
passes indexing sparse_arrays
traces
operators
compiler
transforms.arguments
control
transforms
sparse
lax debug extend flatten_util
numpy
scipy
nn random
plain
functional testing
autograd
compat
tables conversion
functrans
"""

WITHIN = {
    "ir": """
affine analyses annotations avals lowering source
axes primitive tapes
jaxpr
encoding parameters printing
check writing
serialize
""",
    "emitter": """
types
slots
builder
chunks complexes halves integers math.common math.geometry math.lanes
math.double_double math.exponential math.inverse_trigonometry math.logarithm
math.gamma math.hyperbolic math.power math.trigonometry
casts math.special
floats math
complex_functions
complex_inverses
numbers
routine
""",
    "kernels": """
colorings recurrences scatters
table
""",
    "primitives": """
index_arrays routine_loops fortran
structural
convolution_lowering cumulative_lowering dot_plan index_lowering sorting_lowering
dot_lowering family slicing sorting tapes
elementwise movement threefry
special_family
special_cylinder special_series
complex_parts gather_scatter
special
special_gamma special_hypergeometric torch_elementwise
special_bessel special_elementary special_polynomials
special_distributions
block_gather creation cumulative dot dynamic_slicing fft scatter_reduce
convolution indexing linalg_common reduction
linalg_det linalg_parlett linalg_triangular
sparse_products
sparse_solve
activations filters linalg_factor linalg_matrix_functions linalg_solve
linalg_banded linalg_equations linalg_spectral
linalg_lstsq
linalg
table
""",
    "passes": """
reuse
evaluate
algebra apart batch cotangents remat
simplify
nodes
transpose
curvature periods pullback pushforward taylor work
costs repeats
pages
rolling
""",
    "plain": """
memos standins unreadable users views
marked memory
decide kinds
twins
twin_classes
containers iterators readers series
sparse_dense sparse_parts
sparse_patterns sparse_writing
sparse
sparse_in_memory sparse_in_twins sparse_keys sparse_operators
sparse_names implicit
solvers_later
integrate optimize
libraries scipy_names
numbers
entry
explain
""",
    "traces": """
common
answers pushing recording towers
watched
""",
    "compiler": """
bounds cache engine execution invariants reductions storage symbols threads
access entry parallel schedule
merging parts
prepare
accumulators support
nests
bodies
blocks
programs
cost donation
compiled
inspect reference
interop
""",
    "autograd": """
listing modes overlaps profiler_events sizes
labels pictures random tensors
held hooks profiler residuals
saved_values
nodes
anomaly kinks recording
custom_functions engine func_modules on_values session steps
closing func_batches
func staged
api function_nodes promotion
composites
views writes
forward_ad function graph legacy methods.printing methods.rows programs
checkpoint checks
methods.arithmetic methods.fourier methods.indexing methods.shaping
factories methods.blending methods.comparison methods.complex_numbers methods.joining
methods.parts methods.pointwise methods.reductions methods.state
methods.legacy_types
methods.array_protocol methods.conversion methods.filling methods.gathering methods.ordering
methods.products methods.special
methods.linear_algebra
""",
    "compat": """
torch.autograd.functional torch.devices torch.dtypes torch.further_names
torch.nn.activations torch.nn.backward_hooks torch.nn.module_texts torch.nn.parameter
torch.nn.randomness torch.not_offered torch.polynomials torch.utils.checkpoint
torch.utils.datasets torch.utils.samplers torch.values torch.warned
torch.amp torch.archives torch.optim.updates torch.submodules
torch.backends torch.cuda torch.weights
torch.saving
torch.autograd torch.fft torch.func torch.functional_names torch.linalg torch.nn.init
torch.nn.layers torch.nn.losses torch.nn.module_hooks torch.nn.recurrent torch.nn.utils
torch.special torch.utils.loading
torch torch.nn.attention torch.nn.convolutions torch.nn.hook_registration
torch.nn.margin_losses
torch.nn.module
torch.nn.noise torch.optim.optimizer torch.utils.data
torch.nn.containers torch.nn.module_rows torch.nn.pooling torch.optim.algorithms
torch.optim.lbfgs
torch.optim.schedules torch.utils
torch.nn.resampling torch.optim.cyclic_schedules torch.optim.further_algorithms
torch.nn.functional torch.optim.lr_scheduler
torch.nn.layer_modules torch.nn.loss_modules torch.nn.resampling_modules torch.optim
torch.nn.activation_modules torch.nn.attention_modules torch.nn.convolution_modules
torch.nn.margin_loss_modules torch.nn.noise_modules torch.nn.recurrent_modules
torch.nn.pooling_modules torch.nn.transformer_modules
torch.nn.modules
torch.nn
""",
    "control": """
binomial collectives direct imperative inline programs signatures
calls lanes
native
bodies call_records explanations lowered
custom_calls
branches linear_solve
loops
reroll while_loop
captured reversal steps
revolve specialize
staged_calls
jit scanning
closures
caches checkpoint custom_root custom_rules
callbacks krylov watching
external forks
table
""",
    "scipy": """
reprs special_records
dispatch special_common
special_bessel special_gamma special_statistics special_sums
special
special_ufuncs spatial.distance stats_families stats_relations stats_summary
spatial
stats_continuous stats_discrete stats_multivariate stats_positive
stats
fft integrate.quadrature interpolate_piecewise linalg_structured ndimage_filters
ndimage_measurements
interpolate_splines linalg_systems ndimage_interpolation signal_convolution
interpolate_multivariate linalg_equations linalg_factors ndimage signal_filters
interpolate linalg_functions signal_spectra
linalg signal
integrate.odes_methods
integrate.odes_loop integrate.odes_results
integrate.odes_adjoint integrate.odes_events
integrate.odes
integrate
optimize.objective optimize.traced sparse.arrays sparse.direct
optimize.arguments sparse.linalg
sparse
optimize.drivers optimize.fitting
optimize
""",
    "transforms": """
chunks directions reverse vectorize
dense forward
higher implicit inspect jacobian laplacian products taylor
gauss_newton residuals
""",
    "sparse": """
coloring dependence
picture values
products
rules
walk
pattern
compression
api
""",
    "random": """
keys
rejection
uniform
continuous
discrete gamma permuting
multivariate
""",
    "numpy": """
array_api_fft at dispatch
common
einstein fft lanes linalg_norms logic products quantiles reductions selection sets shaping sorting
splitting ufuncs
arranging cumulative diagonals joining linalg_products means ufunc_methods
array_api creation elements linalg nan_functions padding
methods polynomial.series polynomials scimath statistics
polynomial.chebyshev polynomial.hermite polynomial.hermite_e polynomial.laguerre
polynomial.legendre polynomial.polynomial
polynomial
tables
protocols
""",
}

# Third parties that may be imported when functrans is; all others at first use.
THIRD_PARTIES = ("numpy", "typing_extensions")
# The public names of ``functrans`` and those of ``deferred`` are imported at first use there, and
# the submodules of torch's namespace that a program does not name.
MAY_DEFER = ("namespaces", "compat.torch")


def _name(path: Path) -> str:
    """``ir.avals``; ``ir`` for ``ir/__init__.py``; ``functrans`` for the package itself."""
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
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        yield node
        yield from _run_time(node)


@functools.cache
def _imports(name: str) -> set[str]:
    return {module for node in _run_time(_tree(name)) for module in _imported(node)} - {name}


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
    for imported in sorted(_imports(name)):
        is_package = FILES[imported].name == "__init__.py"
        names = (
            "numpy", "scipy", "scipy.integrate", "scipy.optimize", "scipy.spatial", "scipy.sparse",
            "lax",
            "functrans", "numpy.polynomial",
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
            assert top in ("functrans", *THIRD_PARTIES) or top in sys.stdlib_module_names, imported


@each("name", MODULES)
def test_the_emitter_is_read_by_the_compiler_only(name: str) -> None:
    """Rules of lowering are given it, so that importing functrans does not import it."""
    if name.split(".")[0] not in ("emitter", "compiler"):
        assert not [m for m in _imports(name) if m.split(".")[0] == "emitter"]


def test_the_test_sees_an_upward_import() -> None:
    """So that it cannot pass by finding nothing."""
    assert "ir.avals" in _imports("ir.primitive")
    assert "errors" in _imports("ir.avals")
    assert "tree" in _imports("transforms.reverse")
    assert LINE_OF[_line("ir.avals")] < LINE_OF[_line("primitives.dot")]
    assert sum(len(_imports(name)) for name in FILES) > 300
