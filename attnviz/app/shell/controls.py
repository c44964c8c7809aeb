"""The widgets that all pages share: model, sentence, head and switches. Made in `app.py`, before the page runs."""

from importlib import resources

import streamlit as st

from attnviz.app.components.plots.plots import keep_plots
from attnviz.app.shell import address as state
from attnviz.app.shell import cache
from attnviz.app.shell.cache import ModelChoice
from attnviz.app.shell.examples import Example, examples, languages
from attnviz.app.shell.fields import OF_SWITCHES, OF_TEXT, SHARED
from attnviz.app.shell.visit import fit_selection, switch_reason
from attnviz.core.trace.records import ModelInfo
from attnviz.models.load.catalogue import CATALOGUE

CSS = resources.files("attnviz.app.shell") / "app.css"
TEMPERATURES = ("0.25", "0.5", "1", "2", "4", "8")


def style() -> None:
    """Give the page its measure, and let charts keep theirs."""
    st.html(CSS)
    keep_plots(key="plots")


def model() -> tuple[ModelChoice, ModelInfo] | None:
    """Show the model picker and return the loaded model, the last good one if the wanted one can't be loaded."""
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
    engine_box, precision_box = st.columns(2)
    with engine_box:
        st.selectbox(
            "Computed by",
            ["torch", "numpy"],
            key="engine",
            format_func={"torch": "PyTorch", "numpy": "NumPy"}.get,
            help="PyTorch runs the model through transformers. NumPy runs it from scratch, on the same weights, by "
            "code that you can read (layouts of Llama, BERT and GPT-2).",
        )
    scratch = st.session_state.engine == "numpy"
    if scratch:
        st.session_state.precision = "float32"
    with precision_box:
        st.selectbox(
            "Precision",
            ["float32", "bfloat16", "float16"],
            key="precision",
            disabled=scratch,
            help="Of the weights in memory. Scores and softmax are computed in float32 always.",
        )
    wanted = ModelChoice(str(st.session_state.model or ""), st.session_state.precision, st.session_state.engine)
    try:
        info = _load(wanted)
    except ValueError as error:
        name = titles.get(wanted.name, wanted.name)
        st.error(as_sentence(f"{name}: {error}" if wanted.name.strip() else str(error)))
        last = st.session_state.get("loaded")
        if last is None:
            return None
        info = cache.get_engine(last, lambda sentence: None).info
        st.caption(plain(f"Still showing {info.title}."))
        wanted = last
    st.session_state.loaded = wanted
    fit_selection(info)
    return wanted, info


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


def sentence() -> None:
    """Show the text area with Run; Ctrl+Enter does the same."""
    with st.form("sentence", border=False):
        area, button = st.columns([9, 1], vertical_alignment="bottom", gap="small")
        with area:
            st.text_area(
                "Your text (Ctrl+Enter runs it)",
                key="draft",
                height=72,
                placeholder="Type a sentence in any language",
            )
        with button:
            st.form_submit_button("Run", type="primary", width="stretch", on_click=_run_draft)
    if not state.fits_address(st.session_state.text):
        st.caption("This text is too long for a link: the page's address leaves it out.")


def examples_row() -> None:
    """Show the examples of all languages as buttons."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="examples"):
        for language in languages():
            st.markdown(f":gray[{language}]", width="content")
            for example in examples(language):
                st.button(
                    example.title,
                    key=f"example-{example.name}",
                    type="tertiary",
                    help=example.text.replace("\n", " "),
                    on_click=_take_example,
                    args=(example,),
                )


def head(info: ModelInfo) -> None:
    """Show the boxes for part, layer and head, and the button that switches the head off."""
    if len(info.parts) > 1:
        st.segmented_control(
            "Part",
            info.parts,
            key="part",
            required=True,
            persist_state="session",
            help="Encoder: the text sees itself. Decoder: what is written sees itself. Cross: it sees the text.",
        )
    layer_box, head_box = st.columns(2)
    with layer_box:
        if info.layers == tuple(range(info.layers[0], info.layers[-1] + 1)):
            st.number_input("Layer", info.layers[0], info.layers[-1], step=1, key="layer", persist_state="session")
        else:
            reason = "The layers that have softmax attention."
            st.selectbox("Layer", info.layers, key="layer", help=reason, persist_state="session")
    with head_box:
        st.number_input("Head", 0, info.n_heads - 1, step=1, key="head", persist_state="session")


def switches(info: ModelInfo, scale: float | None) -> None:
    """Show the switches; one that can't act on this model is disabled and says why."""
    reasons = {name: switch_reason(info, name) for name in ("causal", "temperature", "off", "forbid")}
    own = "no mask" if info.causal is False else "mask" if info.causal else "by part"
    st.segmented_control(
        "Causal mask",
        ["own", "on", "off"],
        key="causal",
        required=True,
        format_func={"own": f"own: {own}", "on": "on", "off": "off"}.get,
        disabled=bool(reasons["causal"]),
        help=reasons["causal"]
        or "On: no token sees a later one. Off: it may; the past side of a sliding window stays as it is.",
    )
    _temperature(info, scale, reasons["temperature"])
    _heads_off(info, reasons["off"])
    if st.session_state.forbid:
        st.pills(
            "Forbidden looks (click to allow again)",
            [SHARED["forbid"].write([look]) for look in st.session_state.forbid],
            format_func=_name_look,
            key="allow-again",
            on_change=_allow_again,
        )
    st.segmented_control(
        "Switches act on",
        ["picture", "pass"],
        key="acts",
        required=True,
        format_func={"picture": "this picture", "pass": "the whole pass"}.get,
        help="This picture: the same q and k, weights worked out anew. The whole pass: every layer computes under the "
        "switches, so later q and k and the predictions change too. A head off acts on the whole pass only.",
    )
    at_rest = all(st.session_state[name] == SHARED[name].default for name in ("causal", "temperature", "off", "forbid"))
    st.button("All switches at rest", on_click=rest, disabled=at_rest, width="stretch")


