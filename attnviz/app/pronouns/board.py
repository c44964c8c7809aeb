"""The scoreboard: heads on many sentences, shipped, or measured on the spot with the visitor's own file."""

from collections.abc import Hashable, Sequence
from functools import partial
from typing import Any

import streamlit as st

from attnviz.app.pronouns.best_heads import board_of, reference_is_shown, shipped_boards
from attnviz.app.pronouns.texts import say
from attnviz.app.shell import cache
from attnviz.app.shell.markdown import plain
from attnviz.app.shell.visit import Visit
from attnviz.app.show import job
from attnviz.app.show.charts import draw
from attnviz.app.show.choose import choose
from attnviz.app.show.facts import of_model
from attnviz.app.show.heads_map import head_buttons, heads_map
from attnviz.core.pronouns.items import SHIPPED, Item, parse_items, read_items
from attnviz.core.pronouns.scoreboard import Board, csv_text
from attnviz.figures import rate_dots
from attnviz.figures.rates import Rated
from attnviz.models.engine import Engine
from attnviz.models.scan.boards import scan_boards

LANGUAGES = {"en": "English", "de": "German", "sv": "Swedish", "own": "a file of yours"}
ENGLISH = ("smollm2", "minilm")  # models that are known to have been trained on English; of others nothing is known
NAMED_PROBLEMS = 3  # lines of a file whose fault is spelled out
MOST_ITEMS = 20_000


def scoreboard(visit: Visit) -> None:
    """Draw how often heads are right on many sentences, and offer to measure what hasn't been."""
    st.markdown(say("scores", "intro"))
    choose("Sentences", "sentences", LANGUAGES)
    lang = st.session_state.sentences
    if lang == "own":
        _own_file(visit)
        return
    if board_of(visit.info, lang, "") is None:
        _measure(visit, _shipped_items(lang))
        return
    _show(visit, lang)


def _show(visit: Visit, lang: str) -> None:
    boards = [board for board in _boards(visit) if board.lang == lang]
    kinds = list(dict.fromkeys(board.kind for board in boards if board.kind))
    if st.session_state.kind not in ("", *kinds):
        st.session_state.kind = ""
    choose("Kind", "kind", {"": "all kinds"} | {kind: kind for kind in kinds})
    board = board_of(visit.info, lang, st.session_state.kind)
    if board is None:
        st.info("There is no score of this kind.")
        return
    show_board(visit, board, boards)


def _boards(visit: Visit) -> list[Board]:
    mine = st.session_state.get("boards", {}).get(visit.info.revision, ())
    return [b for b in (*mine, *shipped_boards()) if (b.model, b.revision) == (visit.info.name, visit.info.revision)]


def show_board(visit: Visit, board: Board, beside: list[Board]) -> None:
    """Draw a board: the chosen heads beside rules and random weights, the map of all heads, and the other kinds."""
    if not board.chosen:
        st.info("Choosing on one half and reporting on the other needs at least two groups of sentences.")
    elif not reference_is_shown(board) and board.lang in LANGUAGES:
        best, language = board.chosen[0], LANGUAGES[board.lang]
        values = {"answer": best.answer, "distractor": best.distractor}
        said = say("scores", "fails", title=visit.info.title, language=language, **values)
        if board.lang != "en" and visit.info.name in ENGLISH:
            said += " " + say("scores", "english", title=visit.info.title)
        st.warning(said)
    left, right = st.columns(2, gap="large")
    with left:
        _rates(visit, board)
        _chosen_table(board)
    with right:
        _accuracy_map(visit, board)
        _kinds(visit, board, beside)
    name = "-".join(filter(None, ("attnviz", visit.info.name.replace("/", "_"), board.lang, board.kind, "scores")))
    st.download_button("All heads as CSV", partial(csv_text, board), f"{name}.csv", "text/csv", on_click="ignore")


def _rates(visit: Visit, board: Board) -> None:
    st.markdown(f"#### Right in how many of {board.chosen[0].n if board.chosen else board.scores.n} sentences?")
    rows = [(f"L{c.layer} H{c.head}", c.rate.value, c.rate.low, c.rate.high) for c in board.chosen[:3]]
    n_heads = len(rows)
    if board.control is not None:
        rate = board.control.rate
        rows.append(("random weights", rate.value, rate.low, rate.high))
    for name, rate in board.scores.baselines.items():
        if name != "chance":
            rows.append((f"{name} candidate", rate.value, rate.low, rate.high))
    look = {
        "highlighted": range(n_heads),
        "chance": board.scores.baselines["chance"].value,
        "how_to_read": "Each dot is how often a head or a rule is right, the line through it its 95 % interval; heads "
        "are diamonds, and the dashed line is chance.",
    }
    _dots(visit, board, "rates", "who", rows, **look)


def _dots(visit: Visit, board: Board, key: str, of: str, rows: Sequence[Rated], **look: Any) -> None:
    """Draw rows of (name, rate, low, high), the names being `of` what the table's first column says."""
    names = (of, "right", "low", "high")
    table = dict(zip(names, zip(*rows, strict=True), strict=True))
    figure = rate_dots(rows, theme=visit.theme, **look)
    draw(figure, key, f"{key} {board.model} {board.lang}", table, about=of_model(visit))


