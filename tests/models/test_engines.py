"""Weights against the models' own eager attention, and what switches do, for every architecture."""

import threading

import numpy as np
import pytest
import torch

import attnviz
from attnviz import Switches
from tests.models.eager import SCRIPTS, TEXT, assert_same_maps, eager_maps, maps_from

DECODERS = ("llama", "mistral_sw4", "gemma2", "gptoss", "gpt2", "gpt2_inv", "opt", "qwen3next")
LISTENED = (*DECODERS, "gemma2_nocap", "bert", "albert", "distilbert", "modernbert")


@pytest.mark.parametrize("name", [*LISTENED, "gptneo", "bloom", "t5"])
def test_weights_are_the_models_own(name, engine_of):
    engine = engine_of(name)
    trace = engine.trace(TEXT, target="w4 w5 w6" if name == "t5" else None)
    assert_same_maps(trace, eager_maps(engine, trace))


@pytest.mark.parametrize("name", ["smollm2", "minilm"])
def test_weights_are_the_models_own_on_five_scripts(name, request):
    engine = request.getfixturevalue(name)
    before = engine.model.config._attn_implementation
    traces = [engine.trace(text) for text in SCRIPTS]
    try:
        engine.model.set_attn_implementation("eager")
        for trace in traces:
            assert_same_maps(trace, maps_from(engine.model, trace))
    finally:
        engine.model.set_attn_implementation(before)


def test_maps_are_there_without_naming_an_attention_implementation(smollm2, minilm, engine_of):
    for engine, layers, heads in ((smollm2, 30, 9), (minilm, 6, 12), (engine_of("llama"), 2, 4)):
        trace = engine.trace("w1 w2")
        assert (len(trace.layers), trace.heads(trace.layers[0])) == (layers, heads)


@pytest.mark.parametrize("name", LISTENED)
def test_rows_sum_to_one_unless_the_model_has_sinks(name, engine_of):
    trace = engine_of(name).trace(TEXT)
    sums = np.stack([trace.layer_weights(layer).sum(axis=-1) for layer in trace.layers])
    if name == "gptoss":
        assert sums.min() < 0.99 and sums.max() <= 1 + 1e-6  # the rest goes to the sink
    else:
        np.testing.assert_allclose(sums, 1, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in LISTENED if name not in ("qwen3next",)])
@pytest.mark.parametrize("whole_pass", [False, True])
def test_causal_switch_follows_from_the_unmasked_map(name, whole_pass, engine_of):
    engine, first = engine_of(name), engine_of(name).info.layers[0]
    rest = engine.trace(TEXT)
    for head in range(rest.heads(first)):
        if whole_pass:
            on = engine.trace(TEXT, switches=Switches(causal=True)).weights(first, head)
            off = engine.trace(TEXT, switches=Switches(causal=False)).weights(first, head)
        else:
            on = rest.weights(first, head, switches=Switches(causal=True))
            off = rest.weights(first, head, switches=Switches(causal=False))
        seen = np.tril(np.ones_like(off, bool))
        kept = np.where(seen, off, 0).astype(np.float64)
        divisor = kept.sum(axis=1)
        if name == "gptoss":  # what went to the sink stays in the sum
            divisor += 1 - off.sum(axis=1, dtype=np.float64)
        np.testing.assert_allclose(on * divisor[:, None], kept, atol=1e-6)
        assert (on[~seen] == 0).all()


