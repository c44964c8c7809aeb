"""The published models against what their publishers state and against transformers' own modules, and what fits."""

from dataclasses import replace

import pytest
import torch
import transformers

from attnviz.core.cost.formulas import cache_bytes
from attnviz.core.cost.published import GB, MODELS_FILE, fits, parameters, published_models
from tests.cases import every

MODELS = {model.name: model for model in published_models()}
each = every("model", MODELS)


@each
def test_the_sizes_give_the_count_that_the_publisher_states(model):
    assert model.parameters == pytest.approx(model.stated_parameters, rel=0.02), model.source


@each
def test_every_model_names_its_source(model):
    assert len(model.source) > 20
    assert "://" not in model.source


def test_the_choice_spans_sizes_and_kinds_of_attention():
    assert len(MODELS) >= 8
    counts = [model.stated_parameters for model in MODELS.values()]
    assert counts == sorted(counts)
    assert counts[0] < 150e6
    assert counts[-1] > 400e9
    assert {model.attention for model in MODELS.values()} == {"multi-head", "grouped-query", "multi-query"}
    assert MODELS["Falcon-7B"].attention == "multi-query"
    assert MODELS["BLOOM"].attention == "multi-head"
    assert MODELS["SmolLM2-135M"].attention == "grouped-query"


def test_counts_that_are_stated_to_the_last_parameter():
    gemma, bloom = MODELS["Gemma 2B"], MODELS["BLOOM"]
    norms = (2 * gemma.shape.n_layers + 1) * gemma.shape.d_model
    assert gemma.parameters + norms == 524_550_144 + 1_981_884_416  # table 2 of the Gemma paper
    assert gemma.shape.vocabulary * gemma.shape.d_model == 524_550_144
    assert bloom.shape.vocabulary * bloom.shape.d_model == 3_596_615_680  # BLOOM's model card
    assert 0.999 < bloom.parameters / 176_247_271_424 < 1


GPT2 = (transformers.GPT2Config, transformers.GPT2LMHeadModel)
LLAMA = (transformers.LlamaConfig, transformers.LlamaForCausalLM)
OTHERS = {
    "GPT-2 small": GPT2,
    "GPT-2 XL": GPT2,
    "Gemma 2B": (transformers.GemmaConfig, transformers.GemmaForCausalLM),
    "Falcon-7B": (transformers.FalconConfig, transformers.FalconForCausalLM),
    "Mistral 7B v0.3": (transformers.MistralConfig, transformers.MistralForCausalLM),
    "StarCoder": (transformers.GPTBigCodeConfig, transformers.GPTBigCodeForCausalLM),
    "BLOOM": (transformers.BloomConfig, transformers.BloomForCausalLM),
}


def module_of(model):
    """The transformers module of these sizes, without memory for its weights."""
    shape = model.shape
    make_config, make_module = OTHERS.get(model.name, LLAMA)
    own = {
        "GPT2Config": {"n_inner": shape.d_ff, "n_positions": model.learned_positions},
        "GPTBigCodeConfig": {"n_inner": shape.d_ff, "n_positions": model.learned_positions, "multi_query": True},
        "FalconConfig": {"multi_query": True, "new_decoder_architecture": False, "bias": False},
        "BloomConfig": {"n_layer": shape.n_layers, "n_head": shape.n_heads},
    }
    gated = {
        "intermediate_size": shape.d_ff,
        "num_key_value_heads": shape.n_kv_heads,
        "head_dim": shape.d_head,
        "max_position_embeddings": model.context,
    }
    config = make_config(
        hidden_size=shape.d_model,
        num_hidden_layers=shape.n_layers,
        num_attention_heads=shape.n_heads,
        vocab_size=shape.vocabulary,
        tie_word_embeddings=model.tied,
        **own.get(make_config.__name__, gated),
    )
    with torch.device("meta"):
        return make_module(config)


@each
def test_transformers_builds_the_same_number_of_weights(model):
    short = replace(model, shape=replace(model.shape, n_layers=2))  # every layer has the same sizes
    module = module_of(short)
    matrices = sum(weight.numel() for weight in module.parameters() if weight.ndim == 2)
    assert matrices == short.parameters
    everything = sum(weight.numel() for weight in module.parameters())
    assert matrices <= everything < 1.002 * matrices  # norms and biases


def test_tying_saves_one_embedding():
    shape = MODELS["Llama 3.1 8B"].shape
    tied, untied = parameters(shape, tied=True), parameters(shape, tied=False)
    assert untied - tied == shape.vocabulary * shape.d_model


# what fits


@each
@every("memory", [8 * GB, 24 * GB, 80 * GB])
@every("weight_bytes, number_bytes", [(2, 2), (0.5, 1), (4, 4)])
def test_the_most_tokens_fit_and_one_more_does_not(model, memory, weight_bytes, number_bytes):
    sizes = {"weight_bytes": weight_bytes, "cache_bytes": number_bytes}
    fit = fits(model, memory, tokens=8192, **sizes)
    assert fit.weights == int(model.parameters * weight_bytes)
    assert fit.cache == cache_bytes(model.shape, 8192, number_bytes)
    assert fit.fits == (fit.weights + fit.cache <= memory)
    if fit.most_tokens is None:
        assert fit.weights > memory
    else:
        assert fits(model, memory, tokens=fit.most_tokens, **sizes).fits
        assert not fits(model, memory, tokens=fit.most_tokens + 1, **sizes).fits


def test_weights_that_fill_the_memory_leave_no_token():
    model = MODELS["GPT-2 small"]
    assert fits(model, 2 * model.parameters, tokens=1).most_tokens == 0
    assert fits(model, 2 * model.parameters - 1, tokens=1).most_tokens is None
    assert fits(model, 2 * model.parameters - 1, tokens=0).fits is False


def test_known_sizes_of_caches():
    llama, llama3 = MODELS["LLaMA 7B"], MODELS["Llama 3.1 8B"]
    assert cache_bytes(llama.shape, 1, 2) == 524_288  # half a mebibyte a token
    assert cache_bytes(llama3.shape, 1, 2) == 131_072  # grouped queries keep a quarter
    assert cache_bytes(MODELS["Llama 3.1 405B"].shape, 131_072, 2) == pytest.approx(67.6e9, rel=0.01)


def test_refuses_weights_of_no_bytes():
    with pytest.raises(ValueError, match="weight_bytes above 0, .* got 0"):
        fits(MODELS["GPT-2 small"], GB, tokens=1, weight_bytes=0)
    with pytest.raises(ValueError, match="t of at least 0, got -1"):
        fits(MODELS["GPT-2 small"], GB, tokens=-1)


def test_the_file_holds_no_address():
    assert "://" not in MODELS_FILE.read_text(encoding="utf-8")
