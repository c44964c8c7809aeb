"""The heads worth looking at for a question: the chosen one, the scoreboard's best, and one that looks elsewhere."""

from dataclasses import dataclass

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from attnviz.app.pronouns.question import Question
from attnviz.app.shell import cache
from attnviz.app.shell.visit import Visit
from attnviz.core.heads.at_a_glance import strongest
from attnviz.core.pronouns.one_sentence import all_heads_looks, margins
from attnviz.core.pronouns.scoreboard import Board, read_boards
from attnviz.core.trace.records import ModelInfo

LEAST_GAP = 0.05  # mean weight on the answer above the distractor's, below which a picture of reference shows nothing
OTHER_GAP = -0.1  # likewise for a head that looks at the other candidate


@dataclass(frozen=True)
class NamedHead:
    """A head, and why it is shown."""

    layer: int
    head: int
    why: str

    @property
    def name(self) -> str:
        """Such as "L9 H4"."""
        return f"L{self.layer} H{self.head}"


def looks_of(visit: Visit, question: Question) -> NDArray[np.float64]:
    """Return (layers, heads, candidates), what every head gives to the candidates from the pronoun."""
    key = ("looks", visit.choice, question.lead + question.text, question.query, tuple(question.groups))
    return cache.results().get(
        key, lambda: all_heads_looks(question.trace, question.query, question.groups, part=question.part)
    )


def margins_of(visit: Visit, question: Question, answer: int) -> NDArray[np.float64]:
    """Return (layers, heads), the answer's weight minus the best other candidate's."""
    return margins(looks_of(visit, question), answer)


def board_for(info: ModelInfo, question: Question) -> Board | None:
    """Return the scoreboard that suits a question: of its language, for "it" of the sentences about things."""
    kind = "things" if question.lang == "en" and question.spoken.lower() in ("it", "its") else ""
    return board_of(info, question.lang, kind) or board_of(info, question.lang, "")


def board_of(info: ModelInfo, lang: str, kind: str) -> Board | None:
    """Return the board of a language and a kind for the loaded weights: measured in this session, else shipped."""
    boards = [*st.session_state.get("boards", {}).get(info.revision, ()), *shipped_boards()]
    found = (b for b in boards if (b.model, b.revision, b.lang, b.kind) == (info.name, info.revision, lang, kind))
    return next(found, None)


def shipped_boards() -> tuple[Board, ...]:
    """Return the scoreboards that come with attnviz, read once."""
    return cache.results().get(("shipped boards",), lambda: tuple(read_boards()))


def named_heads(visit: Visit, question: Question) -> list[NamedHead]:
    """Return the chosen head, the one that the scoreboard names best, and one that looks at the other candidate."""
    board = board_for(visit.info, question)
    margin = None if question.answer is None else margins_of(visit, question, question.answer)
    layers = question.trace.layers_of(question.part)
    found = [NamedHead(visit.layer, visit.head, "chosen")]
    for head in filter(None, (_best(board, margin, layers), _other(board, margin, layers))):
        twin = next((i for i, known in enumerate(found) if (known.layer, known.head) == (head.layer, head.head)), None)
        if twin is None:
            found.append(head)
        else:
            found[twin] = NamedHead(head.layer, head.head, f"{found[twin].why}, {head.why}")
    return found


Margin = NDArray[np.float64] | None  # None where nobody said which candidate is right


def _best(board: Board | None, margin: Margin, layers: tuple[int, ...]) -> NamedHead | None:
    if board and board.chosen:
        about = f"sentences about {board.kind}" if board.kind else "many sentences"
        return NamedHead(board.chosen[0].layer, board.chosen[0].head, f"best on {about}")
    if margin is None:
        return None
    layer, head, _ = strongest(margin, layers, 1)[0]
    return NamedHead(layer, head, "clearest here")


def _other(board: Board | None, margin: Margin, layers: tuple[int, ...]) -> NamedHead | None:
    if board is not None:
        gaps = board.scores.distractor - board.scores.answer
        layer, head, gap = strongest(gaps, board.scores.layers, 1)[0]
        if gap > -OTHER_GAP:
            return NamedHead(layer, head, "looks at the other one on many sentences")
    if margin is None:
        return None
    layer, head, _ = strongest(-margin, layers, 1)[0]
    return NamedHead(layer, head, "looks at the other one here")


def reference_is_shown(board: Board | None) -> bool | None:
    """Return whether the best head of a board shows reference to the eye; None without a board."""
    if board is None or not board.chosen:
        return None
    best = board.chosen[0]
    return best.answer - best.distractor >= LEAST_GAP and best.rate.low > board.scores.baselines["chance"].value
