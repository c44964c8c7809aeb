"""What Pronouns shows, as a scene of a talk."""

from dataclasses import replace

import streamlit as st

from attnviz.app.pronouns.question import Question
from attnviz.app.shell.visit import Visit
from attnviz.app.show.deck import Scene
from attnviz.app.show.places import name_token
from attnviz.app.show.scenes import braced, map_scene, scene_of


def scene(visit: Visit) -> Scene:
    """Return the row of the word that looks, or the map where no question is asked."""
    question: Question | None = st.session_state.get("question")
    return map_scene(visit) if question is None else _question_scene(visit, question)


def _question_scene(visit: Visit, question: Question) -> Scene:
    """Return the row of the word that looks, under the same lead."""
    query, query_at = name_token(question.trace, question.query, by_itself=-1)
    key, key_at, of_answer = "", None, "Where it looks."
    if question.answer is not None:
        key, key_at = name_token(question.trace, question.groups[question.answer][-1], by_itself=0)
        named = question.word(question.candidates[question.answer][-1])
        of_answer = f"{{weight:.2f}} of its weight goes to “{braced(named)}”."
    return replace(
        scene_of(visit),
        title=f"What does “{question.spoken}” look at?",
        caption=f"{visit.name}: {of_answer}",
        picture="row",
        text=question.lead + question.text,
        query=query,
        query_at=query_at,
        key=key,
        key_at=key_at,
    )
