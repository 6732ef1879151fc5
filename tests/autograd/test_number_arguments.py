"""Numbers that scale operands: by position, as in torch's deprecated forms, and as tensors."""

from typing import Any

import pytest
from numpy.testing import assert_array_equal

import functrans.compat.torch as torch
from functrans.autograd.methods.rows import DEPRECATED

M = torch.arange(9.0).reshape(3, 3)
V = torch.arange(3.0)
B = torch.arange(18.0).reshape(2, 3, 3)
OPERANDS: dict[str, tuple[Any, ...]] = {
    "add": (M, V),
    "sub": (M, V),
    "subtract": (M, V),
    "addcmul": (M, V, M),
    "addcdiv": (M, V, M + 1),
    "addmm": (M, M, M),
    "addmv": (V, M, V),
    "addr": (M, V, V),
    "addbmm": (M, B, B),
    "baddbmm": (B, B, B),
}


def test_every_function_has_operands() -> None:
    assert set(OPERANDS) == set(DEPRECATED)


@pytest.mark.parametrize("name", OPERANDS)
def test_numbers_in_front_of_the_operands_are_the_keywords(name: str) -> None:
    x, *others = OPERANDS[name]
    names = DEPRECATED[name]
    for count in range(1, len(names) + 1):
        numbers = [2.0, 3.0][:count]
        keywords = dict(zip(names, numbers, strict=False))
        expected = getattr(x, name)(*others, **keywords).numpy()
        if name == "addcmul":
            assert_array_equal(expected, (x + 2 * others[0] * others[1]).numpy())
        assert_array_equal(getattr(x, name)(*numbers, *others).numpy(), expected)
        assert_array_equal(getattr(x.clone(), f"{name}_")(*numbers, *others).numpy(), expected)
        first = (numbers[0], x, *numbers[1:]) if len(names) == 2 else (x, *numbers)
        assert_array_equal(getattr(torch, name)(*first, *others).numpy(), expected)


@pytest.mark.parametrize("name", OPERANDS)
def test_a_tensor_without_axes_is_a_number_unless_it_requires_a_gradient(name: str) -> None:
    x, *others = OPERANDS[name]
    for argument in DEPRECATED[name]:
        expected = getattr(x, name)(*others, **{argument: 2.0}).numpy()
        two = torch.tensor(2.0)
        assert_array_equal(getattr(x, name)(*others, **{argument: two}).numpy(), expected)
        for refused in (two.clone().requires_grad_(), torch.ones(1)):
            with pytest.raises(TypeError, match=f"argument '{argument}' must be Number"):
                getattr(x, name)(*others, **{argument: refused})


@pytest.mark.parametrize("name", OPERANDS)
def test_tensors_are_no_numbers_by_position(name: str) -> None:
    x, *others = OPERANDS[name]
    with pytest.raises(TypeError, match="takes"):
        getattr(x, name)(*others, M)
    with pytest.raises(TypeError, match="takes"):
        getattr(x, name)(1.0, 2.0, 3.0, *others)


KEYWORDS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("mm", (M,), {"mat2": M}),
    ("bmm", (B,), {"mat2": B}),
    ("mv", (M,), {"vec": V}),
    ("dot", (V,), {"tensor": V}),
    ("hsplit", (M,), {"sections": 3}),
    ("vsplit", (M,), {"indices": [1]}),
    ("dsplit", (B,), {"sections": 3}),
    ("tensor_split", (M,), {"sections": 2}),
    ("tensor_split", (M,), {"tensor_indices_or_sections": torch.tensor(2)}),
    ("split", (M,), {"split_size": 2}),
    ("split_with_sizes", (M,), {"split_sizes": [1, 2]}),
    ("unsafe_split", (M,), {"split_size": 2}),
    ("swapaxes", (B,), {"axis0": 0, "axis1": 2}),
    ("cholesky_solve", (M,), {"input2": torch.eye(3)}),
    ("pinverse", (M,), {"rcond": 1e-3}),
    ("arange", (), {"end": 3}),
    ("randint", (), {"high": 1, "size": (2,)}),
    ("randint_like", (M,), {"high": 1}),
    ("isin", (), {"elements": M, "test_elements": V}),
    ("resize_", (M.clone(),), {"size": (9, 1)}),
]


def _leaves(x: Any) -> list[Any]:
    return [part.tolist() for part in (x if isinstance(x, tuple) else (x,))]


@pytest.mark.parametrize(("name", "operands", "keywords"), KEYWORDS)
def test_arguments_go_by_the_names_of_torch(
    name: str, operands: tuple[Any, ...], keywords: dict[str, Any]
) -> None:
    values = list(keywords.values())
    expected: Any
    if name == "randint_like":
        expected = torch.zeros(3, 3)
    elif hasattr(torch.Tensor, name) and operands:
        expected = getattr(operands[0].clone(), name)(*values)
        assert _leaves(getattr(operands[0].clone(), name)(**keywords)) == _leaves(expected)
    else:
        expected = getattr(torch, name)(*values)
    if hasattr(torch, name) and name != "split":  # which has another word there
        assert _leaves(getattr(torch, name)(*operands, **keywords)) == _leaves(expected)
