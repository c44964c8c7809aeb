"""Items and looks of heads that are made up."""

import numpy as np

from attnviz.core.pronouns.head_scores import Looks
from attnviz.core.pronouns.items import Item


def made_item(number, *, group="g", kind="", spans=((0, 4), (10, 13)), pronoun=(19, 22), lang="en"):
    return Item(
        f"i{number}", lang, "Anna told Tom that she was late.", pronoun, spans[0], tuple(spans[1:]), kind, group, True
    )


def made_looks(n_items=60, n_groups=10, layers=(0, 3, 4), n_heads=5, seed=0, **fields):
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, n_groups, n_items)
    items = tuple(made_item(i, group=f"g{group}", **fields) for i, group in enumerate(groups))
    answer, distractor = rng.choice(np.linspace(0, 1, 6), size=(2, n_items, len(layers), n_heads))  # ties happen
    return Looks(items, tuple(layers), answer.astype(np.float32), distractor.astype(np.float32))
