"""Write what type checkers read of the methods of ``Tensor``: their table, as a stub.

``python tests/typed/tensor_stub.py`` writes it again; a test says when that is due.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import subprocess
from pathlib import Path
from types import FunctionType
from typing import Any

from functrans.autograd import Tensor, tensor, tensors
from functrans.core.deferred import deferred

PATH = Path(tensors.__file__).with_name("tensor_methods.pyi")

# Several results with names: the operations, and the fields.
FIELDS = {
    ("values", "indices"): "cummax cummin kthvalue mode sort topk",
    ("min", "max"): "aminmax",
    ("mantissa", "exponent"): "frexp",
    ("Q", "R"): "qr",
    ("U", "S", "V"): "svd",
    ("sign", "logabsdet"): "slogdet",
    ("solution", "cloned_coefficient"): "triangular_solve",
}
NAMED = {name: fields for fields, names in FIELDS.items() for name in names.split()}

# Results that depend on how a method is called.
_SELECTED = """
@overload
def {0}(self, dim: None = None) -> Tensor: ...
@overload
def {0}(self, dim: _int, keepdim: _bool = False) -> ValuesIndices: ...
"""
_EXTREME = """
@overload
def {0}(self) -> Tensor: ...
@overload
def {0}(self, dim: Tensor) -> Tensor: ...
@overload
def {0}(self, dim: _int, keepdim: _bool = False) -> ValuesIndices: ...
@overload
def {0}(self, *, other: Tensor) -> Tensor: ...
"""
_PER_AXIS = """
@overload
def {0}(self, dim: None = None) -> tuple[_int, ...]: ...
@overload
def {0}(self, dim: _int) -> _int: ...
"""
_PLACES = """
@overload
def {0}(self, *, as_tuple: Literal[False] = False) -> Tensor: ...
@overload
def {0}(self, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]: ...
"""
_TYPE = """
@overload
def {0}(self, dtype: None = None, non_blocking: _bool = False) -> str: ...
@overload
def {0}(self, dtype: Any, non_blocking: _bool = False) -> Tensor: ...
"""
FORMS = {
    _SELECTED: "median nanmedian",
    _EXTREME: "max min",
    _PER_AXIS: "size stride",
    _PLACES: "nonzero argwhere",
    _TYPE: "type",
}
OVERLOADED = {name: form for form, names in FORMS.items() for name in names.split()}

_WIDTH = 100

# Of ``Tracer`` itself, or for messages only.
NOT_TYPED = {"__getattr__", "__array_ufunc__", "__array_function__", "__init_subclass__"}

HEADER = '''\
"""The methods of ``Tensor`` for type checkers. Written by ``tests/typed/tensor_stub.py``."""

# mypy: disable-error-code="override,misc"
# pyright: basic, reportIncompatibleMethodOverride=false

'''


class _Imports(ast.NodeTransformer):
    """Collects what annotations name; builtins that methods hide get another name, ``_int``."""

    def __init__(self, methods: set[str]) -> None:
        self.methods = methods
        self.hidden = {"bool", "int"}
        self.needed = {
            ("typing", name) for name in ["Any", "Literal", "NamedTuple", "Self", "overload"]
        }
        self.needed |= {("functrans.core.dispatch", "Tracer")}
        self.needed |= {("functrans.autograd.tensors", "Tensor")}

    def text(self, annotation: Any, function: Any) -> str:
        """An annotation of a function as it stands in the stub."""
        text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
        text = "None" if text == "NoneType" else text
        self.names: dict[str, Any] = function.__globals__
        self.module = function.__module__
        return ast.unparse(self.visit(ast.parse(text, mode="eval")))

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A name of the module that the function stands in, or of Python."""
        name = node.id
        if name in self.names and name not in ("np", "Any", "Tensor"):
            value = self.names[name]
            module = getattr(value, "__module__", self.module)
            is_own = module.startswith("functrans.") and isinstance(value, type)
            is_pythons = module in ("collections.abc", "typing")
            self.needed.add((module if is_own or is_pythons else self.module, name))
        elif hasattr(builtins, name) and name in self.methods:
            self.hidden.add(name)
            return ast.Name(f"_{name}")
        return node

    def __str__(self) -> str:
        """The lines, in order."""
        modules = sorted({m for m, _ in self.needed}, key=lambda m: (m.startswith("functrans"), m))
        lines = [
            f"from {module} import {', '.join(sorted(n for m, n in self.needed if m == module))}"
            for module in modules
        ]
        n_pythons = len([module for module in modules if not module.startswith("functrans")])
        lines[n_pythons:n_pythons] = ["", "import numpy as np", ""]
        names = [f"from builtins import {name} as _{name}" for name in sorted(self.hidden)]
        return "\n".join([*names, *lines]) + "\n\n"


def _default(value: object) -> str:
    return repr(value) if isinstance(value, (int, float, str, tuple, type(None))) else "..."


