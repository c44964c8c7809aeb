"""A deck with all its scenes worked out, as the page that is shown and as the file that is saved."""

from collections.abc import Callable
from dataclasses import asdict

from attnviz.core.deck import Deck
from attnviz.figures import talk_html
from attnviz.ui import cache
from attnviz.ui.talk.scenes import show_scene


def prepared(deck: Deck, theme: str) -> str | None:
    """Return the whole talk as one HTML page if it has been worked out already, else None."""
    return cache.results().peek(("talk", deck, theme))


def prepare(deck: Deck, theme: str, progress: Callable[[int, int], None]) -> str:
    """Work out every scene and return the talk as one HTML page.

    Raises:
        ValueError: a scene can't be worked out; the text of the error names it.
    """

    def make() -> str:
        shown = []
        for number, scene in enumerate(deck.scenes):
            progress(number, len(deck.scenes))
            try:
                shown.append(asdict(show_scene(scene, theme)))
            except ValueError as error:
                raise ValueError(f"scene {number + 1}: {error}") from error
        return talk_html(deck.title, shown, theme=theme)

    return cache.results().get(("talk", deck, theme), make)
