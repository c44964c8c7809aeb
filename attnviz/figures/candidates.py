"""What heads give to each candidate of a pronoun, ranked, and what simple rules would say. Uses NumPy and plotly."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from attnviz.figures.axes import MAX_SIDE, named_axis
from attnviz.figures.fills import BESIDE, hatched
from attnviz.figures.look import Look, LookOptions, Words, finish
from attnviz.figures.theme import Settings, Theme, candidate_colours, escape, shorten

Named = Sequence[tuple[str, ArrayLike]]  # (who says, what is given to each candidate)

HEADER = 1.15  # rows of bars that the name over a group takes
GAP = 0.55  # rows between two groups
NARROW = 340  # px that the drawing has on a phone
LONGEST_NAME = 20


@dataclass(frozen=True)
class _Bar:
    """One bar: who gives what to which candidate, and where it stands."""

    says: str
    candidate: int
    weight: float
    label: str
    in_full: str
    y: float
    is_rule: bool


def candidate_bars(
    rows: Named, names: Sequence[str], *, answer: int | None = None, rules: Named = (), **options: Unpack[LookOptions]
) -> go.Figure:
    """Draw what some heads give to each candidate, the largest on top, and what rules that look at nothing would say.

    Args:
        rows: (name, weights) of each head; weights (candidates,) from 0 to 1.
        names: text of each candidate; may repeat.
        answer: the candidate that the pronoun means; its bars carry a check mark. None: no bar does.
        rules: (name, shares) of each rule, in the same form; their bars are hatched.
        **options: as `LookOptions` says; the figure is as high as the bars need.

    Returns:
        A figure whose `layout.meta` holds "alt", "how_to_read" and "notes".

    Raises:
        ValueError: there is nothing to draw, an answer that is no candidate, lengths that don't agree, or a weight that
            is not from 0 to 1.
    """
    look = Look.of("candidate_bars", options)
    _check(rows, rules, names, answer)
    bars, headers, end = _placed(rows, rules, names, answer)
    groups = [[bar for bar in bars if bar.is_rule is hatch] for hatch in (False, True)]
    traces = [_trace(group, look.colours) for group in groups if group]
    names_over = [_header(name, y, look.label_size) for name, y in headers]
    divider = [_divider(headers[len(rows)][1], look.colours)] if rows and rules else []
    layout = _axes(_end_of_axis(bars, look.label_size), end) | {"annotations": names_over, "shapes": divider}
    spoken = [_in_words(*row, names, answer) for row in [*rows, *rules]]
    words = _words(spoken, bool(rules), answer is not None, look.title)
    height = round(70 + (1.3 if look.title else 0) * look.label_size + 1.75 * look.label_size * end)
    return finish(traces, layout, look, words, height=height)


def written(weight: float) -> str:
    """Return a weight with two digits after the point, or three where it is small.

    >>> written(0.6183), written(0.0312), written(0.00001), written(0.0)
    ('0.62', '0.031', '<0.001', '0')
    """
    if weight >= 0.0995:
        return f"{weight:.2f}"
    return f"{weight:.3f}" if weight >= 0.0005 else "<0.001" if weight > 0 else "0"


def mark(candidate: int) -> str:
    """Return a candidate's number, from 1, in a circle as far as Unicode has them.

    >>> mark(0), mark(20)
    ('①', '(21)')
    """
    return chr(ord("①") + candidate) if candidate < 20 else f"({candidate + 1})"


def _placed(
    rows: Named, rules: Named, names: Sequence[str], answer: int | None
) -> tuple[list[_Bar], list[tuple[str, float]], float]:
    """Return the bars, each group's name with its place, and where the last bar ends, in rows of bars from the top."""
    bars, headers, y = [], [], 0.0
    short = [shorten(name, LONGEST_NAME) for name in names]
    for index, (says, given) in enumerate([*rows, *rules]):
        y += GAP if index else 0.0
        headers.append((says, y + HEADER / 2))
        y += HEADER
        weights = np.asarray(given, dtype=np.float64)
        for candidate in np.argsort(-weights, kind="stable").tolist():
            weight = float(weights[candidate])
            label, in_full = (_label(candidate, each, weight, answer) for each in (short, names))
            bars.append(_Bar(says, candidate, weight, label, in_full, y + 0.5, index >= len(rows)))
            y += 1.0
    return bars, headers, y + 0.25


