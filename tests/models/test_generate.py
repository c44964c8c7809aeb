"""Texts that go on: against transformers' own generate, with cache against without, one engine against the other."""

import gc
import itertools
import threading
import weakref

import numpy as np
import pytest
import torch

import attnviz
from attnviz import Step, Switches
from attnviz.core.trace.records import LayerRecord
from attnviz.models.generate import Writer, end_ids
from attnviz.models.listen.growing import Growing
from attnviz.models.scratch.decoder import run
from attnviz.models.tokens import tokenize

TEXT = "w1 w2 w3 <br> w1 w2 $x$ w7"
PROMPTS = (
    "The animal didn't cross the street because",
    "Once upon a time there was",
    "def fibonacci(n):",
)
CACHED = ("llama", "mistral_sw4", "gemma2", "gemma2_nocap", "gptoss", "gpt2", "gpt2_inv", "opt", "qwen3next")
BOTH = ("llama", "gpt2", "gpt2_inv")
KINDS = ("torch", "numpy")


@pytest.fixture(scope="module")
def engine_of(tiny_folder, shipped):
    """Return a function from a model's name and a kind to its engine; no token ends a tiny model's text."""
    engines = {}

    def get(name, kind="torch"):
        if name == "smollm2":
            return shipped(name, kind)
        if (name, kind) not in engines:
            engine = attnviz.load(str(tiny_folder(name)), engine=kind)
            if kind == "torch" and engine.info.predicts:
                engine.model.generation_config.eos_token_id = None
            else:
                object.__setattr__(engine, "ends", frozenset())
            engines[name, kind] = engine
        return engines[name, kind]

    return get


def ids_of(steps):
    return [step.token.id for step in steps]


def their_ids(engine, text, n):
    """Return what transformers' own `generate` adds to a text."""
    ids = torch.tensor([[token.id for token in tokenize(engine.tokenizer, text)]])
    out = engine.model.generate(ids, do_sample=False, max_new_tokens=n, pad_token_id=1)
    return out[0, ids.shape[1] :].tolist()


def whole_pass(engine, ids):
    """Return (records, logits) of one pass over ids, without the code that generates."""
    if engine.info.engine == "numpy":
        records, logits = run(engine.model, ids)
        return dict(enumerate(records)), logits
    records, logits = engine._run(tuple(_Id(id_) for id_ in ids), (), Switches(), None)
    return records[engine.info.parts[0]], logits


class _Id:
    def __init__(self, id_):
        self.id = id_


def assert_same_trace(trace, other, atol=1e-5):
    assert trace.layers == other.layers
    for layer in trace.layers:
        assert trace.layer_weights(layer).shape[1:] == (len(trace.tokens),) * 2
        np.testing.assert_allclose(trace.layer_weights(layer), other.layer_weights(layer), rtol=0, atol=atol)
        for head in range(trace.heads(layer)):
            for one, two in zip(trace.qkv(layer, head), other.qkv(layer, head), strict=True):
                np.testing.assert_allclose(one, two, rtol=1e-3, atol=1e-3)


# The same ids as transformers


@pytest.mark.slow
@pytest.mark.parametrize("text", PROMPTS)
def test_smollm2_goes_on_as_in_transformers(engine_of, text):
    expected = their_ids(engine_of("smollm2"), text, 16)
    for kind in KINDS:
        assert ids_of(engine_of("smollm2", kind).generate(text, 16)) == expected, kind


@pytest.mark.parametrize(
    ("name", "kind"), [*itertools.product(BOTH, KINDS), ("mistral_sw4", "torch"), ("opt", "torch")]
)
def test_tiny_models_go_on_as_in_transformers(engine_of, name, kind):
    n = 8  # all the room that gpt2's 16 positions leave
    assert ids_of(engine_of(name, kind).generate(TEXT, n)) == their_ids(engine_of(name), TEXT, n)


