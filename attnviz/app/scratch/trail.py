"""The number that the lesson follows: from the product of a query and a key to what it does to the next word."""

from collections.abc import Mapping

import numpy as np
import streamlit as st

from attnviz.app.scratch.numbers import Numbers
from attnviz.app.shell.markdown import plain
from attnviz.app.show.lesson import per_cent
from attnviz.figures.theme import number

NAMES = {"product": "q · k", "score": "score", "weight": "weight", "value": "‖weight × value‖", "logit": "logit"}


def sizes(numbers: Numbers) -> None:
    """Show where the number begins: the sizes of the followed query's q and the followed key's k."""
    q, k = (np.linalg.norm(vectors[at]) for vectors, at in zip((numbers.q, numbers.k), numbers.cell, strict=True))
    st.markdown(f"**Followed:** {_pair(numbers)} :gray[·] size ‖q‖ **{number(q)}** :gray[and] ‖k‖ **{number(k)}**")


def trail(
    numbers: Numbers,
    here: str,
    *,
    value: float | None = None,
    logit: tuple[str, float] | None = None,
    names: Mapping[str, str] | None = None,
    n: int = 2,
) -> None:
    """Show the last stages of the followed number, up to this step's.

    Args:
        numbers: what the step works on.
        here: the step's own stage, one of `NAMES`.
        value: size of weight times value, for the stage "value".
        logit: the next word and what the cell adds to its logit, for the stage "logit".
        names: what stages are called here, other than in `NAMES`.
        n: how many stages.
    """
    called = {**NAMES, **(names or {})}
    if logit is not None:
        called["logit"] = f"added to the logit of “{plain(logit[0])}” by this key"
    figures = _figures(numbers, value, None if logit is None else logit[1])
    stages = list(NAMES)[: list(NAMES).index(here) + 1][-n:]
    parts = [f"{called[stage]} **{figures[stage]}**" for stage in stages]
    parts[-1] = f":violet-background[{parts[-1]}]"
    st.markdown(f"**Followed:** {_pair(numbers)} :gray[·] " + " :gray[→] ".join(parts))


def ladder(numbers: Numbers, value: float, word: str, added: float, chance: float) -> None:
    """Show all stages of the followed number, one under the other.

    Args:
        numbers: what the step works on.
        value: size of weight times value.
        word: the likeliest next word; `added`: by this cell to its logit; `chance`: its probability.
    """
    called = NAMES | {"logit": f"added to the logit of “{plain(word)}”"}
    rows = {called[stage]: figures for stage, figures in _figures(numbers, value, added).items()}
    rows[f"probability that “{plain(word)}” comes next"] = per_cent(chance, 1)
    lines = [f"| {_pair(numbers)} | |", "|:--|--:|", *(f"| {name} | **{figures}** |" for name, figures in rows.items())]
    st.markdown("\n".join(lines))


def signed(value: float) -> str:
    """Return a number with its sign, also where it is a plus."""
    return f"{'+' * (value > 0)}{number(value)}"


def _pair(numbers: Numbers) -> str:
    """Return the followed query and key, each with its position."""
    labelled = zip(numbers.pair.values(), numbers.cell, strict=True)
    return " → ".join(plain(f"{label} ({position})") for label, position in labelled)


def _figures(numbers: Numbers, value: float | None, added: float | None) -> dict[str, str]:
    """Return what is printed at each stage that is known."""
    query, key = numbers.cell
    product = float(numbers.q[query] @ numbers.k[key])
    figures = {
        "product": f"{product:.4g}".replace("-", "−"),  # so that the score can be checked
        "score": number(numbers.scores[numbers.row, key]),
        "weight": f"{numbers.weights[numbers.row, key]:.3f}",
    }
    return (
        figures
        | ({} if value is None else {"value": number(value)})
        | ({} if added is None else {"logit": signed(added)})
    )
