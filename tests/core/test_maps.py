"""The large map as a value: its numbers against the trace, what it leaves out, and the sentences that say so."""

import numpy as np
import pytest

from attnviz.core.maps.choice import MOST_CELLS, PART, MapChoice, chosen_tokens
from attnviz.core.maps.shown import shown_map
from attnviz.core.text.words import item_of_tokens, merge_words, word_items
from attnviz.core.trace.head import Head
from attnviz.core.trace.records import Token
from attnviz.core.trace.switches import Switches
from attnviz.core.trace.trace import Trace
from attnviz.core.values.rollout import rollout
from attnviz.core.values.value_weighted import row_shares, value_weighted
from tests.core.made_traces import made_tokens, random_trace

SWITCHES = Switches(temperature=3)


def write(head: Head) -> np.ndarray:
    """Return (keys, d_head): a head that writes its values as they are."""
    return head.trace.qkv(head.layer, head.head, part=head.part)[2]


def pieces(*words: tuple[str, ...]) -> tuple[Token, ...]:
    """Return tokens of words that are cut into pieces, with a special token in front and a line break behind."""
    tokens, place = [Token(0, 0, "[CLS]", "", 0, 0, True)], 0
    for word in (*words, ("\n",)):
        for i, piece in enumerate(word):
            text = piece if i or piece == "\n" else f" {piece}"
            tokens.append(Token(len(tokens), 0, text, text, place, place + len(text), False))
            place += len(text)
    return tuple(tokens)


def trace_of(tokens: tuple[Token, ...], *, causal: bool = True, seed: int = 0) -> Trace:
    rng = np.random.default_rng(seed)
    q, k, v = (rng.normal(size=(2, 2, len(tokens), 4)).astype(np.float32) for _ in range(3))
    return Trace.from_arrays(tokens, q, k, v, causal=causal)


def heads(trace: Trace) -> tuple[Head, Head]:
    return trace.head(1, 0), trace.head(1, 0, switches=SWITCHES)


WORDS = pieces(("un", "believ", "ably"), ("the",), ("anti", "dis"))


def test_tokens_are_the_heads_weights() -> None:
    trace = random_trace(7)
    before, after = heads(trace)
    shown = shown_map(before, after, MapChoice(query=6, key=2, forbidden=((3, 1),)))
    np.testing.assert_array_equal(shown.values, trace.weights(1, 0, switches=SWITCHES))
    np.testing.assert_array_equal(shown.allowed, np.tri(7, dtype=bool))
    assert shown.rows.labels == tuple(token.label for token in trace.tokens) and shown.rows.start == 0
    assert (shown.framed, shown.crossed) == (((6, 2),), ((3, 1),))
    assert (shown.kind, shown.heading, shown.name) == ("weights", "L1 H0: who looks at whom", "L1 H0")
    share = shown.values[1:, 0].mean()
    assert shown.caption == f"The first token gets {share:.0%} of the weight on average, row 0 aside."
    assert shown.tokens(4, 1) == (4, 1) and not shown.pooled


def test_words_are_sums_over_keys_and_means_over_queries() -> None:
    trace = trace_of(WORDS)
    items = word_items(WORDS)
    words = [i for i, item in enumerate(items) if item.kind == "word"]
    merged = merge_words(trace.weights(1, 0), item_of_tokens(items, len(WORDS)), len(items))
    shown = shown_map(*[trace.head(1, 0)] * 2, MapChoice(shows="words", special=False, query=2, key=1))
    np.testing.assert_array_equal(shown.values, merged[np.ix_(words, words)])
    assert shown.columns.labels == ("unbelievably", "the", "antidis") and shown.framed == ((0, 0),)
    assert shown.tokens(2, 0) == (6, 3) and shown.hidden and shown.name == "L1 H0 words"
    aside = {kind: [i for i, item in enumerate(items) if item.kind == kind] for kind in ("special", "space")}
    special, space = (merged[words][:, places].sum(axis=1).mean() for places in aside.values())
    assert f"[CLS] hidden: {special:.0%} of these rows' weight goes there." in shown.caption
    assert f"white space belong to no word: {space:.0%} of the weight goes there." in shown.caption


