"""The picture of all heads, to compare them and to choose one."""

from typing import Any

import numpy as np
import streamlit as st

from attnviz.app.components.mosaic.mosaic import FORBIDDEN, Measure, MosaicEvent, MosaicLook, Thumbnails, mosaic
from attnviz.app.shell import cache, palette
from attnviz.app.shell.address import run_again
from attnviz.app.shell.markdown import plain
from attnviz.app.shell.visit import Visit, ask_whole_page, switch_reason
from attnviz.app.show.facts import of_view
from attnviz.app.show.files import files_row
from attnviz.core.heads.at_a_glance import MEASURES, Survey, without_first_token

NO_MEASURE = "none"
LONG = 500  # tokens from which on looking at all heads takes more than a moment
FAINTEST = 0.05  # a head whose largest weight is below this isn't tinted up to full


def all_heads(visit: Visit) -> None:
    """Draw the overview with what compares the heads above it; clicking a thumbnail selects its head."""
    survey = _survey(visit)
    measure_box, order_box = st.columns([3, 2], vertical_alignment="bottom")
    with measure_box:
        st.selectbox(
            "Compare heads by",
            [NO_MEASURE, *MEASURES],
            key="measure",
            persist_state="session",
            format_func=lambda key: "nothing" if key == NO_MEASURE else MEASURES[key].title,
            help="Drawn as a bar under each thumbnail. "
            + " ".join(f"**{m.title}**: {m.explanation}" for m in MEASURES.values()),
        )
    measure = st.session_state.measure
    with order_box:
        st.selectbox(
            "Order",
            ["layers", "measure"],
            key="order",
            persist_state="session",
            format_func={"layers": "by layer", "measure": "highest first"}.get,
            disabled=measure == NO_MEASURE,
        )
    event = _draw(visit, survey, measure)
    if event.theme and event.theme != visit.theme:
        st.session_state.theme = event.theme
        run_again()
    _step_buttons(visit)
    st.caption(_reading(survey, measure))
    _numbers(visit, survey)


def _survey(visit: Visit) -> Survey:
    bar = st.empty()

    def show(done: int, layers: int) -> None:
        bar.progress(done / layers, f"Looking at all heads: layer {done} of {layers}")

    is_long = len(visit.after.tokens_of(visit.part)[1]) > LONG
    try:
        return cache.get_survey(visit.choice, visit.after, visit.part, visit.picture, show if is_long else None)
    finally:
        bar.empty()


def _draw(visit: Visit, survey: Survey, measure: str) -> MosaicEvent:
    n_layers, n_heads = survey.thumbnails.shape[:2]
    cells = [(layer, head) for layer in survey.layers for head in range(n_heads)]
    there = ~np.isnan(survey.measures["largest"]).ravel()
    values = None if measure == NO_MEASURE else survey.measures[measure].ravel()
    order = None
    if values is not None and st.session_state.order == "measure":
        ranked = np.argsort(np.where(np.isnan(values), -np.inf, values), kind="stable")[::-1]
        order = [int(i) for i in ranked if there[i]]
    captions = None if values is None else [_caption(measure, value) for value in values]
    measured = Measure(None if values is None else _shares(values), captions, order)
    return mosaic(
        _mosaic(survey),
        Thumbnails(
            max(survey.thumbnails.shape[2:]),
            n_heads,
            cells=[cell if there[i] else None for i, cell in enumerate(cells)],
            row_labels=[f"L{layer}" for layer in survey.layers],
            column_labels=[f"H{head}" for head in range(n_heads)],
        ),
        measure=measured,
        look=MosaicLook(f"All {int(there.sum())} heads of {visit.info.title}", 900, palette=palette.chosen()),
        selected=(visit.layer, visit.head),
        on_select=_select,
        key="overview",
    )


@st.cache_data(show_spinner=False, max_entries=32, hash_funcs={Survey: id})
def _mosaic(survey: Survey) -> np.ndarray:
    """Return the thumbnails as one image: 0 to 254 from each head's own 0 to its largest, 255 where masked."""
    tiles = np.nan_to_num(without_first_token(survey))  # (layers, heads, rows, columns)
    top = np.maximum(tiles.max(axis=(2, 3), keepdims=True), FAINTEST)
    masked = np.isnan(survey.thumbnails)
    image = np.where(masked, FORBIDDEN, np.round(np.sqrt(tiles / top) * (FORBIDDEN - 1))).astype(np.uint8)
    n_layers, n_heads, rows, columns = tiles.shape
    if rows != columns:  # cross-attention: the component's thumbnails are square
        image = np.pad(
            image.reshape(n_layers, n_heads, rows, columns), _to_square(rows, columns), constant_values=FORBIDDEN
        )
        rows = columns = max(rows, columns)
    return image.transpose(0, 2, 1, 3).reshape(n_layers * rows, n_heads * columns)


