"""All heads in one picture: its image decoded by Pillow, pixel by pixel."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from attnviz.figures import layer_overview, overview
from attnviz.figures.colour import hex_to_rgb
from attnviz.figures.theme import THEMES
from tests.figures.made_up import thumbnails

LAYERS = [0, 2, 7]


def decoded(figure) -> np.ndarray:
    """The picture's (height, width, 4) bytes."""
    source = figure.layout.images[0].source.removeprefix("data:image/png;base64,")
    return np.array(Image.open(io.BytesIO(base64.b64decode(source))).convert("RGBA"))


def middle(pixels: np.ndarray, shape: tuple[int, int], row: int, column: int, cell: tuple[int, int], side: int):
    """The colour in the middle of a cell of the thumbnail at that row and column, gutters being even on all sides."""
    height, width = pixels.shape[0] / shape[0], pixels.shape[1] / shape[1]
    gutter = (height - side * ((height - 2) // side)) / 2
    step = (height - 2 * gutter) / side
    y = row * height + gutter + (cell[0] + 0.5) * step
    x = column * width + gutter + (cell[1] + 0.5) * step
    return pixels[int(y), int(x)]


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("across", ["layers", "heads"])
@pytest.mark.parametrize("scale", ["linear", "sqrt"])
def test_every_cell_has_the_colour_of_its_weight(theme, across, scale):
    maps = thumbnails()
    pixels = decoded(overview(maps, LAYERS, theme=theme, across=across, scale=scale))
    shape = (2, 3) if across == "layers" else (3, 2)
    ramp = 255 * hex_to_rgb(THEMES[theme].weight)
    for layer in range(2):  # the third lacks a head
        for head in range(2):
            place = (head, layer) if across == "layers" else (layer, head)
            for cell in np.ndindex(5, 5):
                seen, weight = middle(pixels, shape, *place, cell, 5), maps[layer, head][cell]
                if np.isnan(weight):
                    expected = 255 * hex_to_rgb([THEMES[theme].masked])[0]
                else:
                    along = (weight if scale == "linear" else np.sqrt(weight)) * (len(ramp) - 1)
                    expected = [np.interp(along, np.arange(len(ramp)), channel) for channel in ramp.T]
                assert seen[3] == 255
                np.testing.assert_allclose(seen[:3], expected, atol=6)  # the shades are steps


def test_where_there_is_no_head_the_page_shows_through():
    figure = overview(thumbnails(), LAYERS)
    pixels = decoded(figure)
    height, width = pixels.shape[0] // 2, pixels.shape[1] // 3
    assert not pixels[height:, 2 * width :, 3].any()
    assert not pixels[0, :, 3].any()  # the gutter
    z = figure.data[0].z
    np.testing.assert_array_equal(np.isnan(z), [[False, False, False], [False, False, True]])
    assert "5 heads in 3 layers" in figure.layout.meta["alt"]


def test_hover_names_layers_by_their_numbers():
    trace = overview(thumbnails(), LAYERS).data[0]
    np.testing.assert_array_equal(trace.x, LAYERS)
    assert trace.hovertemplate == "L%{x} H%{y}<extra></extra>"


@pytest.mark.parametrize(("n_heads", "shape", "ticks"), [(3, (1, 3), ["0 to 2"]), (10, (2, 8), ["0 to 7", "8 to 9"])])
def test_one_layers_heads_are_wrapped_into_rows(n_heads, shape, ticks):
    maps = np.full((n_heads, 4, 4), 0.25)
    figure = layer_overview(maps)
    expected = np.zeros(shape)
    expected.ravel()[n_heads:] = np.nan
    np.testing.assert_array_equal(figure.data[0].z, expected)
    np.testing.assert_array_equal(figure.data[0].text, np.arange(np.prod(shape)).reshape(shape))
    assert list(figure.layout.yaxis.ticktext) == ticks and figure.layout.yaxis.title.text == "heads"
    assert f"{n_heads} heads of one layer" in figure.layout.meta["alt"]
    assert figure.layout.height - figure.layout.margin.t >= 90 * shape[0]


def test_270_heads_stay_small():
    maps = np.zeros((30, 9, 32, 32))
    maps[..., np.arange(32), np.maximum(np.arange(32) - 1, 0)] = 1
    assert len(overview(maps, range(30)).to_json()) < 100_000


@pytest.mark.parametrize(
    ("maps", "settings", "sentence"),
    [
        (np.zeros((2, 2, 4, 4)), {}, r"\(3 layers, heads, side, side\), got \(2, 2, 4, 4\)"),
        (np.zeros((3, 2, 4)), {}, r"got \(3, 2, 4\)"),
        (np.full((3, 2, 4, 4), 2.0), {}, "between 0 and 1"),
        (np.zeros((3, 9, 512, 512)), {}, "pool them first"),
        (np.zeros((3, 2, 4, 4)), {"scale": "without_first"}, '"linear" or "sqrt"'),
        (np.zeros((3, 2, 4, 4)), {"marked": [(1, 0)]}, "there is no head L1 H0"),
    ],
)
def test_refuses_what_does_not_fit(maps, settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        overview(maps, LAYERS, **settings)