@pytest.mark.parametrize("kind", KINDS)
def test_the_token_that_ends_a_text_comes_last(engine_of, kind, tiny_folder):
    ids = ids_of(engine_of("gpt2", kind).generate(TEXT, 8))
    engine = attnviz.load(str(tiny_folder("gpt2")), engine=kind)
    if kind == "torch":
        engine.model.generation_config.eos_token_id = [96, ids[2]]
    else:
        object.__setattr__(engine, "ends", end_ids([96, ids[2]]))
    assert ids_of(engine.generate(TEXT, 8)) == ids[: ids.index(ids[2]) + 1]


def test_both_engines_know_what_ends_a_text(tiny_folder):
    for name in ("llama", "gpt2"):
        one, other = (attnviz.load(str(tiny_folder(name)), engine=kind) for kind in KINDS)
        assert other.ends == end_ids(one.model.generation_config.eos_token_id) != frozenset()


@pytest.mark.parametrize("kind", KINDS)
def test_generation_stops_at_the_models_limit(engine_of, kind):
    engine = engine_of("gpt2", kind)
    assert engine.info.limit == 16
    assert [step.token.index for step in engine.generate(TEXT, 99)] == list(range(8, 16))
    with pytest.raises(ValueError, match="has 16 tokens .* takes 16 in all"):
        engine.generate(" ".join(["w1"] * 16), 1)


# Chance


@pytest.mark.slow
def test_a_seed_gives_the_same_tokens_on_both_engines_of_a_real_model(engine_of):
    rule = {"temperature": 0.8, "top_p": 0.9, "seed": 3}
    one, two = (ids_of(engine_of("smollm2", kind).generate(PROMPTS[0], 6, **rule)) for kind in KINDS)
    assert one == two


@pytest.mark.parametrize(
    "rule", [{"temperature": 0.8, "top_p": 0.9}, {"temperature": 1.0}, {"temperature": 2, "top_k": 9}]
)
def test_a_seed_gives_the_same_tokens_on_both_engines_and_each_time(engine_of, rule):
    name, text, n = "llama", TEXT, 24
    one, two = (engine_of(name, kind) for kind in KINDS)
    ids = ids_of(one.generate(text, n, seed=3, **rule))
    assert ids == ids_of(two.generate(text, n, seed=3, **rule)) == ids_of(one.generate(text, n, seed=3, **rule))
    assert ids == ids_of(one.generate(text, n, seed=3, cache=False, **rule))
    others = [ids_of(one.generate(text, n, seed=seed, **rule)) for seed in (4, 5, 6)]
    assert any(other != ids for other in others)


def test_candidates_are_the_models_own_whatever_is_allowed(engine_of):
    engine = engine_of("llama")
    free, bound = (next(engine.generate(TEXT, temperature=5, top_k=k, candidates=4)) for k in (None, 2))
    assert free.candidates == bound.candidates == engine.trace(TEXT).next_tokens(4)
    assert (free.n_allowed, bound.n_allowed) == (97, 2) and bound.rank < 2
    greedy = next(engine.generate(TEXT))
    assert (greedy.n_allowed, greedy.rank) == (1, 0) and len(greedy.candidates) == 10
    assert greedy.candidates[0] == (greedy.token.label, greedy.probability)


# With the cache and without


def assert_cache_changes_nothing(engine, text, n, switches=None, atol=2e-6):
    runs = [engine.generate(text, n, cache=cache, switches=switches) for cache in (True, False)]
    pairs = list(zip(*runs, strict=True))
    assert len(pairs) == n
    for kept, again in pairs:
        np.testing.assert_allclose(kept.logits, again.logits, rtol=0, atol=atol)
        assert kept.token == again.token and not kept.logits.flags.writeable
        assert again.cache_bytes == 0 and not again.cache
    assert_same_trace(kept.trace, again.trace)
    return kept


@pytest.mark.parametrize(("name", "kind"), [*itertools.product(CACHED, ["torch"]), *itertools.product(BOTH, ["numpy"])])
def test_logits_with_cache_are_those_without(engine_of, name, kind):
    assert_cache_changes_nothing(engine_of(name, kind), TEXT, 8)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_smollm2s_logits_with_cache_are_those_without(engine_of, kind):
    assert_cache_changes_nothing(engine_of("smollm2", kind), PROMPTS[0], 6, atol=1e-4)


