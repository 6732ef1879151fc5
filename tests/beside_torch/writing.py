"""Random programs in torch's words, written statement by statement.

Here: the statements of the three families. Not here: what is done with them (``running``). A
program is a list of statements over the names ``torch``, ``np``, ``note`` (a line of the program's
log) and the ``Function``s of ``FUNCTIONS``. Each statement is drawn without a thought for shapes,
which broadcast in most cases; ``running.written`` keeps those that PyTorch takes, and some others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

SHAPES = ((), (3,), (1, 3), (2, 1), (2, 3), (2, 3), (3,), (3, 3))
UNARY = (
    "sin",
    "cos",
    "exp",
    "tanh",
    "sigmoid",
    "abs",
    "neg",
    "square",
    "relu",
    "softplus",
    "log1p",
)
BINARY = ("add", "sub", "mul", "maximum", "minimum", "atan2", "hypot", "logaddexp")
REDUCED = ("sum", "mean", "prod", "amax", "logsumexp", "cumsum", "softmax", "var", "norm", "median")
PLACES = ("0", "-1", "...", "1:", ":2", "None", "..., 0", "..., 1:", "[0, 0]", "..., [1, 0]", "::2")
VIEWS = (
    "{x}.t()", "{x}.view(-1)", "{x}.reshape(-1)", "{x}.unsqueeze(0)", "{x}.squeeze()",
    "{x}.expand(2, 3)", "{x}.flatten()", "{x}.narrow(-1, 1, 2)", "{x}.select(0, 1)",
    "{x}.diagonal()", "{x}.transpose(-1, -2)", "{x}.detach()", "{x}.view_as({x})",
    "{x}.unfold(-1, 2, 1)", "{x}.movedim(0, -1)", "torch.broadcast_to({x}, (2, 3))", "{x}.mT",
    "{x}.swapaxes(0, -1)", "{x}.unflatten(-1, (3, 1))", "{x}.as_strided((2,), (1,))",
)  # fmt: skip
WRITES = (
    "{x}.add_({y})", "{x}.mul_({y})", "{x}.sub_({y}, alpha=2)", "{x}.copy_({y})", "{x}.fill_(0.7)",
    "{x}.zero_()", "{x}.sin_()", "{x}.exp_()", "{x}.tanh_()", "{x}.neg_()", "{x}.sigmoid_()",
    "{x}.clamp_(-0.5, 0.8)", "{x}.div_({y})", "{x}.addcmul_({y}, {z})", "{x}.lerp_({y}, 0.3)",
    "{x}[{p}] = {y}", "{x}[{p}] = 0.25", "{x}[{p}] += {y}", "{x}[{x} > 0.2] = -0.4",
    "{x} += {y}", "{x} *= {y}", "{x} -= 0.5", "{x} **= 2", "{x}.masked_fill_({y} > 0, 0.3)",
    "{x}.pow_(2)", "{x}.sqrt_()", "{x}.abs_()", "{x}.relu_()", "{x}.reciprocal_()",
    "{x}.index_add_(0, torch.tensor([0, 0]), {y}[:2])",
    "{x}.scatter_(-1, torch.zeros(1, 1, dtype=torch.int64), {y})", "{x}.t_()", "{x}.unsqueeze_(0)",
    "{x}.squeeze_()", "{x}.data.mul_(0.5)", "{x}.detach().add_(0.1)", "{x}.detach_()",
    "{x}.cumsum_(0)", "torch.add({y}, {z}, out={x})", "{x}.swapaxes_(0, -1)", "{x}.mul_(1j)",
    "{x}.requires_grad_()", "{x}.resize_(1)", "{x}.set_({y})", "{x}.data = {y}",
)  # fmt: skip
FREE = (
    "torch.where({x} > 0.1, {x}, {y})", "{x} * {y} + {z}", "{x} @ {y}", "torch.cat([{x}, {y}])",
    "torch.stack([{x}, {y}])", "{x}.clone()", "{x}.clone().sin_()", "torch.outer({x}, {y})",
    "torch.addcmul({x}, {y}, {z})", "{x}.pow(2)", "{x} ** {y}.abs()", "{x} / ({y} + 3)",
    "torch.einsum('...i,...i->...', {x}, {y})", "{x}.sort()[0]", "{x}.topk(2)[0]",
    "torch.gather({x}, -1, torch.zeros_like({x}, dtype=torch.int64))", "{x}.max(-1)[0]",
    "torch.nn.functional.linear({x}, {y})", "{x}.masked_fill({y} > 0, 0.5)", "{x}.flip(0)",
    "torch.nn.functional.mse_loss({x}, {y})", "{x}.roll(1, -1)", "{x}.tril()", "{x}.repeat(2)",
    "{x}.index_select(0, torch.tensor([0, 0]))", "{x}.to(torch.float32).to(torch.float64)",
    "torch.zeros_like({x}).index_put((torch.tensor([0]),), {y})", "{x}.split(1)[0]",
    "{x}.unbind()[0]",
    "torch.nn.functional.layer_norm({x}, (3,))", "torch.nn.functional.gelu({x})", "{x}.cumprod(-1)",
    "torch.complex({x}, {y}).abs()", "{x}.clamp({y}, {z})", "torch.lerp({x}, {y}, {z})",
    "1.5 - {x}",
    "torch.linalg.norm({x})", "torch.dist({x}, {y})", "{x}.float().double()", "{x}.std(0)",
    "torch.atleast_2d({x})", "{x}.diff()", "torch.kron({x}, {y})", "{x}.chunk(2, -1)[0]",
    "{x}.expand_as({y})", "torch.nn.functional.cross_entropy({x}, {y})", "{x}.new_zeros(3) + {x}",
)  # fmt: skip
CALLED = (
    "Cube.apply({x})", "Exp.apply({x})", "Mixed.apply({x}, {y})", "Dirty.apply({x})",
    "Two.apply({x})[0]", "Two.apply({x})[1]", "Once.apply({x})", "Sparse.apply({x}, {y})[1]",
    "Split.apply({x}, 2.0)", "Passed.apply({x})", "Viewed.apply({x})", "Marked.apply({x})[1]",
)  # fmt: skip
DIMS = (
    "", "", ", in_dims=(0, None)", ", in_dims=(None, 0)", ", in_dims=(-1, 0)", ", chunk_size=1",
    ", in_dims=(1, None)", ", in_dims=1, out_dims=1",
)  # fmt: skip
FUNCTIONS = """
def pulled(pair):
    out, pull = pair
    return pull(torch.ones_like(out))


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