def _result_of_sample(function: Any) -> str:
    """The type of what a function of a table that has no annotations gives."""
    x = tensor([[1.0, 2.0], [3.0, 4.0]])
    result = function(*[x for _ in inspect.signature(function).parameters.values()])
    kind = type(result)
    if kind is Tensor:
        return "Tensor"
    if kind is tuple:
        return f"tuple[{type(result[0]).__name__}, ...]".replace("NoneType", "None")
    return kind.__name__.replace("NoneType", "None") if kind.__module__ == "builtins" else "Any"


def _method(name: str, function: Any, imports: _Imports) -> str:
    """The stub of a method, or of the function of a property."""
    if name in OVERLOADED:
        return OVERLOADED[name].format(name).strip() + "\n"
    inner: Any = inspect.unwrap(function)
    parts, star = [], False
    parameters = list(inspect.signature(function).parameters.values())
    for i, parameter in enumerate(parameters):
        if i == 0:
            parts.append("self")
            continue
        text = parameter.name
        if parameter.kind is parameter.VAR_POSITIONAL:
            text, star = f"*{text}", True
        elif parameter.kind is parameter.VAR_KEYWORD:
            text = f"**{text}"
        elif parameter.kind is parameter.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        has_type = parameter.annotation is not parameter.empty
        text += f": {imports.text(parameter.annotation, inner) if has_type else 'Any'}"
        if parameter.default is not parameter.empty:
            text += f" = {_default(parameter.default)}"
        parts.append(text)
    annotation = inner.__annotations__.get("return")
    if name in NAMED:
        result = "".join(field[0].upper() + field[1:] for field in NAMED[name]).replace("_", "")
    elif annotation is None:
        result = imports.text(_result_of_sample(function), _result_of_sample)
    else:
        result = imports.text(annotation, inner)
    return f"def {name}({', '.join(parts)}) -> {result}: ...\n"


def _aliases(names: list[str]) -> str:
    """Statements that give a method's type, that of the first name, to all others."""
    first, *others = names
    lines, row = [], ""
    for name in others:
        if len(f"    {row}{name} = {first}") > _WIDTH:
            lines.append(row + first)
            row = ""
        row += f"{name} = "
    return "\n".join([*lines, row + first]) + "\n"


def _grouped(methods: dict[str, str]) -> list[str]:
    """The stubs of methods; what has the type of a method before it stands behind that.

    Apart stand properties, private methods and those that ``object`` has, too.
    """
    groups: dict[str, list[str]] = {}
    for name, text in methods.items():
        kind = text.removeprefix(f"def {name}")
        is_own = kind == text or hasattr(object, name) or name[0] == "_" != name[-1]
        groups.setdefault(name if is_own else f"{name[0] == '_'}{kind}", []).append(name)
    return [
        methods[names[0]] + (_aliases(names) if len(names) > 1 else "") for names in groups.values()
    ]


def stub() -> str:
    """The text of the stub."""
    body = ast.parse(Path(tensors.__file__).read_text("utf-8")).body
    (own,) = [x for x in body if isinstance(x, ast.ClassDef) and x.name == "Tensor"]
    defined = {x.name for x in own.body if isinstance(x, ast.FunctionDef)}
    operators = {
        name: value
        for name, value in deferred.operator_table().items()
        if name.startswith("__") and name not in vars(object) and name not in NOT_TYPED
    }
    members = {
        name: value
        for name, value in {**operators, **vars(Tensor)}.items()
        if name not in defined | NOT_TYPED
        and isinstance(value, (FunctionType, property, staticmethod))
    }
    imports = _Imports(set(members))
    methods = {}
    for name, value in sorted(members.items()):
        if isinstance(value, property):
            methods[name] = f"@property\n{_method(name, value.fget, imports)}"
            if value.fset is not None:
                given = list(inspect.unwrap(value.fset).__annotations__.values())[1]
                kind = imports.text(given, value.fset)
                methods[name] += f"@{name}.setter\ndef {name}(self, value: {kind}) -> None: ...\n"
        elif isinstance(value, staticmethod):
            methods[name] = "def __new__(cls, *args: Any, **options: Any) -> Self: ...\n"
        else:
            methods[name] = _method(name, value, imports)
    text = HEADER + str(imports)
    for fields in FIELDS:
        title = "".join(field[0].upper() + field[1:] for field in fields).replace("_", "")
        text += f"class {title}(NamedTuple):\n"
        text += "".join(f"    {field}: Tensor\n" for field in fields)
    text += "class TensorMethods(Tracer):\n"
    text += "".join("    " + line + "\n" for line in "".join(_grouped(methods)).splitlines())
    return text


if __name__ == "__main__":
    PATH.write_text(stub(), "utf-8")
    subprocess.run(["ruff", "format", PATH], check=True)
