"""Functions and layers of ``functrans.compat.torch.nn`` against torch: values and gradients."""

from __future__ import annotations

import numpy as np
import pytest

import functrans.compat.torch as ours

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")

RNG = np.random.RandomState


def _array(seed, *shape, low=None):
    values = RNG(seed).standard_normal(shape)
    return values if low is None else np.abs(values) + low


def _given(lib, x):
    """An operand of a library: floating arrays become leaves."""
    if isinstance(x, np.ndarray):
        x = np.ascontiguousarray(x)
        made = lib.from_numpy(x.copy())
        return made.requires_grad_() if x.dtype.kind == "f" else made
    return x


def _leaves(values):
    return [x for x in values if hasattr(x, "grad_fn") and x.requires_grad]


def _numpy(x):
    return x.detach().numpy() if hasattr(x, "detach") else x


def _run(lib, call, args):
    """Results and gradients of their sum with fixed weights."""
    operands = [_given(lib, x) for x in args]
    out = call(lib, *operands)
    outs = [y for y in (out if isinstance(out, tuple) else (out,)) if y is not None]
    total = 0.0
    for i, y in enumerate(outs):
        if y.requires_grad:
            weights = RNG(100 + i).standard_normal(tuple(y.shape))
            total = total + (y * lib.from_numpy(np.asarray(weights))).sum()
    leaves = _leaves(operands)
    if isinstance(total, lib.Tensor):
        total.backward()
    return [_numpy(y) for y in outs], [_numpy(x.grad) for x in leaves]


def _agree(call, args, rtol=1e-9, atol=1e-10):
    theirs, mine = _run(torch, call, args), _run(ours, call, args)
    assert len(theirs[0]) == len(mine[0])
    for a, b in zip(theirs[0] + theirs[1], mine[0] + mine[1], strict=True):
        if b is None:  # nothing depends on it: torch may have zeros
            assert a is None or not a.any()
        else:
            np.testing.assert_allclose(b, a, rtol=rtol, atol=atol)


def _f(name, *rest, **options):
    return lambda lib, *xs: getattr(lib.nn.functional, name)(*xs, *rest, **options)


X3, X4, X5 = _array(0, 2, 3, 7), _array(1, 2, 4, 6, 5), _array(2, 2, 2, 4, 5, 6)
MODES = [
    *[("nearest", x, None) for x in (X3, X4, X5)],
    *[("nearest-exact", x, None) for x in (X3, X4, X5)],
    *[("area", x, None) for x in (X3, X4, X5)],
    *[("linear", X3, corners) for corners in (False, True)],
    *[("bilinear", X4, corners) for corners in (False, True)],
    *[("bicubic", X4, corners) for corners in (False, True)],
    *[("trilinear", X5, corners) for corners in (False, True)],
]


@pytest.mark.parametrize(("mode", "x", "corners"), MODES)
@pytest.mark.parametrize("factor", [2, 0.6, 1.7])
def test_interpolate_by_a_factor(mode, x, corners, factor):
    _agree(_f("interpolate", None, factor, mode, corners), [x])


@pytest.mark.parametrize(("mode", "x", "corners"), MODES)
def test_interpolate_to_a_size(mode, x, corners):
    size = (9, 3, 4)[: x.ndim - 2]
    _agree(_f("interpolate", size, None, mode, corners), [x])


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(3, 2), (9, 11), (2, 8)])
@pytest.mark.parametrize("corners", [False, True])
def test_interpolate_without_aliases(mode, size, corners):
    _agree(_f("interpolate", size, None, mode, corners, None, True), [X4])


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("corners", [False, True])
def test_grid_sample(mode, padding, corners):
    grid = RNG(3).uniform(-1.4, 1.4, (2, 3, 4, 2))
    _agree(_f("grid_sample", mode, padding, corners), [X4, grid])


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grid_sample_in_three_axes(mode, padding):
    grid = RNG(3).uniform(-1.3, 1.3, (2, 3, 2, 2, 3))
    _agree(_f("grid_sample", mode, padding, False), [X5, grid])


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize(("n", "size"), [(2, (2, 3, 4, 5)), (3, (2, 3, 4, 5, 2))])
def test_affine_grid(n, size, corners):
    _agree(_f("affine_grid", size, corners), [_array(4, 2, n, n + 1)])


