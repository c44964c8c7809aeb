"""The numbers that a step works on: q, k and v of the chosen head for the visitor's text, or random ones."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from attnviz.app.shell.controls import head
from attnviz.app.shell.examples import example_of
from attnviz.app.shell.markdown import plain
from attnviz.app.shell.visit import Visit
from attnviz.app.show.charts import TokenMap
from attnviz.app.show.choose import choose
from attnviz.app.show.facts import OF_NOTHING, Facts, of_head
from attnviz.app.show.lesson import per_cent
from attnviz.core.attention.made_up import random_qkv
from attnviz.core.attention.textbook import attention_scores, softmax
from attnviz.core.trace.head import Head
from attnviz.core.trace.records import Token

MOST_TOKENS = 48  # tokens a side that a step draws
SOURCES = {"real": "your text", "random": "random numbers"}


@dataclass(frozen=True, eq=False)
class Numbers:
    """One head's numbers, real or random.

    Attributes:
        name: such as "L13 H8", or "random numbers".
        q: (queries, d_head), k: (keys, d_head), v: (keys, d_value).
        scale: factor in front of q k^T.
        queries, keys: the tokens; `query_labels`, `key_labels`: how they read.
        cell: the (query, key) whose number is followed.
        shown: the tokens that are drawn, of queries and keys alike; all of them unless the text is long.
        of: the head that real numbers come from, its rows those of the shown queries.
    """

    name: str
    q: NDArray[np.floating]
    k: NDArray[np.floating]
    v: NDArray[np.floating]
    scale: float
    queries: Sequence[Token]
    keys: Sequence[Token]
    cell: tuple[int, int]
    shown: slice
    of: Head | None = None

    @property
    def real(self) -> bool:
        """True if they are of the model."""
        return self.of is not None

    @property
    def cross(self) -> bool:
        """True if queries and keys are of two texts."""
        return self.of is not None and self.of.part == "cross"

    @property
    def about(self) -> Facts:
        """What is true of these numbers, for files."""
        return OF_NOTHING if self.of is None else of_head(self.of)

    @property
    def query_labels(self) -> list[str]:
        """The texts of the query tokens."""
        return [token.label for token in self.queries]

    @property
    def key_labels(self) -> list[str]:
        """The texts of the key tokens."""
        return [token.label for token in self.keys]

    @property
    def shown_keys(self) -> slice:
        """The keys that are drawn."""
        return slice(self.shown.start, min(self.shown.stop, len(self.k)))

    @cached_property
    def allowed(self) -> NDArray[np.bool_]:
        """(shown queries, keys), True where the query may look."""
        return np.tri(len(self.q), dtype=bool) if self.of is None else self.of.allowed

    @cached_property
    def scores(self) -> NDArray[np.floating]:
        """(shown queries, keys), as they enter the softmax, -inf where masked."""
        return attention_scores(self.q, self.k, causal=True) if self.of is None else self.of.scores

    @cached_property
    def weights(self) -> NDArray[np.floating]:
        """(shown queries, keys), the shares of each row."""
        return softmax(self.scores) if self.of is None else self.of.weights

    def map_of(self, values: NDArray[np.floating]) -> TokenMap:
        """Return (shown queries, shown keys) values with their tokens."""
        part = self.shown
        return TokenMap(values, self.allowed[:, part], self.queries[part], self.keys[part])

    @property
    def row(self) -> int:
        """The followed query's row in `allowed`, `scores` and `weights`."""
        return self.cell[0] - self.shown.start

    @property
    def pair(self) -> dict[str, str]:
        """The two tokens of the followed cell, for sentences: {query} and {key}."""
        return {"query": self.query_labels[self.cell[0]], "key": self.key_labels[self.cell[1]]}


def numbers_row(
    visit: Visit,
    *,
    sources: Sequence[str] = tuple(SOURCES),
    follow: Sequence[str] = ("query", "key"),
    width: str = "d",
    more: Callable[[], None] = lambda: None,
) -> Numbers | None:
    """Draw the knobs for what a step works on, and return it; None, with the reason on the page, if it can't be had.

    Args:
        visit: what the visitor looks at.
        sources: of "real" and "random" those that make sense in this step.
        follow: of "query" and "key" those that the step shows, which get a box to choose the followed one.
        width: what the step calls the width of random numbers.
        more: draws what other knobs the step has for the visitor's text.
    """
    with st.container(horizontal=True, vertical_alignment="top", key="numbers-row"):  # labels on one line
        if len(sources) > 1:
            choose("Numbers from", "source", {name: SOURCES[name] for name in sources})
        source = st.session_state.source if len(sources) > 1 else sources[0]
        numbers = _random_row(width) if source == "random" else _real_row(visit)
        if numbers is not None:
            _cell_boxes(numbers, follow)
            if numbers.real:
                more()
    if numbers is None:
        st.info(plain(visit.info.cannot["scores"]))
    elif follow and (len(numbers.q) > MOST_TOKENS or len(numbers.k) > MOST_TOKENS):
        st.caption(_cut(numbers))
    return numbers


