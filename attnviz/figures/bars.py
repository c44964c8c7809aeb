"""Bars for tokens: what comes next, one query's weights, sums of rows and columns. Uses NumPy and plotly."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Unpack

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike, NDArray

from attnviz.figures.axes import KEY_AXIS, MAX_SIDE, named_axis, positions, tokens_across, tokens_down
from attnviz.figures.cells import where_allowed
from attnviz.figures.fills import BESIDE, check_names, first_and_second
from attnviz.figures.full_names import named_in_full
from attnviz.figures.look import Look, LookOptions, Words, finish
from attnviz.figures.theme import Bools, Floats, Settings, escape, number

Candidates = Sequence[tuple[str, float]]
Numbered = dict[tuple[str, int], float]  # (a label, how many candidates before it have the same label) -> probability
NAMES = ("as the model is", "switched")


class RowOptions(LookOptions, total=False):
    """Keywords of `row_bars`.

    Attributes:
        after: (keys,) the same row with a switch set; None, the default: only one row is drawn.
        allowed: (keys,) bool, False where the mask forbids: a grey band instead of a bar. None, the default: nothing is
            forbidden.
        names: what the legend calls the row, and the row with a switch set.
        value_range: lowest and highest weight on the axis; 0 to 1 if not given.
        key_start: index in the text of the first key; 0 if not given.
    """

    after: ArrayLike | None
    allowed: ArrayLike | None
    names: Sequence[str]
    value_range: tuple[float, float]
    key_start: int


@dataclass(frozen=True, kw_only=True, eq=False)
class _RowLook(Look):
    """What `RowOptions` says, checked and whole."""

    after: ArrayLike | None = None
    allowed: ArrayLike | None = None
    names: Sequence[str] = NAMES
    value_range: tuple[float, float] = (0.0, 1.0)
    key_start: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_names(self.names)


def next_token_bars(
    before: Candidates, after: Candidates | None = None, *, names: Sequence[str] = NAMES, **options: Unpack[LookOptions]
) -> go.Figure:
    """Draw the most probable next tokens, before and after a switch side by side.

    Args:
        before: (label, probability) from the most probable down, as `Trace.next_tokens` gives them.
        after: the same with a switch set; None: only `before` is drawn. A token that one list lacks has one bar.
        names: what the legend calls before and after.
        **options: as `LookOptions` says; the title is "What the model would write next".

    Returns:
        A figure whose `layout.meta` holds "alt", "how_to_read" and "notes".

    Raises:
        ValueError: there is no candidate, or a probability is not from 0 to 1.
    """
    look = Look.of("next_token_bars", options, title="What the model would write next")
    check_names(names)
    series = [_numbered(candidates) for candidates in ((before,) if after is None else (before, after))]
    labels = list(dict.fromkeys(key for candidates in series for key in candidates))
    if not 1 <= len(labels) <= MAX_SIDE:
        raise ValueError(f"pass 1 to {MAX_SIDE} candidates (label, probability), got {len(labels)}")
    drawn = zip(series, names, first_and_second(look.colours), strict=False)
    traces = [_candidate_bars(candidates, labels, name, marker) for candidates, name, marker in drawn]
    layout = _side_by_side(len(series), 0.25) | _candidate_axes(series, [label for label, _ in labels])
    words = _candidate_words(series, len(labels), names, look.title)
    legend = 2 * look.label_size * (len(series) > 1)
    height = 120 + legend + round(len(labels) * look.label_size * (1 + 1.4 * len(series)))
    return finish(traces, layout, look, words, height=height, top=legend)


def row_bars(
    weights: ArrayLike, key_labels: Sequence[str], *, query_label: str, **options: Unpack[RowOptions]
) -> go.Figure:
    """Draw how one query shares out its attention, a bar for each key, in the order of the text.

    Args:
        weights: (keys,) the query's row, from 0 to 1.
        key_labels: text of each key's token; may repeat.
        query_label: text of the query's token.
        **options: as `RowOptions` and `LookOptions` say; the title says whose row this is.

    Returns:
        A figure whose `layout.meta` holds "alt", "how_to_read" and "notes".

    Raises:
        ValueError: the lengths don't agree, there are more than 256 keys, or an allowed weight is not from 0 to 1.
    """
    look = _RowLook.of("row_bars", options)
    look = replace(look, title=look.title or f"What “{query_label}” looks at")
    visible = where_allowed(look.allowed, (len(key_labels),))
    given = (weights,) if look.after is None else (weights, look.after)
    rows = [_checked_row(row, visible, len(key_labels)) for row in given]
    drawn = zip(rows, look.names, first_and_second(look.colours), strict=False)
    seen = [key_labels[key] for key in np.flatnonzero(visible).tolist()]
    keys = positions(len(visible), look.key_start)[visible]
    traces = [
        _over_tokens(row[visible], keys, seen, name, f"%{{y:.3~g}}, {escape(name)}", marker)
        for row, name, marker in drawn
    ]
    layout = _side_by_side(len(rows), 0.15) | _row_axes(visible, key_labels, look)
    words = _row_words(rows[0], visible, key_labels, query_label, look.title)
    height = 250 + 8 * look.label_size
    legend = 2 * look.label_size * (len(rows) > 1)
    return finish(traces, layout, look, words, height=height, top=legend)


def percent(share: float) -> str:
    """Return a share from 0 to 1 in per cent, with as many digits as it deserves.

    >>> percent(0.7734), percent(0.00012), percent(0.0), percent(1.0)
    ('77.3 %', '0.012 %', '0 %', '100 %')
    """
    return f"{100 * share:.3g} %" if share >= 0.001 or share == 0 else f"{100 * share:.2g} %"


def sum_bars(
    rows: ArrayLike,
    columns: ArrayLike,
    labels: Sequence[str],
    *,
    names: Sequence[str] = ("its row", "its column"),
    start: int = 0,
    **options: Unpack[LookOptions],
) -> go.Figure:
    """Draw two bars a token: the sum of the weights it gives, its row, and of those it gets, its column.

    Args:
        rows: (tokens,) sums over keys, 1 without a learned sink.
        columns: (tokens,) sums over queries, from 0 to the number of queries.
        labels: text of each token; may repeat.
        names: what the legend calls rows and columns.
        start: index in the text of the first token.
        **options: as `LookOptions` says; the title is "What rows and columns sum to".

    Returns:
        A figure whose `layout.meta` holds "alt", "how_to_read" and "notes".

    Raises:
        ValueError: the lengths don't agree, there are more than 256 tokens, or a sum is negative or not finite.
    """
    look = Look.of("sum_bars", options, title="What rows and columns sum to")
    sums = [_checked_sums(values, len(labels)) for values in (rows, columns)]
    drawn = zip(sums, names, first_and_second(look.colours), strict=True)
    place = positions(len(labels), start)
    traces = [
        _over_tokens(values, place, labels, name, f"{escape(name)} sums to %{{y:.4~g}}", marker)
        for values, name, marker in drawn
    ]
    up = named_axis("sum of weights") | {"showgrid": True, "rangemode": "tozero"}
    layout: Settings = {"xaxis": tokens_across(labels, start=start, title="token"), "yaxis": up}
    layout |= {"barmode": "group", "bargap": 0.2}
    words = _sum_words(sums[0], sums[1], labels, look.title)
    return finish(traces, layout, look, words, height=250 + 8 * look.label_size, top=2 * look.label_size)


def _numbered(candidates: Candidates) -> Numbered:
    """Tell candidates with equal labels apart by counting them, so that none is drawn over another."""
    seen: Counter[str] = Counter()
    numbered: Numbered = {}
    for label, probability in candidates:
        if not 0 <= probability <= 1.001:
            raise ValueError(f"a probability is from 0 to 1, got {probability} for {label!r}")
        numbered[label, seen[label]] = float(probability)
        seen[label] += 1
    return numbered


def _side_by_side(n_series: int, gap: float) -> Settings:
    return {"barmode": "group", "bargap": gap, "showlegend": n_series > 1}


def _candidate_bars(candidates: Numbered, rows: Sequence[tuple[str, int]], name: str, marker: Settings) -> go.Bar:
    drawn = [row for row, named in enumerate(rows) if named in candidates]
    shares = np.array([candidates[rows[row]] for row in drawn], dtype=np.float32)
    hover = named_in_full(f"%{{y}}: %{{text}}, {escape(name)}<extra></extra>", [rows[row][0] for row in drawn], "y")
    texts: Settings = {
        "text": [percent(float(share)) for share in shares],
        "constraintext": "none",
        "name": escape(name),
    }
    place = {"orientation": "h", "x": 100 * shares, "y": np.array(drawn, dtype=np.int16)}
    return go.Bar(marker=marker, **place, **texts, **BESIDE, **hover)


def _candidate_axes(series: Sequence[Numbered], labels: Sequence[str]) -> Settings:
    highest = max(max(candidates.values(), default=0.0) for candidates in series)
    return {
        "yaxis": tokens_down(labels, title="next token"),
        "xaxis": named_axis("probability in %") | {"range": [0, 130 * (highest or 0.01)]},
    }


def _candidate_words(series: Sequence[Numbered], n_labels: int, names: Sequence[str], title: str) -> Words:
    missing = ["A missing bar: that list of the most probable tokens doesn't have the token."]
    return Words(
        alt=f"{title}: " + "; ".join(_in_words(*named) for named in zip(names, series, strict=False)) + ".",
        how_to_read="The longer the bar, the more probable the model finds that token as the next one.",
        notes=missing if any(len(candidates) < n_labels for candidates in series) else [],
    )


def _over_tokens(
    values: Floats, places: NDArray[np.int32], labels: Sequence[str], name: str, said: str, marker: Settings
) -> go.Bar:
    """Return a bar for each of some tokens, whose hover text names the token and goes on with what is `said`."""
    hover = named_in_full(f"%{{x}} (%{{x:d}}): {said}<extra></extra>", labels, "x")
    return go.Bar(x=places, y=values, name=escape(name), marker=marker, **hover)


def _row_axes(visible: Bools, labels: Sequence[str], look: _RowLook) -> Settings:
    return {
        "xaxis": tokens_across(labels, start=look.key_start, title=KEY_AXIS),
        "yaxis": named_axis("weight") | {"range": list(look.value_range), "showgrid": True},
        "shapes": [_band(first, last, look.colours.masked) for first, last in _runs(~visible)],
    }


def _row_words(row: Floats, visible: Bools, labels: Sequence[str], query: str, title: str) -> Words:
    best = int(np.where(visible, row, -1).argmax())
    masked = "" if visible.all() else f" Forbidden by the mask: {np.count_nonzero(~visible)} keys."
    return Words(
        alt=f"{title}: weights of {len(labels)} keys; largest: {labels[best]}, {number(row[best])}.{masked}",
        how_to_read=f"The higher the bar over a token, the larger the share of its attention that “{query}” "
        "gives it; grey bands are forbidden by the mask.",
    )


def _checked_row(row: ArrayLike, visible: Bools, n_keys: int) -> Floats:
    values = np.asarray(row, dtype=np.float32)
    if values.shape != (n_keys,) or visible.shape != (n_keys,) or not 1 <= n_keys <= MAX_SIDE:
        raise ValueError(
            f"a row has one weight and one allowed for each of 1 to {MAX_SIDE} key labels, "
            f"got {n_keys} labels, weights {values.shape}, allowed {visible.shape}"
        )
    shown = values[visible]
    if not np.all(np.isfinite(shown) & (shown >= -1e-4) & (shown <= 1.01)):
        raise ValueError(f"weights lie between 0 and 1, got {shown}")
    return values


def _runs(flags: Bools) -> list[tuple[int, int]]:
    """Return the first and the last place of each unbroken run of True."""
    steps = np.diff(np.concatenate([[0], flags.astype(np.int8), [0]]))
    return list(zip(np.flatnonzero(steps == 1).tolist(), (np.flatnonzero(steps == -1) - 1).tolist(), strict=True))


def _band(first: int, last: int, colour: str) -> Settings:
    place = {"xref": "x", "yref": "paper", "x0": first - 0.5, "x1": last + 0.5, "y0": 0, "y1": 1}
    return {"type": "rect", "layer": "below", "line": {"width": 0}, "fillcolor": colour} | place


def _in_words(name: str, candidates: Numbered) -> str:
    return f"{name}: " + ", ".join(f"{label} {percent(share)}" for (label, _), share in candidates.items())


def _sum_words(rows: Floats, columns: Floats, labels: Sequence[str], title: str) -> Words:
    best = int(columns.argmax())
    low, high = number(rows.min()), number(rows.max())
    return Words(
        alt=f"{title}: rows sum to {low if low == high else f'{low} to {high}'}; the largest column is that of "
        f"{labels[best]}, {number(columns[best])}.",
        how_to_read="Over each token stand two sums: of the weights it gives to others, and of the weights that others "
        "give to it.",
    )


def _checked_sums(values: ArrayLike, n_tokens: int) -> Floats:
    sums = np.asarray(values, np.float32)
    if sums.shape != (n_tokens,) or not 1 <= n_tokens <= MAX_SIDE:
        raise ValueError(f"expected one sum for each of 1 to {MAX_SIDE} tokens, got {sums.shape} for {n_tokens}")
    if not np.all(np.isfinite(sums) & (sums >= -1e-4)):
        raise ValueError(f"sums of weights are finite and from 0, got {sums}")
    return sums
