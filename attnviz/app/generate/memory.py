"""What the cache holds in bytes: by formula, in the live cache, and for published models."""

import streamlit as st

from attnviz.app.generate.texts import say
from attnviz.app.shell.visit import Visit
from attnviz.app.show.choose import choose
from attnviz.core.cost.published import GB, fits, published_models
from attnviz.core.generation.step import Step
from attnviz.figures import quantity

ITEM = {"float32": 4, "float16": 2, "bfloat16": 2}
LENGTHS = (8_192, 32_768, 131_072)
MEMORIES = (8, 24, 80)  # GB
BITS = {
    "16 bits": (2.0, 2.0),
    "8 bits": (1.0, 1.0),
    "4 bits": (0.5, 2.0),
}  # bytes of a weight, of a number in the cache


def memory(visit: Visit, step: Step | None) -> None:
    """Show the formula with this model's numbers, beside what the live cache holds."""
    st.markdown(say("memory", "intro"))
    st.latex(say("memory", "formula"))
    if step is None or not step.cache:
        st.caption("Write a token (“Step”) to see it with numbers, beside the live cache.")
    else:
        _live(visit, step)
    _grouped(visit)


def _live(visit: Visit, step: Step) -> None:
    info, t = visit.info, step.token.index
    d_head = next(iter(step.cache.values()))[0].shape[-1]
    size = ITEM.get(info.dtype, 4)
    formula = len(step.cache) * info.n_kv_heads * t * d_head * 2 * size
    factors = (len(step.cache), info.n_kv_heads, t, d_head, 2, size)
    st.latex(r" \times ".join(map(str, factors)) + f" = {formula:,}".replace(",", r"\,"))
    verdict = "exactly the same" if formula == step.cache_bytes else "**not the same**"
    st.markdown(say("memory", "live", live=f"{step.cache_bytes:,}", formula=f"{formula:,}", verdict=verdict))


def _grouped(visit: Visit) -> None:
    info = visit.info
    if info.n_kv_heads == info.n_heads:
        st.caption(f"{info.title} keeps keys and values for each of its {info.n_heads} heads (multi-head attention).")
        return
    names = {2: "half", 3: "a third", 4: "a quarter", 8: "an eighth"}
    factor = info.n_heads / info.n_kv_heads
    share = names.get(round(factor), f"1/{factor:g}")
    saved = {2: "half", 3: "two thirds", 4: "three quarters"}.get(round(factor), f"{1 - 1 / factor:.0%}")
    said = {"title": info.title, "n_heads": info.n_heads, "n_kv": info.n_kv_heads, "share": share, "saved": saved}
    st.markdown(say("memory", "grouped", **said))


def other_models() -> None:
    """Show the cache of published models at three lengths, and what fits into three memories."""
    bits = choose("Weights in", "bits", {name: name for name in BITS})
    weight_bytes, cache_bytes = BITS[bits]
    st.markdown(say("memory", "models", bits=bits, cache_bits=f"{8 * cache_bytes:.0f} bits"))
    models = published_models()
    table = {
        "model": [model.name for model in models],
        "attention": [f"{m.attention} ({m.shape.n_heads} / {m.shape.n_kv_heads})" for m in models],
        "weights": [quantity(m.parameters * weight_bytes, "bytes") for m in models],
    }
    for length in LENGTHS:
        found = [fits(m, 80 * GB, tokens=length, weight_bytes=weight_bytes, cache_bytes=cache_bytes) for m in models]
        table[f"cache at {length // 1024}k"] = [quantity(fit.cache, "bytes") for fit in found]
    for room in MEMORIES:
        found = [fits(m, room * GB, tokens=1, weight_bytes=weight_bytes, cache_bytes=cache_bytes) for m in models]
        table[f"tokens in {room} GB"] = [
            _tokens(fit.most_tokens, m.context) for fit, m in zip(found, models, strict=True)
        ]
    st.dataframe(table, hide_index=True, height=36 * (len(models) + 1) + 2, key="published-table")
    st.caption("Heads: query / key and value. A length in brackets is beyond the context that the model was made for.")
    with st.expander("Where these sizes stand", type="compact"):
        st.markdown("\n".join(f"- **{model.name}**: {model.source}" for model in models))


def _tokens(most: int | None, context: int) -> str:
    """Return how many tokens fit, as the table says it.

    >>> _tokens(None, 10), _tokens(5, 10), _tokens(2048, 1024)
    ('weights don’t fit', '5', '(2,048)')
    """
    if most is None:
        return "weights don’t fit"
    return f"{most:,}" if most <= context else f"({most:,})"