SWITCHED = {
    "forbid": Switches(
        forbid={(0, 1, 9, 2), (None, None, 11, 0), (1, None, 3, 1), (None, None, 14, 13), (0, 0, 2, 14)}
    ),
    "ablate": Switches(ablate={(0, 3), (1, 0)}),
    "temperature": Switches(temperature=0.5),
    "unscaled": Switches(scaled=False),
    "causal": Switches(causal=True),
}


@pytest.mark.parametrize(
    ("name", "kind"), [("llama", "torch"), ("llama", "numpy"), ("mistral_sw4", "torch"), ("gptoss", "torch")]
)
@pytest.mark.parametrize("switch", SWITCHED)
def test_switches_act_alike_with_cache_and_without(engine_of, name, kind, switch):
    engine = engine_of(name, kind)
    switches = SWITCHED[switch]
    kept = assert_cache_changes_nothing(engine, TEXT, 8, switches)
    plain = list(engine.generate(TEXT, 8))[-1]
    assert switch == "causal" or np.abs(kept.logits - plain.logits).max() > 1e-4
    if switch == "forbid":
        weights = kept.trace.weights(0, 1)
        assert weights[9, 2] == weights[11, 0] == 0 and weights[8, 2] >= 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_forbidden_look_of_a_new_token_acts_from_that_step_on(engine_of, kind):
    engine = engine_of("llama", kind)
    look = Switches(forbid={(0, None, 10, 0)})
    pairs = list(zip(engine.generate(TEXT, 6), engine.generate(TEXT, 6, switches=look), strict=True))
    apart = [np.abs(one.logits - other.logits).max() for one, other in pairs]
    assert max(apart[:3]) == 0 and apart[3] > 2e-5  # the fourth step is the first that reads token 10


@pytest.mark.parametrize("kind", KINDS)
def test_without_cache_a_token_may_see_later_ones(engine_of, kind):
    engine = engine_of("llama", kind)
    *_, last = engine.generate(TEXT, 4, cache=False, switches=Switches(causal=False))
    ids = [token.id for token in last.trace.tokens]
    assert (last.trace.weights(0, 0)[0, 1:] > 0).all() and len(ids) == 11
    other = engine_of("llama", "numpy" if kind == "torch" else "torch")
    *_, theirs = other.generate(TEXT, 4, cache=False, switches=Switches(causal=False))
    assert ids == [token.id for token in theirs.trace.tokens]
    assert_same_trace(last.trace, theirs.trace, atol=2e-5)


# What the cache holds


@pytest.mark.parametrize(("name", "kind"), [*itertools.product(CACHED, ["torch"]), *itertools.product(BOTH, ["numpy"])])
def test_the_caches_bytes_are_those_of_the_formula(engine_of, name, kind):
    engine = engine_of(name, kind)
    info, d_head = engine.info, 8
    for t, step in enumerate(engine.generate(TEXT, 8), 8):
        assert step.cache_bytes == 2 * len(info.layers) * info.n_kv_heads * t * d_head * 4
        assert {k.shape for pair in step.cache.values() for k in pair} == {(info.n_kv_heads, t, d_head)}
        assert tuple(step.cache) == info.layers


def test_in_half_precision_the_cache_takes_half(tiny_folder):
    engine = attnviz.load(str(tiny_folder("llama")), dtype="bfloat16")
    step = next(engine.generate(TEXT))
    assert step.cache_bytes == 2 * 2 * 2 * 8 * 8 * 2 and step.cache[0][0].dtype == np.float32


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_smollm2_keeps_46080_bytes_a_token(engine_of, kind):
    for step in engine_of("smollm2", kind).generate(PROMPTS[1], 4):
        assert step.cache_bytes == 46080 * step.token.index


@pytest.mark.parametrize("kind", KINDS)
def test_kept_keys_never_change_and_cannot_be_written(engine_of, kind):
    steps = list(engine_of("llama", kind).generate(TEXT, 40))
    last = steps[-1].cache
    for step in steps:
        for layer, pair in step.cache.items():
            for kept, grown in zip(pair, last[layer], strict=True):
                assert np.array_equal(kept, grown[:, : kept.shape[1]])
                with pytest.raises(ValueError):
                    kept[:] = 0
    assert np.shares_memory(steps[-2].cache[0][0], last[0][0])  # views: all steps together take no more than the last


