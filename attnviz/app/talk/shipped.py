"""The decks that come with attnviz."""

from importlib import resources

from attnviz.app.show.deck import Deck, read_deck

DECKS = resources.files("attnviz.app.talk") / "decks"


def shipped_decks() -> dict[str, Deck]:
    """Return the decks, by their file's name."""
    files = sorted(DECKS.iterdir(), key=lambda file: file.name)
    return {file.name.removesuffix(".toml"): read_deck(file.read_text(encoding="utf-8")) for file in files}
