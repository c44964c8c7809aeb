"""What pages made of steps share: their texts, the question to guess, folds, the code."""

import importlib
import inspect
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import resources
from typing import Any

import streamlit as st

from attnviz.app.shell.markdown import plain

RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Step:
    """One step of the lesson.

    Attributes:
        name: as in the address; `title`: on the page; `number`: from 1.
        text: two sentences; `formula`: LaTeX, with the shapes.
        question: to guess before the answer is shown; `answer`: with `{names}` of numbers worked out on the spot.
        code: full names of the functions that make the step's pictures.
        says: further sentences by name, each with `{names}` of numbers where it needs them.
    """

    number: int
    name: str
    title: str
    text: str
    formula: str
    question: str
    answer: str
    code: tuple[str, ...]
    says: Mapping[str, str] = field(default_factory=dict)

    def say(self, name: str, /, **values: Any) -> str:
        """Return one of the step's sentences with its numbers filled in, as Markdown."""
        return fill(self.says[name], **values)

    def functions(self) -> list[Callable[..., Any]]:
        """Return the functions that make the step's pictures."""
        return [function_of(name) for name in self.code]


@cache
def read_texts(package: str) -> dict[str, Any]:
    """Return what `texts.toml` of a page's folder says, by the package's full name."""
    return tomllib.loads((resources.files(package) / "texts.toml").read_text(encoding="utf-8"))


@cache
def read_steps(package: str, entry: str) -> dict[str, Step]:
    """Return the steps that a page's texts hold under that name, in the order of the file."""
    steps = enumerate(read_texts(package)[entry], 1)
    made = (Step(number=number, **{**step, "code": tuple(step["code"])}) for number, step in steps)
    return {step.name: step for step in made}


def titles(steps: Mapping[str, Step]) -> dict[str, str]:
    """Return what is written on the button of each step."""
    return {name: f"{step.number} {step.title}" for name, step in steps.items()}


def fill(sentence: str, /, **values: Any) -> str:
    """Return a sentence with values in the place of `{names}`; strings, such as tokens, are shown as they are."""
    return sentence.format(
        **{name: plain(value) if isinstance(value, str) else value for name, value in values.items()}
    )


def minus(figures: str) -> str:
    """Return a printed number with a true minus sign.

    >>> minus("-1.2e-07")
    '−1.2e−07'
    """
    return figures.replace("-", "−")


def per_cent(share: float, digits: int = 0) -> str:
    """Return a share as it is said, with a space before its sign.

    >>> per_cent(0.125, 1)
    '12.5 %'
    """
    return f"{share:.{digits}%}".replace("%", " %")


def in_powers(value: float) -> str:
    """Return a number as it is said, with a power of ten.

    >>> in_powers(1.2e-07), in_powers(0)
    ('1.2 × 10⁻⁷', '0')
    """
    if not value:
        return "0"
    figures, power = f"{value:.1e}".split("e")
    return f"{figures} × 10{str(int(power)).translate(RAISED)}"


def right_aligned(names: Iterable[str]) -> dict[str, Any]:
    """Return the setting of a table's columns that hold printed numbers."""
    return {name: st.column_config.TextColumn(alignment="right") for name in names}


def function_of(name: str) -> Callable[..., Any]:
    """Return the function with that full name, such as `attnviz.core.attention.textbook.softmax`."""
    module, _, function = name.rpartition(".")
    return getattr(importlib.import_module(module), function)


def frame(step: Step) -> None:
    """Draw the head of a step: title, sentences, formula."""
    st.subheader(f"{step.number}. {step.title}", anchor=False)
    with st.container(key="text-and-formula"):
        words, formula = st.columns([1, 1], gap="medium", vertical_alignment="center")
    with words:
        st.markdown(step.text)
    with formula:
        st.latex(step.formula)


def guess(step: Step, question: str = "", answer: str = "", /, **values: Any) -> bool:
    """Ask the step's question; the answer, with these numbers in it, comes at a click.

    Args:
        step: whose question it is.
        question, answer: other ones than the step's; "" takes those.
        **values: numbers for the answer.

    Returns:
        Whether the answer is shown, and so whatever picture would give it away.
    """
    key = f"answer-{step.name}"
    shown = st.session_state.get(key, False)
    with st.container(border=True, key=f"guess-{step.name}"):
        with st.container(horizontal=True, vertical_alignment="center", key="guess-row"):
            st.markdown(f"**Guess first.** {question or step.question}", width="stretch")
            name = "Hide the answer" if shown else "Show the answer"
            st.button(name, key=f"{key}-button", on_click=_turn, args=(key,))
        if shown:
            st.markdown(fill(answer or step.answer, **values))
    return shown


def awaited(sentence: str, height: int) -> None:
    """Keep the place of a picture that would give the answer away, with a sentence in it.

    Args:
        sentence: says what will stand here.
        height: of the picture, in px.
    """
    with st.container(border=True, height=height, horizontal_alignment="center", vertical_alignment="center"):
        st.caption(sentence, width="content")


def once_shown(shown: bool, step: Step, height: int, draw: Callable[[], None]) -> None:
    """Draw a picture that gives the answer away once that is `shown`; before, keep its place."""
    if shown:
        draw()
    else:
        awaited(step.say("awaited"), height)


def folded(title: str, key: str, draw: Callable[[], None], *, small: bool = False) -> None:
    """Offer what isn't told aloud in a closed expander; it is worked out and drawn once the visitor opens it.

    Args:
        title: says what is inside.
        key: unique on the page.
        draw: draws the inside.
        small: a line of grey text instead of a box.
    """
    box = st.expander(title, key=key, on_change="rerun", type="compact" if small else "default")
    if box.open:
        with box:
            draw()


def code(step: Step) -> None:
    """Offer the source of the functions that made the step's pictures."""
    folded("The code that made these pictures", f"code-{step.name}", partial(_sources, step), small=True)


def _sources(step: Step) -> None:
    for function in step.functions():
        st.caption(plain(f"{function.__module__}.{function.__qualname__}"))
        st.code(inspect.getsource(function), language="python")


def _turn(key: str) -> None:
    st.session_state[key] = not st.session_state.get(key, False)
