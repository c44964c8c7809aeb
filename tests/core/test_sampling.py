"""How the next token is chosen: against a plain loop, known probabilities, and counts of many draws."""

import numpy as np
import pytest

from attnviz.core.generation.sampling import Sampling, choose

P = np.array([0.1, 0.4, 0.2, 0.25, 0.05])  # likeliest first: 1, 3, 2, 0, 4


def test_greedy_takes_the_largest_and_of_equal_ones_the_first():
    choice = choose(np.float32([1, 3, 3, 0]), Sampling(top_k=2), 0.99)
    assert (choice.id, choice.rank, choice.n_allowed) == (1, 0, 1)
    assert choice.order.tolist() == [1, 2, 0, 3]


@pytest.mark.parametrize(
    ("rule", "allowed"),
    [
        ({}, [1, 3, 2, 0, 4]),
        ({"top_k": 3}, [1, 3, 2]),
        ({"top_k": 99}, [1, 3, 2, 0, 4]),
        ({"top_p": 0.4}, [1]),
        ({"top_p": 0.41}, [1, 3]),
        ({"top_p": 0.6499}, [1, 3]),
        ({"top_p": 1.0}, [1, 3, 2, 0, 4]),
        ({"top_p": 1e-9}, [1]),
        ({"top_k": 2, "top_p": 0.61}, [1]),  # 0.4 of the 0.65 that top_k leaves are 0.615
        ({"top_k": 2, "top_p": 0.62}, [1, 3]),
    ],
)
def test_only_allowed_tokens_are_drawn_and_each_as_often_as_it_should(rule, allowed):
    sampling = Sampling(temperature=1, **rule)
    randoms = (np.arange(400) + 0.5) / 400  # evenly spread, so that counts are exact
    choices = [choose(np.log(P), sampling, r) for r in randoms]
    assert {choice.n_allowed for choice in choices} == {len(allowed)}
    assert choices[0].order[: len(allowed)].tolist() == allowed
    counts = np.bincount([choice.id for choice in choices], minlength=5) / 400
    wanted = np.where(np.isin(np.arange(5), allowed), P, 0)
    np.testing.assert_allclose(counts, wanted / wanted.sum(), atol=1 / 200)


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.5])
def test_a_draw_is_that_of_a_plain_loop(temperature):
    rng = np.random.default_rng(0)
    for _ in range(50):
        logits, random = rng.normal(size=30) * 3, rng.random()
        powers = {i: np.exp(x / temperature) for i, x in enumerate(logits)}
        left = random * sum(powers.values())
        for i in sorted(powers, key=lambda i: (-powers[i], i)):
            left -= powers[i]
            if left < 0:
                break
        assert choose(logits, Sampling(temperature=temperature), random).id == i


def test_a_tiny_temperature_is_greedy_without_a_warning():
    assert choose([0.0, 1e-3, -5.0], Sampling(temperature=1e-300), 0.999).id == 1


def test_a_number_next_to_1_draws_the_last_token_that_is_possible():
    assert choose([0.0, -np.inf, 0.0], Sampling(temperature=1), np.nextafter(1, 0)).id == 2


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({"temperature": -0.1}, "temperature"),
        ({"temperature": np.nan}, "temperature"),
        ({"temperature": np.inf}, "temperature"),
        ({"temperature": "1"}, "temperature"),
        ({"top_k": 0}, "top_k"),
        ({"top_k": 1.5}, "top_k"),
        ({"top_p": 0.0}, "top_p"),
        ({"top_p": 1.01}, "top_p"),
        ({"seed": -1}, "seed"),
        ({"seed": None}, "seed"),
    ],
)
def test_what_is_wrong_is_said(wrong, word):
    with pytest.raises(ValueError, match=f"{word} must be .*got"):
        Sampling(**wrong)


def test_a_logit_that_is_no_number_is_an_error():
    with pytest.raises(ValueError, match="nan"):
        choose([0.0, np.nan], Sampling(temperature=1), 0.5)