def _to_square(rows: int, columns: int) -> list[tuple[int, int]]:
    side = max(rows, columns)
    return [(0, 0), (0, 0), (0, side - rows), (0, side - columns)]


def _caption(measure: str, value: float) -> str | None:
    if np.isnan(value):
        return None
    unit = " tokens" if measure == "distance" else ""
    return f"{MEASURES[measure].title.lower()}: {value:.2f}{unit}"


def _shares(values: np.ndarray) -> list[float | None]:
    known = values[~np.isnan(values)]  # none at all in a text of one token
    low, high = float(known.min(initial=0.0)), float(known.max(initial=1e-9))
    return [None if np.isnan(value) else float((value - low) / (high - low)) for value in values]


def _select(head: tuple[int, int]) -> None:
    st.session_state.layer, st.session_state.head = head


def _numbers(visit: Visit, survey: Survey) -> None:
    """Show every head's measures as a table, and as files, when asked for."""
    box = st.expander("Numbers, files", key="overview-table", on_change="rerun", type="compact")
    if box.open:
        with box:
            columns = _columns(survey)
            st.dataframe(columns, hide_index=True, height=300, key="overview-numbers")
            files_row(None, "overview", f"all heads {visit.info.name}", columns, about=of_view(visit))


def _columns(survey: Survey) -> dict[str, list[Any]]:
    """Return a line for each head that is there: its layer, its number and its measures."""
    there = [tuple(place) for place in np.argwhere(~np.isnan(survey.measures["largest"]))]
    found: dict[str, list[Any]] = {
        "layer": [survey.layers[row] for row, _ in there],
        "head": [int(head) for _, head in there],
    }
    return found | {m.title: [float(survey.measures[key][place]) for place in there] for key, m in MEASURES.items()}


def _step(layers: int, heads: int, all_layers: tuple[int, ...], n_heads: int) -> None:
    place = all_layers.index(st.session_state.layer) + layers
    st.session_state.layer = all_layers[min(max(place, 0), len(all_layers) - 1)]
    st.session_state.head = min(max(st.session_state.head + heads, 0), n_heads - 1)


def _step_buttons(visit: Visit) -> None:
    """Show arrows that walk from head to head, and the button that switches the selected one off."""
    steps = (
        (":material/arrow_upward:", "a layer up", -1, 0),
        (":material/arrow_downward:", "a layer down", 1, 0),
        (":material/arrow_back:", "a head to the left", 0, -1),
        (":material/arrow_forward:", "a head to the right", 0, 1),
    )
    selected = (visit.layer, visit.head)
    reason = switch_reason(visit.info, "off")
    with st.container(horizontal=True, gap="small"):
        for icon, title, layers, heads in steps:
            arguments = (layers, heads, visit.info.layers, visit.info.n_heads)
            st.button(icon, key=f"step {title}", help=title, on_click=_step, args=arguments)
        st.button(
            f"Switch {visit.name} off",
            on_click=_switch_off,
            args=(selected,),
            disabled=bool(reason) or selected in st.session_state.off,
            help=reason or "What this head writes is set to zero, in the whole pass.",
        )


def _switch_off(head: tuple[int, int]) -> None:
    st.session_state.off = [*st.session_state.off, head]
    ask_whole_page()


def _reading(survey: Survey, measure: str) -> str:
    sentences = [
        "One thumbnail a head: queries down, keys across, the stronger the colour, the more weight. The first token's "
        "column, where most heads rest, is left blank, and each thumbnail is tinted up to the largest weight of the "
        "rest."
    ]
    if survey.n_rows > survey.thumbnails.shape[2]:
        sentences.append("Each dot is the largest weight of a block of tokens.")
    if survey.n_rows_used < survey.n_rows:
        sentences.append(f"Worked out from {survey.n_rows_used:,} of {survey.n_rows:,} queries, evenly spaced.")
    if measure != NO_MEASURE:
        sentences.append(f"{MEASURES[measure].explanation} Bar: {MEASURES[measure].unit}.")
    return plain(" ".join(sentences))
