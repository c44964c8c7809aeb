"""A changed token: which rows keep every bit, in random attention and in the real models."""

import numpy as np
import pytest

from attnviz.core.attention.textbook import multi_head_attention
from attnviz.core.compare.changed_token import change_a_token, compare_tokens, heads_that_kept, row_changes, same_bits
from attnviz.core.trace.switches import Switches

TEXT = "Mary bought a car, although she could not drive it"


@pytest.mark.parametrize("token", [0, 3, 5])
@pytest.mark.parametrize(("d", "n_heads"), [(8, 2), (64, 1), (1, 1)])
def test_rows_before_the_changed_token_keep_every_bit_under_the_mask(token, d, n_heads):
    found = change_a_token(6, d, token, causal=True, n_heads=n_heads, seed=1)
    same = same_bits(found.output, found.output_after)
    np.testing.assert_array_equal(same, np.arange(6) < token)
    assert (row_changes(found.output, found.output_after)[:token] == 0).all()
    np.testing.assert_array_equal(found.weights[:, :token], found.weights_after[:, :token])


def test_without_the_mask_every_row_changes():
    found = change_a_token(6, 8, 5, causal=False, n_heads=2, seed=1)
    assert not same_bits(found.output, found.output_after).any()
    assert row_changes(found.output, found.output_after).min() > 1e-3


def test_the_two_runs_differ_in_that_token_alone():
    rng = np.random.default_rng(4)
    x = rng.standard_normal((3, 8))
    matrices = rng.standard_normal((4, 8, 8)) / np.sqrt(8)
    found = change_a_token(3, 8, 1, causal=False, n_heads=2, seed=4)
    np.testing.assert_array_equal(multi_head_attention(x, *matrices, 2)[0], found.output)
    x[1] = rng.standard_normal(8)
    np.testing.assert_array_equal(multi_head_attention(x, *matrices, 2)[0], found.output_after)


def test_there_has_to_be_such_a_token():
    with pytest.raises(ValueError, match="a token from 0 to 4, got 5"):
        change_a_token(5, 8, 5, causal=True)


def test_same_bits_is_stricter_than_equal():
    old = np.array([[1.0, 0.0], [1.0, 0.0], [np.nan, 0.0]])
    new = np.array([[1.0, -0.0], [1.0, 0.0], [np.nan, 0.0]])
    assert same_bits(old, new).tolist() == [False, True, True]
    assert same_bits(old, np.nextafter(old, 2)).tolist() == [False, False, False]
    with pytest.raises(ValueError, match="one shape and type"):
        same_bits(old, old.astype(np.float32))


def test_changes_are_the_largest_of_each_row():
    before = np.random.default_rng(0).normal(size=(4, 5, 2))
    after = before.copy()
    after[2, 3, 1] -= 0.5
    np.testing.assert_allclose(row_changes(before, after), [0, 0, 0.5, 0])


@pytest.mark.parametrize(
    ("other", "first", "n_shared"),
    [(TEXT[:-2] + "well", 10, 11), (TEXT, 11, 11), (TEXT + " well", 11, 11), ("A" + TEXT[4:], 0, 11)],
)
def test_tokens_are_compared_place_by_place(smollm2, other, first, n_shared):
    before, after = smollm2.trace(TEXT), smollm2.trace(other)
    alike = compare_tokens(before, after)
    assert (alike.n_before, alike.n_after) == (11, len(after.tokens))
    assert (alike.first, alike.n_shared) == (first, n_shared)


def test_every_head_of_a_causal_model_keeps_the_rows_before_and_none_without_its_mask(smollm2):
    other = TEXT[:-2] + "well"
    assert heads_that_kept(smollm2.trace(TEXT), smollm2.trace(other)) == (270, 270)
    free = Switches(causal=False)
    assert heads_that_kept(smollm2.trace(TEXT, switches=free), smollm2.trace(other, switches=free)) == (270, 0)


def test_a_mask_makes_an_encoder_keep_its_rows_too(minilm):
    other = TEXT[:-2] + "well"
    assert heads_that_kept(minilm.trace(TEXT), minilm.trace(other)) == (72, 0)
    masked = Switches(causal=True)
    assert heads_that_kept(minilm.trace(TEXT, switches=masked), minilm.trace(other, switches=masked)) == (72, 72)
