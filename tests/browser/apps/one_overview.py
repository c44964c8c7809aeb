"""One overview of made-up heads: what it draws comes from the address."""

from collections.abc import Mapping

import numpy as np
import streamlit as st

from attnviz.app.components.mosaic.mosaic import Measure, MosaicLook, Thumbnails, mosaic
from tests.browser.apps.made_up import THUMB, made_up_weights, mosaic_of


def show(choice: Mapping[str, str], visit: str) -> None:
    """Draw one overview; its boxes and switches have the visit in their keys."""
    n_layers, n_heads = int(choice.get("layers", 30)), int(choice.get("heads", 9))
    causal = choice.get("causal", "yes") == "yes"
    weights = made_up_weights(n_layers * n_heads, THUMB, causal=causal)
    cells: list[tuple[int, int] | None] = [(layer, head) for layer in range(n_layers) for head in range(n_heads)]
    if "hole" in choice:
        cells[int(choice["hole"])] = None
    sink = weights[:, :, 0].mean(axis=-1)
    measured = "measure" in choice or st.toggle("Measure", key=f"measure-{visit}")
    ranked = "sorted" in choice or st.toggle("Sorted", key=f"sorted-{visit}")
    layer = int(st.number_input("Layer", 0, n_layers - 1, 9 % n_layers, key=f"layer-{visit}"))
    head = int(st.number_input("Head", 0, n_heads - 1, 4 % n_heads, key=f"head-{visit}"))

    def take(chosen: tuple[int, int]) -> None:
        """Set the number boxes to the head that was chosen in the picture."""
        st.session_state[f"layer-{visit}"], st.session_state[f"head-{visit}"] = chosen

    event = mosaic(
        mosaic_of(weights, n_layers, n_heads, causal=causal),
        Thumbnails(
            THUMB,
            n_heads,
            cells,
            row_labels=[f"L{i}" for i in range(n_layers)],
            column_labels=[f"H{i}" for i in range(n_heads)],
        ),
        measure=Measure(
            tint=sink.tolist() if measured else None,
            captions=[f"first token {value:.0%}" for value in sink] if measured else None,
            order=np.argsort(-sink).tolist() if ranked else None,
        ),
        look=MosaicLook(turn="turn" in choice),
        selected=(layer, head),
        on_select=take,
        key=f"heads-{visit}",
    )
    st.text(f"chosen {event.selected} boxes {(layer, head)} theme {event.theme}")
