"""What is done to tensors, as text for both sides: operations, views, writes.

Here: the tables that ``imperative`` draws from. The text is Python of ``a`` and ``b``, with
``T`` for ``functrans.compat.torch`` and ``np`` for NumPy in the model's text. Not here: what a step
means for memory (``memory``).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One operation.

    Attributes:
      text: for the library.
      reads: what the derivative for each operand may read: ``a:b b:ab``, with ``o`` for the result.
      model: the value in NumPy; empty if the text is NumPy's, too.
      kinds: of operands, ``r`` real, ``c`` complex.
    """

    text: str
    reads: str = ""
    model: str = ""
    kinds: str = "rc"

    @property
    def operands(self) -> int:
        """How many tensors it takes."""
        return (
            2 if "b" in {*compile(self.text, "", "eval").co_names, *_inner_names(self.text)} else 1
        )

    @property
    def expression(self) -> str:
        """The model's text."""
        return self.model or self.text


def _inner_names(text: str) -> set[str]:
    """Names in functions of an expression."""
    found: set[str] = set()
    left = [compile(text, "", "eval")]
    while left:
        code = left.pop()
        found |= {*code.co_names, *code.co_freevars}
        left += [c for c in code.co_consts if hasattr(c, "co_names")]
    return found


OPERATIONS = (
    Row("a + b"),
    Row("a - b"),
    Row("2 * a"),
    Row("-a"),
    Row("a * b", "a:b b:a"),
    Row("a * b", "a:b b:a"),
    Row("a / b", "a:b b:abo"),
    Row("a * a", "a:a"),
    Row("a ** 2", "a:a"),
    Row("a ** 3", "a:a"),
    Row("T.sin(a)", "a:a", "np.sin(a)"),
    Row("T.exp(a)", "a:o", "np.exp(a)"),
    Row("T.tanh(a)", "a:o", "np.tanh(a)"),
    Row("T.sigmoid(a)", "a:o", "1 / (1 + np.exp(-a))", "r"),
    Row("T.sqrt(a * a + 1)", "a:ao", "np.sqrt(a * a + 1)", "r"),
    Row("T.log(a * a + 1.5)", "a:a", "np.log(a * a + 1.5)", "r"),
    Row("T.abs(a)", "a:ao", "np.abs(a)", "r"),
    Row("T.relu(a)", "a:ao", "np.maximum(a, 0)", "r"),
    Row("T.maximum(a, b)", "a:abo b:abo", "np.maximum(a, b)", "r"),
    Row("T.where(a > b, a, b * b)", "b:b", "np.where(a > b, a, b * b)", "r"),
    Row("T.softmax(a, -1)", "a:o", "np.exp(a) / np.exp(a).sum(-1, keepdims=True)", "r"),
    Row("T.logsumexp(a, -1)", "a:ao", "np.log(np.exp(a).sum(-1))", "r"),
    Row("a.sum(0)"),
    Row("a.mean(-1)"),
    Row("a.cumsum(0)", model="a.cumsum(0).reshape(a.shape)"),
    Row("a.prod(0)", "a:ao"),
    Row("a.amax(-1)", "a:ao", "a.max(-1)", "r"),
    Row("a @ b", "a:b b:a"),
    Row("T.stack((a, b))", model="np.stack((a, b))"),
    Row("T.cat((a, b))", model="np.concatenate((a, b))"),
    Row("a.flip(0)", model="a[::-1]"),
    Row("a.clone()", model="+a"),
    Row("a[[0, 0]]"),
    Row("a.conj() * b", "a:b b:a"),
    Row("T.complex(a, b * 1)", model="a + 1j * b", kinds="r"),
    Row("T.abs(a) ** 2", "a:a", "np.abs(a) ** 2"),
    Row("Cube.apply(a)", "a:a", "a ** 3", "r"),
    Row("Exp.apply(a)", "a:o", "np.exp(a)", "r"),
    Row("Mixed.apply(a, b)", "a:ab b:ab", "a * np.sin(b)", "r"),
    Row("checkpoint(lambda q: T.sin(q) * q, a, use_reentrant=False)", "a:a", "np.sin(a) * a", "r"),
    Row("checkpoint(lambda q: T.sin(q) * q, a, use_reentrant=True)", "a:a", "np.sin(a) * a", "r"),
    Row("checkpoint(lambda q, r: T.exp(q * r), a, b, use_reentrant=False)", "a:abo b:abo",
        "np.exp(a * b)", "r"),
    Row("slope(lambda q: (q ** 3).sum(), a)", "a:a", "3 * a ** 2", "r"),
    Row("slope(lambda q: T.exp(q).sum(), a)", "a:ao", "np.exp(a)", "r"),
    Row("slope(lambda q: slope(lambda r: (r ** 4).sum(), q).sum(), a)", "a:a", "12 * a ** 2", "r"),
    Row("T.func.grad(lambda q: (T.sin(q) * a.sum()).sum())(b)", "a:ab b:ab",
        "np.cos(b) * a.sum()", "r"),
    Row("T.func.vmap(lambda q: q * q)(a)", "a:a", "a[:] ** 2"),
    Row("T.func.jvp(lambda q: q ** 3, (a,), (b,))[1]", "a:ab b:ab",
        "same(a, b) and 3 * a ** 2 * b", "r"),
    Row("T.func.vjp(T.sin, a)[1](b)[0]", "a:ab b:ab", "same(a, b) and np.cos(a) * b", "r"),
    Row("T.func.vmap(T.func.grad(lambda q: (q ** 3).sum()))(a)", "a:a", "3 * a[:] ** 2", "r"),
    Row("T.func.jacrev(lambda q: q * q)(a.sum(0)).clone()", "a:a",
        "square_jacobian(a.sum(0))", "r"),
    Row("ft.jit(lambda q, r: T.sin(q) * r)(a, b)", "a:ab b:ab", "np.sin(a) * b", "r"),
)  # fmt: skip

