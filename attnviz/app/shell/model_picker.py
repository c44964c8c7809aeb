"""Which model a visitor looks at: the boxes to choose it, and what it truly is."""

from typing import Any

import streamlit as st

from attnviz.app.shell import cache
from attnviz.app.shell.cache import ModelChoice
from attnviz.app.shell.markdown import as_sentence, plain
from attnviz.app.shell.passing import passing
from attnviz.app.shell.visit import fit_selection
from attnviz.core.trace.records import ModelInfo
from attnviz.models.load.catalogue import CATALOGUE


def model(said: Any) -> tuple[ModelChoice, ModelInfo] | None:
    """Show the model picker and return the loaded model, the last good one if the wanted one can't be loaded.

    Args:
        said: the container for progress and for what went wrong.
    """
    titles = {name: entry.title for name, entry in CATALOGUE.items()}
    if st.session_state.model not in titles:
        titles[st.session_state.model] = st.session_state.model
    st.selectbox(
        "Model",
        list(titles),
        key="model",
        format_func=lambda name: titles.get(name, name),
        accept_new_options=True,
        help="One of these, or type a Hugging Face id, a folder, or a .gguf file on this machine.",
    )
    wanted = _wanted()
    try:
        info = _load(wanted, said)
    except ValueError as error:
        name = titles.get(wanted.name, wanted.name)
        said.error(as_sentence(f"{name}: {error}" if wanted.name.strip() else str(error)))
        last = st.session_state.get("loaded")
        if last is None:
            return None
        info = cache.get_engine(last).info
        said.caption(plain(f"Still showing {info.title}."))
        wanted = last
    st.session_state.loaded = wanted
    fit_selection(info)
    return wanted, info


def _wanted() -> ModelChoice:
    """Show the boxes for engine and precision, and return all that is chosen."""
    chosen = st.session_state
    engine_box, precision_box = st.columns(2)
    engine_box.selectbox(
        "Computed by",
        ["torch", "numpy"],
        key="engine",
        format_func={"torch": "PyTorch", "numpy": "NumPy"}.get,
        help="PyTorch runs the model through transformers. NumPy runs it from scratch, on the same weights, by "
        "code that you can read (layouts of Llama, BERT and GPT-2).",
    )
    scratch = chosen.engine == "numpy"
    if scratch:
        chosen.precision = "float32"
    precision_box.selectbox(
        "Precision",
        ["float32", "bfloat16", "float16"],
        key="precision",
        disabled=scratch,
        help="Of the weights in memory. Scores and softmax are computed in float32 always.",
    )
    return ModelChoice(str(chosen.model or ""), chosen.precision, chosen.engine)


def about_model(info: ModelInfo) -> None:
    """Say what the model truly is: name, layers, revision, precision, and what to know about it."""
    kind = {True: "decoder", False: "encoder", None: "encoder and decoder"}[info.causal]
    heads = f"{info.n_heads} heads" + (f" ({info.n_kv_heads} key/value)" if info.n_kv_heads != info.n_heads else "")
    gaps = "" if len(info.layers) == info.n_layers else f", {len(info.layers)} of them with softmax attention"
    size = f"{info.n_layers} layers{gaps} of {heads}"
    if info.sizes:
        size = ", ".join(f"{part} {layers} layers of {n} heads" for part, (layers, n) in info.sizes.items())
    st.caption(
        plain(
            f"{kind}, {size}, {info.n_parameters / 1e6:,.1f} million weights in "
            f"{info.dtype}, revision {info.revision}. {info.architecture}; {info.tokenizer}."
        )
    )
    for sentence in info.notes:
        st.caption(plain(sentence))


def _load(wanted: ModelChoice, said: Any) -> ModelInfo:
    with said, passing() as place:  # always, so that nothing below it moves when the progress goes
        known = cache.engines().peek(wanted)
        if known is not None:
            return known.info
        with place.status(plain(f"Loading {wanted.name}")) as status:
            return cache.get_engine(wanted, lambda text: status.update(label=plain(text))).info
