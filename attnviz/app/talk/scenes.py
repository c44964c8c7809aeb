"""A scene worked out: its pictures as plotly figures, and its caption with the numbers of this very picture."""

from dataclasses import dataclass
from typing import Any

import segno

from attnviz.app.show.deck import Scene, fill_caption
from attnviz.app.talk.caption_numbers import numbers
from attnviz.app.talk.cost_pictures import COST_PICTURES
from attnviz.app.talk.head_pictures import HEAD_PICTURES
from attnviz.app.talk.stage import HEIGHT, LABEL, WIDTH, Slide, Stage, open_stage
from attnviz.figures import code_on_slide, on_slide
from attnviz.figures.palettes import DEFAULT, in_palette

QUIET = 4  # white squares around a QR code, as its standard asks
OF_ALL_HEADS = ("next", "words", "saturation")  # pictures that show no head's weights


@dataclass(frozen=True)
class Shown:
    """A scene ready to be shown: its words and its pictures as plotly's JSON.

    Attributes:
        about: what the picture is of, such as "L13 H8 of a model".
        sentence: the text in pieces (text, role), see `attnviz.figures.talk_html`.
        left_out: what of the text the picture doesn't show, "" if nothing.
        title, caption, question, notes, minutes: as in the deck, the caption with its numbers.
        alt: of all pictures.
        pictures: plotly figures as JSON.
    """

    title: str
    about: str
    sentence: tuple[tuple[str, str], ...]
    left_out: str
    caption: str
    question: str
    notes: str
    minutes: float
    alt: str
    pictures: tuple[str, ...]


def show_scene(scene: Scene, theme: str, colours: str = DEFAULT) -> Shown:
    """Work a scene out.

    Args:
        scene: as it stands in a deck.
        theme: "light" or "dark".
        colours: the scale of weights, a name of `attnviz.figures.palettes`.

    Raises:
        ValueError: its text, its head or its words don't fit; the text of the error names what.
    """
    about, sentence, slide, named = _worked_out(scene, theme)
    try:
        caption = fill_caption(scene.caption, named)
    except ValueError as error:
        raise ValueError(f"the caption of “{scene.title}”: {error}") from error
    if slide.left_out:
        sentence = [(f"[{slide.left_out}] ", "aside"), *sentence]
    return Shown(
        title=scene.title,
        about=about,
        sentence=tuple(sentence),
        left_out=slide.left_out,
        caption=caption,
        question=scene.question,
        notes=scene.notes,
        minutes=scene.minutes,
        alt=" ".join(figure.layout.meta["alt"] for figure in slide.figures),
        pictures=tuple(in_palette(figure, colours).to_json() for figure in slide.figures),
    )


def _worked_out(scene: Scene, theme: str) -> tuple[str, list[tuple[str, str]], Slide, dict[str, Any]]:
    """Return what a scene is about, its text in pieces, its pictures, and the numbers for its caption."""
    if scene.picture == "link":
        return "", [(scene.link, "")], _link(scene, theme), {}
    if scene.picture in COST_PICTURES:
        return "", [], *COST_PICTURES[scene.picture](scene, theme)
    stage = open_stage(scene, theme)
    slide = HEAD_PICTURES[scene.picture](stage)
    said = stage.sentence() + ([(" …", "aside")] if scene.picture in ("next", "words") else [])
    return _about(stage), said, Slide(slide.figures, _left_out(stage, slide)), numbers(stage)


def _about(stage: Stage) -> str:
    scene = stage.scene
    if scene.picture in OF_ALL_HEADS:
        return stage.model
    other = f" and L{scene.other[0]} H{scene.other[1]}" if scene.picture == "rows" and scene.other else ""
    return f"{stage.name}{other} of {stage.model}"


def _left_out(stage: Stage, slide: Slide) -> str:
    """Return what the picture doesn't show of the text: what the model didn't read, and what had no room."""
    n, n_cut = len(stage.rest.tokens), stage.rest.n_cut
    cut = f"read: the first {n:,} of {n + n_cut:,} tokens" if n_cut else ""
    shown = f"shown: {slide.left_out}" if slide.left_out else ""
    return "; ".join(filter(None, (cut, shown)))


def _link(scene: Scene, theme: str) -> Slide:
    code = segno.make(scene.link, micro=False, error="m")
    modules = [list(row) for row in code.matrix_iter(border=QUIET)]
    figure = code_on_slide(modules, scene.link, theme=theme, label_size=LABEL, height=HEIGHT)
    return Slide((on_slide(figure, WIDTH, HEIGHT),))
