"""What heads add and what changes without them: against whole passes, torch, and numbers of SmolLM2 found by hand."""

import copy
import math
from functools import partial

import numpy as np
import pytest
import torch
import transformers

import attnviz
from attnviz import Switches
from attnviz.core.heads.battery import battery_texts
from attnviz.core.pronouns.verdict import verdict
from attnviz.models.scratch import effects
from attnviz.models.scratch.effects import (
    all_effects,
    direct_effects,
    logits_without,
    next_word_token,
    reference_means,
)
from attnviz.models.scratch.residual import NO_HEAD, hidden_states, layers_from, next_logits, run_through
from attnviz.models.tokens import tokenize
from tests.models.saving import GPT2, saved

IOI = "When Mary and John went to the store, John gave a drink to"
KEYS = "The keys to the cabinet"
TINY = ["llama", "gpt2", "biased"]
DECODERS = ["smollm2", *TINY]
TEXTS = {"smollm2": IOI} | dict.fromkeys(TINY, "w5 w2 w3 w5 w1 w9 w2")
PAIRS = {"smollm2": (5099, 2322)} | dict.fromkeys(TINY, (20, 33))


@pytest.fixture(scope="module")
def engines(tiny_folder, shipped, tmp_path_factory):
    """Return a function from a model's name to its (torch engine, NumPy engine), loaded once.

    "biased" is a GPT-2 whose biases aren't 0, as the library makes them.
    """
    loaded = {}

    def get(name):
        if name not in loaded:
            if name == "biased":
                torch.manual_seed(0)
                model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**GPT2))
                source = str(saved(tmp_path_factory.mktemp(name), model))
            elif name != "smollm2":
                source = str(tiny_folder(name))
            get = partial(shipped, name) if name == "smollm2" else partial(attnviz.load, source)
            loaded[name] = get(), get(engine="numpy")
        return loaded[name]

    return get


def given(engines, name, text=None):
    """Return the NumPy engine's model, the ids of a text and a pair of tokens."""
    engine = engines(name)[1]
    return engine.model, ids_of(engine, text or TEXTS[name]), PAIRS[name]


def ids_of(engine, text):
    return [token.id for token in tokenize(engine.tokenizer, text)]


def difference(logits, pair):
    return float(logits[pair[0]] - logits[pair[1]])


def torch_blocks(model):
    """Return (output projections of attention, networks behind it) of a model of transformers."""
    if hasattr(model, "transformer"):
        return [block.attn.c_proj for block in model.transformer.h], [block.mlp for block in model.transformer.h]
    return [block.self_attn.o_proj for block in model.model.layers], [block.mlp for block in model.model.layers]


# The token of a word


@pytest.mark.parametrize(
    ("word", "after", "label", "more"),
    [
        ("Mary", IOI, "·Mary", False),
        (" Mary", IOI, "·Mary", False),
        ("Mary", f"{IOI} ", "Mary", False),  # the text alone ends in a token for the space
        ("Mary", f"{IOI}\n", "Mary", False),
        (" Mary", f"{IOI}\n", "·Mary", False),
        ("Mary", "", "Mary", False),
        ("Rotbart", "Der Fuchs", "·Rot", True),
        ("東京", "in", "·東 1/3", True),
    ],
)
def test_a_word_as_the_text_goes_on(word, after, label, more, engines):
    tokenizer = engines("smollm2")[1].tokenizer
    id_, *rest = next_word_token(tokenizer, word, after=after)
    assert rest == [label, more]
    both = after + (" " if label[0] == "·" and word[0] != " " else "") + word
    if not after.endswith(" "):
        assert [token.id for token in tokenize(tokenizer, both)][len(tokenize(tokenizer, after))] == id_


def test_a_word_of_a_tokenizer_that_knows_no_spaces(engines):
    tokenizer = engines("llama")[1].tokenizer
    assert next_word_token(tokenizer, "w5", after="w1 w2") == (tokenizer("w5")["input_ids"][0], "w5", False)
    assert next_word_token(tokenizer, "w5 w6", after="w1 w2 ")[2]


@pytest.mark.parametrize("word", ["", " ", "\n"])
def test_no_word_is_refused(word, engines):
    with pytest.raises(ValueError, match="expected a word that might come next, got"):
        next_word_token(engines("smollm2")[1].tokenizer, word, after=IOI)


# What parts add by themselves


