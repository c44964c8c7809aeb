"""A talk as one page: what its texts can't break, and that it holds everything itself."""

import json
import re

import pytest

from attnviz.figures import next_token_bars, talk_html

SCENE = {
    "title": "</script><b>x</b>",
    "caption": "__TITLE__ & $x$",
    "question": "",
    "notes": "",
    "minutes": 1,
    "text": "it",
    "alt": "bars",
    "pictures": [next_token_bars([("a", 0.5)]).to_json()],
}


def test_texts_stay_texts():
    page = talk_html("<i>Talk</i> __DECK__", [SCENE])
    deck = re.search(r'<script type="application/json" id="deck">(.*?)</script>', page, re.DOTALL)
    assert json.loads(deck[1])["scenes"] == [SCENE]
    assert "<title>&lt;i&gt;Talk&lt;/i&gt; __DECK__</title>" in page
    assert page.count("</script>") == 3


def test_nothing_is_loaded_from_elsewhere():
    page = talk_html("A", [SCENE])
    own = page.replace(re.search(r"<script>(.*?)</script>", page, re.DOTALL)[1], "")  # plotly.js itself holds addresses
    assert not re.search(r"https?://|\bsrc=|\bhref=|@import", own)


def test_what_makes_no_talk_is_refused():
    with pytest.raises(ValueError, match="at least one scene"):
        talk_html("A", [])
    with pytest.raises(ValueError, match="theme"):
        talk_html("A", [SCENE], theme="blue")
