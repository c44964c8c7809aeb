"""All heads of a model in one picture: a small image of each head's map. Uses NumPy and plotly.

The thumbnails travel as one PNG with a palette, a byte a pixel before compression: the 270 heads of a small model take
about as much room as a photograph, where their numbers would take megabytes.
"""

import base64
import struct
import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, Unpack

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike, NDArray

from attnviz.figures.colour import hex_to_rgb
from attnviz.figures.look import Look, LookOptions, Words, finish
from attnviz.figures.marks import Cell
from attnviz.figures.scales import scaled
from attnviz.figures.strips import Across, head_axes, head_cells, head_frames
from attnviz.figures.theme import Floats, Settings, Theme

PNG = "data:image/png;base64,"  # what an image in a figure begins with
MAX_PIXELS = 5_000_000  # of all thumbnails together; more is slow to draw and finer than a screen
MIN_SIDE = 48  # px of a thumbnail in the image, so that a browser that smooths it leaves cells sharp
HEADS_A_ROW = 8  # of one layer, so that they can be told apart
N_SHADES = 64  # 1.3 units of lightness apart: not to be told apart in a thumbnail
MASKED, NOTHING = N_SHADES, N_SHADES + 1  # entries after the shades: forbidden cells, and where there is no head


def overview(
    thumbnails: ArrayLike,
    layers: Sequence[int],
    *,
    scale: Literal["linear", "sqrt"] = "linear",
    marked: Sequence[Cell] = (),
    across: Across = "layers",
    **options: Unpack[LookOptions],
) -> go.Figure:
    """Draw a small map of every head, all with the same colours for the same weights.

    Args:
        thumbnails: (layers, heads, side, side) weights from 0 to 1, queries down and keys across, pooled to few cells
            for long texts; NaN where the mask forbids; NaN all over where a layer has no such head.
        layers: number of each layer that has attention, rising, perhaps with gaps.
        scale: how weights become colours: "linear", or "sqrt", which tells small weights apart.
        marked: (layer, head) numbers of heads to frame.
        across: what runs from left to right; "heads" suits a narrow page.
        **options: as `LookOptions` says; the title is "All heads", the height follows from the number of rows.

    Returns:
        A figure whose `layout.meta` holds "alt", "how_to_read" and "notes". Hover texts name the heads.

    Raises:
        ValueError: shapes don't fit, weights are not from 0 to 1, or there are more pixels than a screen can show.
    """
    look = Look.of("overview", options, title="All heads")
    maps = _checked(thumbnails, layers)
    if scale not in ("linear", "sqrt"):
        raise ValueError(f'scale is "linear" or "sqrt", got {scale!r}')
    by_root = scale == "sqrt"
    n_heads = maps.shape[1]
    grid = maps if across == "heads" else maps.transpose(1, 0, 2, 3)  # (down, across, side, side)
    image = _image(grid, by_root, image_palette(look.colours))
    frame = head_frames(marked, layers, n_heads, across, look.colours.accent)
    layout = head_axes(layers, n_heads, across) | {"images": [image], "shapes": frame}
    cells = _hover_cells(grid, head_cells(layers, n_heads, across), by_root, look)
    height = 80 + 6 * look.label_size + (44 if across == "layers" else 38) * len(grid)
    return finish([cells], layout, look, _words(maps, by_root, look), height=height, top=4 * look.label_size)


