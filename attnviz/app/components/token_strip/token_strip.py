"""A sentence as tokens: pointing at one shades the others by its attention, or draws it as lines. Needs streamlit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import streamlit as st
from numpy.typing import ArrayLike, NDArray

from attnviz.app.components.bridge.bridge import pack, read_asset, read_script, send_note, settle_in_session
from attnviz.figures.palettes import DEFAULT

Mask = Literal["causal"] | NDArray[np.bool_] | None

FULL = 65535  # a weight of 1 as it travels, in 16 bits

HTML = """
<div class="strip">
  <div class="bar">
    <div class="directions" role="radiogroup" aria-label="Which way the attention is read"></div>
    <div class="legend" aria-hidden="true">
      weight 0 <span class="ramp"></span> 1
      <span class="masked-key"><span class="swatch"></span> may not see</span>
    </div>
  </div>
  <p class="line" dir="ltr"></p>
  <div class="content"></div>
</div>
"""


@dataclass(frozen=True)
class StripTokens:
    """The tokens of a strip.

    Attributes:
        labels: a label for each query, as it should read; a leading "·" stands for a space and is drawn faintly.
        texts: the piece of the visitor's text behind each query; one with a line break ends a line.
        special: True for each query that the model added, such as [CLS].
        keys: a label for each key where keys are other tokens than queries (cross-attention), for mode "lines" alone.
        start: index in the text of the first query, which the names of tokens count on from.
    """

    labels: Sequence[str]
    texts: Sequence[str] | None = None
    special: Sequence[bool] | None = None
    keys: Sequence[str] | None = None
    start: int = 0


@dataclass(frozen=True)
class StripLook:
    """How a strip looks.

    Attributes:
        mode: "shade" colours the running text, "lines" joins two columns by lines.
        direction: which way the text is shaded at first: a token's row, or its column. The visitor can change it.
        palette: the colour scale of weights.
    """

    mode: Literal["shade", "lines"] = "shade"
    direction: Literal["looks at", "is looked at by"] = "looks at"
    palette: str = DEFAULT


@dataclass(frozen=True)
class TokenEvent:
    """What the visitor's browser says.

    Attributes:
        pinned: position of the query that is pinned now, by the visitor or by the page, None if none is.
    """

    pinned: int | None


def token_strip(
    tokens: StripTokens,
    weights: ArrayLike,
    *,
    masked: Mask = None,
    look: StripLook = StripLook(),
    selected: int | None = None,
    pinned: int | None = None,
    key: str,
) -> TokenEvent:
    """Draw a sentence whose tokens show their attention under the pointer, and return the pinned token.

    Pointing, walking with the arrow keys and changing the direction happen in the browser. A click, Enter or Escape
    sends the pin. Only new labels, weights or masks send the weights again.

    Args:
        tokens: the sentence.
        weights: (queries, keys) from 0 to 1.
        masked: "causal" if no query may see a later key; or (queries, keys) bool, True where the mask forbids; or None.
        look: how it looks.
        selected: the query shown while the visitor points at none.
        pinned: the query to pin. The visitor's later choice holds until this or the labels change.
        key: the component's name, unique on the page.

    Returns:
        The pinned token.

    Raises:
        ValueError: numbers of labels and weights that differ, weights outside 0 to 1, an unknown mode or direction.
    """
    values = np.asarray(weights, dtype=np.float64)
    _check_look(look, tokens)
    _check_weights(values, tokens, masked)
    _check_lengths(len(tokens.labels), texts=tokens.texts, special=tokens.special)
    data = {
        "key": key,
        **_told(tokens),
        "weights": pack(np.round(values * FULL).astype(np.uint16)),
        **_pack_mask(masked),
    }
    with st.container(gap=None):
        result = _text(key=key, data=data, on_pin_change=lambda: None)
        settled = settle_in_session(key, _as_index(pinned), result.get("pin"), about=tuple(tokens.labels))
        says = {"pinned": settled.value, "seen": settled.seen, "selected": _as_index(selected)}
        send_note(key, "strip", says | {"mode": look.mode, "direction": look.direction, "palette": look.palette})
    return TokenEvent(_as_index(settled.value))


def _told(tokens: StripTokens) -> dict[str, Any]:
    return {
        "labels": list(tokens.labels),
        "texts": None if tokens.texts is None else list(tokens.texts),
        "special": None if tokens.special is None else [bool(flag) for flag in tokens.special],
        "keyLabels": None if tokens.keys is None else list(tokens.keys),
        "start": int(tokens.start),
    }


def _as_index(value: Any) -> int | None:
    return None if value is None else int(value)


def _pack_mask(masked: Mask) -> dict[str, Any]:
    """Return the mask as a flag where it is the causal one, else as bits, eight cells a byte, first cell highest."""
    if masked is None:
        return {"causal": False, "maskedBits": None}
    if isinstance(masked, str) or np.array_equal(masked, np.tri(*masked.shape) == 0):
        return {"causal": True, "maskedBits": None}
    return {"causal": False, "maskedBits": pack(np.packbits(masked))}


def _check_look(look: StripLook, tokens: StripTokens) -> None:
    if look.mode not in ("shade", "lines"):
        raise ValueError(f'mode must be "shade" or "lines", got {look.mode!r}')
    if look.direction not in ("looks at", "is looked at by"):
        raise ValueError(f'direction must be "looks at" or "is looked at by", got {look.direction!r}')
    if tokens.keys is not None and look.mode == "shade":
        raise ValueError('keys of their own need mode="lines": running text can only shade itself')


def _check_weights(weights: NDArray[np.float64], tokens: StripTokens, masked: Mask) -> None:
    n_queries, n_keys = len(tokens.labels), len(tokens.labels if tokens.keys is None else tokens.keys)
    if weights.shape != (n_queries, n_keys) or n_queries == 0:
        raise ValueError(f"weights must have shape {(n_queries, n_keys)}, one row a query, got {weights.shape}")
    if not (weights.min() >= 0 and weights.max() <= 1.0001):
        raise ValueError(f"weights must lie between 0 and 1, got {weights.min():g} to {weights.max():g}")
    if isinstance(masked, str):
        if masked != "causal":
            raise ValueError(f'masked must be "causal", a bool array or None, got {masked!r}')
    elif masked is not None and (masked.shape != weights.shape or masked.dtype != bool):
        raise ValueError(f"masked must be bool of shape {weights.shape}, got {masked.dtype} of shape {masked.shape}")


def _check_lengths(n_queries: int, **lists: Sequence[Any] | None) -> None:
    for name, values in lists.items():
        if values is not None and len(values) != n_queries:
            raise ValueError(f"{name} must have {n_queries} entries, one a token, got {len(values)}")


_text = st.components.v2.component(
    "attnviz_token_strip",
    html=HTML,
    css=read_asset("token_strip/token_strip.css"),
    js=read_script("bridge/token_lines.js", "token_strip/token_strip.js"),
)