@pytest.mark.parametrize("name", ["llama", "opt", "gpt2", "gpt2_inv", "gemma2_nocap", "bert", "distilbert"])
@pytest.mark.parametrize("whole_pass", [False, True])
def test_unscaled_rows_are_powers_of_scaled_rows(name, whole_pass, engine_of):
    engine = engine_of(name)
    trace = engine.trace(TEXT)
    unscaled = engine.trace(TEXT, switches=Switches(scaled=False)) if whole_pass else trace
    switches = None if whole_pass else Switches(scaled=False)
    changed = 0.0
    for head in range(trace.heads(0)):
        scaled = trace.weights(0, head).astype(np.float64)
        power = np.where(scaled > 0, scaled, 0) ** (1 / trace.scale(0))
        expected = power / power.sum(axis=1, keepdims=True)
        found = unscaled.weights(0, head, switches=switches)
        np.testing.assert_allclose(found, expected, atol=2e-4)
        changed = max(changed, np.abs(found - scaled).max())
    assert changed > 0.1


@pytest.mark.parametrize(
    ("name", "factors"),
    [("opt", [8**-0.5] * 2), ("gemma2", [0.25] * 2), ("gpt2_inv", [8**-0.5, 8**-0.5 / 2]), ("t5", [1.0, 1.0])],
)
def test_the_factor_is_the_models_own(name, factors, engine_of):
    trace = engine_of(name).trace(TEXT)
    np.testing.assert_allclose([trace.scale(layer, part=trace.parts[0]) for layer in trace.layers], factors)


