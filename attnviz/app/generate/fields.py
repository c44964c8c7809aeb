"""What a visitor can choose on Generate, beside what all pages share."""

from attnviz.app.shell.fields import OF_TEXT, Fields, choice, whole

FIELDS: Fields = {
    "written": whole(0, 0, 64, of=(OF_TEXT,)),
    "writing_topic": choice("steps", "both", "memory", "models"),
    "warmth": choice("0", "0.3", "0.7", "1", "1.5", "2"),
    "top_k": whole(0, 0, 1000),
    "top_p": choice("1", "0.5", "0.8", "0.9", "0.95"),
    "bits": choice("16 bits", "8 bits", "4 bits"),
}
