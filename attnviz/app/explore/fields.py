"""What a visitor can choose on Explore, beside what all pages share."""

from attnviz.app.shell.fields import OF_SWITCHES, OF_TEXT, Field, Fields, choice, numbers, tick, tuples, whole

ALL = -1  # of the tokens of a long text: the whole map, pooled

FIELDS: Fields = {
    "colours": choice("linear", "sqrt", "without_first"),
    "measure": choice("none", "entropy", "distance", "first_token", "previous_token", "largest"),
    "order": choice("layers", "measure"),
    "view": choice("after", "before", "difference", of=(OF_SWITCHES,)),
    "strip": choice("shade", "lines"),
    "histogram": choice("hide", "head", "layer", "all"),
    "zoom": whole(ALL, of=(OF_TEXT,)),
    "shows": choice("tokens", "words", "written", "rollout"),
    "special": tick(True),
    "tool": choice("none", "compare", "find", "lines", "writes"),
    "find_by": choice("pattern", "like", "drawn", "feeds"),
    "pattern": Field("induction"),
    "found_in": choice("known", "here"),
    "drawn": tuples(2, of=(OF_TEXT,)),
    "lines_heads": numbers(),
    "versus": choice("head", "text", "model", "switches"),
    "b_text": Field(""),
    "b_model": Field(""),
    "b_layer": whole(None),
    "b_head": whole(None),
}
