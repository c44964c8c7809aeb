from functools import cache

import numpy as np
import pytest

from attnviz.core.attention.masks import causal_rule, full_mask
from attnviz.core.heads.battery import BatteryScores, battery_texts, known_for, score_battery
from attnviz.core.heads.patterns import PATTERNS, closing_to_opening, is_delimiter
from attnviz.core.trace.records import LayerMaps, Token
from tests.core.made_traces import made_tokens, made_trace, random_trace, random_weights

RNG = np.random.default_rng(8)
WORDS = ["Now", " a", " (", "b", " c", ")", ",", " a", " d", ",", " c", " a"]
IDS = [0, 1, 2, 3, 4, 5, 6, 1, 7, 6, 4, 1]
TOKENS = made_tokens(IDS, texts=WORDS)
TARGETS = {  # query -> keys, by hand
    "previous": {query: [query - 1] for query in range(2, 12)},
    "own": {query: [query] for query in range(1, 12)},
    "induction": {7: [2], 9: [7], 10: [5], 11: [2, 8]},
    "same": {7: [1], 10: [4], 11: [1, 7]},
    "delimiters": {6: [6], 7: [6], 8: [6], 9: [6, 9], 10: [6, 9], 11: [6, 9]},
    "brackets": {5: [2]},
    "first": {query: [0] for query in range(1, 12)},
    "near": {query: list(range(query - 3, query + 1)) for query in range(7, 12)},
}


def made_scores(weights, kinds, *, causal=True, tokens=TOKENS):
    mask = (causal_rule if causal else full_mask)(len(tokens), len(tokens))
    trace = made_trace({4: LayerMaps(weights.astype(np.float32), mask)}, tokens=tokens)
    return score_battery((kind, trace) for kind in kinds)


@pytest.mark.parametrize("key", TARGETS)
def test_scores_even_shares_and_n_equal_a_table_by_hand(key):
    weights = random_weights(RNG, 3, 12, 12)
    kind = sorted(PATTERNS[key].kinds)[0]
    found = made_scores(weights, [kind])
    place = found.patterns.index(key)
    rows = TARGETS[key].items()
    expected = [np.mean([weights[head, query, keys].sum() for query, keys in rows]) for head in range(3)]
    np.testing.assert_allclose(found.scores[place, 0], expected, atol=1e-6)
    np.testing.assert_allclose(found.even[place, 0], np.mean([len(keys) / (query + 1) for query, keys in rows]))
    assert found.n[place, 0] == len(rows)


def test_next_token_is_scored_where_later_tokens_are_seen():
    weights = random_weights(RNG, 3, 12, 12, causal=False)
    tokens = made_tokens(IDS, texts=WORDS, special=(0, 11))
    found = made_scores(weights, ["prose"], causal=False, tokens=tokens)
    place = found.patterns.index("next")
    np.testing.assert_allclose(
        found.scores[place, 0],
        [np.mean([weights[head, q, q + 1] for q in range(1, 10)]) for head in range(3)],
        atol=1e-6,
    )
    assert found.n[place, 0] == 9 and found.layers == (4,)
    causal = made_scores(random_weights(RNG, 3, 12, 12), ["prose"])
    assert causal.n[place, 0] == 0 and np.isnan(causal.scores[place]).all()


def test_first_token_takes_the_text_where_it_is_lowest_and_others_pool_positions():
    mask = causal_rule(12, 12)
    maps = [random_weights(RNG, 2, 12, 12).astype(np.float32) for _ in range(2)]
    found = score_battery(("prose", made_trace({0: LayerMaps(m, mask)}, tokens=TOKENS)) for m in maps)
    first, previous = found.patterns.index("first"), found.patterns.index("previous")
    np.testing.assert_allclose(
        found.scores[first, 0], np.min([m[:, 1:, 0].mean(axis=1) for m in maps], axis=0), atol=1e-6
    )
    steps = [m[:, range(2, 12), range(1, 11)] for m in maps]
    np.testing.assert_allclose(found.scores[previous, 0], np.concatenate(steps, axis=1).mean(axis=1), atol=1e-6)
    assert found.n[previous, 0] == 20


def test_a_head_with_equal_shares_scores_the_even_share_and_is_known_for_being_broad():
    even = (np.tri(12) / np.arange(1, 13)[:, None])[None]
    found = made_scores(even, ["prose", "repeat", "again", "punctuation", "brackets"])
    for place, key in enumerate(found.patterns):
        if key == "broad":
            np.testing.assert_allclose(found.scores[place, 0], 1, atol=1e-5)
        elif key not in ("next", "first"):
            np.testing.assert_allclose(found.scores[place, 0, 0], found.even[place, 0], atol=1e-6, err_msg=key)
    assert [entry.pattern for entry in known_for(found, 4, 0)] == ["broad"]


@pytest.mark.parametrize("key", ["previous", "own", "induction", "same", "delimiters", "brackets", "first"])
def test_a_head_made_for_one_pattern_is_known_for_it(key):
    weights = np.zeros((1, 12, 12))
    weights[0, :, 0] = 1
    for query, keys in TARGETS[key].items():
        weights[0, query] = 0
        weights[0, query, keys] = 0.9 / len(keys)
        weights[0, query, 0] += 0.1
    known = known_for(made_scores(weights, PATTERNS[key].kinds), 4, 0)
    assert known[0].pattern == key and known[0].title == PATTERNS[key].title
    np.testing.assert_allclose(known[0].score, 1 if key == "first" else 0.9, atol=1e-6)
    assert "near" not in {entry.pattern for entry in known} or key not in ("previous", "own")