@pytest.mark.parametrize("name", DECODERS)
def test_the_parts_add_up_to_the_logit_difference(name, engines):
    model, ids, pair = given(engines, name)
    found = direct_effects(model, ids, pair)
    assert found.heads.shape == (len(model.layers), model.n_heads) and found.mlps.shape == found.heads.shape[:1]
    expected = difference(next_logits(model, hidden_states(model, ids)[-1, -1]), pair)
    assert found.total == pytest.approx(expected, abs=1e-4) and abs(found.total) > 0.01
    total = found.heads.sum() + found.mlps.sum() + found.embedding + found.biases
    assert total == pytest.approx(found.total, abs=1e-3)
    assert (found.biases == 0) == (name != "biased")


@pytest.mark.parametrize("name", DECODERS)
def test_each_part_is_what_torchs_part_writes_through_its_own_norm(name, engines):
    """Slices of W_O, networks and embeddings of transformers, multiplied out over the whole vocabulary."""
    model, ids, pair = given(engines, name)
    theirs = engines(name)[0].model
    outs, mlps = torch_blocks(theirs)
    into, wrote, ends = {}, {}, {}
    body = getattr(theirs, "transformer", None) or theirs.model
    gpt2 = hasattr(theirs, "transformer")
    norm = body.ln_f if gpt2 else body.norm
    hooks = [
        out.register_forward_hook(lambda m, x, y, n=n: into.update({n: x[0][0, -1]})) for n, out in enumerate(outs)
    ]
    hooks += [mlp.register_forward_hook(lambda m, x, y, n=n: wrote.update({n: y[0, -1]})) for n, mlp in enumerate(mlps)]
    hooks += [norm.register_forward_hook(lambda m, x, y: ends.update(last=x[0][0, -1]))]
    with torch.inference_mode():
        start = theirs(torch.tensor([ids]), output_hidden_states=True).hidden_states[0][0, -1]
    for hook in hooks:
        hook.remove()

    last, rows = ends["last"].double(), theirs.lm_head.weight[list(pair)].double()

    def adds(part):
        """Multiply a part through the norm at the size it has for the whole vector, and through the output head."""
        with torch.inference_mode():
            if gpt2:
                size = (last.var(unbiased=False) + norm.eps).sqrt()
                part = part - part.mean()
            else:
                size = (last.square().mean() + norm.variance_epsilon).sqrt()
            return difference(rows @ (part.double() / size * norm.weight.double()), (0, 1))

    found = direct_effects(model, ids, pair)
    assert found.embedding == pytest.approx(adds(start), abs=1e-3)
    for layer, out in enumerate(outs):
        assert found.mlps[layer] == pytest.approx(adds(wrote[layer]), abs=2e-3)
        for head in range(model.n_heads):
            own = slice(head * model.d_head, (head + 1) * model.d_head)
            weight = out.weight[own].T if gpt2 else out.weight[:, own]
            assert found.heads[layer, head] == pytest.approx(adds(weight @ into[layer][own]), abs=1e-3)


# Passes without some heads


def torch_logits_without(theirs, ids, heads, d_head):
    """Run a model of transformers with the slices of W_O of some heads set to 0."""
    changed = copy.deepcopy(theirs)
    outs, _ = torch_blocks(changed)
    with torch.inference_mode():
        for layer, head in heads:
            rows = slice(head * d_head, (head + 1) * d_head)
            if hasattr(changed, "transformer"):
                outs[layer].weight[rows] = 0
            else:
                outs[layer].weight[:, rows] = 0
        return changed(torch.tensor([ids])).logits[0, -1].numpy()


@pytest.mark.parametrize(
    ("name", "heads"),
    [
        ("smollm2", {(24, 4), (3, 0), (3, 8), (29, 1)}),
        *((n, h) for n in TINY for h in (set(), {(1, 3)}, {(0, 0), (1, 2)})),
    ],
)
def test_off_is_torchs_pass_with_that_slice_of_w_o_at_0(name, heads, engines):
    model, ids, _ = given(engines, name)
    found = logits_without(model, ids, heads)
    np.testing.assert_allclose(found, torch_logits_without(engines(name)[0].model, ids, heads, model.d_head), atol=1e-3)
    ours = engines(name)[1].trace(TEXTS[name], switches=Switches(ablate=heads)).next_logits
    np.testing.assert_allclose(found, ours, rtol=0, atol=1e-5)
    at_rest = engines(name)[1].trace(TEXTS[name]).next_logits
    assert (np.abs(found - at_rest).max() > 1e-3) == bool(heads)


