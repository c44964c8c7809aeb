import json

import pytest

from attnviz.core.pronouns.items import Item, item_line, read_items

GOOD = {
    "id": "one", "lang": "en", "text": "Anna told Tom that she was late.", "pronoun": [19, 22], "answer": [0, 4],
    "distractors": [[10, 13]], "kind": "names", "group": "told", "source": "here", "licence": "MIT", "causal_ok": True,
    "meta": {"x": 1},
}  # fmt: skip


def written(tmp_path, *lines):
    file = tmp_path / "items.jsonl"
    file.write_bytes(b"\n".join(x if isinstance(x, bytes) else json.dumps(x).encode() for x in lines))
    return file


def test_an_item_is_read_and_written_the_same(tmp_path):
    (item,), problems = read_items(written(tmp_path, GOOD))
    assert problems == ()
    assert item == Item(
        "one", "en", GOOD["text"], (19, 22), (0, 4), ((10, 13),), "names", "told", True, "here", "MIT", {"x": 1}
    )
    assert item.candidates == ((0, 4), (10, 13))
    assert json.loads(item_line(item)) == GOOD


def changed(**changes):
    return {key: value for key, value in (GOOD | changes).items() if value is not ...}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{not json", "isn't JSON"),
        (b"[" * 100_000, "isn't JSON"),
        (b'{"text": "\xff"}', "isn't UTF-8"),
        (["a", "list"], "expected a JSON object"),
        (changed(text=...), "no text"),
        (changed(text="  "), "no text"),
        (changed(text="it is 5 o'clock \ud83d", pronoun=[0, 2]), "half a character"),
        (changed(pronoun=...), "no pronoun"),
        (changed(pronoun=[19]), "its pronoun isn't"),
        (changed(pronoun=[19.0, 22.0]), "its pronoun isn't"),
        (changed(pronoun=[True, 22]), "its pronoun isn't"),
        (changed(pronoun="she"), "its pronoun isn't"),
        (changed(answer=[0, 99]), "outside of its text of 32 characters"),
        (changed(answer=[-4, 4]), "outside of its text"),
        (changed(answer=[4, 4]), "outside of its text"),
        (changed(answer=[4, 5]), "nothing but white space"),
        (changed(distractors=...), "no distractors"),
        (changed(distractors=[]), "no distractors"),
        (changed(distractors=[10, 13]), "a distractor isn't"),
        (changed(distractors=[[0, 3]]), "a distractor and the answer share"),
        (changed(distractors=[[10, 13], [12, 14]]), "a distractor and a distractor share"),
        (changed(answer=[19, 22]), "share characters"),
        (changed(causal_ok="yes"), "neither true nor false"),
        (changed(distractors=[[23, 26]]), "a candidate stands after the pronoun"),
    ],
)
def test_a_bad_line_is_named_and_skipped(tmp_path, line, reason):
    items, problems = read_items(written(tmp_path, GOOD, line, b"", GOOD))
    assert [item.id for item in items] == ["one", "one"]
    assert [problem.line for problem in problems] == [2]
    assert reason in problems[0].reason and str(problems[0]).startswith("line 2: ")


def test_what_a_line_may_leave_out(tmp_path):
    bare = {key: GOOD[key] for key in ("text", "pronoun", "answer", "distractors")}
    later = bare | {"distractors": [[23, 26]]}
    items, problems = read_items(written(tmp_path, b"\xef\xbb\xbf" + json.dumps(bare).encode() + b"\r", later))
    assert problems == ()
    assert [(item.id, item.group, item.kind, item.lang) for item in items] == [
        ("line 1", "line 1", "", ""),
        ("line 2", "line 2", "", ""),
    ]
    assert [item.causal_ok for item in items] == [True, False]


@pytest.mark.parametrize(
    ("meta", "group"),
    [
        ({"occupation": "baker", "gender": "x"}, "baker"),
        ({"play": "Egmont"}, "Egmont"),
        ({"template": "t3"}, "t3"),
        ({"snippet": "101A"}, "101"),
        ({"snippet": "102"}, "102"),
        ({"gender": "x"}, "one"),
        ("no object", "one"),
    ],
)
def test_the_group_is_found_in_meta(tmp_path, meta, group):
    (item,), _ = read_items(written(tmp_path, changed(group=..., meta=meta)))
    assert item.group == group


def test_no_file_is_a_sentence(tmp_path):
    with pytest.raises(ValueError, match="there is no file"):
        read_items(tmp_path / "nope.jsonl")
    with pytest.raises(ValueError, match="can't be read: is a directory"):
        read_items(tmp_path)