VIEWS = (
    Row("a[1:]"),
    Row("a[:-1]"),
    Row("a[::2]"),
    Row("a[0]", model="a[0, ...]"),
    Row("a[..., -1]"),
    Row("a[..., 1:]"),
    Row("a[None]"),
    Row("a.select(-1, 0)", model="a[..., 0]"),
    Row("a.narrow(0, 1, 1)", model="a[1:2]"),
    Row("a.movedim(0, -1)", model="np.moveaxis(a, 0, -1)"),
    Row("a.transpose(0, 1)", model="np.swapaxes(a, 0, 1)"),
    Row("a.mT", model="np.swapaxes(a, -1, -2)"),
    Row("a.reshape(-1)"),
    Row("a.view(-1)", model="a.reshape(-1)"),
    Row("a.view_as(a)", model="a[...]"),
    Row("a.diagonal()"),
    Row("a.expand(2, *a.shape)", model="np.broadcast_to(a, (2, *a.shape))"),
    Row("a.unbind(0)", model="[a[i, ...] for i in range(len(a))]"),
    Row("a.split(1)", model="[a[i:i + 1] for i in range(len(a))]"),
    Row("a.chunk(2)", model="[a[:(len(a) + 1) // 2], a[(len(a) + 1) // 2:]][:min(2, len(a))]"),
    Row("a.real", kinds="c"),
    Row("a.imag", kinds="c"),
    Row("T.view_as_real(a)", model="as_real(a)", kinds="c"),
    Row("a.real", kinds="c"),
    Row("a.detach()", model="a[...]"),
)

MANY = ("a.unbind(0)", "a.split(1)", "a.chunk(2)")
DETACHED = "a.detach()"

WRITES = (
    Row("a.mul_(b)", "a:b b:c", "a * b"),
    Row("a.mul_(b)", "a:b b:c", "a * b"),
    Row("a.add_(b)", "", "a + b"),
    Row("a.sub_(b, alpha=2)", "", "a - 2 * b"),
    Row("a.div_(b)", "a:b b:bo", "a / b"),
    Row("a.copy_(b)", "", "0 * a + b"),
    Row("a.addcmul_(b, b, value=0.5)", "b:b", "a + 0.5 * b * b"),
    Row("a.lerp_(b, 0.3)", "", "a + 0.3 * (b - a)", "r"),
    Row("a.neg_()", "", "-a"),
    Row("a.mul_(3)", "", "3 * a"),
    Row("a.exp_()", "a:o", "np.exp(a)"),
    Row("a.sin_()", "", "np.sin(a)"),
    Row("a.tanh_()", "a:o", "np.tanh(a)"),
    Row("a.pow_(2)", "", "a ** 2"),
    Row("a.zero_()", "", "0 * a"),
    Row("a.fill_(0.7)", "", "0 * a + 0.7"),
    Row("a.clamp_(-0.5, 0.9)", "", "np.clip(a, -0.5, 0.9)", "r"),
    Row("a.masked_fill_(a > 0.2, 1.5)", "", "np.where(a > 0.2, 1.5, a)", "r"),
    Row("a.__setitem__(0, 0.25)", "", "put(a, 0, 0.25)"),
    Row("a.__setitem__(0, b)", "", "put(a, 0, b)"),
    Row("a.__setitem__(slice(1, None), b)", "", "put(a, slice(1, None), b)"),
    Row("a.__setitem__((..., 0), b)", "", "put(a, (..., 0), b)"),
    Row("a.__setitem__(T.abs(a) > 0.5, 0.1)", "", "put(a, np.abs(a) > 0.5, 0.1)"),
    Row("a.__setitem__([1, 0], b)", "", "put(a, [1, 0], b)"),
    Row("a.__imul__(b)", "a:b b:c", "a * b"),
    Row("Tripled.apply(a)", "", "3 * a", "r"),
)

RAISED = (
    "boom()",
    "T.func.grad(lambda q: boom())(a)",
    "T.func.vmap(lambda q: boom())(a[None])",
    "T.func.jvp(lambda q: boom(), (a,), (a,))",
    "ft.jit(lambda q: boom())(a)",
    "checkpoint(lambda q: boom(), a * 1, use_reentrant=True)",
    "checkpoint(lambda q: boom(), a * 1, use_reentrant=False)",
    "boom_backward(a)",
    "boom_saved(a)",
)

CONTEXTS = ("no_grad", "enable_grad", "inference", "identity", "copy", "wide")
