"""Scores of heads against plain loops, on made-up looks; no model behind."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz.core.pronouns.bootstrap import group_interval
from attnviz.core.pronouns.head_scores import Looks, baselines, choose_heads, halves, score, take
from attnviz.core.pronouns.items import Item
from attnviz.core.pronouns.token_places import (
    candidate_weights,
    find_places,
    first_candidate,
    nearest_candidate,
    tokens_of_span,
)
from attnviz.core.trace.records import Token
from tests.core.made_looks import made_item, made_looks

TEXT = "Mary Ann told Tom that she slept."
PIECES = ["", "Mary", " Ann", " told", " T", "om", " that", " sh", "e", " slept", ".", ""]


def tokens_of(pieces):
    tokens, at = [], 0
    for i, piece in enumerate(pieces):
        tokens.append(Token(i, i, piece or "[S]", piece, at, at + len(piece), not piece))
        at += len(piece)
    return tuple(tokens)


TOKENS = tokens_of(PIECES)
ITEM = Item("i", "en", TEXT, (23, 26), (0, 8), ((14, 17),), "names", "told", True)


@pytest.mark.parametrize(
    ("span", "expected"),
    [((0, 4), (1,)), ((0, 8), (1, 2)), ((5, 8), (2,)), ((14, 17), (4, 5)), ((16, 17), (5,)), ((13, 14), (4,))],
)
def test_a_span_has_the_tokens_that_cover_its_characters(span, expected):
    assert tokens_of_span(TOKENS, span) == expected


def test_places_of_an_item_take_the_pronouns_last_token_and_all_of_a_candidates():
    places = find_places(TOKENS, ITEM)
    assert places.query == 8 and places.candidates == ((1, 2), (4, 5))
    behind_a_lead = tokens_of(["", "\n", *PIECES[1:]])
    places = find_places(behind_a_lead, ITEM, offset=1)
    assert places.query == 9 and places.candidates == ((2, 3), (5, 6))


def test_a_place_that_was_cut_off_is_named():
    with pytest.raises(ValueError, match="the pronoun 'she' has no token"):
        find_places(TOKENS[:6], ITEM)
    with pytest.raises(ValueError, match="the distractor 'Tom' has no token"):
        find_places((*TOKENS[:4], *TOKENS[6:]), ITEM)


def test_candidate_weights_are_sums_over_tokens():
    weights = np.random.default_rng(0).dirichlet(np.ones(12), size=(3, 4))
    found = candidate_weights(weights, [(1, 2), (4, 5), (0,)])
    for layer in range(3):
        for head in range(4):
            row = weights[layer, head]
            np.testing.assert_allclose(found[layer, head], [row[1] + row[2], row[4] + row[5], row[0]])


def test_score_equals_a_plain_loop():
    looks = made_looks()
    found = score(looks)
    for row in range(3):
        for head in range(5):
            right = [looks.answer[i, row, head] > looks.distractor[i, row, head] for i in range(60)]
            assert found.accuracy[row, head] == pytest.approx(sum(right) / 60)
            assert found.answer[row, head] == pytest.approx(np.mean([looks.answer[i, row, head] for i in range(60)]))
            assert found.distractor[row, head] == pytest.approx(
                np.mean([looks.distractor[i, row, head] for i in range(60)])
            )
            low, high = group_interval(np.array(right, float), looks.groups)
            np.testing.assert_allclose([found.low[row, head], found.high[row, head]], [low, high])
    assert (found.n, found.n_groups) == (60, len(set(looks.groups)))


def test_equal_weights_are_not_right():
    looks = made_looks()
    even = Looks(looks.items, looks.layers, looks.answer, looks.answer.copy())
    assert score(even).accuracy.max() == 0


def test_best_head_is_named_by_its_layers_number_and_missing_heads_never_win():
    looks = made_looks(layers=(2, 7))
    answer, distractor = looks.answer.copy(), looks.distractor.copy()
    answer[:, 1, 3], distractor[:, 1, 3] = 1, 0
    answer[:, 0, 4] = distractor[:, 0, 4] = np.nan  # layer 2 has four heads
    scores = score(Looks(looks.items, looks.layers, answer, distractor))
    assert scores.best() == (7, 3)
    assert np.isnan(scores.accuracy[0, 4]) and scores.accuracy[1, 3] == 1
    everything = choose_heads(Looks(looks.items, looks.layers, answer, distractor), n=99)
    assert len(everything) == 9 and (everything[0].layer, everything[0].head) == (7, 3)


def test_of_two_heads_right_as_often_the_wider_gap_is_better():
    items = tuple(made_item(i, group=f"g{i % 4}") for i in range(8))
    answer = np.zeros((8, 1, 2), np.float32) + [0.6, 0.9]
    assert score(Looks(items, (0,), answer, np.full_like(answer, 0.1))).best() == (0, 1)


def test_baselines_by_hand():
    items = [
        made_item(0, spans=((0, 4), (10, 13)), group="a"),  # the answer is first
        made_item(1, spans=((10, 13), (0, 4)), group="b"),  # the answer is nearest
        made_item(2, spans=((10, 13), (0, 4), (5, 9)), group="c"),  # nearest of three
        made_item(3, spans=((5, 9), (0, 4), (10, 13), (23, 26)), group="d"),  # neither; of four
    ]
    found = baselines(items)
    assert found["chance"].value == pytest.approx((1 / 2 + 1 / 2 + 1 / 3 + 1 / 4) / 4)
    assert found["nearest"].value == 0.5 and found["first"].value == 0.25
    assert found["first"].low == 0 and 0.5 <= found["first"].high <= 0.75


def test_nearest_looks_both_ways_and_takes_the_earlier_of_two():
    assert nearest_candidate((10, 12), [(0, 4), (13, 15)]) == 1
    assert nearest_candidate((10, 12), [(14, 15), (5, 8)]) == 1  # two characters on either side
    assert first_candidate([(7, 9), (3, 4), (5, 6)]) == 1


@given(
    st.lists(st.tuples(st.integers(0, 12), st.sampled_from(["names", "kin", ""])), min_size=2, max_size=60),
    st.integers(0, 5),
)
def test_halves_share_no_group_and_neither_is_empty(members, seed):
    items = [made_item(i, group=f"{kind}{group}", kind=kind) for i, (group, kind) in enumerate(members)]
    if len({item.group for item in items}) < 2:
        with pytest.raises(ValueError, match="at least two groups"):
            halves(items, seed=seed)
        return
    chooses = halves(items, seed=seed)
    one = {item.group for item, half in zip(items, chooses, strict=True) if half}
    other = {item.group for item, half in zip(items, chooses, strict=True) if not half}
    assert one and other and not one & other
    np.testing.assert_array_equal(chooses, halves(items, seed=seed))


def test_halves_are_even_within_each_kind_and_change_with_the_seed():
    items = [made_item(i, group=f"g{i // 5}", kind=("names", "kin", "number")[i // 40]) for i in range(120)]
    splits = [halves(items, seed=seed) for seed in range(6)]
    for split in splits:
        assert [split[start : start + 40].sum() for start in (0, 40, 80)] == [20, 20, 20]
    assert len({split.tobytes() for split in splits}) > 1


def test_chosen_heads_are_best_on_one_half_and_reported_on_the_other():
    looks = made_looks(n_items=80, n_groups=8)
    half = halves(looks.items)
    answer, distractor = looks.answer.copy(), looks.distractor.copy()
    answer[half, 2, 1], distractor[half, 2, 1] = 1, 0  # right on the first half alone
    answer[~half, 2, 1], distractor[~half, 2, 1] = 0, 1
    answer[~half, 0, 0], distractor[~half, 0, 0] = 1, 0  # right on the second half, which has no say
    looks = Looks(looks.items, looks.layers, answer, distractor)
    chosen = choose_heads(looks, n=3)
    assert (chosen[0].layer, chosen[0].head, chosen[0].chosen_at) == (4, 1, 1.0)
    assert (chosen[0].rate.value, chosen[0].rate.high, chosen[0].n) == (0, 0, int((~half).sum()))
    assert [c.chosen_at for c in chosen] == sorted((c.chosen_at for c in chosen), reverse=True)
    other = take(looks, ~half)
    for c in chosen:
        row = looks.layers.index(c.layer)
        right = [other.answer[i, row, c.head] > other.distractor[i, row, c.head] for i in range(len(other.items))]
        assert c.rate.value == pytest.approx(np.mean(right))
        assert c.rate.low <= c.rate.value <= c.rate.high


def test_the_best_of_many_coin_tossers_is_found_out_on_the_other_half():
    rng = np.random.default_rng(1)
    items = tuple(made_item(i, group=f"g{i % 40}") for i in range(400))
    answer, distractor = rng.random((2, 400, 30, 9)).astype(np.float32)
    looks = Looks(items, tuple(range(30)), answer, distractor)
    flattering = score(looks).accuracy.max()
    chosen = choose_heads(looks, n=1)[0]
    assert flattering > 0.55 and chosen.chosen_at > 0.57
    assert chosen.rate.low <= 0.5 <= chosen.rate.high


def test_taking_a_part_keeps_items_and_weights_together():
    looks = made_looks()
    part = take(looks, lambda item: item.group == "g3")
    rows = [i for i, item in enumerate(looks.items) if item.group == "g3"]
    assert part.items == tuple(looks.items[i] for i in rows)
    np.testing.assert_array_equal(part.answer, looks.answer[rows])
    with pytest.raises(ValueError, match="no item"):
        score(take(looks, lambda item: False))
