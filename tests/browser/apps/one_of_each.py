"""Each of the browser components, and the buttons that save it."""

from collections.abc import Mapping

from attnviz.app.components.head_lines.head_lines import head_lines
from attnviz.app.components.mosaic.mosaic import Thumbnails, mosaic
from attnviz.app.components.save_picture.save_picture import save_picture
from attnviz.app.components.sentence_arcs.sentence_arcs import Asked, Sentence, sentence_arcs
from attnviz.app.components.token_strip.token_strip import StripTokens, token_strip
from tests.browser.apps.made_up import ANIMAL, THUMB, made_up_attention, made_up_weights, mosaic_of

WORDS = ["The", "animal", "didn't", "cross", "the", "street", "because", "it", "was", "<tired>", "&", "slow"]


def show(choice: Mapping[str, str], visit: str) -> None:
    """Draw them all, each with its buttons."""
    weights = made_up_weights(30 * 9, THUMB, causal=True)
    cells = [(layer, head) for layer in range(30) for head in range(9)]
    rows, columns = [f"L{i}" for i in range(30)], [f"H{i}" for i in range(9)]
    image = mosaic_of(weights, 30, 9, causal=True)
    mosaic(image, Thumbnails(THUMB, 9, cells, rows, columns), selected=(13, 8), key="heads")
    save_picture("heads", "all heads", key="save-heads", html=True)
    attention = made_up_attention(len(ANIMAL), causal=True)
    token_strip(StripTokens(ANIMAL, texts=ANIMAL), attention, selected=8, masked="causal", key="strip")
    save_picture("strip", "tokens", key="save-strip", html=True)
    row = [0.02, 0.55, 0.01, 0.01, 0.01, 0.2, 0.05, 0.1, 0.0, 0.0, 0.0, 0.05]
    sentence_arcs(Sentence(WORDS), Asked(7, [[1], [5]], 0), row, key="arcs", on_pick=None, label="L9 H4")
    save_picture("arcs", "arcs", key="save-arcs", html=True)
    three = made_up_weights(3, len(ANIMAL), causal=True)
    head_lines(
        ANIMAL, ANIMAL, three / three.sum(axis=2, keepdims=True), selected=0, on_shown=lambda shown: None, key="lines"
    )
    save_picture("lines", "lines", key="save-lines", html=True)