def layer_overview(thumbnails: ArrayLike, **options: Unpack[LookOptions]) -> go.Figure:
    """Draw a small map of every head of one layer, at most eight in a row.

    Args:
        thumbnails: (heads, side, side) weights as `overview` takes them.
        **options: as `LookOptions` says; the title is "All heads of a layer", the height follows from the number of
            rows.

    Returns:
        A figure as `overview` makes it, whose hover texts name heads by their number.

    Raises:
        ValueError: as `overview`.
    """
    look = Look.of("layer_overview", options, title="All heads of a layer")
    maps = np.asarray(thumbnails, dtype=np.float32)
    n_heads = len(maps)
    across = min(n_heads, HEADS_A_ROW)
    n_rows = -(-n_heads // across)
    side = max(90, min(320, 1000 // across, 560 // n_rows))  # px
    sized = replace(look, height=look.height or 80 + 6 * look.label_size + side * n_rows)
    figure = overview(_in_rows(maps, n_rows, across), range(n_rows), across="heads", **vars(sized))
    _name_by_number(figure, n_heads, np.arange(n_rows * across).reshape(n_rows, across))
    figure.layout.meta |= {
        "alt": f"{look.title}: small attention maps of {n_heads} heads of one layer.",
        "how_to_read": "Each small square is the map of one head, queries down and keys across.",
    }
    return figure


def image_palette(theme: Theme) -> NDArray[np.uint8]:
    """Return (66, 3) colours: the shades from weight 0 to 1, the masked grey, and an entry that stays transparent."""
    stops = hex_to_rgb(theme.weight)
    places = np.linspace(0, len(stops) - 1, N_SHADES)
    shades = np.stack([np.interp(places, np.arange(len(stops)), channel) for channel in stops.T], axis=1)
    return np.rint(255 * np.concatenate([shades, hex_to_rgb([theme.masked, theme.page])])).astype(np.uint8)


def png_chunk(name: bytes, data: bytes) -> bytes:
    """Return a chunk of a PNG: its length, its name, what it holds, and a checksum of both."""
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _in_rows(maps: Floats, n_rows: int, across: int) -> Floats:
    """Return (rows, across, side, side): the maps of a layer in rows, with NaN where the last row ends early."""
    grid = np.full((n_rows * across, *maps.shape[1:]), np.nan, dtype=np.float32)
    grid[: len(maps)] = maps
    return grid.reshape(n_rows, across, *maps.shape[1:])


def _name_by_number(figure: go.Figure, n_heads: int, numbers: NDArray[np.int64]) -> None:
    """Let hover texts and the axis beside the rows name heads by their number in the layer."""
    figure.update_traces(text=numbers, hovertemplate="head %{text}<extra></extra>")
    ends = [(row[0], min(row[-1], n_heads - 1)) for row in numbers]
    ticks = [f"{first} to {last}" if last > first else f"{first}" for first, last in ends]
    figure.update_yaxes(tickvals=list(range(len(numbers))), ticktext=ticks, title_text="heads")
    figure.update_xaxes(showticklabels=False, title_text="")


def _words(maps: Floats, by_root: bool, look: Look) -> Words:
    n_drawn = int(np.isfinite(maps).any(axis=(2, 3)).sum())
    return Words(
        alt=f"{look.title}: small attention maps of {n_drawn} heads in {len(maps)} layers.",
        how_to_read="Each small square is the map of one head, queries down and keys across: look for diagonals, "
        "columns and stripes, then open that head.",
        notes=["Colours follow the square root of the weight, so that small weights show."] * by_root,
    )


def _checked(thumbnails: ArrayLike, layers: Sequence[int]) -> Floats:
    maps = np.asarray(thumbnails, dtype=np.float32)
    if maps.ndim != 4 or len(maps) != len(layers) or maps.size == 0:
        raise ValueError(f"thumbnails must be ({len(layers)} layers, heads, side, side), got {maps.shape}")
    if maps.size > MAX_PIXELS:
        raise ValueError(f"thumbnails may have {MAX_PIXELS:,} cells together, got {maps.size:,}: pool them first")
    if np.any((maps < -1e-4) | (maps > 1.01)):
        raise ValueError(f"weights lie between 0 and 1, got {np.nanmin(maps):.3g} to {np.nanmax(maps):.3g}")
    return maps


def _pixels(grid: Floats, by_root: bool) -> NDArray[np.uint8]:
    """Lay the thumbnails out as palette entries, with a gutter of nothing between them."""
    n_down, n_across, rows, columns = grid.shape
    weights = np.clip(np.nan_to_num(grid), 0, 1)
    shades = np.rint((N_SHADES - 1) * (np.sqrt(weights) if by_root else weights))
    entries = np.where(np.isfinite(grid), shades, MASKED).astype(np.uint8)
    entries[~np.isfinite(grid).any(axis=(2, 3))] = NOTHING
    repeat = max(1, -(-MIN_SIDE // max(rows, columns)))
    entries = entries.repeat(repeat, axis=2).repeat(repeat, axis=3)
    gutter = max(1, round(0.04 * entries.shape[3]))
    edges = [(0, 0), (0, 0), (gutter, gutter), (gutter, gutter)]
    padded = np.pad(entries, edges, constant_values=NOTHING)
    return padded.transpose(0, 2, 1, 3).reshape(n_down * padded.shape[2], n_across * padded.shape[3])


def _image(grid: Floats, by_root: bool, palette: NDArray[np.uint8]) -> Settings:
    n_down, n_across = grid.shape[:2]
    source = PNG + base64.b64encode(_png(_pixels(grid, by_root), palette)).decode()
    place = {"xref": "x", "yref": "y", "x": -0.5, "y": -0.5, "sizex": n_across, "sizey": n_down}
    return {"source": source, "sizing": "stretch", "layer": "below"} | place


def _png(pixels: NDArray[np.uint8], palette: NDArray[np.uint8]) -> bytes:
    """Encode palette entries as a PNG whose last entry is transparent.

    Source: Portable Network Graphics, second edition (W3C 2003), section 11.
    """
    height, width = pixels.shape
    lines = np.zeros((height, width + 1), dtype=np.uint8)  # each line starts with 0: no filter
    lines[:, 1:] = pixels
    opaque = bytes([255] * NOTHING + [0])
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    chunks = [png_chunk(b"IHDR", header), png_chunk(b"PLTE", palette.tobytes()), png_chunk(b"tRNS", opaque)]
    chunks += [png_chunk(b"IDAT", zlib.compress(lines.tobytes(), 9)), png_chunk(b"IEND", b"")]
    return b"".join([b"\x89PNG\r\n\x1a\n", *chunks])


def _hover_cells(grid: Floats, cells: Settings, by_root: bool, look: Look) -> go.Heatmap:
    """Invisible cells over the thumbnails: they name the head under the pointer and carry the colour bar."""
    exists = np.where(np.isfinite(grid).any(axis=(2, 3)), 0, np.nan).astype(np.float32)
    colours = look.colours.weights(by_root=by_root)
    bar = scaled(colours, (0, 1), look, "weight: share of the row", by_root=by_root)
    return go.Heatmap(z=exists, opacity=0, **cells, **bar)
