"""The verdict on a head: each kind from numbers, those of SmolLM2 first, and the borders between kinds."""

import numpy as np
import pytest

from attnviz.core.pronouns.verdict import verdict

NAMES = {"words": ("Mary", "John"), "probabilities": (0.923, 0.002), "difference": 6.12}
VERBS = {"words": ("are", "is"), "probabilities": (0.159, 0.0053), "difference": 3.41, "looks": (None, None)}
MADE_UP = NAMES | {"head": "L1 H2", "looks": (None, None), "direct": 2.0, "effect": -2.0, "others": [0.1, -0.4]}


@pytest.mark.parametrize(
    ("numbers", "sentence"),
    [
        (
            NAMES
            | {"head": "L24 H4", "looks": (0.81, 0.08), "direct": -1.07, "effect": 0.72, "others": [0.002, -0.51, 0.3]},
            "L24 H4 looks at “Mary” (0.81) but votes against “Mary” (−1.07), "
            "and without it the lead of “Mary” over “John” grows from 6.12 to 6.84 logits.",
        ),
        (
            NAMES
            | {"head": "L23 H3", "looks": (0.05, 0.74), "direct": 2.86, "effect": -3.04, "others": [0.67, -0.22, 0.02]},
            "L23 H3 looks at “John” (0.74) but votes against “John” (−2.86), "
            "and without it the lead of “Mary” over “John” falls from 6.12 to 3.08 logits.",
        ),
        (
            VERBS | {"head": "L26 H0", "direct": 3.22, "effect": -3.10, "others": [0.1, -0.08]},
            "L26 H0 votes for “are” (+3.22), "
            "and without it the lead of “are” over “is” falls from 3.41 to 0.31 logits.",
        ),
        (
            VERBS | {"head": "L13 H8", "direct": 0.044, "effect": 0.048, "others": [0.33, -0.013]},
            "No effect: L13 H8 hardly votes by itself (+0.04 for “are”), "
            "and without it the lead of “are” over “is” grows from 3.41 to 3.46 logits.",
        ),
    ],
    ids=["L24 H4", "L23 H3", "L26 H0", "L13 H8"],
)
def test_heads_of_smollm2(numbers, sentence):
    assert verdict(**numbers) == sentence


@pytest.mark.parametrize(
    ("numbers", "sentence"),
    [
        (
            {"difference": -0.3, "probabilities": (0.05, 0.07)},
            "The model is at chance here (“Mary” 5.0 %, “John” 7.0 %, logit difference −0.30), "
            "so nothing can be concluded.",
        ),
        (
            {"difference": 3.0, "probabilities": (0.0009, 0.00004)},
            "The model expects neither word here (“Mary” under 0.1 %, “John” under 0.1 %), "
            "so nothing can be concluded.",
        ),
        (
            {"effect": -0.2, "looks": (0.5, 0.1)},
            "No effect: L1 H2 looks at “Mary” (0.50) and votes for “Mary” (+2.00), yet without it the lead of “Mary” "
            "over “John” falls from 6.12 to 5.92 logits: the rest of the model makes up for its vote.",
        ),
        (
            {"effect": 0.001, "direct": 0.0, "looks": (0.05, 0.02)},
            "No effect: L1 H2 looks at neither word and hardly votes by itself (0.00 for “John”), "
            "and without it the lead of “Mary” over “John” stays at 6.12 logits.",
        ),
        (
            {"effect": -2.5, "looks": (0.81, 0.1)},
            "L1 H2 looks at “Mary” (0.81) and votes for “Mary” (+2.00), "
            "and without it the lead of “Mary” over “John” falls from 6.12 to 3.62 logits.",
        ),
        (
            {"effect": 2.0, "direct": -2.0, "looks": (0.1, 0.6)},
            "L1 H2 looks at “John” (0.60) and votes for “John” (+2.00), "
            "and without it the lead of “Mary” over “John” grows from 6.12 to 8.12 logits.",
        ),
        (
            {"effect": -0.9},
            "L1 H2 votes for “Mary” (+2.00), yet without it the lead of “Mary” over “John” falls from 6.12 to 5.22 "
            "logits: the rest of the model makes up for most of its vote.",
        ),
        (
            {"effect": 1.0, "looks": (0.04, None)},
            "L1 H2 hardly looks at “Mary” (0.04) but votes for “Mary” (+2.00), yet without it the lead of “Mary” over "
            "“John” grows from 6.12 to 7.12 logits: the rest of the model more than makes up for its vote.",
        ),
        (
            {"effect": -5.0, "looks": (0.04, 0.05)},
            "L1 H2 looks at neither word but votes for “Mary” (+2.00), and without it the lead of “Mary” over “John” "
            "falls from 6.12 to 1.12 logits: the rest of the model builds on it.",
        ),
        (
            {"effect": -7.0, "direct": -0.1, "looks": (None, 0.9)},
            "L1 H2 looks at “John” (0.90) but hardly votes by itself (+0.10 for “John”), "
            "yet without it the lead of “Mary” over “John” turns from 6.12 to −0.88 logits: "
            "it acts through the rest of the model.",
        ),
        (
            {"difference": -6.12, "probabilities": (0.002, 0.923)},
            "L1 H2 votes for “Mary” (+2.00), "
            "and without it the lead of “John” over “Mary” grows from 6.12 to 8.12 logits.",
        ),
    ],
)
def test_each_kind(numbers, sentence):
    assert verdict(**(MADE_UP | numbers)) == sentence


@pytest.mark.parametrize(
    ("numbers", "start"),
    [
        ({"difference": 0.49}, "The model is at chance"),
        ({"difference": -0.51}, "L1 H2"),
        ({"probabilities": (0.00099, 0.0005)}, "The model expects neither"),
        ({"probabilities": (0.00001, 0.0011)}, "L1 H2"),
        ({"effect": 0.05 * 6.11}, "No effect"),
        ({"effect": 0.05 * 6.13}, "L1 H2"),  # 5 % of the difference, though other heads do as much
        ({"effect": 0.05 * 6.11, "others": [0.3]}, "L1 H2"),  # below 5 %, but beyond all other heads
        ({"effect": -0.29, "others": [-0.3, 0.0]}, "No effect"),
        ({"effect": -0.29, "others": []}, "No effect"),  # a head alone in its layer
    ],
)
def test_borders_between_kinds(numbers, start):
    assert verdict(**(MADE_UP | numbers)).startswith(start)


def test_the_other_way_round_it_says_the_same():
    turned = {"words": ("John", "Mary"), "probabilities": (0.002, 0.923), "difference": -6.12}
    for direct, effect in ((-1.07, 0.72), (2.86, -3.04), (2.0, -0.1), (0.1, 3.0), (2.0, 1.0)):
        one = verdict(**(MADE_UP | {"looks": (0.81, 0.08), "direct": direct, "effect": effect}))
        other = MADE_UP | turned | {"looks": (0.08, 0.81), "direct": -direct, "effect": -effect}
        assert verdict(**other) == one


@pytest.mark.parametrize("name", ["difference", "direct", "effect", "others", "looks", "probabilities"])
def test_numbers_that_are_none_are_refused(name):
    value = {"others": [0.1, np.nan], "looks": (None, np.inf), "probabilities": (0.5, np.nan)}.get(name, np.nan)
    with pytest.raises(ValueError, match="expected finite numbers, got"):
        verdict(**(MADE_UP | {name: value}))
