"""A score over the distance between query and key: what rotary positions do to it. Uses NumPy and plotly."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike, NDArray

from attnviz.figures.theme import Settings, Theme, escape, finish, number, theme_of

_FIXED: Settings = {"fixedrange": True, "ticks": "outside", "ticklen": 4}


def distance_curve(
    scores: ArrayLike,
    *,
    average: ArrayLike | None = None,
    band: tuple[ArrayLike, ArrayLike] | None = None,
    names: Sequence[str] = ("this pair", "mean of all pairs"),
    marked: int | None = None,
    value_name: str = "score",
    value_range: tuple[float, float] | None = None,
    title: str = "",
    theme: str = "light",
    label_size: int = 13,
    height: int | None = None,
) -> go.Figure:
    """Draw the score of one query with one key as a line over the distance between them.

    Args:
        scores: (distances,) from distance 0 up, the query later than the key.
        average: (distances,) the same averaged over other pairs, a second line; None: not drawn.
        band: two times (distances,), lower and upper end of a band around `average`; None: not drawn.
        names: what the legend calls `scores` and `average`.
        marked: the distance at which the two stand in the text, drawn as a ring; None: nowhere.
        value_name: what the height measures.
        value_range: lowest and highest value that the axis has room for, so that two figures compare; None: by what
            is drawn.
        title: plain text.
        theme: "light" or "dark".
        label_size: height of the labels in px, at least 12.
        height: of the whole figure in px; None: by the size of the labels.

    Returns:
        A figure whose `layout.meta` holds "alt", "how_to_read" and "notes".

    Raises:
        ValueError: lengths don't agree, a number is not finite, or `marked` is no distance that is drawn.
    """
    rows = [_checked(row, np.shape(scores)) for row in (scores, average, *(band or ())) if row is not None]
    if marked is not None and not 0 <= marked < len(rows[0]):
        raise ValueError(f"distances here are 0 to {len(rows[0]) - 1}, got {marked} to mark")
    look = theme_of(theme)
    figure = go.Figure()
    if band is not None:
        _add_band(figure, rows[-2], rows[-1], look)
    figure.add_scatter(**_line(rows[0], names[0], {"color": look.first, "width": 2.5}), mode="lines")
    if average is not None:  # over the pair's line, which would hide it
        figure.add_scatter(**_line(rows[1], names[1], {"color": look.second, "width": 2, "dash": "dash"}), mode="lines")
    if marked is not None:
        figure.add_scatter(
            x=np.array([marked], np.int16),
            y=rows[0][[marked]],
            mode="markers",
            name="where they stand in the text",
            marker={"size": 13, "symbol": "circle-open", "color": look.accent, "line": {"width": 3}},
            hovertemplate="here: %{x:d} tokens apart, %{y:.3~g}<extra></extra>",
        )
    layout: Settings = {
        "showlegend": average is not None or marked is not None,
        "xaxis": {
            "title": {"text": "distance in tokens, if they stood so far apart"},
            "range": [-0.5, len(rows[0]) - 0.5],
        }
        | {"showline": True}
        | _FIXED,
        "yaxis": {"title": {"text": escape(value_name)}, "showgrid": True}
        | ({} if value_range is None else {"range": _with_room(*value_range)})
        | _FIXED,
    }
    best = int(rows[0].argmax())
    return finish(
        figure,
        layout,
        theme=look,
        title=title,
        alt=f"{title + ': ' if title else ''}{value_name} over distances 0 to {len(rows[0]) - 1}. {names[0]}: highest "
        f"at distance {best}, {number(rows[0][best])}"
        + (f"; where they stand, at distance {marked}, {number(rows[0][marked])}." if marked is not None else "."),
        how_to_read="Each point of the line is the score that the same two vectors would have if they stood so many "
        "tokens apart.",
        label_size=label_size,
        height=height or 260 + 8 * label_size,
        top=round(1.75 * label_size * (1 + (average is not None) + (marked is not None))),
    )


def _checked(row: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.float32]:
    values = np.asarray(row, np.float32)
    if values.ndim != 1 or values.shape != shape or not len(values) or not np.isfinite(values).all():
        raise ValueError(f"expected finite numbers of one length, a number for each distance, got {values.shape}")
    return values


def _with_room(low: float, high: float) -> list[float]:
    room = 0.06 * (high - low) or 1.0
    return [low - room, high + room]


def _line(values: NDArray[np.float32], name: str, line: Settings) -> Settings:
    hover = f"%{{x:d}} tokens apart: %{{y:.3~g}}, {escape(name)}<extra></extra>"
    x = np.arange(len(values), dtype=np.int16)
    return {"x": x, "y": values, "name": escape(name), "line": line, "hovertemplate": hover}


def _add_band(figure: go.Figure, low: NDArray[np.float32], high: NDArray[np.float32], look: Theme) -> None:
    x = np.arange(len(low), dtype=np.int16)
    common: Settings = {"x": x, "mode": "lines", "line": {"width": 0}, "showlegend": False, "hoverinfo": "skip"}
    figure.add_scatter(y=low, **common)
    figure.add_scatter(y=high, fill="tonexty", fillcolor=_faint(look.second), **common)


def _faint(colour: str) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.15)"