Y, Z = _array(5, 6, 4), _array(6, 6, 4)
W = _array(7, 6, 4)
CLASSES = np.array([0, 3, 2, 1, 1, 0])
LABELS = np.array([[1, 3, -1, 0], [0, -1, 2, 1], [2, 1, 0, 3]])
SIGNS = np.array([1, -1, 1, -1, -1, 1])
FUNCTIONS = [
    ("pixel_shuffle", (2,), {}, [X4]),
    ("pixel_unshuffle", (1,), {}, [X4]),
    ("pixel_unshuffle", (3,), {}, [_array(8, 2, 6, 3)]),
    ("channel_shuffle", (2,), {}, [X4]),
    ("unfold", ((2, 3), 1, (1, 0), (2, 1)), {}, [X4]),
    ("unfold", (2, 2), {}, [X4[0]]),
    ("fold", ((6, 5), (2, 3), 1, (1, 0), (2, 1)), {}, [_array(9, 2, 18, 12)]),
    ("max_pool3d", (2,), {"return_indices": True}, [X5]),
    ("max_pool3d", (3, 2, 1), {"ceil_mode": True}, [X5]),
    ("avg_pool3d", (2, 1, 1), {"count_include_pad": False}, [X5]),
    ("adaptive_avg_pool3d", ((2, 3, 4),), {}, [X5]),
    ("adaptive_max_pool1d", (3,), {"return_indices": True}, [X3]),
    ("adaptive_max_pool2d", ((4, 3),), {"return_indices": True}, [X4]),
    ("adaptive_max_pool2d", ((None, 2),), {}, [X4[0]]),
    ("adaptive_max_pool3d", ((3, 2, 4),), {"return_indices": True}, [X5]),
    ("lp_pool1d", (2.0, 3, 2), {}, [X3]),
    ("lp_pool2d", (3.0, (2, 3)), {}, [np.abs(X4)]),
    ("lp_pool3d", (2.0, 2), {}, [X5]),
    ("local_response_norm", (3,), {"alpha": 0.5, "k": 2.0}, [X4]),
    ("local_response_norm", (2,), {}, [X3]),
    ("conv_transpose3d", (None, 2, 1, 1), {}, [X5, _array(10, 2, 3, 3, 2, 3)]),
    ("pairwise_distance", (), {}, [Y, Z]),
    ("pairwise_distance", (1.0,), {"keepdim": True}, [Y, Z]),
    ("pairwise_distance", (3.0,), {}, [Y, Z]),
    ("pdist", (), {}, [Y]),
    ("pdist", (1.0,), {}, [Y]),
    ("pdist", (3.0,), {}, [Y]),
    ("triplet_margin_loss", (), {"swap": True}, [Y, Z, W]),
    ("triplet_margin_loss", (2.0, 1), {"reduction": "none"}, [Y, Z, W]),
    ("triplet_margin_with_distance_loss", (), {"swap": True}, [Y, Z, W]),
    ("cosine_embedding_loss", (), {"margin": 0.1}, [Y, Z, SIGNS]),
    ("cosine_embedding_loss", (), {"reduction": "none"}, [Y, Z, SIGNS]),
    ("multi_margin_loss", (), {}, [Y, CLASSES]),
    ("multi_margin_loss", (2, 0.5), {"reduction": "none"}, [Y, CLASSES]),
    ("multilabel_margin_loss", (), {}, [Y[:3], LABELS]),
    ("multilabel_margin_loss", (), {"reduction": "none"}, [Y[:3], LABELS]),
    ("multilabel_soft_margin_loss", (), {}, [Y, (Z > 0).astype(float)]),
    ("gaussian_nll_loss", (), {"full": True}, [Y, Z, np.abs(W) + 0.1]),
    ("gaussian_nll_loss", (), {"reduction": "none"}, [Y, Z, np.abs(W[:, :1])]),
    ("rrelu", (0.1, 0.3), {}, [Y]),
    ("alpha_dropout", (0.5,), {}, [Y]),
    ("scaled_dot_product_attention", (), {"is_causal": True}, [X4, X4 + 1, X4 * 2]),
    ("scaled_dot_product_attention", (), {}, [X4, X4[:, :1] + 1, X4[:, :1]]),
    (
        "scaled_dot_product_attention",
        (),
        {"enable_gqa": True, "scale": 0.3},
        [X4, X4[:, :2] + 1, X4[:, 2:]],
    ),
]


