"""The number that the lesson follows: from the product of a query and a key to what it does to the next word."""

import numpy as np
import streamlit as st

from attnviz.figures.theme import number
from attnviz.ui.controls import plain
from attnviz.ui.lesson.numbers import Numbers

STAGES = ("sizes", "product", "score", "weight", "value", "logit")


def trail(
    numbers: Numbers,
    here: str,
    *,
    value: float | None = None,
    logit: tuple[str, float] | None = None,
    weight: str = "weight",
    n: int = 2,
) -> None:
    """Show the last stages of the followed number, up to this step's.

    Args:
        numbers: what the step works on.
        here: the last of `STAGES` that is shown; it is the step's own.
        value: size of weight times value, for the stage "value".
        logit: the next word and what the cell adds to its logit, for the stage "logit".
        weight: what the stage "weight" is called.
        n: how many stages.
    """
    query, key = (plain(f"{label} ({at})") for label, at in zip(numbers.pair.values(), numbers.cell, strict=True))
    parts = [f"{name} **{text}**" for name, text in _stages(numbers, here, value, logit, weight)[-n:]]
    between = " :gray[and] " if here == "sizes" else " :gray[→] "
    if here != "sizes":
        parts[-1] = f":violet-background[{parts[-1]}]"
    st.markdown(f"**Followed:** {query} → {key} :gray[·] " + between.join(parts))


def ladder(numbers: Numbers, value: float, word: str, added: float, chance: float) -> None:
    """Show all stages of the followed number, one under the other.

    Args:
        numbers: what the step works on.
        value: size of weight times value.
        word: the likeliest next word; `added`: by this cell to its logit; `chance`: its probability.
    """
    rows = _stages(numbers, "value", value, None, "weight")
    rows.append((f"added to the logit of “{plain(word)}”", signed(added)))
    rows.append((f"probability of “{plain(word)}”", f"{chance:.1%}".replace("%", " %")))
    query, key = (plain(f"{label} ({at})") for label, at in zip(numbers.pair.values(), numbers.cell, strict=True))
    lines = [f"| {query} → {key} | |", "|:--|--:|"]
    st.markdown("\n".join([*lines, *(f"| {name} | **{text}** |" for name, text in rows)]))


def signed(value: float) -> str:
    """Return a number with its sign, also where it is a plus."""
    return f"{'+' * (value > 0)}{number(value)}"


def _stages(
    numbers: Numbers, here: str, value: float | None, logit: tuple[str, float] | None, weight: str
) -> list[tuple[str, str]]:
    query, key = numbers.cell
    q, k = numbers.q[query], numbers.k[key]
    if here == "sizes":
        return [("size ‖q‖", number(np.linalg.norm(q))), ("‖k‖", number(np.linalg.norm(k)))]
    stages = [("q · k", f"{q @ k:.4g}".replace("-", "−"))]
    last = STAGES.index(here)
    if last >= STAGES.index("score"):
        stages.append(("score", number(numbers.scores[numbers.row, key])))
    if last >= STAGES.index("weight"):
        stages.append((weight, f"{numbers.weights[numbers.row, key]:.3f}"))
    if last >= STAGES.index("value") and value is not None:
        stages.append(("‖weight × value‖", number(value)))
    if logit is not None:
        word, added = logit
        stages.append((f"added to the logit of “{plain(word)}” by this key", signed(added)))
    return stages