@pytest.mark.parametrize("name", ["llama", "opt", "gpt2_inv", "bert"])
def test_scores_are_q_times_k_times_the_factor(name, engine_of):
    trace = engine_of(name).trace(TEXT)
    for layer in trace.layers:
        q, k, _ = trace.qkv(layer, 3)
        scores = trace.scores(layer, 3)
        allowed = np.isfinite(scores)
        np.testing.assert_allclose(scores[allowed], (q @ k.T * trace.scale(layer))[allowed], rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(allowed, trace.allowed(layer, 3))


def test_models_that_never_scale_say_so(engine_of):
    for name in ("t5", "gptneo"):
        engine = engine_of(name)
        assert "scaled" in engine.info.cannot
        with pytest.raises(ValueError, match="scores|root of d"):
            engine.trace(TEXT, switches=Switches(scaled=False))


@pytest.mark.parametrize("name", ["bloom", "gptneo"])
def test_models_that_give_finished_maps_refuse_switches_with_the_reason(name, engine_of):
    engine = engine_of(name)
    trace = engine.trace(TEXT)
    assert any("finished maps" in note for note in engine.info.notes)
    for ask in (
        lambda: trace.scores(0, 0),
        lambda: trace.weights(0, 0, switches=Switches(causal=False)),
        lambda: engine.trace(TEXT, switches=Switches(temperature=2)),
    ):
        with pytest.raises(ValueError, match="can't be recorded"):
            ask()


def test_windows_stay(engine_of):
    trace = engine_of("mistral_sw4").trace(TEXT)
    assert (trace.weights(1, 0)[-1] == 0).sum() == 6
    off = trace.weights(1, 0, switches=Switches(causal=False))
    assert (off[-1] == 0).sum() == 6 and (off[0] > 0).all()
    local = engine_of("modernbert").trace(TEXT).allowed(1, 0)
    assert [int(n) for n in local.sum(axis=1)] == [3, 4, 5, 5, 5, 5, 5, 5, 4, 3]


def test_layers_keep_their_numbers(engine_of):
    assert engine_of("qwen3next").trace(TEXT).layers == (3,)
    for name in ("distilbert", "albert"):
        trace = engine_of(name).trace(TEXT)
        assert trace.layers == (0, 1)
        assert np.abs(trace.layer_weights(0) - trace.layer_weights(1)).max() > 1e-3
    with pytest.raises(ValueError, match="layer 0 has no attention map"):
        engine_of("qwen3next").trace(TEXT).weights(0, 0)


def test_encoder_decoder_has_three_parts(engine_of):
    trace = engine_of("t5").trace("w1 w2 w3", target="w4 w5")
    shapes = {part: trace.weights(1, 0, part=part).shape for part in trace.parts}
    assert shapes == {"encoder": (3, 3), "decoder": (3, 3), "cross": (3, 3)}
    shapes = {part: engine_of("t5").trace("w1 w2 w3").weights(1, 0, part=part).shape for part in trace.parts}
    assert shapes == {"encoder": (3, 3), "decoder": (1, 1), "cross": (1, 3)}
    assert [token.label for token in trace.tokens_of("cross")[0]] == ["<pad>", "w4", "w5"]
    with pytest.raises(ValueError, match="part must be one of encoder, decoder, cross"):
        trace.weights(1, 0)


@pytest.mark.parametrize("name", [*DECODERS, "gptneo", "bloom"])
def test_no_look_ahead(name, engine_of):
    one, other = engine_of(name).trace("w1 w2 w3 w4 w5"), engine_of(name).trace("w1 w2 w3 w4 w9")
    atol = 1e-6 if name == "qwen3next" else 0  # which experts a token shares with others changes its last bits
    for layer in one.layers:
        np.testing.assert_allclose(one.layer_weights(layer)[:, :4], other.layer_weights(layer)[:, :4], 0, atol)


def test_no_look_ahead_in_a_real_model(smollm2):
    one, other = smollm2.trace("The capital of France is Paris"), smollm2.trace("The capital of France is Rome")
    assert len(one.tokens) == len(other.tokens)
    for layer in one.layers:
        np.testing.assert_array_equal(one.layer_weights(layer)[:, :-1], other.layer_weights(layer)[:, :-1])


@pytest.mark.parametrize("name", ["llama", "mistral_sw4", "gemma2", "gptoss", "opt", "bert", "t5"])
@pytest.mark.parametrize("switches", [Switches(causal=False), Switches(causal=True), Switches(temperature=0.5)])
def test_a_pass_under_switches_computes_what_its_weights_say(name, switches, engine_of):
    """The output of layer 0's attention must be weights times values, or later layers saw something else."""
    engine = engine_of(name)
    ends = ("layers.0.self_attn", "layer.0.attention.self", "encoder.block.0.layer.0.SelfAttention")
    module = next(module for path, module in engine.model.named_modules() if path.endswith(ends))
    outputs = []
    handle = module.register_forward_hook(lambda module, args, output: outputs.append(output))
    try:
        trace = engine.trace(TEXT, switches=switches)
    finally:
        handle.remove()
    (output, *_), part = outputs[0], trace.parts[0]
    heads = []
    for head in range(trace.heads(0, part=part)):
        heads.append(trace.weights(0, head, part=part) @ trace.qkv(0, head, part=part)[2])
    mixed = torch.from_numpy(np.concatenate(heads, axis=1))
    project = next((getattr(module, n) for n in ("o_proj", "out_proj", "o") if hasattr(module, n)), lambda x: x)
    with torch.no_grad():
        expected = project(mixed).numpy()
    np.testing.assert_allclose(output.reshape(expected.shape).numpy(), expected, atol=1e-4)


def test_temperature_equal_to_the_factor_is_scaling_off(smollm2):
    text = "The capital of France is"
    off = smollm2.trace(text, switches=Switches(scaled=False))
    cold = smollm2.trace(text, switches=Switches(temperature=0.125))
    np.testing.assert_allclose(off.layer_weights(20), cold.layer_weights(20), atol=1e-5)
    np.testing.assert_allclose(off.next_probabilities(), cold.next_probabilities(), atol=1e-5)


def test_ablating_a_head_equals_zeroing_its_slice_of_the_output_projection(engine_of, tiny_folder):
    engine = engine_of("llama")
    other = attnviz.load(str(tiny_folder("llama")))
    with torch.no_grad():
        other.model.model.layers[0].self_attn.o_proj.weight[:, 8:16] = 0
    expected = other.trace(TEXT).next_probabilities()
    found = engine.trace(TEXT, switches=Switches(ablate={(0, 1)}))
    np.testing.assert_allclose(found.next_probabilities(), expected, atol=1e-6)
    assert np.abs(expected - engine.trace(TEXT).next_probabilities()).max() > 1e-5
    np.testing.assert_array_equal(found.weights(0, 1), engine.trace(TEXT).weights(0, 1))
    with pytest.raises(ValueError, match="a head's own map"):
        found.weights(0, 1, switches=Switches(ablate={(0, 1)}))


@pytest.mark.parametrize("name", ["llama", "gemma2", "gptoss", "bert"])
def test_a_forbidden_look_is_gone_and_the_row_shares_its_weight(name, engine_of):
    engine = engine_of(name)
    rest = engine.trace(TEXT)
    switches = Switches(forbid={(0, 2, 9, 4)})
    for found in (rest.weights(0, 2, switches=switches), engine.trace(TEXT, switches=switches).weights(0, 2)):
        before = rest.weights(0, 2)
        assert found[9, 4] == 0
        left = np.delete(before[9], 4)
        np.testing.assert_allclose(np.delete(found[9], 4), left / (1 - before[9, 4]), atol=1e-5)
        np.testing.assert_allclose(found[:9], before[:9], atol=1e-6)
    np.testing.assert_allclose(rest.weights(0, 1, switches=switches), rest.weights(0, 1))
    everywhere = Switches(forbid={(None, None, 9, 4)})
    trace = engine.trace(TEXT, switches=everywhere)
    for layer in trace.layers:
        assert (trace.layer_weights(layer)[:, 9, 4] == 0).all()


def test_a_query_keeps_at_least_one_key(engine_of):
    engine = engine_of("llama")
    for switches in (Switches(forbid={(0, 0, 0, 0)}), Switches(forbid={(None, None, 1, 0), (0, None, 1, 1)})):
        with pytest.raises(ValueError, match="nothing left to look at"):
            engine.trace(TEXT).weights(0, 0, switches=switches)
        with pytest.raises(ValueError, match="nothing left to look at"):
            engine.trace(TEXT, switches=switches)


@pytest.mark.parametrize(
    ("switches", "message"),
    [
        (Switches(ablate={(7, 0)}), "no L7 H0"),
        (Switches(forbid={(9, 0, 0, 0)}), "layer 9"),
        (Switches(forbid={(0, 8, 1, 0)}), "head 8"),
        (Switches(forbid={(0, 0, 50, 0)}), "query 50"),
    ],
)
def test_switches_that_name_what_is_not_there(switches, message, engine_of):
    with pytest.raises(ValueError, match=message):
        engine_of("llama").trace(TEXT, switches=switches)


def test_tiles_are_cut_from_the_softmax_over_all_keys(smollm2):
    trace = smollm2.trace("One two three four five six seven eight nine ten")
    whole = trace.weights(9, 4)
    np.testing.assert_allclose(trace.weights(9, 4, queries=slice(2, 5), keys=slice(1, 4)), whole[2:5, 1:4], atol=1e-6)
    np.testing.assert_array_equal(trace.scores(9, 4, keys=slice(1, 4)), trace.scores(9, 4)[:, 1:4])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("scaled", [True, False])
def test_half_precision_gives_finite_rows_that_sum_to_one(dtype, scaled, tiny_folder):
    engine = attnviz.load(str(tiny_folder("llama")), dtype=dtype)
    trace = engine.trace(TEXT, switches=Switches(scaled=scaled))
    for layer in trace.layers:
        weights = trace.layer_weights(layer)
        assert weights.dtype == np.float32 and np.isfinite(weights).all()
        np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-5)


