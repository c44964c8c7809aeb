"""A deck with all its scenes worked out, as the page that is shown and as the file that is saved."""

from dataclasses import asdict, dataclass
from functools import cache as once
from pathlib import Path

import streamlit as st

from attnviz.app.show.deck import Deck
from attnviz.app.show.job import Say
from attnviz.app.talk.scenes import show_scene
from attnviz.figures import talk_html


@dataclass(frozen=True)
class Prepared:
    """A talk as one HTML page, and a sentence for each scene that shows less than its text."""

    page: str
    notices: tuple[str, ...]


def prepare(deck: Deck, theme: str, colours: str, say: Say) -> Prepared:
    """Work out every scene and return the whole talk.

    Args:
        deck: its scenes.
        theme, colours: as in `show_scene`.
        say: told how far the work is.

    Raises:
        ValueError: a scene can't be worked out; the text of the error names it.
    """
    shown = []
    for number, scene in enumerate(deck.scenes):
        say(number, len(deck.scenes), f"Working out scene {number + 1} of {len(deck.scenes)}")
        try:
            shown.append(show_scene(scene, theme, colours))
        except ValueError as error:
            raise ValueError(f"scene {number + 1}: {error}") from error
    notices = [f"Scene {number}: {scene.left_out}." for number, scene in enumerate(shown, 1) if scene.left_out]
    page = talk_html(deck.title, [asdict(scene) for scene in shown], theme=theme, font=source_sans())
    return Prepared(page, tuple(notices))


@once
def source_sans() -> bytes:
    """Return the app's own type as streamlit brings it along, or nothing if this version keeps it elsewhere."""
    folder = Path(st.__file__).parent / "static" / "static" / "media"
    return next((file.read_bytes() for file in folder.glob("SourceSansVF-Upright*.woff2")), b"")