def _chosen_table(board: Board) -> None:
    st.dataframe(
        {
            "head": [f"L{c.layer} H{c.head}" for c in board.chosen],
            "chosen at": [f"{c.chosen_at:.1%}" for c in board.chosen],
            "right in": [f"{c.rate.value:.1%} [{c.rate.low:.0%}, {c.rate.high:.0%}]" for c in board.chosen],
            "on answer": [f"{c.answer:.2f}" for c in board.chosen],
            "on the other": [f"{c.distractor:.2f}" for c in board.chosen],
        },
        hide_index=True,
    )
    head_buttons("board", ((c.layer, c.head, "") for c in board.chosen))
    lead = "A line break stands in front of each text. " if board.lead else ""
    chosen_at = "“Chosen at”: how often right on the half that the head was chosen on."
    st.caption(
        f"{board.scores.n} sentences in {board.scores.n_groups} groups of like ones; intervals (95 %) by drawing "
        f"groups. {lead}{chosen_at} Weights are means over the other half."
    )


def _accuracy_map(visit: Visit, board: Board) -> None:
    st.markdown(f"#### Every head on all {board.scores.n} sentences")
    chance = board.scores.baselines["chance"].value
    heads_map(
        visit,
        "accuracy",
        board.scores.accuracy - chance,
        board.scores.layers,
        bar_title="right, minus chance",
        value_range=(-0.5, 0.5),
        how_to_read=f"Each cell is a head: purple ones are right more often than chance ({chance:.0%}), orange ones "
        "less often. The best cell is lucky: many were compared.",
        table=board.scores.accuracy,
        about=of_model(visit),
    )


def _kinds(visit: Visit, board: Board, beside: list[Board]) -> None:
    """Draw how the first chosen head does on each kind of sentence."""
    kinds = [other for other in beside if other.kind]
    if not board.chosen or board.kind or not kinds:
        return
    best = board.chosen[0]
    at = board.scores.layers.index(best.layer), best.head
    rows = [
        (f"{b.kind} (n {b.scores.n})", float(b.scores.accuracy[at]), float(b.scores.low[at]), float(b.scores.high[at]))
        for b in kinds
    ]
    st.markdown(f"#### L{best.layer} H{best.head} by kind of sentence, both halves")
    _dots(visit, board, "kinds", "kind", rows, chance=0.5, highlighted=range(len(rows)))


def _own_file(visit: Visit) -> None:
    st.markdown(say("scores", "own"))
    file = st.file_uploader("A file of pronoun sentences (.jsonl)", type=["jsonl", "json", "txt"], key="items-file")
    items = () if file is None else _usable(visit, file.getvalue())
    if not items:
        return
    key = ("own boards", visit.choice, items)
    boards = cache.results().peek(key)
    if boards is None:
        _measure(visit, items, key)
    else:
        show_board(visit, boards[0], list(boards[1:]))


def _usable(visit: Visit, content: bytes) -> tuple[Item, ...]:
    """Return the sentences of a file that can be measured; none, with the reason on the page, if there are none."""
    items, problems = parse_items(content)
    if problems:
        named = "; ".join(map(str, problems[:NAMED_PROBLEMS]))
        more = f"; and {len(problems) - NAMED_PROBLEMS} more" if len(problems) > NAMED_PROBLEMS else ""
        skipped = f"{len(problems)} lines were" if len(problems) > 1 else "One line was"
        st.warning(plain(f"{skipped} skipped. {named}{more}."))
    if not items:
        st.error("This file has no sentence that can be used.")
        return ()
    if len(items) > MOST_ITEMS:
        many = f"This file has {len(items):,} sentences; the page takes {MOST_ITEMS:,}."
        st.error(f"{many} Use `python -m attnviz scan`.")
        return ()
    return _seen(items) if visit.info.causal else items


def _seen(items: tuple[Item, ...]) -> tuple[Item, ...]:
    """Return the sentences whose candidates stand before the pronoun, and say what is left out."""
    seen = tuple(item for item in items if item.causal_ok)
    if len(seen) < len(items):
        st.caption(f"{len(items) - len(seen)} sentences have a candidate after the pronoun and are left out.")
    if not seen:
        st.info("Nothing is left to measure: this model sees no word after the pronoun.")
    return seen


def _shipped_items(lang: str) -> tuple[Item, ...]:
    return cache.results().get(("items", lang), lambda: read_items(SHIPPED / f"{lang}.jsonl")[0])


def _measure(visit: Visit, items: tuple[Item, ...], key: Hashable = None) -> None:
    """Offer to measure, or show how far it is."""
    wanted = (visit.choice, items)
    if job.is_going_on("measuring", wanted):
        job.watch("measuring", keep=partial(_keep, visit.info.revision, key), key="stop-measuring")
        return
    st.write(f"{visit.info.title} hasn't been measured on these {len(items):,} sentences yet.")
    work = partial(_scan, cache.get_engine(visit.choice), items)
    begin = {"on_click": job.start, "args": ("measuring", wanted, work)}
    st.button("Measure all heads", key="measure-heads", type="primary", **begin)


def _scan(engine: Engine, items: tuple[Item, ...], say: job.Say) -> tuple[Board, ...]:
    def show(what: str, done: int, total: int) -> None:
        say(done, total, f"{what}: {done:,} of {total:,} sentences")

    return scan_boards(engine, items, progress=show).boards


def _keep(revision: str, key: Hashable, boards: tuple[Board, ...]) -> None:
    if key is not None:
        cache.results().get(key, lambda: boards)
    else:
        mine = st.session_state.setdefault("boards", {})
        mine[revision] = [*mine.get(revision, ()), *boards]