@pytest.mark.parametrize("name", TINY)
def test_means_stand_in_for_what_a_head_finds(name, engines):
    """A head that gives one vector everywhere is a slice of W_O at 0 and a bias."""
    model, ids, _ = given(engines, name)
    means = reference_means(model, [ids_of(engines(name)[1], text) for text in ("w1 w2 w3", "w7 w8")])
    theirs = copy.deepcopy(engines(name)[0].model)
    out = torch_blocks(theirs)[0][1]
    rows = slice(2 * model.d_head, 3 * model.d_head)
    with torch.no_grad():
        weight = out.weight[rows].T if hasattr(theirs, "transformer") else out.weight[:, rows]
        bias = weight @ torch.from_numpy(means[1, 2]) + (0 if out.bias is None else out.bias)
        weight[:] = 0
        out.bias = torch.nn.Parameter(bias)
        expected = theirs(torch.tensor([ids])).logits[0, -1].numpy()
    found = logits_without(model, ids, [(1, 2)], instead=means)
    np.testing.assert_allclose(found, expected, atol=1e-3)
    assert np.abs(found - logits_without(model, ids, [(1, 2)])).max() > 1e-3


@pytest.mark.parametrize("name", TINY)
def test_means_are_over_all_tokens_but_the_first(name, engines):
    engine = engines(name)[1]
    texts = ["w1 w2 w3 w4", "w9", "w3 w3"]
    traces = [engine.trace(text) for text in texts]
    found = reference_means(engine.model, [ids_of(engine, text) for text in texts])
    for layer in range(2):
        for head in range(4):
            rows = [trace.weights(layer, head) @ trace.qkv(layer, head)[2] for trace in traces]
            expected = np.concatenate([each[1:] for each in rows]).mean(axis=0)
            np.testing.assert_allclose(found[layer, head], expected, rtol=1e-4, atol=1e-5)


# All heads


@pytest.mark.parametrize("rows", [1, 15, 128])  # one copy at a time; two, the last alone; all four
@pytest.mark.parametrize("means", [False, True])
@pytest.mark.parametrize("name", TINY)
def test_all_effects_are_those_of_whole_passes(name, means, rows, engines, monkeypatch):
    monkeypatch.setattr(effects, "ROWS", rows)
    model, ids, pair = given(engines, name)
    instead = reference_means(model, [[1, 2, 3, 4]]) if means else None
    found = all_effects(model, ids, pair, instead=instead)
    at_rest = difference(logits_without(model, ids, []), pair)
    for layer in range(2):
        for head in range(4):
            without = difference(logits_without(model, ids, [(layer, head)], instead=instead), pair)
            assert found[layer, head] == pytest.approx(without - at_rest, abs=2e-4)
    assert np.abs(found).max() > 0.01


def test_progress_counts_heads_and_may_end_the_work(engines, monkeypatch):
    monkeypatch.setattr(effects, "ROWS", 21)  # three of four heads at a time
    model, ids, pair = given(engines, "llama")
    told = []
    all_effects(model, ids, pair, progress=lambda *at: told.append(at))
    assert told == [(3, 8), (4, 8), (7, 8), (8, 8)]

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        all_effects(model, ids, pair, progress=stop)


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("name", TINY)
def test_the_layers_from_one_on_go_on_with_a_pass(name, layer, engines):
    model, ids, _ = given(engines, name)
    rest = layers_from(model, layer, hidden_states(model, ids)[layer])
    np.testing.assert_allclose(run_through(rest, list(range(len(ids)))), run_through(model, ids), rtol=0, atol=1e-6)


# SmolLM2


def test_heads_of_the_names_sentence(engines):
    """FINDINGS: one head looks at Mary and votes against her, another looks at John and brings Mary about."""
    model, ids, pair = given(engines, "smollm2")
    direct = direct_effects(model, ids, pair)
    assert direct.total == pytest.approx(6.12, abs=0.01)
    assert direct.heads[24, 4] == pytest.approx(-1.07, abs=0.02)
    assert direct.heads[23, 3] == pytest.approx(2.86, abs=0.02)
    assert direct.total + effect_of(model, ids, pair, (23, 3)) == pytest.approx(3.08, abs=0.02)
    logits = logits_without(model, ids, [(24, 4)])
    assert 1 / np.exp(logits - logits[pair[0]]).sum() == pytest.approx(0.978, abs=0.002)  # Mary, 0.923 before


