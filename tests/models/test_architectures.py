"""Architectures at the edge: what they are fed, how far they reach, what they hide in q, and what they can't do."""

import dataclasses
import functools
import json

import numpy as np
import pytest
import torch
import transformers

import attnviz
from attnviz import Switches
from attnviz.models.listen import cache_check
from attnviz.models.listen.call import Call, UnknownExtra
from attnviz.models.listen.capture import Recorder, Wires
from attnviz.models.listen.feed import Feed, new_positions, windows
from tests import tiny
from tests.models.eager import assert_same_maps, eager_maps

TEXT = "w1 w5 w9 w2 w30 w4 w77 w1 w5 w9 w3 w12"
IDS = {"bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 1}
GROUPED = {"num_key_value_heads": 2}
LONG = {"rope_type": "longrope", "rope_theta": 10_000.0, "original_max_position_embeddings": 16, "factor": 4.0}
LONG |= {"short_factor": [1.0] * 4, "long_factor": [1.5, 2.0, 4.0, 8.0]}
MAMBA = {"mamba_n_heads": 8, "mamba_d_head": 8, "mamba_n_groups": 1, "mamba_d_state": 16, "mamba_expand": 2}
ENDS = {"max_position_embeddings": 34, "pad_token_id": 1}
BART = {"d_model": 32, "encoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64}
BART |= {"max_position_embeddings": 64, "decoder_start_token_id": 2, **IDS}
GEMMA4 = {"head_dim": 8, "global_head_dim": 16, "num_kv_shared_layers": 2, "num_hidden_layers": 4, "sliding_window": 4}
GEMMA4 |= {"layer_types": ["sliding_attention", "full_attention"] * 2, "hidden_size_per_layer_input": 8}

WHISPER = {"d_model": 32, "suppress_tokens": [], "begin_suppress_tokens": []}
CACHED = {"bamba": 20.0, "jamba": 20.0, "gemma4": 1.0, "phi3": 12.0, "mistral_sw4": 12.0, "gptoss": 12.0}

FINISHED = {"mpt", "mpnet", "ibert", "prophetnet"}  # these go their own way

RECIPES = {
    # attention in layer 1 alone, and a cache whose first layer has no keys to count
    "bamba": tiny.recipe("BambaForCausalLM", "BambaConfig", **GROUPED, **IDS, **MAMBA, attn_layer_indices=[1]),
    "jamba": tiny.recipe(
        "JambaForCausalLM", "JambaConfig", **GROUPED, **IDS, attn_layer_period=2, attn_layer_offset=1, num_experts=2
    ),
    # masks of one row for all queries
    "layoutlm": tiny.recipe("LayoutLMModel", "LayoutLMConfig"),
    "markuplm": tiny.recipe("MarkupLMModel", "MarkupLMConfig"),
    # wants a mask under our attention, and goes its own way
    "mpt": tiny.recipe("MptForCausalLM", "MptConfig", d_model=32, n_heads=4, n_layers=2, max_seq_len=64, **IDS),
    # layers 2 and 3 use the keys of layers 0 and 1, and see the last query alone if only its logits are wanted
    "gemma4": tiny.recipe(
        "Gemma4ForCausalLM", "Gemma4TextConfig", flat=False, **GROUPED, **GEMMA4, vocab_size_per_layer_input=97
    ),
    # positions begin behind the padding token's number
    "mpnet": tiny.recipe("MPNetModel", "MPNetConfig", **ENDS),
    "roberta": tiny.recipe("RobertaModel", "RobertaConfig", **ENDS),
    "esm": tiny.recipe("EsmModel", "EsmConfig", **ENDS, mask_token_id=5, position_embedding_type="absolute"),
    # a table of positions of another kind, and one that is also looked up two places further on
    "ibert": tiny.recipe("IBertModel", "IBertConfig", **ENDS),
    "prophetnet": tiny.recipe(
        "ProphetNetForCausalLM", "ProphetNetConfig", sized=False, **ENDS, hidden_size=32, num_decoder_layers=2,
        num_encoder_layers=2, num_decoder_attention_heads=4, num_encoder_attention_heads=4, decoder_ffn_dim=64,
    ),
    # the factor is in q before the rotary embedding
    "esm_rotary": tiny.recipe("EsmModel", "EsmConfig", **ENDS, mask_token_id=5, position_embedding_type="rotary"),
    # from 16 tokens on all positions are others
    "phi3": tiny.recipe(
        "Phi3ForCausalLM", "Phi3Config", **GROUPED, **IDS, max_position_embeddings=64, rope_parameters=LONG,
        original_max_position_embeddings=16,
    ),
    "bart": tiny.recipe(
        "BartForConditionalGeneration", "BartConfig", sized=False, **BART, encoder_layers=3, decoder_layers=2,
        decoder_attention_heads=2,
    ),
    "marian": tiny.recipe(
        "MarianMTModel", "MarianConfig", sized=False, **BART, encoder_layers=1, decoder_layers=3,
        decoder_attention_heads=4,
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def engine_of(tmp_path_factory):
    """Return a function from a name in RECIPES, or in tests.tiny, to its engine, loaded once."""
    engines = {}

    def get(name, sharpen=tiny.SHARP):
        if (name, sharpen) not in engines:
            folder = tmp_path_factory.mktemp(name)
            engines[name, sharpen] = attnviz.load(str(tiny.build(RECIPES.get(name, name), folder, sharpen=sharpen)))
        return engines[name, sharpen]

    return get


@pytest.mark.parametrize("name", RECIPES)
def test_weights_are_the_models_own(name, engine_of):
    engine = engine_of(name)
    trace = engine.trace(TEXT, target="w3 w4 w5" if len(engine.info.parts) > 1 else None)
    assert_same_maps(trace, eager_maps(engine, trace))
    assert ("scores" in engine.info.cannot) == (name in FINISHED)  # the others can be listened to


def test_a_bias_by_position_is_as_exact_as_the_rest_however_sharp(engine_of, tmp_path):
    recipe = dataclasses.replace(tiny.RECIPES["t5"], flat=True)
    for sharpen in (3.0, 8.0):
        folder = tmp_path / str(sharpen)
        folder.mkdir()
        model = tiny.tiny_model(recipe)
        with torch.no_grad():
            for name, weight in model.named_parameters():
                if name.endswith((".q.weight", ".k.weight")):
                    weight *= sharpen
        model.save_pretrained(folder)
        tiny.tiny_tokenizer().save_pretrained(folder)
        engine = attnviz.load(str(folder))
        trace = engine.trace(TEXT, target="w3 w4 w5 w9")
        assert_same_maps(trace, eager_maps(engine, trace))


@pytest.mark.parametrize(
    ("name", "limit"),
    [("mpnet", 32), ("roberta", 32), ("esm", 32), ("esm_rotary", 34), ("ibert", 32), ("prophetnet", 31)],
)
def test_a_text_reaches_as_far_as_the_table_of_positions(name, limit, engine_of):
    engine = engine_of(name)
    words = " ".join(f"w{i}" for i in range(40))
    trace = engine.trace(words)
    assert (engine.info.limit, len(trace.tokens), trace.n_cut) == (limit, limit, 40 - limit)


@pytest.mark.parametrize("name", ["esm_rotary", "esm", "opt", "bart", "marian"])
def test_a_factor_that_hides_in_q_is_found_and_can_be_dropped(name, engine_of):
    engine = engine_of(name, 4.0)
    rest = engine.trace(TEXT)
    part = rest.parts[0]
    assert rest.scale(0, part=part) == pytest.approx(8**-0.5, abs=1e-7)
    assert "scaled" not in engine.info.cannot
    for trace, switches in (
        (engine.trace(TEXT, switches=Switches(scaled=False)), None),
        (rest, Switches(scaled=False)),
    ):
        power = rest.weights(0, 1, part=part).astype(np.float64) ** 8**0.5
        expected = power / power.sum(axis=-1, keepdims=True)
        np.testing.assert_allclose(trace.weights(0, 1, part=part, switches=switches), expected, atol=1e-4)


@pytest.mark.parametrize("name", ["t5", "gptneo"])
def test_where_no_factor_hides_none_is_found(name, engine_of):
    assert "scaled" in engine_of(name).info.cannot


@pytest.mark.parametrize(
    ("model", "config", "takes"),
    [
        ("ViTModel", {"image_size": 16, "patch_size": 8}, "takes images"),
        ("Wav2Vec2Model", {}, "takes sound"),
        ("PatchTSTModel", {"context_length": 32, "patch_length": 8}, "takes time series"),
        ("WhisperForConditionalGeneration", WHISPER, "takes sound"),
        ("CLIPModel", {"text_config": {"vocab_size": 97}, "vision_config": {"image_size": 16}}, "takes images"),
        ("BlipModel", {"text_config": {"vocab_size": 97}, "vision_config": {}}, "takes images"),
    ],
)
@pytest.mark.parametrize("tokenizer", [True, False])
def test_models_that_read_no_text_say_what_they_take(model, config, takes, tokenizer, tmp_path):
    kind = getattr(transformers, model)
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 64}
    sizes |= {"encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 4, "decoder_attention_heads": 4}
    settings = {key: value | sizes if isinstance(value, dict) else value for key, value in config.items()}
    kind(kind.config_class(**sizes | settings)).save_pretrained(tmp_path)
    if tokenizer:
        tiny.tiny_tokenizer().save_pretrained(tmp_path)
    elif "text_config" in config:  # a model of text and images lacks what reads its text
        takes = "it can't be said how it cuts up a text"
    with pytest.raises(ValueError, match=takes) as told:
        attnviz.load(str(tmp_path))
    assert "\n" not in str(told.value)


def test_scores_are_not_taken_for_weights(tmp_path):
    recipe = tiny.recipe("SqueezeBertModel", "SqueezeBertConfig", embedding_size=32)
    with pytest.raises(ValueError, match="are no weights"):
        attnviz.load(str(tiny.build(recipe, tmp_path, sharpen=tiny.SHARP)))


def test_weights_that_are_not_numbers_are_refused(tmp_path):
    model = tiny.tiny_model("bloom")
    with torch.no_grad():
        model.transformer.h[1].self_attention.query_key_value.weight[:] = 1e30
    model.save_pretrained(tmp_path)
    tiny.tiny_tokenizer().save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="layer 1 gives weights that aren't finite"):
        attnviz.load(str(tmp_path))


def test_what_fails_in_the_middle_of_a_pass_is_one_sentence_and_what_the_caller_raises_stays(engine_of):
    engine = engine_of("roberta")
    too_far = dataclasses.replace(engine, info=dataclasses.replace(engine.info, limit=40))
    with pytest.raises(ValueError, match="can't run over these 40 tokens"):
        too_far.trace(" ".join(f"w{i}" for i in range(40)))

    def stop(done, n_layers):
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="^stop$"):
        engine.trace(TEXT, on_layer=stop)


def test_the_first_reason_found_is_the_one_that_is_shown(engine_of, monkeypatch, tiny_folder):
    assert "doesn't go through the attention interface" in engine_of("bloom").info.cannot["scores"]

    def strange(self, *args, **kwargs):
        raise UnknownExtra("the model's mask differs from head to head")

    def broken(self, *args, **kwargs):
        raise IndexError("index 7 is out of bounds")

    def wrong(self, call):
        return attend(self, dataclasses.replace(call, query=3 * call.query))

    attend = Recorder.attend
    for fault, reason in ((strange, "differs from head to head"), (broken, "index 7"), (wrong, "own maps differ by")):
        monkeypatch.setattr(Recorder, "attend", fault)
        engine = attnviz.load(str(tiny_folder("llama")))
        assert reason in engine.info.cannot["scores"] and reason in engine.info.notes[-1]
        assert_same_maps(engine.trace(TEXT), eager_maps(engine, engine.trace(TEXT)))


def test_a_model_that_wants_a_mask_gets_one_in_every_step(tiny_folder, monkeypatch):
    plain = attnviz.load(str(tiny_folder("llama")))
    weights, written = plain.trace(TEXT).weights(1, 2), [step.token.id for step in plain.generate(TEXT, 3)]
    forward = transformers.LlamaForCausalLM.forward

    @functools.wraps(forward)
    def wants(self, input_ids=None, attention_mask=None, **others):
        places = attention_mask.to(torch.bool)  # as MPT, an AttributeError without one
        assert places.shape[1] == input_ids.shape[1] + (others["cache"].get_seq_length() if "cache" in others else 0)
        return forward(self, input_ids=input_ids, attention_mask=attention_mask, **others)

    monkeypatch.setattr(transformers.LlamaForCausalLM, "forward", wants)
    engine = attnviz.load(str(tiny_folder("llama")))
    assert engine.wiring.feed.mask and engine.wiring.listens
    np.testing.assert_allclose(engine.trace(TEXT).weights(1, 2), weights, atol=1e-6)
    assert [step.token.id for step in engine.generate(TEXT, 3)] == written


def test_a_mask_may_hold_for_all_queries_or_differ_between_heads():
    module = torch.nn.Linear(1, 1)

    def mask_of(mask):
        recorder = Recorder(Wires({module: ("", 0)}))
        q = torch.randn(1, 2, 3, 4)
        recorder.attend(Call(module, q, q, q, mask, None, {}))
        return recorder.records[""][0]

    for row in (torch.tensor([True, True, False]), torch.tensor([0.0, 0.0, torch.finfo(torch.float32).min])):
        assert (
            mask_of(row.view(1, 1, 1, 3)).mask.allowed(np.arange(3), np.arange(3)).tolist() == [[True, True, False]] * 3
        )
    per_head = torch.zeros(1, 2, 3, 3)
    per_head[0, 1] = torch.arange(3.0)  # as ALiBi: a bias of its own for each head, under one rule
    assert mask_of(per_head).bias.shape == (2, 3, 3)
    per_head[0, 1, 0, 0] = float("-inf")
    with pytest.raises(UnknownExtra, match="from head to head"):
        mask_of(per_head)


@pytest.mark.parametrize(("name", "sharpen"), CACHED.items())
def test_writing_with_the_cache_is_writing_without(name, sharpen, engine_of):
    engine = engine_of(name, sharpen)
    with_cache, whole = (list(engine.generate(TEXT, 16, cache=cache)) for cache in (True, False))
    assert [step.token.id for step in with_cache] == [step.token.id for step in whole]
    for ours, theirs in zip(with_cache, whole, strict=True):
        for layer in ours.trace.layers:
            np.testing.assert_allclose(ours.trace.layer_weights(layer), theirs.trace.layer_weights(layer), atol=1e-5)
    ids = torch.tensor([[token.id for token in engine.trace(TEXT).tokens]])
    written = engine.model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=16)
    assert written[0, ids.shape[1] :].tolist() == [step.token.id for step in whole]


def test_a_cache_that_cannot_even_be_made_is_not_used(tmp_path):
    recipe = tiny.recipe("LlamaForCausalLM", "LlamaConfig", num_key_value_heads=2)
    tiny.build(recipe, tmp_path, sharpen=tiny.SHARP)
    config = json.loads((tmp_path / "config.json").read_text())
    config |= {"layer_types": ["sliding_attention", "full_attention"]}  # and no sliding_window
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert "sliding_window" in attnviz.load(str(tmp_path)).info.cannot["cache"]


def test_past_its_original_length_longrope_starts_over(engine_of):
    engine = engine_of("phi3")
    assert new_positions(engine.model.config) == (16,)
    steps = list(engine.generate(TEXT, 8, cache=True))
    first, crossed = steps[0].trace, next(step.trace for step in steps if len(step.trace.tokens) == 17)
    apart = np.abs(crossed.layer_weights(0)[:, :12, :12] - first.layer_weights(0)).max()
    assert apart > 1e-3  # the rows of the beginning are others now, as in a pass over the whole text
    np.testing.assert_allclose(crossed.layer_weights(1), engine.trace(crossed.text).layer_weights(1), atol=1e-5)


def test_a_cache_that_gives_other_numbers_is_not_used(tiny_folder, monkeypatch):
    step = Feed.step

    def shifted(self, model, ids, cache, n_past):
        places = torch.arange(ids.shape[1])[None] + (n_past and n_past - 2)  # two places behind
        return step(self, model, ids, cache, n_past) | {"position_ids": places}

    monkeypatch.setattr(Feed, "step", shifted)
    engine = attnviz.load(str(tiny_folder("llama")))
    assert "differ by" in engine.info.cannot["cache"]
    with pytest.raises(ValueError, match="use cache=False"):
        engine.generate(TEXT, 2)
    assert len(list(engine.generate(TEXT, 2, cache=False))) == 2


def test_past_a_window_too_long_to_try_the_cache_is_compared(tiny_folder, monkeypatch):
    monkeypatch.setattr(cache_check, "COST", 0)
    engine = attnviz.load(str(tiny_folder("mistral_sw4")))
    text = "w1 w5"
    assert windows(engine.model.config) == (4,)
    expected = [step.logits for step in engine.generate(text, 6, cache=False)]
    step = Feed.step

    def forgetful(self, model, ids, cache, n_past):  # right up to the window, wrong beyond
        places = torch.arange(n_past, n_past + ids.shape[1])[None]
        return step(self, model, ids, cache, n_past) | {"position_ids": places if n_past < 4 else places - 3}

    for broken in (False, True):
        if broken:
            monkeypatch.setattr(Feed, "step", forgetful)
        wiring = dataclasses.replace(engine.wiring, checked=0)
        steps = list(dataclasses.replace(engine, wiring=wiring).generate(text, 6, cache=True))
        np.testing.assert_allclose([step.logits for step in steps], expected, atol=1e-4)
        assert (not steps[-1].cache) == broken


def test_an_encoder_and_a_decoder_may_differ_in_depth_and_heads(engine_of):
    assert engine_of("bart").info.sizes == {"encoder": (3, 4), "decoder": (2, 2), "cross": (2, 2)}
    assert engine_of("marian").info.n_layers == 3
    assert engine_of("llama").info.sizes == {}


def test_a_decoder_without_a_start_of_its_own_begins_as_texts_do(tiny_folder):
    engine = attnviz.load(str(tiny_folder("t5")))
    config, settings = engine.model.config, engine.model.generation_config
    for start, bos, pad, expected in ((5, 6, 7, 5), (None, 6, 7, 6), (None, None, 7, 7), (None, None, None, None)):
        settings.decoder_start_token_id = start  # transformers' generate looks there first
        config.decoder_start_token_id = settings.bos_token_id = settings.pad_token_id = None
        config.bos_token_id, config.pad_token_id = bos, pad
        if expected is not None:
            assert engine.trace("w1 w2").tokens_of("decoder")[0][0].id == expected
    with pytest.raises(ValueError, match="decoder_start_token_id"):
        engine.trace("w1 w2")


def test_the_start_of_a_composed_model_is_its_own_and_not_its_decoders(tmp_path):
    sizes = {"vocab_size": 97, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4}
    both = [
        transformers.BertConfig(**sizes),
        transformers.BertConfig(**sizes, is_decoder=True, add_cross_attention=True),
    ]
    kind = transformers.EncoderDecoderConfig.from_encoder_decoder_configs
    transformers.EncoderDecoderModel(kind(*both, decoder_start_token_id=2, pad_token_id=1)).save_pretrained(tmp_path)
    tiny.tiny_tokenizer().save_pretrained(tmp_path)
    trace = attnviz.load(str(tmp_path)).trace("w1 w2", target="w7")
    assert [token.id for token in trace.tokens_of("decoder")[0]] == [2, 18]
    assert_same_maps(trace, eager_maps(attnviz.load(str(tmp_path)), trace))
