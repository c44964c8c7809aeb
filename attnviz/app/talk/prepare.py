"""A deck with all its scenes worked out, as the page that is shown and as the file that is saved."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache as once
from pathlib import Path

import streamlit as st

from attnviz.app.shell import cache, palette
from attnviz.app.show.deck import Deck
from attnviz.app.talk.scenes import show_scene
from attnviz.figures import talk_html


@dataclass(frozen=True)
class Prepared:
    """A talk as one HTML page, and a sentence for each scene that shows less than its text."""

    page: str
    notices: tuple[str, ...]


def prepared(deck: Deck, theme: str) -> Prepared | None:
    """Return the whole talk if it has been worked out already, else None."""
    return cache.results().peek(("talk", deck, theme, palette.chosen()))


def prepare(deck: Deck, theme: str, progress: Callable[[int, int], None]) -> Prepared:
    """Work out every scene and return the whole talk.

    Raises:
        ValueError: a scene can't be worked out; the text of the error names it.
    """

    def make() -> Prepared:
        shown = []
        for number, scene in enumerate(deck.scenes):
            progress(number, len(deck.scenes))
            try:
                shown.append(show_scene(scene, theme))
            except ValueError as error:
                raise ValueError(f"scene {number + 1}: {error}") from error
        notices = [f"Scene {number}: {scene.left_out}." for number, scene in enumerate(shown, 1) if scene.left_out]
        page = talk_html(deck.title, [asdict(scene) for scene in shown], theme=theme, font=source_sans())
        return Prepared(page, tuple(notices))

    return cache.results().get(("talk", deck, theme, palette.chosen()), make)


@once
def source_sans() -> bytes:
    """Return the app's own type as streamlit brings it along, or nothing if this version keeps it elsewhere."""
    folder = Path(st.__file__).parent / "static" / "static" / "media"
    return next((file.read_bytes() for file in folder.glob("SourceSansVF-Upright*.woff2")), b"")
