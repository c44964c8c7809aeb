"""What the browser components do in Python: packing, checks, and whose choice holds."""

import base64
import zlib
from dataclasses import replace

import numpy as np
import pytest

from attnviz.app.components.bridge import bridge
from attnviz.app.components.bridge.bridge import Settled, pack, settle
from attnviz.app.components.mosaic.mosaic import COARSE, FINE, HEAVY, Measure, Thumbnails, _pack_image, mosaic
from attnviz.app.components.token_strip.token_strip import StripLook, StripTokens, _pack_mask, token_strip

PLAIN = Thumbnails(2, 2, cells=[(0, 0), (0, 1)])
IMAGE = np.zeros((2, 4), dtype=np.uint8)
NO_MASK = np.zeros((2, 2), dtype=bool)


def unpacked(text: str, dtype: str) -> np.ndarray:
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype=dtype)


def test_packed_arrays_come_back_the_same() -> None:
    weights = np.random.default_rng(0).integers(0, 65536, (7, 5)).astype(np.uint16)
    np.testing.assert_array_equal(unpacked(pack(weights), "<u2").reshape(7, 5), weights)
    np.testing.assert_array_equal(unpacked(pack(weights.astype(">u2").T), "<u2").reshape(5, 7), weights.T)


def test_the_picture_keeps_the_order_of_weights_and_sets_masked_cells_apart() -> None:
    image = np.array([[0, 10, 127, 254], [255, 200, 0, 255]], dtype=np.uint8)
    levels, packed = _pack_image(image, NO_MASK)
    assert levels == FINE
    np.testing.assert_array_equal(unpacked(packed, "u1"), [0, 1, 16, 31, 32, 24, 0, 32])


def test_a_mask_for_all_heads_covers_every_thumbnail() -> None:
    _, packed = _pack_image(IMAGE, np.array([[False, True], [False, False]]))
    np.testing.assert_array_equal(unpacked(packed, "u1"), [0, FINE, 0, FINE, 0, 0, 0, 0])


def test_a_picture_that_is_heavy_to_send_gets_fewer_shades() -> None:
    noise = np.random.default_rng(0).integers(0, 255, (960, 288)).astype(np.uint8)
    levels, packed = _pack_image(noise, np.zeros((32, 32), dtype=bool))
    assert levels == COARSE and len(packed) < 1.4 * HEAVY
    assert unpacked(packed, "u1").max() == COARSE - 1


def test_equal_pictures_give_equal_messages() -> None:
    noise = np.random.default_rng(0).integers(0, 255, (64, 64)).astype(np.uint8)
    assert _pack_image(noise, NO_MASK) == _pack_image(np.asfortranarray(noise), NO_MASK)


def test_a_causal_mask_travels_as_a_flag_and_any_other_as_bits() -> None:
    assert _pack_mask(None) == {"causal": False, "maskedBits": None}
    assert _pack_mask("causal") == _pack_mask(~np.tri(5, dtype=bool)) == {"causal": True, "maskedBits": None}
    masked = np.random.default_rng(0).random((5, 7)) < 0.5
    bits = unpacked(_pack_mask(masked)["maskedBits"], "u1")
    seen = [[bits[(q * 7 + k) // 8] >> (7 - (q * 7 + k) % 8) & 1 for k in range(7)] for q in range(5)]
    np.testing.assert_array_equal(np.array(seen, dtype=bool), masked)


def play(*runs: tuple[object, dict | None, object]) -> list[object]:
    """Return the value that holds after each run of a page that passes `given` while the browser says `sent`."""
    last: Settled | None = None
    values = []
    for given, sent, about in runs:
        last = settle(last, given, sent, about=about)
        values.append(last.value)
    return values


def test_the_newest_choice_holds_whoever_made_it() -> None:
    click, later = {"value": 5, "at": 10}, {"value": 6, "at": 11}
    assert play((1, None, 0), (2, None, 0)) == [1, 2]  # the page alone
    assert play((1, None, 0), (1, click, 0), (1, click, 0)) == [1, 5, 5]  # a page that doesn't follow the visitor
    assert play((1, None, 0), (5, click, 0), (7, click, 0), (7, click, 0)) == [
        1,
        5,
        7,
        7,
    ]  # a page that does, then moves
    assert play((1, None, 0), (5, click, 0), (5, later, 0), (1, later, 0)) == [1, 5, 6, 1]


def test_a_choice_about_one_text_is_gone_with_the_next() -> None:
    click = {"value": 5, "at": 10}
    assert play((None, None, "a"), (None, click, "a"), (None, click, "b"), (None, click, "b")) == [None, 5, None, None]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"columns": 3}, r"shape \(rows \* 2, 3 \* 2\).*got \(2, 4\)"),
        ({"cells": [(0, 0)]}, "cells must have 2 entries, one a thumbnail, got 1"),
        ({"row_labels": ["L0"]}, r"1 and 2 of them, got \(1, 0\)"),
        ({"masked": np.zeros((3, 3), dtype=bool)}, r"masked must have shape \(2, 2\), got \(3, 3\)"),
    ],
)
def test_a_mosaic_says_what_does_not_fit(change: dict, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        mosaic(IMAGE, replace(PLAIN, **change), key="heads")


@pytest.mark.parametrize(
    ("measure", "words"),
    [
        (Measure(tint=[0.5, 1.5]), "from 0 to 1 or None, got 1.5"),
        (Measure(captions=["one"]), "captions must have 2 entries"),
        (Measure(order=[0, 2]), "from 0 to 1 into cells, got 2"),
    ],
)
def test_a_mosaic_says_what_measure_does_not_fit(measure: Measure, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        mosaic(IMAGE, PLAIN, measure=measure, key="heads")


def test_a_mosaic_takes_bytes_alone() -> None:
    with pytest.raises(ValueError, match="2-dimensional uint8, got 2 dimensions of float64"):
        mosaic(IMAGE.astype(float), PLAIN, key="heads")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"weights": np.eye(3)}, r"shape \(2, 2\), one row a query, got \(3, 3\)"),
        ({"weights": np.eye(2) * 2}, "between 0 and 1, got 0 to 2"),
        ({"weights": np.full((2, 2), np.nan)}, "between 0 and 1, got nan"),
        ({"look": StripLook(mode="dots")}, "mode must be"),
        ({"look": StripLook(direction="sideways")}, "direction must be"),
        ({"tokens": StripTokens(["a", "b"], keys=["x"])}, 'need mode="lines"'),
        ({"masked": "window"}, "masked must be"),
        ({"masked": np.zeros((2, 2))}, "bool of shape"),
        ({"tokens": StripTokens(["a", "b"], special=[True])}, "special must have 2 entries"),
    ],
)
def test_a_token_strip_says_what_does_not_fit(change: dict, words: str) -> None:
    arguments = {"tokens": StripTokens(["a", "b"]), "weights": np.eye(2), "key": "strip"} | change
    with pytest.raises(ValueError, match=words):
        token_strip(**arguments)


def test_text_reaches_the_page_only_as_text() -> None:
    for path in bridge.ASSETS.glob("*.js"):
        script = path.read_text(encoding="utf-8")
        assert not any(
            word in script for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(")
        ), path