def _label(candidate: int, names: Sequence[str], weight: float, answer: int | None) -> str:
    """Return what stands beside a bar, escaped; the name alone, so that an Arabic one turns nothing around."""
    right = " ✓" if candidate == answer else ""
    return f"{mark(candidate)} {escape(names[candidate])} {escape(written(weight))}{right}"


def _trace(bars: list[_Bar], theme: Theme) -> go.Bar:
    colours = candidate_colours(theme.name)
    fills = [colours[bar.candidate % len(colours)] for bar in bars]
    marker = hatched(fills, theme.page)
    if not bars[0].is_rule:
        del marker["pattern"]
    place: Settings = {"orientation": "h", "width": 0.72}
    place["x"] = np.array([bar.weight for bar in bars], dtype=np.float32)
    place["y"] = np.array([bar.y for bar in bars], dtype=np.float32)
    hover = {"hovertext": [f"{escape(bar.says)}: {bar.in_full}" for bar in bars], "hoverinfo": "text"}
    return go.Bar(marker=marker, text=[bar.label for bar in bars], constraintext="none", **place, **BESIDE, **hover)


def _axes(right: float, bottom: float) -> Settings:
    ticks = {"tickvals": [0, 0.25, 0.5, 0.75, 1], "ticktext": ["0", "0.25", "0.5", "0.75", "1"]}
    hidden = {"fixedrange": True, "showticklabels": False, "ticks": "", "zeroline": False}
    across = named_axis("weight") | ticks | {"range": [0, right], "showgrid": True}
    return {"bargap": 0, "showlegend": False, "xaxis": across, "yaxis": hidden | {"range": [bottom, 0]}}


def _end_of_axis(bars: list[_Bar], label_size: int) -> float:
    """Return how far the axis goes on behind 1, so that on a phone too every label fits beside its bar."""
    shares = [min(0.6, 0.6 * label_size * (len(bar.label) + 1) / NARROW) for bar in bars]
    return max(1.02, *(bar.weight / (1 - share) for bar, share in zip(bars, shares, strict=True)))


def _header(name: str, y: float, label_size: int) -> Settings:
    place = {"x": 0, "xref": "x", "xanchor": "left", "xshift": -2, "y": y, "yref": "y", "yanchor": "middle"}
    return place | {"text": escape(name), "showarrow": False, "font": {"size": label_size, "weight": 600}}


def _divider(y: float, theme: Theme) -> Settings:
    """Return a thin line between heads and rules, over the name of the first rule."""
    y -= (HEADER + GAP) / 2
    place = {"xref": "paper", "x0": 0, "x1": 1, "yref": "y", "y0": y, "y1": y}
    return place | {"type": "line", "layer": "below", "line": {"color": theme.rule, "width": 1}}


def _words(spoken: Sequence[str], has_rules: bool, has_answer: bool, title: str) -> Words:
    rules = "; hatched bars are rules that look at no weight" if has_rules else ""
    right = "; ✓ marks the right answer." if has_answer else "."
    reading = "Each bar is what the head named above it gives to one candidate, the largest on top"
    opening = title or "Weight on each candidate"
    return Words(f"{opening}: {'; '.join(spoken)}.", f"{reading}{rules}{right}")


def _in_words(says: str, given: ArrayLike, names: Sequence[str], answer: int | None) -> str:
    weights = np.asarray(given, dtype=np.float64)
    listed = [
        f"{names[i]} {written(float(weights[i]))}" + (" (the right answer)" if i == answer else "")
        for i in np.argsort(-weights, kind="stable").tolist()
    ]
    return f"{says}: " + ", ".join(listed)


def _check(rows: Named, rules: Named, names: Sequence[str], answer: int | None) -> None:
    if not 1 <= (len(rows) + len(rules)) * len(names) <= MAX_SIDE:
        raise ValueError(
            f"expected 1 to {MAX_SIDE} bars, got {len(rows)} rows and {len(rules)} rules of {len(names)} candidates"
        )
    if answer is not None and not 0 <= answer < len(names):
        raise ValueError(f"answer must be a candidate from 0 to {len(names) - 1} or None, got {answer}")
    for says, given in [*rows, *rules]:
        weights = np.asarray(given, dtype=np.float64)
        if weights.shape != (len(names),):
            raise ValueError(f"expected a weight for each of {len(names)} candidates in {says!r}, got {weights.shape}")
        if not np.all((weights >= 0) & (weights <= 1.001)):
            raise ValueError(f"weights lie between 0 and 1, got {weights} in {says!r}")