class Exp(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return torch.exp(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)
        ctx.save_for_forward(output)

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y

    @staticmethod
    def jvp(ctx, t):
        (y,) = ctx.saved_tensors
        return t * y


class Mixed(torch.autograd.Function):
    @staticmethod
    def forward(x, y):
        return torch.sin(x) * y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        first = second = None
        if ctx.needs_input_grad[0]:
            first = (g * y * torch.cos(x)).sum_to_size(x.shape)
        if ctx.needs_input_grad[1]:
            second = (g * torch.sin(x)).sum_to_size(y.shape)
        return first, second

    @staticmethod
    def jvp(ctx, s, t):
        x, y = ctx.saved_tensors
        out = 0
        if s is not None:
            out = out + s * torch.cos(x) * y
        return out if t is None else out + t * torch.sin(x)

    @staticmethod
    def vmap(info, in_dims, x, y):
        if in_dims[0] is not None:
            x = x.movedim(in_dims[0], 0)
        if in_dims[1] is not None:
            y = y.movedim(in_dims[1], 0)
        while x.ndim < y.ndim and in_dims[0] is not None:
            x = x.unsqueeze(1)
        while y.ndim < x.ndim and in_dims[1] is not None:
            y = y.unsqueeze(1)
        return Mixed.apply(x, y), 0


class Dirty(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(2).add_(1)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return 2 * g


class Two(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.set_materialize_grads(False)
        return x.sin(), x.cos()

    @staticmethod
    def backward(ctx, g, h):
        note("two", [g is None, h is None])
        (x,) = ctx.saved_tensors
        out = torch.zeros_like(x)
        if g is not None:
            out = out + g * x.cos()
        return out if h is None else out - h * x.sin()


class Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.exp()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x.exp()


class Sparse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        places = (x > 0).to(torch.int64)
        ctx.mark_non_differentiable(places)
        ctx.save_for_backward(x, y)
        return places, x * y

    @staticmethod
    def backward(ctx, _, g):
        x, y = ctx.saved_tensors
        note("sparse", list(ctx.needs_input_grad))
        return (g * y).sum_to_size(x.shape), (g * x).sum_to_size(y.shape)


class Split(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x, factor):
        return x * factor

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[1]

    @staticmethod
    def backward(ctx, g):
        return g * ctx.factor, None

    @staticmethod
    def jvp(ctx, t, _):
        return t * ctx.factor


class Passed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 3


class Viewed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x.view(-1)

    @staticmethod
    def backward(ctx, g):
        return g.reshape(ctx.shape) * 2


class Marked(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        rounded = x.round()
        ctx.mark_non_differentiable(rounded)
        return rounded, x * 2

    @staticmethod
    def backward(ctx, a, b):
        note("marked", a)
        return b * 2
"""
"""Kinds of ``Function``: what is saved, what is marked, which rules are given."""


@dataclass
class Writer:
    """Draws statements; ``names`` are the tensors that there are."""

    rng: np.random.Generator
    names: list[str] = field(default_factory=list)
    made: int = 0

    def one(self, options: tuple[str, ...] | list[str]) -> str:
        """One of some texts."""
        return options[int(self.rng.integers(len(options)))]

    def chance(self, share: float) -> bool:
        """True in this share of cases."""
        return bool(self.rng.random() < share)

    def new(self, stem: str = "v") -> str:
        """A name that was not used."""
        self.made += 1
        return f"{stem}{self.made}"

    def tensor(self) -> str:
        """The name of a tensor, the later the likelier."""
        back = int(self.rng.geometric(0.25)) - 1
        return self.names[max(0, len(self.names) - 1 - back)] if back < 9 else self.one(self.names)

    def literal(self, shape: tuple[int, ...]) -> str:
        """Numbers of such a shape, none at a kink."""
        return str(np.round(self.rng.uniform(-1.5, 1.5, shape), 3).tolist())

    def leaf(self) -> tuple[str, str]:
        """A statement that makes a tensor, and its name."""
        shape = SHAPES[int(self.rng.integers(len(SHAPES)))]
        grad = ", requires_grad=True" if self.chance(0.7) else ""
        name = self.new("x")
        return name, f"{name} = torch.tensor({self.literal(shape)}, dtype=torch.float64{grad})"

    def filled(self, text: str) -> str:
        """The text with tensors and places for its marks."""
        x, y, z = self.tensor(), self.tensor(), self.tensor()
        return text.format(x=x, y=y, z=z, p=self.one(PLACES))

    def value(self) -> str:
        """An expression."""
        kind = self.rng.random()
        if kind < 0.2:
            return f"torch.{self.one(UNARY)}({self.tensor()})".replace(
                "torch.softplus", "torch.nn.functional.softplus"
            )
        if kind < 0.4:
            return f"torch.{self.one(BINARY)}({self.tensor()}, {self.tensor()})"
        if kind < 0.5:
            return self._reduced()
        if kind < 0.6:
            return f"{self.tensor()}[{self.one(PLACES)}]"
        if kind < 0.72:
            return self.filled(self.one(VIEWS))
        if kind < 0.9:
            return self.filled(self.one(FREE))
        return self.filled(self.one(CALLED))

    def _reduced(self) -> str:
        name, x = self.one(REDUCED), self.tensor()
        if name in {"cumsum", "softmax", "logsumexp"}:
            return f"torch.{name}({x}, {self.one(['0', '-1'])})"
        if name in {"sum", "mean", "amax", "var"} and self.chance(0.5):
            return f"{x}.{name}({self.one(['0', '-1'])}, keepdim={self.chance(0.5)})"
        return f"{x}.{name}()"

    def assigned(self) -> str:
        """A statement that gives a value a new name."""
        text = self.value()
        name = self.new()
        self.names.append(name)
        return f"{name} = {text}"

    def write(self) -> str:
        """A statement that writes to a tensor."""
        return self.filled(self.one(WRITES))

    def hook(self) -> str:
        """A hook on a tensor or on a node, noted and perhaps changing what passes."""
        x, name = self.tensor(), self.new("h")
        changed = self.one(["None", "None", "g * 2", "g + 0.5", "g.sin()"])
        seen = f"lambda g: (note({name!r}, g), {changed})[1]"
        kind = self.one(
            ["tensor", "tensor", "node", "prenode", "after", "retain", "many", "remove"]
        )
        if kind == "tensor":
            return f"{name} = {x}.register_hook({seen})"
        if kind == "node":
            back = self.one(["None", "None", "tuple(i if i is None else i * 2 for i in ins)"])
            return (
                f"{name} = {x}.grad_fn.register_hook(lambda ins, outs: "
                f"(note({name!r}, [*ins, *outs]), {back})[1])"
            )
        if kind == "prenode":
            back = self.one(["None", "None", "tuple(i if i is None else i + 1 for i in outs)"])
            return (
                f"{name} = {x}.grad_fn.register_prehook(lambda outs: "
                f"(note({name!r}, [*outs]), {back})[1])"
            )
        if kind == "after":
            return f"{x}.register_post_accumulate_grad_hook(lambda p: note({name!r}, [p, p.grad]))"
        if kind == "retain":
            return f"{x}.retain_grad()"
        if kind == "remove":
            handles = [f"h{i}" for i in range(1, self.made)]
            return f"{self.one(handles or ['h1'])}.remove()"
        mode = self.one(["all", "any"])
        return (
            f"{name} = torch.autograd.graph.register_multi_grad_hook([{x}, {self.tensor()}], "
            f"lambda gs: note({name!r}, gs if isinstance(gs, (list, tuple)) else [gs]), "
            f"mode={mode!r})"
        )

    def backward(self) -> str:
        """A pass."""
        x = self.tensor()
        flags = [f"retain_graph={self.chance(0.5)}"] if self.chance(0.5) else []
        if self.chance(0.3):
            flags.append("create_graph=True")
        root = self.one([f"{x}.sum()", f"({x} * {x}).sum()", f"{x}.exp().mean()", x])
        if self.chance(0.45):
            if self.chance(0.3):
                flags.append(f"inputs=[{', '.join({self.tensor(), self.tensor()})}]")
            return f"{root}.backward({', '.join(flags)})"
        wanted = list(dict.fromkeys([self.tensor(), self.tensor(), self.names[0]]))
        if self.chance(0.4):
            flags.append("allow_unused=True")
        if self.chance(0.1):
            flags.append("materialize_grads=True")
        name = self.new("g")
        if self.chance(0.15):
            weights = f"torch.arange(2 * {x}.numel(), dtype=torch.float64).reshape(2, *{x}.shape)"
            flags.append(f"grad_outputs={weights}, is_grads_batched=True")
            root = x
        text = f"torch.autograd.grad({root}, [{', '.join(wanted)}], {', '.join(flags)})"
        self.names.append(f"{name}[0]")
        return f"{name} = {text}"

    def block(self, statements: Callable[[], str], most: int = 3) -> str:
        """Statements, indented, of a block."""
        lines = [statements() for _ in range(int(self.rng.integers(1, most + 1)))]
        return "\n".join(f"    {line}" for text in lines for line in text.split("\n"))

    def inside(self, text: str, statements: Callable[[], str], most: int = 3) -> str:
        """A block under ``with``."""
        return f"with {text}:\n{self.block(statements, most)}"

    def eager(self) -> str:
        """A statement of the first family."""
        kind = self.rng.random()
        if kind < 0.42:
            return self.assigned()
        if kind < 0.6:
            return self.write()
        if kind < 0.72:
            return self.hook()
        if kind < 0.86:
            return self.backward()
        if kind < 0.96:
            return self.inside(self._mode(), self.simple)
        return self._checkpointed()

    def simple(self) -> str:
        """A value or a write."""
        return self.write() if self.chance(0.3) else self.assigned()

    def _mode(self) -> str:
        return self.one([
            "torch.no_grad()", "torch.no_grad()", "torch.enable_grad()",
            "torch.set_grad_enabled(False)", "torch.inference_mode()",
            "torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t * 1)",
            "torch.autograd.graph.allow_mutation_on_saved_tensors()",
            "torch.autograd.graph.disable_saved_tensors_hooks('not here')",
            "torch.autograd.detect_anomaly()",
        ])  # fmt: skip

    def _checkpointed(self) -> str:
        name, again = self.new(), self.one(["True", "False"])
        inner = Writer(self.rng, ["a", "b"], 0)
        body = inner.block(inner.simple)
        text = (
            f"def f_{name}(a, b):\n{body}\n    note('{name}', a)\n    return {inner.tensor()}\n"
            f"{name} = torch.utils.checkpoint.checkpoint("
            f"f_{name}, {self.tensor()}, {self.tensor()}, use_reentrant={again})"
        )
        self.names.append(name)
        return text

    # The second family: levels.

    def function(self, depth: int, name: str) -> str:
        """A function of one or two tensors ``a``, ``b``; it may use the tensors that there are."""
        inner = Writer(self.rng, [*self.names[:4], f"a{depth}", f"b{depth}", f"a{depth}"])
        inner.made = 100 * (depth + 1)
        lines: list[str] = []
        for _ in range(int(self.rng.integers(1, 5))):
            kind = self.rng.random()
            if kind < 0.55:
                lines.append(inner.assigned())
            elif kind < 0.67:
                lines.append(self._made(inner))
            elif kind < 0.8:
                lines.append(inner.write())
            elif kind < 0.83:
                lines.append(
                    inner.inside(
                        inner.one(["torch.no_grad()", "torch.enable_grad()"]), inner.simple
                    )
                )
            elif kind < 0.86:
                lines.append(f"{inner.tensor()}.register_hook(lambda g: note('in', g.shape))")
            elif depth < 2:
                lines.append(inner.transformed(depth + 1))
            else:
                lines.append(inner.assigned())
        x = inner.tensor()
        result = self.one(
            [x, f"{x}.sum()", f"{x}.sum()", f"({x} * {x}).sum()", f"({x}, {x}.sum())"]
        )
        body = "\n".join(f"    {line}" for text in lines for line in text.split("\n"))
        return f"def {name}(a{depth}, b{depth}):\n{body}\n    return {result}\n"

    def _made(self, inner: Writer) -> str:
        x, name = inner.tensor(), inner.new()
        made = self.one([
            "torch.zeros(3, dtype=torch.float64)", f"torch.zeros_like({x})", f"{x}.new_zeros(2, 3)",
            "torch.empty(2, 3, dtype=torch.float64).fill_(0.5)", f"{x}.clone()",
            "torch.ones(2, 3, dtype=torch.float64)", f"torch.full_like({x}, 0.3)",
            "torch.arange(3, dtype=torch.float64)",
        ])  # fmt: skip
        inner.names.append(name)
        written = self.one([
            f"{name}[0] = {x}", f"{name}[..., 1:] = {x}", f"{name} += {x}", f"{name}.copy_({x})",
            f"{name}[:] = {x}", f"{name}.mul_({x})", f"{name}[..., 0] = {x}.sum()",
            f"for i in range(2):\n    {name}[..., i] = {x}.sum() * i",
        ])  # fmt: skip
        return f"{name} = {made}\n{written}"

    def transformed(self, depth: int = 0) -> str:
        """A function and a transform of it at tensors."""
        name, result = f"f{depth}_{self.new('')}", self.new()
        text = self.function(depth, name)
        x, y = self.tensor(), self.tensor()
        argnums = self.one(["", "", ", argnums=1", ", argnums=(0, 1)"])
        one, weights = f"({x}, {y})", f"(torch.ones_like({x}), {y}.detach())"
        calls = {
            "grad": (0.25, f"torch.func.grad({name}{argnums}){one}"),
            "grad_and_value": (0.08, f"torch.func.grad_and_value({name}{argnums}){one}"),
            "vmap": (0.25, f"torch.func.vmap({name}{self.one(DIMS)}){one}"),
            "jacrev": (0.1, f"torch.func.jacrev({name}{argnums}){one}"),
            "jacfwd": (0.08, f"torch.func.jacfwd({name}{argnums}){one}"),
            "hessian": (0.05, f"torch.func.hessian({name}{argnums}){one}"),
            "jvp": (0.08, f"torch.func.jvp({name}, {one}, {weights})"),
            "vjp": (0.11, f"pulled(torch.func.vjp({name}, {x}, {y}))"),
        }
        call = calls[str(self.rng.choice(list(calls), p=[share for share, _ in calls.values()]))][1]
        self.names.append(f"first({result})")
        return f"{text}{result} = {call}"

    def levels(self) -> str:
        """A statement of the second family."""
        kind = self.rng.random()
        if kind < 0.15:
            return self.assigned()
        if kind < 0.22:
            return self.write()
        if kind < 0.32:
            return self.backward()
        if kind < 0.36:
            return self.hook()
        return self.transformed()

    # The third family: duals.

    def duals(self) -> str:
        """A level of forward mode, with statements in it."""
        inner = Writer(self.rng, list(self.names), self.made)

        def statement() -> str:
            kind = self.rng.random()
            if kind < 0.3:
                name, x = inner.new("d"), inner.tensor()
                tangent = self.one([f"torch.ones_like({x})", inner.tensor(), f"{x}.detach() * 0.5"])
                inner.names.append(name)
                return f"{name} = torch.autograd.forward_ad.make_dual({x}, {tangent})"
            if kind < 0.6:
                return inner.assigned()
            if kind < 0.75:
                return inner.write()
            if kind < 0.92:
                name = inner.new("u")
                inner.names.append(f"first({name})")
                return f"{name} = torch.autograd.forward_ad.unpack_dual({inner.tensor()})[::-1]"
            if kind < 0.97:
                return inner.backward()
            return inner.transformed(1)

        text = inner.inside("torch.autograd.forward_ad.dual_level()", statement, 8)
        self.made = inner.made
        self.names = inner.names
        return text

    def dual(self) -> str:
        """A statement of the third family."""
        kind = self.rng.random()
        if kind < 0.2:
            return self.assigned()
        if kind < 0.3:
            return self.write()
        if kind < 0.45:
            return self.backward()
        return self.duals()


FAMILIES: dict[str, Callable[[Writer], str]] = {
    "eager": Writer.eager,
    "levels": Writer.levels,
    "duals": Writer.dual,
}
