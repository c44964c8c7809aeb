"""What a scene of a model is drawn from: its text under the model at rest and under the scene's switches."""

from dataclasses import dataclass
from typing import Any

from attnviz.app.shell import cache
from attnviz.app.shell.cache import ModelChoice
from attnviz.app.show.deck import Scene
from attnviz.app.show.places import pieces, place
from attnviz.core.trace.head import Head
from attnviz.core.trace.switches import Switches
from attnviz.core.trace.trace import Trace

WIDTH, HEIGHT = 1216, 530  # px of the pictures on a stage of 1280 x 720
LABEL, LARGE = 18, 21  # px: readable from the last row; where there is room
GAP = 16  # px between two pictures
MOST_MAPPED = 24  # tokens a side of a map, so that every label fits


@dataclass(frozen=True)
class Slide:
    """The pictures of a scene, side by side, as plotly figures, and what the pictures leave out, "" if nothing."""

    figures: tuple[Any, ...]
    left_out: str = ""


@dataclass(frozen=True, eq=False)
class Stage:
    """What a scene is drawn from.

    Attributes:
        scene: as it stands in the deck.
        choice: its model.
        rest: the trace of its text at rest; `after`: under the scene's switches, if they act on the whole pass.
        picture: the switches if they act on the picture alone.
        theme: "light" or "dark".
    """

    scene: Scene
    choice: ModelChoice
    rest: Trace
    after: Trace
    picture: Switches | None
    theme: str

    @property
    def asked(self) -> int | None:
        """The token that the scene names as the one that looks."""
        return place(self.rest, self.scene.query, self.scene.query_at, by_itself=-1)

    @property
    def key(self) -> int | None:
        """The token that the scene names as the one looked at."""
        return place(self.rest, self.scene.key, self.scene.key_at, by_itself=0)

    @property
    def query(self) -> int:
        """The token that looks: the scene's, else the last."""
        return len(self.rest.tokens) - 1 if self.asked is None else self.asked

    @property
    def cell(self) -> tuple[int, int] | None:
        """The cell that the scene points at."""
        return None if self.asked is None or self.key is None else (self.asked, self.key)

    @property
    def name(self) -> str:
        """Of the scene's head."""
        return f"L{self.scene.layer} H{self.scene.head}"

    @property
    def head_before(self) -> Head:
        """The scene's head at rest."""
        return self.rest.head(self.scene.layer, self.scene.head)

    @property
    def head_after(self) -> Head:
        """The scene's head under its switches."""
        return self.after.head(self.scene.layer, self.scene.head, switches=self.picture)

    @property
    def model(self) -> str:
        """What to call the model, with precision and engine where they aren't the usual ones."""
        extras = [f", {self.scene.precision}"] * (self.scene.precision != "float32")
        extras += [", computed by NumPy"] * (self.scene.engine == "numpy")
        return self.rest.model.title + "".join(extras)

    def window(self, stop: int, most: int) -> slice:
        """Return which tokens before `stop` are shown: the last ones, or those that show the scene's cell."""
        size = min(self.scene.last or stop, most, stop)
        start = stop - size
        named = [token for token in (self.asked, self.key) if token is not None and token < stop]
        if named and not self.scene.last and max(named) - min(named) < size:
            start = min(start, min(named))
        return slice(start, start + size)

    def sentence(self) -> list[tuple[str, str]]:
        """Return the text in pieces, the words of the scene's cell marked."""
        return pieces(self.rest, self.asked, self.key, self.scene.query, self.scene.key)


def open_stage(scene: Scene, theme: str) -> Stage:
    """Run what a scene needs.

    Raises:
        ValueError: its text or its head don't fit; the text of the error names what.
    """
    choice = ModelChoice(scene.model, scene.precision, scene.engine)
    rest = cache.get_trace(choice, scene.text, Switches())
    if len(rest.parts) > 1:
        raise ValueError(f"“{scene.title}”: {rest.model.title} has several parts, and a scene shows models of one")
    heads = [(scene.layer, scene.head), *([scene.other] if scene.other else [])]
    for layer, head in heads:
        if layer not in rest.layers or head >= rest.heads(layer, part=rest.parts[0]):
            raise ValueError(f"“{scene.title}”: {rest.model.title} has no L{layer} H{head}")
    whole = scene.whole_pass or bool(scene.switches.ablate)
    after = cache.get_trace(choice, scene.text, scene.switches) if whole and not scene.switches.at_rest else rest
    return Stage(scene, choice, rest, after, None if whole else scene.switches, theme)