# Traces


@pytest.mark.parametrize(("name", "kind"), [*itertools.product(CACHED, ["torch"]), *itertools.product(BOTH, ["numpy"])])
def test_the_trace_is_that_of_one_pass_over_the_same_ids(engine_of, name, kind):
    engine = engine_of(name, kind)
    steps = list(engine.generate(TEXT, 8))
    ids = [token.id for token in tokenize(engine.tokenizer, TEXT)] + ids_of(steps)
    for step in (steps[7], steps[0], steps[4]):  # asked for in any order, after the end
        trace, t = step.trace, step.token.index
        assert [token.id for token in trace.tokens] == ids[:t] and [token.index for token in trace.tokens] == list(
            range(t)
        )
        records, logits = whole_pass(engine, ids[:t])
        part = engine.info.parts[0]
        other = type(trace)("", engine.info, {part: records}, {part: (trace.tokens, trace.tokens)})
        assert_same_trace(trace, other)
        for layer in trace.layers:
            mine, theirs = trace.records[part][layer], records[layer]
            assert isinstance(mine, LayerRecord) and mine.scale == theirs.scale
            every = np.arange(t)
            assert np.array_equal(mine.mask.allowed(every, every), theirs.mask.allowed(every, every))
        np.testing.assert_allclose(step.logits, logits, rtol=0, atol=1e-4)
        assert trace.next_tokens(3)[0][1] == pytest.approx(step.candidates[0][1])


@pytest.mark.slow
def test_smollm2s_trace_is_that_of_the_whole_text(engine_of):
    engine = engine_of("smollm2")
    *_, last = engine.generate(PROMPTS[0], 8)
    whole = engine.trace(last.trace.text)
    assert [(t.id, t.label, t.text) for t in last.trace.tokens] == [(t.id, t.label, t.text) for t in whole.tokens]
    assert_same_trace(last.trace, whole)


# Letters


@pytest.mark.parametrize("name", ["llama", pytest.param("smollm2", marks=pytest.mark.slow)])
def test_text_and_pieces_are_the_decoded_text(engine_of, name):
    engine, text = engine_of(name), PROMPTS[2] if name == "smollm2" else TEXT
    steps = list(engine.generate(text, 20, temperature=1.0, seed=1))
    ids = [token.id for token in tokenize(engine.tokenizer, text)]
    whole = text + "".join(step.token.text for step in steps)
    decode = engine.tokenizer.decode
    prompt = decode(ids, skip_special_tokens=True)
    assert whole[len(text) :] == decode(ids + ids_of(steps), skip_special_tokens=True)[len(prompt) :]
    for step in steps:
        assert whole[step.token.start : step.token.end] == step.token.text


@pytest.mark.slow
def test_a_character_of_several_tokens_belongs_to_the_last_of_them(engine_of):
    tokenizer = engine_of("smollm2").tokenizer
    text, rest = "The city", " 東京 is\n<|im_end|>👍 x"
    writer = Writer(tokenizer, text, tokenizer(text).input_ids)
    tokens = [writer.add(id_) for id_ in tokenizer(text + rest).input_ids[len(tokenizer(text).input_ids) :]]
    assert "".join(token.text for token in tokens) == rest.replace("<|im_end|>", "")
    assert [(token.label, token.text) for token in tokens if "東" in token.label][-1] == ("東 3/3", " 東")
    assert [token.label for token in tokens if token.special] == ["<|im_end|>"]
    assert all(token.label for token in tokens)


# What goes on at the same time, and what is left behind