@pytest.mark.parametrize(("name", "rest", "options", "args"), FUNCTIONS)
def test_function(name, rest, options, args):
    _agree(_f(name, *rest, **options), args)


def test_multi_margin_with_weights():
    weight = np.abs(_array(11, 4))

    def call(lib, x, y, w):
        return lib.nn.functional.multi_margin_loss(x, y, weight=w.detach())

    _agree(call, [Y, CLASSES, weight])


def test_attention_masks():
    mask = RNG(12).uniform(size=(6, 6)) > 0.4
    mask[2] = False  # a row that sees nothing

    def call(lib, x, m):
        return lib.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=m)

    _agree(call, [X4, mask])


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("zero", [False, True])
def test_ctc_loss(reduction, zero):
    scores = _array(13, 9, 3, 5)
    targets = np.array([[1, 2, 2, 4], [3, 3, 1, 0], [4, 0, 0, 0]])
    lengths = ([9, 7, 8], [4, 3, 1])

    def call(lib, x):
        scaled = x.log_softmax(2)
        return lib.nn.functional.ctc_loss(
            scaled, lib.from_numpy(targets), *map(lib.tensor, lengths), 0, reduction, zero
        )

    _agree(call, [scores])


def test_ctc_loss_of_what_cannot_be_aligned():
    scores = _array(14, 3, 1, 3)

    def call(lib, x):
        return lib.nn.functional.ctc_loss(
            x.log_softmax(2), lib.tensor([[1, 1, 1]]), (3,), (3,), zero_infinity=True
        )

    _agree(call, [scores])


def test_ctc_loss_of_joined_targets():
    scores = _array(15, 6, 2, 4)

    def call(lib, x):
        return lib.nn.functional.ctc_loss(
            x.log_softmax(2), lib.tensor([1, 2, 3]), (6, 5), (1, 2), reduction="sum"
        )

    _agree(call, [scores])


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_bag(mode):
    index, offsets = np.array([1, 2, 4, 5, 4, 3, 2, 9]), np.array([0, 3, 3, 5])

    def call(lib, table, i, o):
        return lib.nn.functional.embedding_bag(i, table, o, mode=mode, padding_idx=4)

    _agree(call, [_array(16, 10, 3), index, offsets])


def test_embedding_bag_with_factors():
    index = np.array([[1, 2], [4, 1]])

    def call(lib, table, i, w):
        return lib.nn.functional.embedding_bag(i, table, mode="sum", per_sample_weights=w)

    _agree(call, [_array(17, 5, 3), index, _array(18, 2, 2)])


@pytest.mark.parametrize(("n", "x"), [(1, X3), (2, X4), (3, X5)])
def test_max_unpool_is_the_way_back(n, x):
    def call(lib, x):
        out, places = getattr(lib.nn.functional, f"max_pool{n}d")(x, 2, return_indices=True)
        return getattr(lib.nn.functional, f"max_unpool{n}d")(
            out, places, 2, output_size=x.shape[2:]
        )

    _agree(call, [x])


# modules -----------------------------------------------------------------------------------------