def test_what_is_written_is_the_weight_times_a_length() -> None:
    trace = random_trace(6)
    sizes = value_weighted(trace.weights(1, 0), trace.qkv(1, 0)[2])
    shown = shown_map(*[trace.head(1, 0)] * 2, MapChoice(shows="written"), write=write)
    np.testing.assert_array_equal(shown.values, sizes)
    weight, size = trace.weights(1, 0)[1:, 0].mean(), row_shares(sizes)[1:, 0].mean()
    assert f"first token has {weight:.0%} of the weight and {size:.0%} of the size on average" in shown.caption
    assert (shown.kind, shown.bar_title) == ("sizes", "size of what is written")
    with pytest.raises(ValueError, match="needs `write`"):
        shown_map(*heads(trace), MapChoice(shows="written"))


def test_a_rollout_is_of_all_layers() -> None:
    trace = trace_of(made_tokens(range(5)), causal=False)
    shown = shown_map(*[trace.head(1, 0)] * 2, MapChoice(shows="rollout", query=1, key=1))
    np.testing.assert_allclose(shown.values, rollout(trace.layer_weights(layer) for layer in trace.layers))
    assert shown.heading.startswith("All heads, layers 0 to 1") and shown.name == "all heads rollout"
    assert shown.framed == ()  # no cell of one head


@pytest.mark.parametrize("shows", ["tokens", "words", "written", "rollout"])
@pytest.mark.parametrize("special", [True, False])
def test_differences_are_with_minus_without(shows: str, special: bool) -> None:
    trace = trace_of(WORDS, causal=False)
    after, before, difference = (
        shown_map(*heads(trace), MapChoice(shows, view, special=special), write=write)
        for view in ("after", "before", "difference")
    )
    np.testing.assert_allclose(difference.values, after.values - before.values, atol=1e-7)
    assert np.abs(difference.values).max() > 1e-3 and difference.kind == "difference"
    assert np.array_equal(difference.allowed, after.allowed | before.allowed)


def test_a_difference_of_nothing_says_why() -> None:
    trace = random_trace(4)
    head = trace.head(0, 1)
    assert "Nothing changes in this head." in shown_map(head, head, MapChoice(view="difference")).caption
    off = Trace(trace.text, trace.model, trace.records, trace.part_tokens, Switches(ablate={(0, 1)}))
    assert (
        "A head that is off keeps its own map" in shown_map(head, off.head(0, 1), MapChoice(view="difference")).caption
    )


@pytest.mark.parametrize("shows", ["tokens", "words", "written", "rollout"])
@pytest.mark.parametrize("start", [None, 48])
def test_a_long_text_is_pooled_or_shown_in_part(shows: str, start: int | None) -> None:
    n = 2 * MOST_CELLS - 3
    trace = trace_of(made_tokens(range(n), texts=[" abc"] * n), causal=False)
    tokens = chosen_tokens(n, start)
    shown = shown_map(
        *heads(trace), MapChoice(shows, tokens=tokens, view="difference" if start is None else "after"), write=write
    )
    assert shown.pooled == (start is None) == ("Each square is the largest" in shown.caption)
    assert ("lies on tokens outside this part" in shown.caption) == (start is not None)
    if start is None:
        assert shown.values.shape == (159, 159) and shown.rows.labels[-1] == "316–316" and shown.kind != "difference"
    else:
        assert (len(shown.rows.labels), shown.rows.start, shown.columns.start) == (PART, 48, 48)


def test_a_part_shows_its_cells_and_how_much_lies_outside() -> None:
    trace = random_trace(9)
    head = trace.head(0, 1)
    shown = shown_map(head, head, MapChoice(tokens=slice(3, 6), query=4, key=8, scale="without_first"))
    np.testing.assert_allclose(shown.values, trace.weights(0, 1)[3:6, 3:6], rtol=1e-5)
    outside = trace.weights(0, 1)[3:6]
    share = np.delete(outside, [3, 4, 5], axis=1).sum(axis=1).mean()
    assert f"{share:.0%} of these rows' weight lies on tokens outside this part." in shown.caption
    assert shown.framed == () and shown.scale == "without_first"


def test_nothing_but_special_tokens_are_shown_anyway() -> None:
    trace = trace_of(made_tokens(range(3), special=range(3)))
    assert shown_map(*heads(trace), MapChoice(special=False)).values.shape == (3, 3)


def test_a_choice_is_not_changed_by_who_reads_it() -> None:
    assert MapChoice().part == slice(0, PART) and MapChoice(tokens=slice(2, 5)).part == slice(2, 5)
    assert chosen_tokens(400, 10_000) == slice(400 - PART, 400)