def effect_of(model, ids, pair, head):
    return difference(logits_without(model, ids, [head]), pair) - difference(logits_without(model, ids, []), pair)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "words", "head", "sentence"),
    [
        (IOI, ("Mary", "John"), (24, 4), "L24 H4 looks at “Mary” (0.81) but votes against “Mary” (−1.07), and without"),
        (
            KEYS,
            ("are", "is"),
            (26, 0),
            "L26 H0 votes for “are” (+3.22), and without it the lead of “are” over “is” falls from 3.41 to 0.31",
        ),
        (KEYS, ("are", "is"), (13, 8), "No effect: L13 H8 hardly votes by itself (+0.04 for “are”), and without it"),
    ],
    ids=["L24 H4", "L26 H0", "L13 H8"],
)
def test_verdicts_from_the_text_to_the_sentence(text, words, head, sentence, engines):
    engine = engines("smollm2")[1]
    trace = engine.trace(text)
    pair = tuple(next_word_token(engine.tokenizer, word, after=text)[0] for word in words)
    ids = ids_of(engine, text)
    direct = direct_effects(engine.model, ids, pair)
    changes = np.array([effect_of(engine.model, ids, pair, (head[0], other)) for other in range(9)])
    row = trace.weights(*head)[-1]
    found = verdict(
        words=words,
        probabilities=tuple(float(trace.next_probabilities()[token]) for token in pair),
        difference=direct.total,
        head=f"L{head[0]} H{head[1]}",
        looks=tuple(
            float(row[[token.id == each for token in trace.tokens]].sum()) if each in ids else None for each in pair
        ),
        direct=direct.heads[head],
        effect=changes[head[1]],
        others=np.delete(changes, head[1]),
    )
    assert found.startswith(sentence)


@pytest.mark.slow
def test_all_effects_of_a_real_model_are_those_of_whole_passes(engines):
    engine = engines("smollm2")[1]
    ids, pair = ids_of(engine, KEYS), (359, 314)  # are, is
    found = all_effects(engine.model, ids, pair)
    assert found.shape == (30, 9)
    assert direct_effects(engine.model, ids, pair).total + found[26, 0] == pytest.approx(0.31, abs=0.01)
    for head in ((0, 0), (0, 8), (13, 8), (26, 0), (29, 5)):
        assert found[head] == pytest.approx(effect_of(engine.model, ids, pair, head), abs=1e-3)


@pytest.mark.slow
def test_means_of_the_battery_are_numbers_of_a_usual_size(engines):
    engine = engines("smollm2")[1]
    means = reference_means(engine.model, [ids_of(engine, each.text) for each in battery_texts()])
    assert means.shape == (30, 9, 64) and np.isfinite(means).all() and not math.isclose(np.abs(means).max(), 0)
    ids, pair = ids_of(engine, KEYS), (359, 314)
    logits = logits_without(engine.model, ids, [(26, 0)], instead=means)
    assert difference(logits, pair) < 2.0  # the head matters by its mean's measure too: 3.41 with it


# What is refused


@pytest.mark.parametrize(
    "act",
    [
        lambda model: direct_effects(model, [1, 2], (3, 4)),
        lambda model: reference_means(model, [[1, 2]]),
        lambda model: logits_without(model, [1, 2], []),
        lambda model: all_effects(model, [1, 2], (3, 4)),
        lambda model: layers_from(model, 1, np.zeros((2, 32), np.float32)),
    ],
)
def test_a_model_without_a_head_says_so(act, tiny_folder):
    with pytest.raises(ValueError, match=f"^{NO_HEAD}$"):
        act(attnviz.load(str(tiny_folder("bert")), engine="numpy").model)


@pytest.mark.parametrize(
    ("act", "sentence"),
    [
        (lambda m: direct_effects(m, [], (3, 4)), "expected at least one token, at most 16, got 0"),
        (lambda m: all_effects(m, [1] * 17, (3, 4)), "expected at least one token, at most 16, got 17"),
        (lambda m: direct_effects(m, [1, 2], (3, 97)), "expected two tokens from 0 to 96, got 3 and 97"),
        (lambda m: all_effects(m, [1, 2], (-1, 3)), "expected two tokens from 0 to 96, got -1 and 3"),
        (lambda m: all_effects(m, [1, 2], (3, 3)), "expected two different tokens, got 3 twice"),
        (lambda m: logits_without(m, [1, 2], [(2, 0)]), "there is no L2 H0: this model has 2 layers of 4 heads"),
        (lambda m: logits_without(m, [1, 2], [(0, -1)]), "there is no L0 H-1: this model"),
        (lambda m: reference_means(m, [[1], [2]]), "expected a reference text of at least two tokens, got 2 texts"),
        (lambda m: all_effects(m, [1], (3, 4), instead=np.zeros((2, 4, 9))), r"\(2, 4, 8\), got \(2, 4, 9\)"),
        (lambda m: logits_without(m, [1], [], instead=np.zeros((2, 8))), r"\(2, 4, 8\), got \(2, 8\)"),
    ],
)
def test_what_is_refused_in_a_sentence(act, sentence, engines):
    with pytest.raises(ValueError, match=sentence):
        act(engines("gpt2")[1].model)
