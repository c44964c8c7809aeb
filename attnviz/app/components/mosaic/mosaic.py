"""A picture of all heads of a model as one canvas, to click or to walk with the arrow keys. Needs streamlit."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from attnviz.app.components.bridge.bridge import pack, read_asset, read_script, send_note, settle_in_session
from attnviz.figures.palettes import DEFAULT

Head = tuple[int, int]  # (layer, head)

FORBIDDEN = 255  # the image's value for a masked cell; weights use 0..254
FINE, COARSE = 32, 16  # shades of a weight: the coarse ones where the fine picture would be heavy to send
HEAVY = 150_000  # characters of packed picture

HTML = """
<div class="overview">
  <div class="scroller" tabindex="0" role="application" aria-roledescription="map of heads">
    <div class="sheet">
      <div class="heads" aria-hidden="true"><div class="corner"></div><div class="tops"></div></div>
      <div class="body">
        <div class="sides" aria-hidden="true"></div>
        <div class="field">
          <canvas class="picture"></canvas>
          <div class="hover" hidden></div>
          <div class="outline" hidden></div>
        </div>
      </div>
    </div>
  </div>
  <div class="tip" aria-hidden="true" hidden></div>
  <div class="spoken" aria-live="polite"></div>
</div>
"""


@dataclass(frozen=True)
class Thumbnails:
    """What stands where in the picture.

    Attributes:
        side: pixels along one side of a thumbnail.
        columns: thumbnails in a row of the mosaic.
        cells: (layer, head) of each thumbnail, row by row, rows * columns entries; None where there is no head.
        row_labels: a label for each row of the mosaic ("L0" ...). Without labels the thumbnails fill the width in their
            order, each with its name under it.
        column_labels: a label for each column ("H0" ...), given together with `row_labels`.
        masked: (side, side) bool, True where the mask forbids in every head: drawn like 255.
    """

    side: int
    columns: int
    cells: Sequence[Head | None]
    row_labels: Sequence[str] | None = None
    column_labels: Sequence[str] | None = None
    masked: NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class Measure:
    """A measure of the heads, by which they are compared.

    Attributes:
        tint: of each thumbnail's head as a share, 0 to 1, drawn as a bar under it; None for no bar.
        captions: a line for each thumbnail's tooltip, such as the measure's value with its unit.
        order: thumbnails to show, as indices into the cells, best first, each with its name under it; None: the table.
    """

    tint: Sequence[float | None] | None = None
    captions: Sequence[str | None] | None = None
    order: Sequence[int] | None = None


@dataclass(frozen=True)
class MosaicLook:
    """How the picture looks.

    Attributes:
        label: what a screen reader calls it.
        height: CSS pixels after which the table scrolls.
        turn: let the browser swap rows and columns where the whole table is larger that way (30 layers on a wide page).
        palette: the colour scale of weights.
    """

    label: str = "All heads"
    height: int = 560
    turn: bool = False
    palette: str = DEFAULT


@dataclass(frozen=True)
class MosaicEvent:
    """What the visitor's browser says.

    Attributes:
        selected: (layer, head) that is selected now, by the visitor or by the page, None if none is.
        theme: "light" or "dark" as the page looks there now, None before the first message.
    """

    selected: Head | None
    theme: str | None


def mosaic(
    image: NDArray[np.uint8],
    thumbnails: Thumbnails,
    *,
    measure: Measure = Measure(),
    look: MosaicLook = MosaicLook(),
    selected: Head | None = None,
    on_select: Callable[[Head], None] | None = None,
    key: str,
) -> MosaicEvent:
    """Draw a mosaic of thumbnails, one a head, and return the head that is selected in it.

    Selecting draws at once in the browser and doesn't send the picture again. A new measure costs some kilobytes, a new
    `image` the whole picture.

    Args:
        image: (rows * side, columns * side) uint8, weights as 0..254 and 255 where the mask forbids. It is sent in 32
            shades (16 where that would be heavy), so equal images give equal messages.
        thumbnails: what stands where in it.
        measure: by which the heads are compared.
        look: how it looks.
        selected: the head to outline. The visitor's later choice holds until this changes.
        on_select: called with (layer, head) before the next run of the page when the visitor chose: the place to set
            the state of other widgets.
        key: the component's name, unique on the page.

    Returns:
        The selection and the theme of the visitor's page.

    Raises:
        ValueError: sizes that don't fit together, a value outside its range.
    """
    picture = {"key": key, **_picture(image, thumbnails), "turn": look.turn, "height": look.height}
    measured = _measured(measure, len(thumbnails.cells))
    with st.container(gap=None):
        choice, theme = _mount(key, picture, on_select)
        settled = settle_in_session(key, selected, choice, about=tuple(thumbnails.cells))
        send_note(key, "measure", measured)
        says = {"selected": settled.value, "seen": settled.seen, "theme": theme, "label": look.label}
        send_note(key, "selection", says | {"palette": look.palette})
    return MosaicEvent(_as_head(settled.value), theme)


def _picture(image: NDArray[np.uint8], thumbnails: Thumbnails) -> dict[str, Any]:
    """Return what the browser draws thumbnails from, or say what doesn't fit."""
    side, columns = thumbnails.side, thumbnails.columns
    rows = _check_sizes(image, thumbnails)
    _check_lengths(rows * columns, cells=thumbnails.cells)
    _check_labels(rows, thumbnails)
    masked = np.zeros((side, side), dtype=bool) if thumbnails.masked is None else thumbnails.masked
    levels, packed = _pack_image(image, masked)
    return {
        "image": packed,
        "levels": levels,
        "thumb": side,
        "rows": rows,
        "columns": columns,
        "cells": [None if cell is None else [int(cell[0]), int(cell[1])] for cell in thumbnails.cells],
        "rowLabels": _listed(thumbnails.row_labels),
        "columnLabels": _listed(thumbnails.column_labels),
    }