def test_half_precision_of_a_real_model(smollm2):
    engine = attnviz.load("smollm2", dtype="float16")
    trace = engine.trace("The capital of France is")
    for layer in trace.layers:
        for switches in (None, Switches(scaled=False)):
            sums = trace.layer_weights(layer, switches=switches).sum(axis=-1)
            np.testing.assert_allclose(sums, 1, atol=1e-5)
    assert engine.info.dtype == "float16" and trace.next_tokens(1)[0][0] == "·Paris"
    assert np.abs(trace.weights(13, 8) - smollm2.trace(trace.text).weights(13, 8)).max() < 0.05


@pytest.mark.parametrize("text", ["", "   ", "\n", "\u200b", "\t\u00a0"])
def test_text_without_a_visible_character_is_refused(text, smollm2, minilm):
    for engine in (smollm2, minilm):
        with pytest.raises(ValueError, match="visible character"):
            engine.trace(text)


def test_the_same_text_gives_the_same_bits(smollm2):
    one, two = smollm2.trace("say what?"), smollm2.trace("say what?")
    for layer in one.layers:
        np.testing.assert_array_equal(one.layer_weights(layer), two.layer_weights(layer))


def test_too_long_texts_are_cut_to_the_configured_limit(minilm, engine_of):
    trace = minilm.trace("word " * 600)
    assert len(trace.tokens) == 512 and trace.n_cut == 90
    assert (trace.tokens[0].label, trace.tokens[-1].label, trace.tokens[-1].index) == ("[CLS]", "[SEP]", 511)
    trace = engine_of("gpt2_inv").trace("w1 " * 17)
    assert len(trace.tokens) == 16 and trace.n_cut == 1


