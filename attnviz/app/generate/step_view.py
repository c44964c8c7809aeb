"""One step: the text so far, the new token with its rivals, the new row of the map, and what the cache keeps."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from attnviz.app.components.token_strip.token_strip import StripLook, StripTokens, token_strip
from attnviz.app.generate.continuation import MOST, Continuation
from attnviz.app.generate.texts import say
from attnviz.app.shell import palette
from attnviz.app.shell.controls import head
from attnviz.app.shell.markdown import plain
from attnviz.app.shell.visit import Visit
from attnviz.app.show.charts import draw, of_head
from attnviz.app.show.facts import Facts, at_rest
from attnviz.core.generation.step import Step
from attnviz.core.trace.head import Head
from attnviz.figures import cache_bands, next_token_bars
from attnviz.figures.theme import theme_of

MOST_SIDE = 96  # tokens a side of the map; of a longer text the last ones


def step_view(visit: Visit, writing: Continuation, n_written: int) -> None:
    """Draw the step that wrote the last shown token."""
    if not n_written:
        st.markdown(say("steps", "start"))
        return
    step = writing.steps[n_written - 1]
    n = len(step.trace.tokens)
    n_prompt = n - (n_written - 1)
    part = slice(max(0, n - MOST_SIDE), n)
    shown = step.trace.head(visit.layer, visit.head).tile(part, part)
    _text(shown, n_prompt)
    _say_chosen(visit, step)
    if n_written == len(writing.steps) and writing.ended:
        st.info(_why_ended(visit, n_written, step))
    left, right = st.columns([2, 3], gap="large")
    with left:
        head(visit.info)
        _rivals(visit, step)
    with right:
        _map(visit, shown, n_prompt)
    if not step.cache:
        st.caption(plain(visit.info.cannot.get("cache") or say("steps", "no_cache")))
    else:
        _cache(visit, writing.steps[:n_written])


def _text(shown: Head, n_prompt: int) -> None:
    tokens = shown.tokens[0]
    token_strip(
        StripTokens(
            [token.label for token in tokens],
            texts=[token.text for token in tokens],
            special=[token.index >= n_prompt for token in tokens],
        ),
        np.clip(shown.weights, 0, 1),
        masked="causal" if shown.causal else None,
        look=StripLook(palette=palette.chosen()),
        selected=len(tokens) - 1,
        key="generate-strip",
    )
    st.caption(
        "Slanted tokens were generated. Point at one to see where it looks; what comes next is chosen at the last one."
    )


def _why_ended(visit: Visit, n_written: int, step: Step) -> str:
    if n_written == MOST:
        return say("steps", "full", most=MOST)
    if step.token.index + 1 >= visit.info.limit:
        return say("steps", "limit", title=visit.info.title, limit=visit.info.limit)
    return say("steps", "ended")


def _say_chosen(visit: Visit, step: Step) -> None:
    n = len(step.trace.tokens)
    n_seen = int(step.trace.allowed(visit.layer, visit.head, queries=slice(n - 1, n)).sum())
    if st.session_state.warmth == "0":
        allowed = say("steps", "greedy")
    else:
        allowed = say("steps", "drawn", n_allowed=step.n_allowed, seed=st.session_state.seed)
    st.markdown(
        say(
            "steps",
            "chosen",
            label=step.token.label,
            chance=f"{100 * step.probability:.3g} %",
            rank=step.rank + 1,
            vocabulary=f"{len(step.logits):,}",
            reach=f"all {n} tokens, itself included" if n_seen == n else f"the {n_seen} of {n} tokens that it may see",
            query=step.trace.tokens[-1].label,
            allowed=allowed,
        )
    )


def _rivals(visit: Visit, step: Step) -> None:
    rivals = step.candidates
    figure = next_token_bars(rivals, title="The rivals", theme=visit.theme)
    names = ("token", "probability")
    table = dict(zip(names, zip(*rivals, strict=True), strict=True))
    draw(figure, "rivals", f"rivals {visit.info.name}", table, about=_facts(visit))


def _facts(visit: Visit) -> Facts:
    return dict(at_rest(visit)) | {"tokens_written": st.session_state.written}


def _map(visit: Visit, shown: Head, n_prompt: int) -> None:
    drawn, n, first = of_head(shown), len(shown.trace.tokens), shown.tokens[0][0].index
    look = {"title": f"{visit.name}: the new row", "theme": visit.theme, "height": 560}
    figure = drawn.figure(highlight_query=n - 1, **look)
    if first < n_prompt < n:
        line = {"dash": "dot", "width": 2, "color": theme_of(visit.theme).text}
        figure.add_hline(y=n_prompt - 0.5 - first, line=line)
        figure.add_vline(x=n_prompt - 0.5 - first, line=line)
    draw(figure, "generate-map", f"{visit.name} {visit.info.name} generated", drawn.table, about=_facts(visit))
    said = say("steps", "whole", n=n, n_prompt=n_prompt, n_new=n - n_prompt)
    if first:
        said += " " + say("steps", "part", first=first, last=n - 1, n=n)
    st.caption(said)


def _cache(visit: Visit, steps: Sequence[Step]) -> None:
    """Draw the keys and values of the chosen layer as bands, the new column framed, and check the old ones."""
    st.markdown("#### What is kept: K and V")
    st.markdown(say("steps", "cache"))
    keys, values = steps[-1].cache[visit.layer]  # (kv_heads, t, d_head) each
    n_old = steps[-2].cache[visit.layer][0].shape[1] if len(steps) > 1 else 0
    n_new = keys.shape[1] - n_old
    part = slice(max(0, keys.shape[1] - MOST_SIDE), keys.shape[1])
    labels = [token.label for token in steps[-1].trace.tokens][part]
    columns = st.columns(2, gap="large")
    for column, name, array in zip(columns, ("K", "V"), (keys, values), strict=True):
        sizes = np.linalg.norm(array[:, part], axis=-1)  # (kv_heads, tokens)
        bands = [f"{name} {head}" for head in range(len(array))]
        with column:
            figure = cache_bands(
                sizes,
                bands,
                labels,
                new=min(n_new, len(labels)),
                start=part.start,
                title=f"{'Keys' if name == 'K' else 'Values'} of layer {visit.layer}",
                theme=visit.theme,
            )
            table = {"token": labels, **{band: row.round(4) for band, row in zip(bands, sizes, strict=True)}}
            draw(figure, f"cache-{name}", f"cache {name} layer {visit.layer}", table, about=_facts(visit))
    if n_old:
        st.caption(_old_part(steps, n_old))


def _old_part(steps: Sequence[Step], n_old: int) -> str:
    """Say whether the part that was there before is untouched, in all layers."""
    gap, same = 0.0, True
    for layer, before in steps[-2].cache.items():
        for old, new in zip(before, steps[-1].cache[layer], strict=True):
            same = same and np.array_equal(old, new[:, :n_old])
            gap = max(gap, float(np.abs(old - new[:, :n_old]).max()))
    return say("steps", "same", n_old=n_old) if same else say("steps", "near", n_old=n_old, gap=f"{gap:.1e}")