def _temperature(info: ModelInfo, scale: float | None, reason: str | None) -> None:
    """One control for scaling and temperature: no factor is the same as a temperature as large as the factor."""
    without = info.cannot.get("scaled")
    values = {text: float(text) for text in TEMPERATURES}
    if scale is not None and not without:
        values["off"] = scale
    chosen = st.session_state.temperature
    if chosen == "off" and "off" not in values:
        st.session_state.temperature = chosen = "1"
    values.setdefault(chosen, 1.0 if chosen == "off" else float(chosen))
    names = {"off": f"no 1/√d (= {_ratio(scale)})", "1": "1 (model's own)"}
    st.select_slider(
        "Softmax temperature",
        sorted(values, key=values.__getitem__),
        key="temperature",
        format_func=lambda text: names.get(text, text),
        disabled=bool(reason),
        help=reason
        or (
            "Everything inside the softmax is divided by it. Leaving out the factor 1/√d makes the scores larger, "
            f"which is the same as a small temperature. {without or ''}"
        ),
    )


def _heads_off(info: ModelInfo, reason: str | None) -> None:
    st.multiselect(
        "Heads off",
        [(layer, head) for layer in info.layers for head in range(info.n_heads)],
        key="off",
        format_func=lambda pair: f"L{pair[0]} H{pair[1]}",
        disabled=bool(reason),
        placeholder="none",
        help=reason or "What these heads write is set to zero in the whole pass. Their own maps stay as they are.",
    )


def _load(wanted: ModelChoice) -> ModelInfo:
    place = st.empty()  # always, so that nothing below it moves when the progress goes
    known = cache.engines().peek(wanted)
    if known is not None:
        return known.info
    try:
        with place.status(plain(f"Loading {wanted.name}")) as status:
            return cache.get_engine(wanted, lambda text: status.update(label=plain(text))).info
    finally:
        place.empty()


def _run_draft() -> None:
    new_text(st.session_state.draft)


def new_text(text: str) -> None:
    """Take a text as the one to show; what named tokens of the old one is dropped."""
    chosen = st.session_state
    if text == chosen.text:
        return
    if chosen.forbid:
        state.note("The forbidden looks named tokens of the text before, so they were dropped.")
    chosen.text = chosen.draft = text
    state.put_at_rest(OF_TEXT)


def _take_example(example: Example) -> None:
    new_text(example.text)
    chosen = st.session_state
    chosen.draft, chosen.model, chosen.layer, chosen.head = example.text, example.model, example.layer, example.head
    rest()


def _allow_again() -> None:
    word = st.session_state["allow-again"]
    if word:
        gone = SHARED["forbid"].read(word)[0]
        st.session_state.forbid = [look for look in st.session_state.forbid if look != gone]


def rest() -> None:
    """Put all switches at rest."""
    state.put_at_rest(OF_SWITCHES)


def _name_look(word: str) -> str:
    layer, head, query, key = SHARED["forbid"].read(word)[0]
    where = "everywhere" if layer is None else f"L{layer}" if head is None else f"L{layer} H{head}"
    tokens = st.session_state.visit.rest.tokens if st.session_state.get("visit") else ()
    names = [f"{tokens[i].label} ({i})" if i < len(tokens) else str(i) for i in (query, key)]
    return plain(f"{names[0]} → {names[1]}, {where} ✕")


def _ratio(scale: float | None) -> str:
    """Return a factor as a fraction where that is exact enough, such as 1/8.

    >>> _ratio(0.125), _ratio(0.3535533905932738)
    ('1/8', '0.354')
    """
    if not scale:
        return "1"
    return f"1/{round(1 / scale)}" if abs(1 / scale - round(1 / scale)) < 1e-6 else f"{scale:.3f}"


def plain(text: str) -> str:
    """Return text that Streamlit's Markdown shows as it is."""
    for sign in "\\`*_[]<>$~:#|":
        text = text.replace(sign, f"\\{sign}")
    return text


def as_sentence(text: str) -> str:
    """Return an error's text as a sentence; a name in front, such as a model's, keeps its letters.

    >>> as_sentence("there is no text"), as_sentence("gpt2 has no such layer")
    ('There is no text.', 'gpt2 has no such layer.')
    """
    text = plain(text.strip())
    if text.partition(" ")[0].isalpha():
        text = text[0].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."
