"""A scan against one trace an item, for the two small models and for each way in which architectures differ."""

from pathlib import Path

import numpy as np
import pytest
import torch

import attnviz
from attnviz.core.pronouns.head_scores import score
from attnviz.core.pronouns.item_templates import make_items
from attnviz.core.pronouns.items import Item, read_items
from attnviz.core.pronouns.token_places import candidate_weights, find_places
from attnviz.models.load.control import random_control
from attnviz.models.scan import sentences as scan_module
from attnviz.models.scan.sentences import lead_text, scan

SHARED = Path(__file__).resolve().parents[3] / "shared" / "pronouns"
FORMS = ("en-told", "en-met")  # "{A} told {B} that she ...", "{A} met {B} at the station before she ..."

needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason=f"the sets of pronoun sentences are not at {SHARED}")


def one_by_one(engine, items, lead=""):
    """Return (items, layers, heads) twice, answer and best distractor, from a trace of each item."""
    answers, distractors = [], []
    for item in items:
        trace = engine.trace(lead + item.text)
        part = trace.parts[0]
        places = find_places(trace.tokens, item, offset=len(lead))
        query = slice(places.query, places.query + 1)
        rows = [
            [trace.weights(layer, head, part=part, queries=query)[0] for head in range(trace.heads(layer, part=part))]
            for layer in trace.layers_of(part)
        ]
        weights = candidate_weights(rows, places.candidates)  # (layers, heads, candidates)
        answers.append(weights[..., 0])
        distractors.append(weights[..., 1:].max(axis=-1))
    return np.array(answers), np.array(distractors)


def assert_same(engine, items, *, lead=None, atol=5e-6):
    found = scan(engine, items, lead=lead, cache=False)
    assert found.looks.items == tuple(items) and found.skipped == ()
    answer, distractor = one_by_one(engine, items, found.lead)
    np.testing.assert_allclose(found.looks.answer, answer, atol=atol)
    np.testing.assert_allclose(found.looks.distractor, distractor, atol=atol)
    assert found.looks.layers == engine.trace(items[0].text).layers
    assert answer.std() > 1e-3
    return found