MASK = np.triu(np.ones((5, 5), bool), 1)
SEQUENCE, MEMORY = _array(20, 5, 2, 8), _array(21, 3, 2, 8)
MODULES = [
    ("MultiheadAttention", (8, 2), {}, [SEQUENCE] * 3),
    ("MultiheadAttention", (8, 4), {"batch_first": True, "bias": False}, [SEQUENCE] * 3),
    ("MultiheadAttention", (8, 2), {"kdim": 8, "vdim": 5}, [SEQUENCE, MEMORY, MEMORY[..., :5]]),
    ("MultiheadAttention", (8, 2), {"add_bias_kv": True, "add_zero_attn": True}, [SEQUENCE] * 3),
    ("MultiheadAttention", (8, 2), {}, [SEQUENCE[:, 0]] * 3),
    ("TransformerEncoderLayer", (8, 2, 16), {"dropout": 0.0}, [SEQUENCE]),
    ("TransformerEncoderLayer", (8, 2, 16, 0.0, "gelu"), {"norm_first": True}, [SEQUENCE]),
    ("TransformerDecoderLayer", (8, 2, 16), {"dropout": 0.0}, [SEQUENCE, MEMORY]),
    ("TransformerDecoderLayer", (8, 2, 16, 0.0), {"norm_first": True}, [SEQUENCE, MEMORY]),
    ("Transformer", (8, 2, 2, 1, 16, 0.0), {}, [SEQUENCE, MEMORY]),
    (
        "Transformer",
        (8, 2, 1, 2, 16, 0.0),
        {"batch_first": True, "bias": False},
        [SEQUENCE[:3], MEMORY],
    ),
    ("EmbeddingBag", (10, 3), {}, [np.array([[1, 2], [3, 9]])]),
    ("EmbeddingBag", (10, 3), {"mode": "max", "padding_idx": 2}, [np.array([[1, 2], [3, 9]])]),
    ("ConvTranspose3d", (2, 4, 3), {"stride": 2, "groups": 2}, [X5]),
    ("BatchNorm3d", (2,), {}, [X5]),
    ("InstanceNorm1d", (3,), {"affine": True}, [X3]),
    ("InstanceNorm2d", (4,), {"track_running_stats": True}, [X4]),
    ("InstanceNorm3d", (2,), {}, [X5]),
    ("InstanceNorm2d", (4,), {}, [X4[0]]),
    ("LocalResponseNorm", (2,), {}, [X4]),
    ("Softmax2d", (), {}, [X4]),
    ("Upsample", (), {"scale_factor": 2, "mode": "bilinear"}, [X4]),
    ("UpsamplingBilinear2d", (), {"scale_factor": 2}, [X4]),
    ("UpsamplingNearest2d", ((3, 4),), {}, [X4]),
    ("PixelShuffle", (2,), {}, [X4]),
    ("PixelUnshuffle", (1,), {}, [X4]),
    ("ChannelShuffle", (2,), {}, [X4]),
    ("Unfold", (2,), {"stride": 2}, [X4]),
    ("Fold", ((4, 5), (2, 2)), {}, [_array(22, 2, 8, 12)]),
    ("MaxPool3d", (2,), {}, [X5]),
    ("AvgPool3d", (2,), {}, [X5]),
    ("AdaptiveAvgPool3d", (2,), {}, [X5]),
    ("AdaptiveMaxPool1d", (2,), {}, [X3]),
    ("AdaptiveMaxPool2d", (2,), {"return_indices": True}, [X4]),
    ("AdaptiveMaxPool3d", (2,), {}, [X5]),
    ("LPPool1d", (2, 3), {}, [X3]),
    ("LPPool2d", (2, 2), {}, [X4]),
    ("LPPool3d", (2, 2), {}, [X5]),
    *[
        (f"{kind}Pad{n}d", (1, 2.5) if kind == "Constant" else (1,), {}, [x])
        for kind in ("Constant", "Zero", "Reflection", "Replication", "Circular")
        for n, x in ((1, X3), (2, X4), (3, X5))
    ],
    ("ReflectionPad2d", ((1, 2, 0, 3),), {}, [X4]),
    ("PairwiseDistance", (), {}, [Y, Z]),
    ("TripletMarginLoss", (), {}, [Y, Z, W]),
    ("TripletMarginWithDistanceLoss", (), {}, [Y, Z, W]),
    ("CosineEmbeddingLoss", (), {}, [Y, Z, SIGNS]),
    ("MultiLabelMarginLoss", (), {}, [Y[:3], LABELS]),
    ("MultiLabelSoftMarginLoss", (), {}, [Y, (Z > 0).astype(float)]),
    ("MultiMarginLoss", (), {"p": 2}, [Y, CLASSES]),
    ("GaussianNLLLoss", (), {}, [Y, Z, np.abs(W)]),
    ("RReLU", (), {}, [Y]),
]