def test_max_tokens_cuts_before_the_limit(smollm2):
    trace = smollm2.trace("w " * 9000, max_tokens=40)
    assert len(trace.tokens) == 40 and trace.n_cut == 8961


@pytest.mark.parametrize("max_tokens", [0, -3, 2.5])
def test_max_tokens_that_cannot_be(engine_of, max_tokens):
    with pytest.raises(ValueError, match="max_tokens must be a whole number from 1 up"):
        engine_of("llama").trace("w1 w2 w3", max_tokens=max_tokens)


def test_two_threads_with_opposite_switches_never_meet(engine_of):
    engine, failures = engine_of("llama"), []

    def visit(causal, expected):
        for _ in range(100):
            trace = engine.trace(TEXT, switches=Switches(causal=causal))
            ahead = np.triu(trace.weights(1, 0), k=1).max() > 0
            if ahead != expected or np.abs(trace.weights(1, 0) - wanted[causal]).max() > 1e-6:
                failures.append(causal)

    wanted = {causal: engine.trace(TEXT, switches=Switches(causal=causal)).weights(1, 0) for causal in (True, False)}
    visitors = [threading.Thread(target=visit, args=arguments) for arguments in ((True, False), (False, True))]
    for visitor in visitors:
        visitor.start()
    for visitor in visitors:
        visitor.join()
    assert failures == []


def test_an_interrupted_pass_leaves_nothing_behind(engine_of):
    engine = engine_of("llama")
    before = engine.trace(TEXT).layer_weights(1)

    def stop(done, layers):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        engine.trace(TEXT, switches=Switches(causal=False), on_layer=stop)
    assert not engine.busy
    np.testing.assert_array_equal(engine.trace(TEXT).layer_weights(1), before)


def test_next_tokens_are_the_models_own(smollm2, minilm):
    trace = smollm2.trace("The capital of France is")
    with torch.no_grad():
        logits = smollm2.model(torch.tensor([[token.id for token in trace.tokens]])).logits[0, -1]
    np.testing.assert_allclose(trace.next_probabilities(), torch.softmax(logits.double(), -1).numpy(), atol=1e-6)
    (label, probability), *_ = trace.next_tokens(3)
    assert label == "·Paris" and probability == pytest.approx(0.773, abs=5e-4)
    with pytest.raises(ValueError, match="no next-token output"):
        minilm.trace("Paris").next_tokens(1)


def test_arrays_of_a_trace_are_read_only(smollm2):
    q, _, _ = smollm2.trace("say what?").qkv(3, 1)
    with pytest.raises(ValueError, match="read-only"):
        q[0, 0] = 1