def _measured(measure: Measure, n_cells: int) -> dict[str, Any]:
    """Return what the browser compares heads by, or say what doesn't fit."""
    _check_lengths(n_cells, tint=measure.tint, captions=measure.captions)
    shares = None if measure.tint is None else [None if s is None else round(float(s), 3) for s in measure.tint]
    order = None if measure.order is None else [int(index) for index in measure.order]
    wrong = [share for share in shares or [] if share is not None and not 0 <= share <= 1]
    if wrong:
        raise ValueError(f"tint must hold shares from 0 to 1 or None, got {wrong[0]}")
    outside = [index for index in order or [] if not 0 <= index < n_cells]
    if outside:
        raise ValueError(f"order must hold indices from 0 to {n_cells - 1} into cells, got {outside[0]}")
    return {"tint": shares, "captions": _listed(measure.captions), "order": order}


def _listed(values: Sequence[Any] | None) -> list[Any] | None:
    return None if values is None else list(values)


def _mount(
    key: str, picture: dict[str, Any], on_select: Callable[[Head], None] | None
) -> tuple[dict[str, Any] | None, str | None]:
    """Mount the canvas and return the browser's last choice and its theme, None where nothing was sent."""

    def tell() -> None:
        head = _as_head(st.session_state[key]["choice"]["value"])
        if on_select is not None and head is not None:
            on_select(head)

    result = _canvas(key=key, data=picture, on_choice_change=tell, on_theme_change=lambda: None)
    return result.get("choice"), result.get("theme") or st.context.theme.type


def _as_head(value: Sequence[int] | None) -> Head | None:
    return None if value is None else (int(value[0]), int(value[1]))


def _pack_image(image: NDArray[np.uint8], masked: NDArray[np.bool_]) -> tuple[int, str]:
    """Return the number of shades and the picture as packed bytes, one a pixel: a shade, or that number for masked."""
    tiles = tuple(size // side for size, side in zip(image.shape, masked.shape, strict=True))
    forbidden = (image == FORBIDDEN) | np.tile(masked, tiles)
    for levels in (FINE, COARSE):
        shades = np.round(image * ((levels - 1) / (FORBIDDEN - 1))).astype(np.uint8)
        packed = pack(np.where(forbidden, np.uint8(levels), shades))
        if len(packed) <= HEAVY:
            break
    return levels, packed


def _check_sizes(image: NDArray[np.uint8], thumbnails: Thumbnails) -> int:
    """Return the number of rows of thumbnails, or say what doesn't fit."""
    side, columns, masked = thumbnails.side, thumbnails.columns, thumbnails.masked
    if image.dtype != np.uint8 or image.ndim != 2:
        raise ValueError(f"image must be 2-dimensional uint8, got {image.ndim} dimensions of {image.dtype}")
    if image.shape[1] != columns * side or image.shape[0] % side:
        expected = f"(rows * {side}, {columns} * {side})"
        raise ValueError(f"image must have shape {expected} for side={side} and columns={columns}, got {image.shape}")
    if masked is not None and masked.shape != (side, side):
        raise ValueError(f"masked must have shape {(side, side)}, got {masked.shape}")
    return image.shape[0] // side


def _check_lengths(n_cells: int, **lists: Sequence[Any] | None) -> None:
    for name, values in lists.items():
        if values is not None and len(values) != n_cells:
            raise ValueError(f"{name} must have {n_cells} entries, one a thumbnail, got {len(values)}")


def _check_labels(rows: int, thumbnails: Thumbnails) -> None:
    if thumbnails.row_labels is None and thumbnails.column_labels is None:
        return
    got = len(thumbnails.row_labels or ()), len(thumbnails.column_labels or ())
    if got != (rows, thumbnails.columns):
        needed = f"{rows} and {thumbnails.columns}"
        raise ValueError(f"row_labels and column_labels must both be given, {needed} of them, got {got}")


_canvas = st.components.v2.component(
    "attnviz_overview",
    html=HTML,
    css=read_asset("mosaic/mosaic.css"),
    js=read_script("mosaic/mosaic.js"),
)
