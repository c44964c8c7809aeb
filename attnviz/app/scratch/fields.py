"""What a visitor can choose on From scratch, beside what all pages share."""

from attnviz.app.shell.fields import Field, Fields, choice, whole

HEATS = ("0.01", "0.03", "0.1", "0.2", "0.5", "1", "2", "5", "10", "30", "100")  # softmax temperatures of the lesson

FIELDS: Fields = {
    "step": choice(
        "roles", "scores", "position", "scaling", "mask", "softmax", "weighted_sum", "several_heads", "matches"
    ),
    "source": choice("real", "random"),
    "rows": whole(6, 2, 32),
    "width": whole(64, 1, 1024),
    "heads": whole(4, 1, 64),
    "other": whole(None),
    "curves": choice("width", "tokens"),
    "swap": Field("well"),
    "heat": choice("1", *HEATS),
    "digits": choice("float32", "float16", "float64"),
    "overflow": choice("largest", "row"),
}
