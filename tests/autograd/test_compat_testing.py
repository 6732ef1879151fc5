"""``torch.testing``: what is close passes; what is not says where and by how much."""

from typing import Any

import numpy as np
import pytest

import functrans.compat.torch as torch

X = torch.tensor([1.0, 2.0, 3.0])
close = torch.testing.assert_close

CLOSE: list[tuple[Any, Any, dict[str, Any]]] = [
    (X, X + 1e-6, {}),
    (X, X.double(), {"check_dtype": False}),
    (X, X + 1, {"rtol": 0.0, "atol": 1.0}),
    (X, X.clone().requires_grad_(), {}),
    (X, torch.nn.Parameter(X), {}),
    (X.numpy(), X.numpy(), {}),
    ({"a": [X, 1.0]}, {"a": (X, 1.0)}, {}),
    (torch.tensor([np.nan, np.inf]), torch.tensor([np.nan, np.inf]), {"equal_nan": True}),
    (torch.tensor([2**53 + 1]), torch.tensor([2**53 + 1]), {}),
    (None, None, {}),
]


@pytest.mark.parametrize(("actual", "expected", "options"), CLOSE)
def test_what_is_close_passes(actual: Any, expected: Any, options: dict[str, Any]) -> None:
    close(actual, expected, **options)


FAR: list[tuple[Any, Any, str]] = [
    (
        X,
        X + 1,
        r"Mismatched elements: 3 / 3 \(100.0%\)\nGreatest absolute difference: 1.0 at index",
    ),
    (X, X[:2], r"attribute 'shape' do not match: torch.Size\(\[3\]\) != torch.Size\(\[2\]\)"),
    (X, X.double(), r"attribute 'dtype' do not match: torch.float32 != torch.float64"),
    (torch.tensor([2**53]), torch.tensor([2**53 + 1]), r"not equal!(.|\n)*difference: 1 at index"),
    (torch.tensor([np.nan]), torch.tensor([np.nan]), r"Tensor-likes are not close"),
    (torch.tensor([np.inf]), torch.tensor([-np.inf]), r"absolute difference: inf"),
    (X[0], X[1], r"Scalars are not close!\n\nExpected 2.0 but got 1.0.\nAbsolute difference: 1.0"),
    (1, 1.0, r"\(d\)types do not match: <class 'int'> != <class 'float'>"),
    ([X, X], [X, X + 1], r"The failure occurred for item \[1\]"),
    ({"a": [X]}, {"a": [X + 1]}, r"The failure occurred for item \['a'\]\[0\]"),
    ({"a": X}, {"b": X}, r"Missing keys in the actual mapping: \['b'\]"),
    ([X], [X, X], r"The length of the sequences mismatch: 1 != 2"),
]


@pytest.mark.parametrize(("actual", "expected", "message"), FAR)
def test_what_differs_is_said(actual: Any, expected: Any, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        close(actual, expected)


def test_strides_messages_and_other_kinds() -> None:
    with pytest.raises(
        AssertionError, match=r"attribute 'stride' do not match: \(2, 1\) != \(1, 2"
    ):
        close(torch.ones(2, 2), torch.ones(2, 2).T, check_stride=True)
    with pytest.raises(AssertionError, match=r"^at the end: Tensor-likes"):
        close(X, X + 1, msg=lambda text: f"at the end: {text}")
    for other in ([1.0, 2.0, 3.0], X.numpy(), "text", None):
        with pytest.raises(TypeError, match="No comparison pair was able to handle inputs of type"):
            close(X, other)
    with pytest.raises(TypeError, match="No comparison pair"):
        close(X, torch.nn.Parameter(X), allow_subclasses=False)
    with pytest.raises(ValueError, match="but got no atol"):
        close(X, X, rtol=1.0)


def test_allclose_takes_what_becomes_an_array() -> None:
    torch.testing.assert_allclose(X, [1.0, 2.0, 3.0])
    torch.testing.assert_allclose(X, X.double())
    with pytest.raises(AssertionError, match="not close"):
        torch.testing.assert_allclose(X, 1.0)
