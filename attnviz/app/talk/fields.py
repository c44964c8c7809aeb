"""What a visitor can choose on Talk."""

from attnviz.app.shell.fields import Field, Fields

FIELDS: Fields = {
    "deck": Field("ten_minutes"),
}
