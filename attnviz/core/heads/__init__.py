"""What heads do: measures of their maps, all heads at a glance, heads found by what they do. NumPy only."""

from attnviz.core.compare.agreement import map_change
from attnviz.core.heads.at_a_glance import MEASURES, Measure, Survey, strongest, survey, without_first_token
from attnviz.core.heads.in_words import Here, here
from attnviz.core.heads.measures import (
    after_same_token,
    attention_entropy,
    first_token_weight,
    induction_score,
    largest_weight,
    mass_on,
    mean_distance,
    next_token_score,
    own_token_score,
    previous_token_score,
    same_token_before,
    same_token_score,
    shifted,
    weight_on,
)
from attnviz.core.trace.blocks import mean_over_rows

__all__ = [
    "Here",
    "MEASURES",
    "Measure",
    "Survey",
    "after_same_token",
    "attention_entropy",
    "first_token_weight",
    "here",
    "induction_score",
    "largest_weight",
    "map_change",
    "mass_on",
    "mean_distance",
    "mean_over_rows",
    "next_token_score",
    "own_token_score",
    "previous_token_score",
    "same_token_before",
    "same_token_score",
    "shifted",
    "strongest",
    "survey",
    "weight_on",
    "without_first_token",
]