def scores_of(**values):
    """Return BatteryScores of one head with (score, even, n) by pattern, NaN for the others."""
    shape = (len(PATTERNS), 1)
    found = BatteryScores(
        tuple(PATTERNS), (0,), np.full((*shape, 1), np.nan), np.full(shape, np.nan), np.zeros(shape, int)
    )
    for key, (score, even, n) in values.items():
        place = found.patterns.index(key)
        found.scores[place], found.even[place], found.n[place] = score, even, n
    return found


def test_known_for_needs_enough_above_equal_shares_and_sorts():
    assert known_for(scores_of(previous=(0.34, 0.1, 50)), 0, 0) and not known_for(
        scores_of(previous=(0.3, 0.1, 50)), 0, 0
    )
    assert not known_for(scores_of(delimiters=(0.34, 0.2, 50)), 0, 0)
    assert not known_for(scores_of(first=(0.89, 0.1, 50)), 0, 0)
    found = known_for(scores_of(same=(0.5, 0.1, 9), induction=(0.8, 0.1, 7), near=(0.9, 0.2, 30)), 0, 0)
    assert [(entry.pattern, entry.score, entry.n) for entry in found] == [
        ("near", 0.9, 30),
        ("induction", 0.8, 7),
        ("same", 0.5, 9),
    ]
    assert [entry.pattern for entry in known_for(scores_of(previous=(0.6, 0.1, 9), near=(0.9, 0.2, 30)), 0, 0)] == [
        "previous"
    ]


def test_closing_to_opening_and_delimiters():
    def tokens(*texts):
        return [Token(i, i, text, text, 0, 0, False) for i, text in enumerate(texts)]

    assert closing_to_opening(tokens("(", "[", "x", "]", ")")) == [(3, 1), (4, 0)]
    assert closing_to_opening(tokens('"', "a", '".', ' "', "b", '"')) == [(2, 0), (5, 3)]
    assert closing_to_opening(tokens("„", "a", "“", "“", "b", "”", "«", "c", "»")) == [(2, 0), (5, 3), (8, 6)]
    assert closing_to_opening(tokens(")", "(", "()", "]")) == []
    assert [is_delimiter(token) for token in tokens(" .", "?!", "a.", " ", "")] == [True, True, False, False, False]
    assert not is_delimiter(Token(0, 0, ".", ".", 0, 1, True))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: score_battery([]), "at least one trace"),
        (lambda: score_battery([("verse", random_trace(4))]), "verse"),
        (lambda: score_battery([("prose", random_trace(4))], part="cross"), "cross-attention"),
        (lambda: score_battery([("prose", random_trace(4)), ("prose", random_trace(4, n_layers=3))]), "one model"),
        (lambda: known_for(score_battery([("prose", random_trace(4))]), 0, 3), "L0 H3"),
        (lambda: known_for(score_battery([("prose", random_trace(4))]), 5, 0), "L5 H0"),
    ],
)
def test_wrong_input_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_heads_that_a_layer_lacks_are_nan():
    mask = causal_rule(12, 12)
    layers = {
        layer: LayerMaps(random_weights(RNG, n, 12, 12).astype(np.float32), mask) for layer, n in ((0, 1), (2, 3))
    }
    found = score_battery([("prose", made_trace(layers, tokens=TOKENS))])
    previous = found.scores[found.patterns.index("previous")]
    assert np.isnan(previous[0, 1:]).all() and np.isfinite(previous[1]).all() and np.isfinite(previous[0, 0])


def test_the_battery_gives_each_pattern_an_occasion():
    texts = battery_texts()
    assert 12 <= len(texts) <= 20 and len({text.text for text in texts}) == len(texts)
    kinds = {text.kind for text in texts}
    assert kinds == set().union(*(pattern.kinds for pattern in PATTERNS.values()))
    repeated = [text.text.split() for text in texts if text.kind == "repeat"]
    for words in repeated:
        half = len(words) // 2
        assert words[1 : half + 1] == words[half + 1 :] and len(set(words[1 : half + 1])) == half
    opened = [text.text for text in texts if text.kind == "brackets"]
    assert all(closing_to_opening(Token(i, 0, c, c, i, i + 1, False) for i, c in enumerate(text)) for text in opened)


@cache
def scores_of_engine(engine) -> BatteryScores:
    return score_battery((text.kind, engine.trace(text.text)) for text in battery_texts())


def rank(scores: BatteryScores, key: str, layer: int, head: int) -> int:
    """Return the place of a head on a pattern, 1 for the best."""
    values = scores.scores[scores.patterns.index(key)]
    return 1 + int((values > values[scores.layers.index(layer), head]).sum())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "layer", "head", "place"),
    [
        ("previous", 16, 0, 1),
        ("induction", 18, 6, 2),
        ("delimiters", 1, 1, 1),
        ("brackets", 4, 8, 2),
        ("brackets", 8, 4, 4),
        ("same", 14, 3, 3),
        ("first", 18, 8, 1),
    ],
)
def test_known_heads_of_a_real_decoder(smollm2, key, layer, head, place):
    scores = scores_of_engine(smollm2)
    assert rank(scores, key, layer, head) <= place
    assert known_for(scores, layer, head)[0].pattern == key


@pytest.mark.slow
@pytest.mark.parametrize(("key", "layer", "head"), [("previous", 0, 2), ("next", 1, 8), ("brackets", 2, 4)])
def test_known_heads_of_a_real_encoder(minilm, key, layer, head):
    scores = scores_of_engine(minilm)
    assert rank(scores, key, layer, head) == 1
    assert known_for(scores, layer, head)[0].pattern == key


def test_heads_of_an_untrained_model_are_known_for_nothing():
    import attnviz

    scores = scores_of_engine(attnviz.load("untrained"))
    assert not any(known_for(scores, layer, head) for layer in scores.layers for head in range(scores.scores.shape[2]))