def _pair(name, args, options):
    """A module of torch and ours with the same parameters, in float64."""
    theirs = getattr(torch.nn, name)(*args, **options).double()
    mine = getattr(ours.nn, name)(*args, **options).double()
    state = theirs.state_dict()
    assert list(state) == list(mine.state_dict())
    mine.load_state_dict({key: ours.from_numpy(x.numpy().copy()) for key, x in state.items()})
    return theirs, mine


@pytest.mark.parametrize(("name", "args", "options", "inputs"), MODULES)
@pytest.mark.parametrize("training", [True, False])
def test_module_with_the_state_of_torch(name, args, options, inputs, training):
    if name == "RReLU" and training:
        pytest.skip("random")
    pair = dict(zip((torch, ours), _pair(name, args, options), strict=True))
    for module in pair.values():
        module.train(training)
    _agree(lambda lib, *xs: pair[lib](*xs), inputs, rtol=1e-7, atol=1e-8)
    theirs, mine = (dict(module.named_parameters()) for module in pair.values())
    assert list(theirs) == list(mine)
    for key, p in theirs.items():
        np.testing.assert_allclose(_numpy(mine[key].grad), _numpy(p.grad), rtol=1e-7, atol=1e-8)
    theirs, mine = (module.state_dict() for module in pair.values())
    for key, p in theirs.items():
        np.testing.assert_allclose(_numpy(mine[key]), _numpy(p), rtol=1e-7, atol=1e-9)
    if name != "TripletMarginWithDistanceLoss":  # whose distance is a module in torch
        assert repr(pair[ours]).splitlines()[0] == repr(pair[torch]).splitlines()[0]


@pytest.mark.parametrize("need_weights", [True, False])
def test_masks_of_several_heads(need_weights):
    pair = dict(zip((torch, ours), _pair("MultiheadAttention", (8, 2), {}), strict=True))
    padding = np.array([[False, False, True, False, False], [False] * 5])

    def call(lib, x, mask, padding):
        return pair[lib](
            x, x, x, key_padding_mask=padding, attn_mask=mask, need_weights=need_weights,
            average_attn_weights=False,
        )  # fmt: skip

    _agree(call, [SEQUENCE, MASK, padding], rtol=1e-7)


def test_masks_of_a_transformer():
    pair = dict(zip((torch, ours), _pair("Transformer", (8, 2, 1, 1, 16, 0.0), {}), strict=True))

    def call(lib, x, y):
        model = pair[lib]
        mask = model.generate_square_subsequent_mask(3, dtype=lib.float64)
        return model(x, y, tgt_mask=mask)

    _agree(call, [SEQUENCE, MEMORY], rtol=1e-7)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("MultiheadAttention", (8, 2)),
        ("TransformerEncoderLayer", (8, 2, 16)),
        ("Transformer", (8, 2, 1, 1, 16)),
        ("EmbeddingBag", (10, 3)),
        ("ConvTranspose3d", (2, 4, 3)),
    ],
)
def test_initial_values_are_those_of_the_seed(name, args):
    torch.manual_seed(3)
    theirs = getattr(torch.nn, name)(*args).state_dict()
    ours.manual_seed(3)
    mine = getattr(ours.nn, name)(*args).state_dict()
    for key, p in theirs.items():
        np.testing.assert_allclose(_numpy(mine[key]), _numpy(p), rtol=1e-5, atol=1e-6)
