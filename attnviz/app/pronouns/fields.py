"""What a visitor can choose on Pronouns, beside what all pages share."""

from attnviz.app.shell.fields import OF_TEXT, Field, Fields, choice, numbers, whole

FIELDS: Fields = {
    "topic": choice("look", "pair", "scores", "matters"),
    "pronoun": whole(None, of=(OF_TEXT,)),
    "candidates": numbers(of=(OF_TEXT,)),
    "answer": whole(None, of=(OF_TEXT,)),
    "click": choice("candidate", "answer", "pronoun"),
    "lead": choice("on", "off"),
    "pair": Field("", of=(OF_TEXT,)),
    "sentences": choice("en", "de", "sv", "own"),
    "kind": Field(""),
    "word": Field("", of=(OF_TEXT,)),
    "rival": Field("", of=(OF_TEXT,)),
    "instead": choice("zero", "mean"),
}