def _random_row(width: str) -> Numbers:
    random_boxes(width=width)
    return random_numbers()


def _real_row(visit: Visit) -> Numbers | None:
    with st.container(width=260):
        head(visit.info)
    return None if visit.info.cannot.get("scores") else real_numbers(visit)


def _cut(numbers: Numbers) -> str:
    """Say what of a long text is drawn, and how much of the followed row that leaves out."""
    row = numbers.weights[numbers.row]
    outside = per_cent(row.sum() - row[numbers.shown].sum())
    return (
        f"Drawn: tokens {numbers.shown.start} to {numbers.shown.stop - 1}. The softmax runs over all keys; "
        f"{outside} of the followed row's weight lies on keys that aren't drawn."
    )


def real_numbers(visit: Visit) -> Numbers:
    """Return the chosen head's numbers for the visitor's text, with switches at rest.

    Raises:
        ValueError: this model gives no q and k.
    """
    of = visit.head_before
    queries, keys = of.tokens
    query = _chosen_query(visit, len(queries))
    shown = _window(query, len(queries), len(keys))
    row = of.tile(slice(query, query + 1))
    cell = query, _chosen_key(row.weights[0], row.allowed[0], shown)
    return Numbers(visit.name, *of.qkv, of.scale, queries, keys, cell, shown, of.tile(shown))


def random_numbers() -> Numbers:
    """Return random numbers of the chosen shape and seed, under a causal mask."""
    chosen = st.session_state
    q, k, v = random_qkv(chosen.rows, chosen.width, seed=chosen.seed)
    tokens = [Token(index, 0, f"token {index}", "", 0, 0, False) for index in range(len(q))]
    query = chosen.query if chosen.query is not None and chosen.query < len(q) else len(q) - 1
    weights = softmax(attention_scores(q, k, causal=True))[query]
    cell = query, _chosen_key(weights, np.arange(len(k)) <= query, slice(0, len(k)))
    scale = 1 / np.sqrt(chosen.width)
    return Numbers("random numbers", q, k, v, float(scale), tokens, tokens, cell, slice(0, len(q)))


def pick(cell: tuple[int, int]) -> None:
    """Take a clicked cell as the one that is followed."""
    st.session_state.query, st.session_state.key = cell


def _chosen_query(visit: Visit, n_queries: int) -> int:
    query = st.session_state.query
    if query is not None and query < n_queries:
        return query
    example = example_of(visit.text, visit.choice.name, visit.layer, visit.head)
    return example.cell(visit.rest)[0] if example else n_queries - 1


def _chosen_key(weights: NDArray[np.floating], visible: NDArray[np.bool_], shown: slice) -> int:
    """Return the chosen key if the query may see it and it is shown, else the strongest of those but the first."""
    key = st.session_state.key
    drawn = np.arange(len(weights))
    drawn = visible & (drawn >= shown.start) & (drawn < shown.stop)
    if key is not None and key < len(drawn) and drawn[key]:
        return key
    others = drawn & (np.arange(len(drawn)) > 0)
    return int(np.where(others if others.any() else drawn, weights, -1.0).argmax())


def _window(query: int, n_queries: int, n_keys: int) -> slice:
    """Return at most MOST_TOKENS positions that end with the query, or begin the text if it is early in it."""
    n = max(n_queries, n_keys)
    stop = min(n, max(query + 1, MOST_TOKENS))
    return slice(max(0, stop - MOST_TOKENS), stop)


def random_boxes(names: Sequence[str] = ("rows", "width", "seed"), *, width: str = "d") -> None:
    """Show boxes for the shape and the seed of random numbers.

    Args:
        names: of "rows", "width" and "seed" those to show.
        width: what the step calls the width.
    """
    boxes = {"rows": ("Tokens T", 2, 32), "width": (f"Width {width}", 1, 1024), "seed": ("Seed", 0, 999_999)}
    for name in names:
        st.number_input(*boxes[name], step=1, key=name, persist_state="session", width=120)


def _cell_boxes(numbers: Numbers, follow: Sequence[str]) -> None:
    """Show which cell is followed; another choice goes where a click on the map goes too."""
    sides = (("query", "Follow: query", numbers.query_labels), ("key", "and key", numbers.key_labels))
    for side, (name, label, labels) in enumerate(sides):
        if name not in follow:
            continue
        box = f"followed-{name}"
        st.session_state[box] = numbers.cell[side]
        st.selectbox(
            label,
            range(*numbers.shown.indices(len(labels))),
            key=box,
            format_func=lambda index, labels=labels: f"{labels[index]} ({index})",
            on_change=_follow,
            args=(numbers.cell, side),
            width=150,
        )


def _follow(cell: tuple[int, int], side: int) -> None:
    query, key = cell
    chosen = (query, st.session_state["followed-key"]) if side else (st.session_state["followed-query"], key)
    if chosen != cell:  # a box that comes back to the page may tell what it showed before
        pick(chosen)