def shipped(n):
    """Return n items of all languages and lengths, among them a text with two pronouns and three candidates."""
    every = [item for lang in ("en", "de", "sv") for item in make_items(lang)]
    text = "Anna asked Tom and Paul whether she or he could help Victoria."
    three = Item("t1", "en", text, (32, 35), (0, 4), ((11, 14), (19, 23)), "", "t", True)
    also = Item("t2", "en", text, (39, 41), (11, 14), ((0, 4), (53, 61)), "", "t", False)
    return [*every[:: len(every) // (n - 2)][: n - 2], three, also]


def word_item(text, pronoun, answer, *distractors):
    """Return an item of a text in words, with the places given as word numbers."""
    starts = [0]
    for word in text.split(" "):
        starts.append(starts[-1] + len(word) + 1)

    def span(word):
        return starts[word], starts[word + 1] - 1

    return Item(text, "", text, span(pronoun), span(answer), tuple(map(span, distractors)), "", text, True)


WORD_ITEMS = [
    word_item("w1 w2 w3 w4 w5 w6", 5, 1, 3),
    word_item("w1 w2 w3 w4 w5 w6", 3, 2, 0),
    word_item("w9 w8 w3 w1 w5 w2", 4, 0, 1, 2),
    word_item("w1 w2 w3", 2, 0, 1),
    word_item("w7 w2 w3 w4 w5 w6 w8 w9", 7, 5, 6, 4),
    word_item("w7 w2 w3 w4 w5 w6 w8 w9", 2, 0, 7),
]


@pytest.mark.parametrize("name", ["smollm2", "minilm"])
@pytest.mark.parametrize("lead", ["\n", None, "Well, "])
def test_a_scan_equals_one_trace_an_item(name, lead, request):
    assert_same(request.getfixturevalue(name), shipped(8 if lead == "\n" else 4), lead=lead)


@pytest.mark.parametrize(
    "name",
    ["llama", "mistral_sw4", "gemma2", "gemma2_nocap", "gptoss", "gpt2", "gpt2_inv", "opt", "qwen3next", "bert"]
    + ["albert", "distilbert", "modernbert", "gptneo", "bloom", "t5"],
)
def test_a_scan_equals_one_trace_an_item_in_every_architecture(name, tiny_folder):
    assert_same(attnviz.load(str(tiny_folder(name))), WORD_ITEMS)


def test_a_scan_equals_one_trace_an_item_in_numpy(tiny_folder):
    folder = str(tiny_folder("llama"))
    found = assert_same(attnviz.load(folder, engine="numpy"), WORD_ITEMS)
    by_torch = scan(attnviz.load(folder), WORD_ITEMS, lead=None, cache=False)
    np.testing.assert_allclose(found.looks.answer, by_torch.looks.answer, atol=1e-5)


@pytest.mark.parametrize("batch_tokens", [1, 13, 10**6])
def test_how_items_are_batched_changes_nothing(batch_tokens, tiny_folder, monkeypatch):
    engine = attnviz.load(str(tiny_folder("llama")))
    expected = scan(engine, WORD_ITEMS * 3, cache=False).looks
    monkeypatch.setattr(scan_module, "BATCH_TOKENS", batch_tokens)
    found = scan(engine, WORD_ITEMS * 3, cache=False).looks
    np.testing.assert_allclose(found.answer, expected.answer, atol=1e-6)
    np.testing.assert_allclose(found.distractor, expected.distractor, atol=1e-6)


def test_texts_of_equal_length_share_passes_and_equal_items_are_run_once(tiny_folder, monkeypatch):
    engine = attnviz.load(str(tiny_folder("llama")))
    passes, progress = [], []
    run_batch = type(engine).run_batch
    monkeypatch.setattr(
        type(engine), "run_batch", lambda self, ids, r: (passes.append(np.shape(ids)), run_batch(self, ids, r))
    )
    scan(engine, WORD_ITEMS * 5, cache=False, progress=lambda *at: progress.append(at), lead=None)
    assert sorted(passes) == [(1, 3), (1, 8), (2, 6)]
    assert progress[0] == (0, 6) and progress[-1] == (6, 6)


# Lead


def test_only_a_model_without_a_first_token_of_its_own_gets_a_lead(smollm2, minilm, tiny_folder):
    assert lead_text(smollm2) == "\n" and lead_text(minilm) == ""
    assert lead_text(attnviz.load("untrained")) == "\n"
    assert lead_text(minilm, "x ") == "x " and lead_text(smollm2, None) == ""
    with pytest.raises(ValueError, match="lead must be a text"):
        lead_text(smollm2, 3)


def test_the_lead_takes_weight_off_the_word_that_opens_the_text(smollm2):
    items = [item for item in make_items("en") if item.group == "en-met-night" and item.answer[0] == 0][:4]
    bare, behind = (scan(smollm2, items, lead=lead, cache=False) for lead in (None, "auto"))
    assert (bare.lead, behind.lead) == ("", "\n")
    assert bare.looks.answer.mean() > 3 * behind.looks.answer.mean()


def test_a_lead_that_runs_into_a_candidate_is_refused(smollm2):
    item = Item("i", "en", "men told Anna that they were late.", (19, 23), (0, 3), ((9, 13),), "", "g", True)
    with pytest.raises(ValueError, match="runs together with a candidate"):
        scan(smollm2, [item], lead="wo", cache=False)
    assert scan(smollm2, [item], lead="two ", cache=False).skipped == ()


# What can't be measured


def test_items_beyond_the_limit_are_skipped_and_named(tiny_folder):
    engine = attnviz.load(str(tiny_folder("gpt2")))  # takes 16 tokens
    long = word_item(" ".join(f"w{i}" for i in range(20)), 19, 3, 4)
    found = scan(engine, [WORD_ITEMS[0], long, WORD_ITEMS[3]], lead=None, cache=False)
    assert found.looks.items == (WORD_ITEMS[0], WORD_ITEMS[3])
    ((name, reason),) = found.skipped
    assert name == long.id and "'w19' has no token" in reason and "only the first 16 tokens" in reason
    with pytest.raises(ValueError, match="none of the 1 items can be measured"):
        scan(engine, [long], cache=False)
    with pytest.raises(ValueError, match="no item to scan"):
        scan(engine, [], cache=False)


# Stopping, and the cache


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_CACHE", str(tmp_path))
    return tmp_path / "scans"


def test_a_scan_can_be_stopped_and_leaves_nothing(cache):
    def stop(done, total):
        if done:
            raise KeyboardInterrupt

    engine = attnviz.load("untrained")
    with pytest.raises(KeyboardInterrupt):
        scan(engine, shipped(6), progress=stop)
    assert not cache.exists()
    assert not scan(engine, shipped(6)).from_cache and not engine.busy


def test_a_scan_is_kept_by_model_lead_and_items(cache):
    engine, items = attnviz.load("untrained"), shipped(6)
    items += [items[0], Item("late", "en", "x" * 5000, (4997, 4998), (0, 1), ((2, 3),), "", "g", True)]
    first = scan(engine, items)
    again = scan(engine, items, progress=lambda done, total: pytest.fail("it ran"))
    assert not first.from_cache and again.from_cache
    assert again.looks.items == first.looks.items and again.looks.layers == first.looks.layers
    np.testing.assert_array_equal(again.looks.answer, first.looks.answer)
    np.testing.assert_array_equal(again.looks.distractor, first.looks.distractor)
    assert again.skipped == first.skipped and [name for name, _ in first.skipped] == ["late"]
    assert not scan(engine, items, lead=None).from_cache
    assert not scan(engine, items[:-1]).from_cache
    assert not scan(random_control(engine), items).from_cache
    assert len(list(cache.iterdir())) == 4


def test_a_damaged_file_in_the_cache_is_measured_again(cache):
    engine, items = attnviz.load("untrained"), shipped(6)
    first = scan(engine, items)
    (file,) = cache.iterdir()
    for content in (b"", b"PK\x03\x04 cut short", file.read_bytes()[:-700]):
        file.write_bytes(content)
        again = scan(engine, items)
        assert not again.from_cache
        np.testing.assert_array_equal(again.looks.answer, first.looks.answer)
    assert scan(engine, items).from_cache


def test_a_cache_that_cannot_be_written_loses_nothing(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("ATTNVIZ_CACHE", str(tmp_path / "file"))
    assert len(scan(attnviz.load("untrained"), shipped(6)).looks.items) == 6


# Random weights


def test_the_control_has_the_same_shape_other_weights_and_comes_out_again(minilm):
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    control = random_control(minilm)
    assert torch.rand(1) == expected  # nobody else's random numbers are disturbed
    own, random = minilm.model.state_dict(), control.model.state_dict()
    assert {name: weight.shape for name, weight in own.items()} == {n: w.shape for n, w in random.items()}
    name = "encoder.layer.2.attention.self.query.weight"
    assert not torch.equal(own[name], random[name])
    again = random_control(minilm).model.state_dict()
    assert all(torch.equal(random[name], again[name]) for name in random)
    assert control.info.revision != minilm.info.revision and control.wiring.listens
    assert_same(control, shipped(4))


def test_a_control_needs_torch(tiny_folder):
    with pytest.raises(ValueError, match='engine="torch"'):
        random_control(attnviz.load(str(tiny_folder("llama")), engine="numpy"))


# Figures


def shared(name, n=None):
    items, problems = read_items(SHARED / f"{name}.jsonl")
    assert problems == ()
    return [item for item in items if item.causal_ok][:n]


@needs_shared
@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "n", "head", "accuracy"), [("winogender", 720, (3, 1), 0.578), ("swewinograd", 365, (0, 5), 0.496)]
)
def test_figures_of_minilm_on_known_sets(minilm, name, n, head, accuracy):
    scores = score(scan(minilm, shared(name), lead=None, cache=False).looks, draws=10)
    assert scores.n == n and scores.best() == head
    assert round(scores.accuracy[head], 3) == accuracy == round(scores.accuracy.max(), 3)


@needs_shared
@pytest.mark.slow
def test_smollm2_on_a_known_set_equals_one_trace_an_item(smollm2):
    assert_same(smollm2, shared("winogender", 12))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "head", "at_least"), [("minilm", (2, 4), 0.82), ("smollm2", (9, 4), 0.88)])
def test_heads_that_find_the_person_in_the_shipped_sentences(name, head, at_least, request):
    items = [item for item in make_items("en") if item.group.startswith(FORMS)]
    pairs = {tuple(item.meta["words"]) for item in items}
    assert len(pairs) >= 60 and all((b, a) in pairs for a, b in pairs)  # 30 pairs in both orders
    scores = score(scan(request.getfixturevalue(name), items[::3], cache=False).looks, draws=10)
    assert scores.accuracy[head] >= at_least
