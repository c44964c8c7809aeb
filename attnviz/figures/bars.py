"""Bars for one row of numbers: the next token's probabilities, or one query's weights. Uses NumPy and plotly."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike, NDArray

from attnviz.figures.axes import positions, token_axis
from attnviz.figures.full_names import named_in_full
from attnviz.figures.heatmap import KEY_AXIS, MAX_SIDE
from attnviz.figures.theme import Settings, Theme, check_names, escape, finish, number, theme_of

Candidates = Sequence[tuple[str, float]]
Named = tuple[str, int]  # a label, and how many candidates before it have the same label

NAMES = ("as the model is", "switched")


def next_token_bars(
    before: Candidates,
    after: Candidates | None = None,
    *,
    names: Sequence[str] = NAMES,
    title: str = "What the model would write next",
    theme: str = "light",
    label_size: int = 13,
    height: int | None = None,
) -> go.Figure:
    """Draw the most probable next tokens, before and after a switch side by side.

    Args:
        before: (label, probability) from the most probable down, as `Trace.next_tokens` gives them.
        after: the same with a switch set; None: only `before` is drawn. A token that one list lacks has one bar.
        names: what the legend calls before and after.
        title: plain text.
        theme: "light" or "dark".
        label_size: height of the labels in px, at least 12.
        height: of the whole figure in px; None: as high as the bars need.

    Returns:
        A figure whose `layout.meta` holds "alt", "how_to_read" and "notes".

    Raises:
        ValueError: there is no candidate, or a probability is not from 0 to 1.
    """
    check_names(names)
    series = [_numbered(candidates) for candidates in ((before,) if after is None else (before, after))]
    rows = list(dict.fromkeys(key for candidates in series for key in candidates))
    if not 1 <= len(rows) <= MAX_SIDE:
        raise ValueError(f"pass 1 to {MAX_SIDE} candidates (label, probability), got {len(rows)}")
    look = theme_of(theme)
    figure = go.Figure(
        [
            _candidate_bars(candidates, rows, name, marker)
            for candidates, name, marker in zip(series, names, _markers(look), strict=False)
        ]
    )
    down = token_axis([label for label, _ in rows], title="next token")
    highest = max(max(candidates.values(), default=0.0) for candidates in series)
    layout = {
        "barmode": "group",
        "bargap": 0.25,
        "showlegend": len(series) > 1,
        "yaxis": down | {"range": [len(rows) - 0.5, -0.5], "fixedrange": True, "ticks": ""},
        "xaxis": {"range": [0, 130 * (highest or 0.01)], "title": {"text": "probability in %"}, "fixedrange": True},
    }
    notes = ["A missing bar: that list of the most probable tokens doesn't have the token."]
    texts: Settings = {
        "title": title,
        "notes": notes if any(len(candidates) < len(rows) for candidates in series) else [],
        "alt": f"{title}: " + "; ".join(_in_words(*named) for named in zip(names, series, strict=False)) + ".",
        "how_to_read": "The longer the bar, the more probable the model finds that token as the next one.",
    }
    legend = 2 * label_size if len(series) > 1 else 0
    needed = 120 + legend + round(len(rows) * label_size * (1 + 1.4 * len(series)))
    return finish(figure, layout, theme=look, label_size=label_size, height=height or needed, top=legend, **texts)


def row_bars(
    weights: ArrayLike,
    key_labels: Sequence[str],
    *,
    query_label: str,
    after: ArrayLike | None = None,
    allowed: ArrayLike | None = None,
    names: Sequence[str] = NAMES,
    value_range: tuple[float, float] = (0.0, 1.0),
    key_start: int = 0,
    title: str = "",
    theme: str = "light",
    label_size: int = 13,
    height: int | None = None,
) -> go.Figure:
    """Draw how one query shares out its attention, a bar for each key, in the order of the text.

    Args:
        weights: (keys,) the query's row, from 0 to 1.
        key_labels: text of each key's token; may repeat.
        query_label: text of the query's token.
        after: (keys,) the same row with a switch set; None: only `weights` is drawn.
        allowed: (keys,) bool, False where the mask forbids: a grey band instead of a bar. None: nothing is forbidden.
        names: what the legend calls `weights` and `after`.
        value_range: lowest and highest weight on the axis.
        key_start: index in the text of the first key.
        title: plain text; "" says whose row this is.
        theme: "light" or "dark".
        label_size: height of the labels in px, at least 12.
        height: of the whole figure in px; None: by the size of the labels.

    Returns:
        A figure whose `layout.meta` holds "alt", "how_to_read" and "notes".

    Raises:
        ValueError: the lengths don't agree, there are more than 256 keys, or an allowed weight is not from 0 to 1.
    """
    check_names(names)
    visible = np.ones(len(key_labels), dtype=bool) if allowed is None else np.asarray(allowed, dtype=bool)
    rows = [_checked_row(row, visible, len(key_labels)) for row in ((weights,) if after is None else (weights, after))]
    look = theme_of(theme)
    figure = go.Figure(
        [
            _key_bars(row, visible, key_labels, key_start, name, marker)
            for row, name, marker in zip(rows, names, _markers(look), strict=False)
        ]
    )
    layout = {
        "barmode": "group",
        "bargap": 0.15,
        "showlegend": len(rows) > 1,
        "xaxis": token_axis(key_labels, start=key_start, title=KEY_AXIS)
        | {"autotickangles": [0, -60], "showline": True},
        "yaxis": {"range": list(value_range), "title": {"text": "weight"}, "showgrid": True, "fixedrange": True},
        "shapes": [_band(first, last, look) for first, last in _runs(~visible)],
    }
    title = title or f"What “{query_label}” looks at"
    best = int(np.where(visible, rows[0], -1).argmax())
    texts: Settings = {
        "title": title,
        "alt": f"{title}: weights of {len(key_labels)} keys; largest: {key_labels[best]}, {number(rows[0][best])}."
        + (f" Forbidden by the mask: {np.count_nonzero(~visible)} keys." if not visible.all() else ""),
        "how_to_read": f"The higher the bar over a token, the larger the share of its attention that “{query_label}” "
        "gives it; grey bands are forbidden by the mask.",
    }
    legend = 2 * label_size if len(rows) > 1 else 0
    needed = 250 + 8 * label_size
    return finish(figure, layout, theme=look, label_size=label_size, height=height or needed, top=legend, **texts)


def percent(share: float) -> str:
    """Return a share from 0 to 1 in per cent, with as many digits as it deserves.

    >>> percent(0.7734), percent(0.00012), percent(0.0), percent(1.0)
    ('77.3 %', '0.012 %', '0 %', '100 %')
    """
    return f"{100 * share:.3g} %" if share >= 0.001 or share == 0 else f"{100 * share:.2g} %"


def _numbered(candidates: Candidates) -> dict[Named, float]:
    """Tell candidates with equal labels apart by counting them, so that none is drawn over another."""
    seen: Counter[str] = Counter()
    numbered = {}
    for label, probability in candidates:
        if not 0 <= probability <= 1.001:
            raise ValueError(f"a probability is from 0 to 1, got {probability} for {label!r}")
        numbered[label, seen[label]] = float(probability)
        seen[label] += 1
    return numbered


def _candidate_bars(candidates: dict[Named, float], rows: Sequence[Named], name: str, marker: Settings) -> go.Bar:
    drawn = [row for row, named in enumerate(rows) if named in candidates]
    shares = np.array([candidates[rows[row]] for row in drawn], dtype=np.float32)
    return go.Bar(
        orientation="h",
        y=np.array(drawn, dtype=np.int16),
        x=100 * shares,
        text=[percent(float(share)) for share in shares],
        textposition="outside",
        textangle=0,
        constraintext="none",
        cliponaxis=False,
        name=escape(name),
        marker=marker,
        **named_in_full(f"%{{y}}: %{{text}}, {escape(name)}<extra></extra>", [rows[row][0] for row in drawn], "y"),
    )


def _key_bars(
    row: NDArray[np.float32],
    visible: NDArray[np.bool_],
    labels: Sequence[str],
    key_start: int,
    name: str,
    marker: Settings,
) -> go.Bar:
    seen = [labels[key] for key in np.flatnonzero(visible)]
    return go.Bar(
        x=positions(len(row), key_start)[visible],
        y=row[visible],
        name=escape(name),
        marker=marker,
        **named_in_full(f"%{{x}} (%{{x:d}}): %{{y:.3~g}}, {escape(name)}<extra></extra>", seen, "x"),
    )


def _markers(look: Theme) -> tuple[Settings, Settings]:
    """One full colour and one hatched, so that the two are told apart without colour too."""
    return (
        {"color": look.first, "line": {"width": 0}},
        {
            "color": look.second,
            "line": {"color": look.second, "width": 1},
            "pattern": {"shape": "/", "fgcolor": look.second, "bgcolor": look.page, "size": 6, "solidity": 0.35},
        },
    )


def _checked_row(row: ArrayLike, visible: NDArray[np.bool_], n_keys: int) -> NDArray[np.float32]:
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


def _runs(flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return the first and the last place of each unbroken run of True."""
    steps = np.diff(np.concatenate([[0], flags.astype(np.int8), [0]]))
    return list(zip(np.flatnonzero(steps == 1).tolist(), (np.flatnonzero(steps == -1) - 1).tolist(), strict=True))


def _band(first: int, last: int, look: Theme) -> Settings:
    place = {"xref": "x", "yref": "paper", "x0": first - 0.5, "x1": last + 0.5, "y0": 0, "y1": 1}
    return {"type": "rect", "layer": "below", "line": {"width": 0}, "fillcolor": look.masked} | place


def _in_words(name: str, candidates: dict[Named, float]) -> str:
    return f"{name}: " + ", ".join(f"{label} {percent(share)}" for (label, _), share in candidates.items())