@pytest.mark.parametrize("kind", KINDS)
def test_two_texts_at_once_do_not_mix(engine_of, kind):
    engine = engine_of("llama", kind)
    texts = (TEXT, "w9 w8 w7")
    switches = (None, Switches(temperature=0.3))
    alone = [list(engine.generate(t, 30, switches=s)) for t, s in zip(texts, switches, strict=True)]
    at_once = [None, None]

    def write(i):
        at_once[i] = list(engine.generate(texts[i], 30, switches=switches[i]))

    threads = [threading.Thread(target=write, args=(i,)) for i in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    by_turns = zip(*(engine.generate(t, 30, switches=s) for t, s in zip(texts, switches, strict=True)), strict=True)
    for (a, b), (c, d), turns in zip(zip(*alone, strict=True), zip(*at_once, strict=True), by_turns, strict=True):
        for one, others in ((a, (c, turns[0])), (b, (d, turns[1]))):
            for other in others:
                assert one.token == other.token
                assert np.array_equal(one.logits, other.logits)
                assert np.array_equal(one.trace.weights(1, 2), other.trace.weights(1, 2))


@pytest.mark.parametrize("kind", KINDS)
def test_the_engine_is_free_between_steps(engine_of, kind):
    engine = engine_of("llama", kind)
    before = engine.trace("w5 w6").weights(1, 0)
    steps = engine.generate(TEXT, 5, switches=Switches(scaled=False))
    next(steps)
    assert not engine.busy
    assert np.array_equal(engine.trace("w5 w6").weights(1, 0), before)
    assert next(steps).token.index == 9
    steps.close()
    assert not engine.busy


@pytest.mark.parametrize("kind", KINDS)
def test_a_generator_that_is_closed_early_leaves_nothing_and_a_step_keeps_no_engine(tiny_folder, kind):
    engine = attnviz.load(str(tiny_folder("llama")), engine=kind)
    steps = engine.generate(TEXT, 5)
    step = next(steps)
    model = weakref.ref(engine.model)
    steps.close()
    del steps, engine
    gc.collect()
    assert model() is None
    assert isinstance(step, Step) and step.trace.weights(0, 0).shape == (8, 8)


# What is wrong


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"n": 0}, "n must be a whole number from 1 up, got 0"),
        ({"candidates": 0}, "candidates must be"),
        ({"temperature": -1}, "temperature must be"),
        ({"top_k": 0}, "top_k must be"),
        ({"top_p": 0}, "top_p must be"),
        ({"top_p": 1.5}, "top_p must be"),
        ({"seed": -1}, "seed must be"),
        ({"text": " \n"}, "no visible character"),
        ({"switches": Switches(causal=False)}, "use cache=False"),
        ({"switches": Switches(ablate={(7, 0)})}, "there is no L7 H0"),
        ({"switches": Switches(forbid={(0, 0, 12, 0)})}, "tokens 0 to 11"),
        ({"switches": Switches(forbid={(0, 0, 10, k) for k in range(11)})}, "token 10 would have nothing left"),
    ],
)
def test_what_is_wrong_is_said_at_once(engine_of, kind, wrong, sentence):
    with pytest.raises(ValueError, match=sentence):
        engine_of("llama", kind).generate(**{"text": TEXT, "n": 4} | wrong)


@pytest.mark.parametrize(
    ("name", "kind", "sentence"),
    [
        ("bert", "torch", "predicts no next token"),
        ("bert", "numpy", "predicts no next token"),
        ("t5", "torch", "a second text"),
        ("bloom", "torch", "only its finished maps"),
        ("gptneo", "torch", "only its finished maps"),
    ],
)
def test_models_that_continue_no_text_say_so(engine_of, name, kind, sentence):
    with pytest.raises(ValueError, match=sentence):
        engine_of(name, kind).generate(TEXT)


def test_an_array_that_grows_keeps_what_it_gave():
    grown, rows = Growing(), np.arange(60.0).reshape(2, 15, 2)
    views = []
    for start, end in ((0, 4), (4, 5), (5, 6), (6, 15)):
        grown.append(rows[:, start:end])
        views.append(grown.first(end))
    for view in views:
        assert np.array_equal(view, rows[:, : view.shape[1]]) and not view.flags.writeable


def test_with_the_cache_only_the_new_token_goes_through_the_model(engine_of):
    engine, lengths = engine_of("llama"), []
    embed = engine.model.get_input_embeddings()
    handle = embed.register_forward_hook(lambda module, ids, output: lengths.append(ids[0].shape[-1]))
    try:
        for cache in (True, False):
            list(engine.generate(TEXT, 4, cache=cache))
    finally:
        handle.remove()
    assert lengths == [8, 1, 1, 1] + [8, 9, 10, 11]
