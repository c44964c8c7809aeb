"""What a visitor can choose on Cost, beside what all pages share."""

from attnviz.app.shell.fields import OF_TEXT, Fields, choice, tick, whole
from attnviz.core.cost.published import published_models

FIELDS: Fields = {
    "cost_part": choice("grows", "matrix", "flash", "measured"),
    "cost_model": choice("", *(model.name for model in published_models())),
    "cost_s": whole(4096, 16, 2**19),
    "cost_d": whole(4096, 8, 65_536),
    "cost_heads": whole(32, 1, 1024),
    "cost_group": whole(1, 1, 1024),
    "cost_layers": whole(32, 1, 512),
    "cost_mlp": tick(True),
    "cost_skip": tick(False),
    "cost_axes": choice("log", "linear"),
    "cost_bytes": choice("2", "4"),
    "cost_block": whole(None, 1, 4096),
    "cost_at": whole(None, of=(OF_TEXT,)),
}
