"""Folders that were changed, damaged or mixed up: the model's own numbers, or one sentence that says why not."""

import json
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
import tokenizers
import torch
import transformers
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from tokenizers import pre_tokenizers

import attnviz
from attnviz.models.load import stored as files
from tests import tiny
from tests.models import folder_changes
from tests.models.folder_changes import TEXT

ENGINES = ("torch", "numpy")


@pytest.fixture(scope="module")
def intact(tmp_path_factory):
    """Return a function from a model's name to its folder and its numbers in either engine."""
    known = {}

    def get(name):
        if name not in known:
            folder = folder_changes.build(name, tmp_path_factory.mktemp(name))
            engines = ENGINES if name in folder_changes.FROM_SCRATCH else ENGINES[:1]
            known[name] = folder, {engine: numbers(folder, engine) for engine in engines}
        return known[name]

    return get


def numbers(folder, engine="torch"):
    """Return all weights of a text and the logits of the next token."""
    trace = attnviz.load(str(folder), engine=engine).trace(TEXT)
    maps = [trace.layer_weights(layer, part=part) for part in trace.parts for layer in trace.layers_of(part)]
    return maps, trace.next_logits


def assert_same(found, expected):
    np.testing.assert_equal([each.shape for each in found[0]], [each.shape for each in expected[0]])
    for one, other in zip(found[0], expected[0], strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-5)
    assert (found[1] is None) == (expected[1] is None)
    if found[1] is not None:
        np.testing.assert_allclose(found[1], expected[1], rtol=0, atol=1e-4)


@pytest.fixture
def llama(tiny_folder, tmp_path):
    return shutil.copytree(tiny_folder("llama"), tmp_path / "my-llama")


def edit(folder, change):
    """Save a folder's weights again as `change` returns them, or changes them in place."""
    tensors = load_file(folder / "model.safetensors")
    tensors = change(tensors) or tensors
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    return folder


def configure(folder, file="config.json", **settings):
    config = json.loads((folder / file).read_text()) | settings
    (folder / file).write_text(json.dumps({key: value for key, value in config.items() if value is not ...}))
    return folder


def refusal(folder, engine="torch"):
    """Return the sentence with which a folder is refused."""
    with pytest.raises(ValueError) as error:
        attnviz.load(str(folder), engine=engine)
    sentence = str(error.value)
    assert sentence and "\n" not in sentence and len(sentence) < 500
    return sentence


# Weights that are missing, wrapped, doubled, left over or no numbers

Q = "model.layers.1.self_attn.q_proj.weight"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("lost", [Q, "model.norm.weight", "lm_head.weight", "model.embed_tokens.weight"])
def test_a_weight_that_is_missing_is_named(lost, engine, llama):
    assert lost.removeprefix("model.") in refusal(
        edit(llama, lambda tensors: {name: each for name, each in tensors.items() if name != lost}), engine
    )


def test_many_missing_weights_are_counted(llama):
    sentence = refusal(edit(llama, lambda t: {name: each for name, each in t.items() if ".0." not in name}))
    assert "9 weights" in sentence and "6 more" in sentence


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "rename",
    [
        lambda name: f"_orig_mod.{name}",
        lambda name: f"module.{name}",
        lambda name: f"base_model.model.{name}",
        lambda name: f"_forward_module.module._orig_mod.{name}",
        lambda name: name.replace("layers.", "_fsdp_wrapped_module.layers."),
        lambda name: name.replace("self_attn", "_checkpoint_wrapped_module.self_attn").replace("mlp", "_orig_mod.mlp"),
    ],
)
def test_what_training_tools_put_before_names_is_taken_off(rename, engine, llama, intact):
    edit(llama, lambda tensors: {rename(name): each for name, each in tensors.items()})
    assert_same(numbers(llama, engine), intact("llama")[1][engine])
    assert attnviz.load(str(llama), engine=engine).info.notes == ()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("twin", [f"_orig_mod.{Q}", Q.removeprefix("model.")])
def test_a_weight_that_stands_there_twice_is_refused(twin, engine, llama):
    assert "twice" in refusal(edit(llama, lambda tensors: tensors | {twin: tensors[Q] + 1}), engine)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "extra",
    [
        "model.layers.0.self_attn.q_proj.bias",
        "model.layers.2.self_attn.q_proj.weight",
        "model.layers.1.self_attn.q_norm.weight",
        "model.layers.0.self_attn.v_proj.lora_A.default.weight",
        "model.embed_positions.weight",
        "lm_head.bias",
    ],
)
def test_a_weight_without_a_place_inside_the_model_is_refused(extra, engine, llama):
    assert extra in refusal(edit(llama, lambda tensors: tensors | {extra: torch.ones(4)}), engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_head_that_no_map_needs_is_a_note_and_tables_are_none(engine, llama, intact):
    extra = {"score.weight": torch.ones(2, 32), "model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(4)}
    edit(llama, lambda tensors: tensors | extra)
    assert_same(numbers(llama, engine), intact("llama")[1][engine])
    notes = attnviz.load(str(llama), engine=engine).info.notes
    assert len(notes) == 1 and "score.weight" in notes[0] and "inv_freq" not in notes[0]


@pytest.mark.parametrize("engine", ENGINES)
def test_tables_that_older_versions_saved_are_silent(engine, intact, tmp_path):
    folder = shutil.copytree(intact("gpt2")[0], tmp_path / "old-gpt2")
    tables = {"transformer.h.0.attn.bias": torch.ones(1, 1, 16, 16), "transformer.h.0.attn.masked_bias": torch.ones(())}
    edit(folder, lambda tensors: tensors | tables)
    assert_same(numbers(folder, engine), intact("gpt2")[1][engine])
    assert attnviz.load(str(folder), engine=engine).info.notes == ()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_missing_pooler_is_no_fault(engine, intact, tmp_path):
    folder = shutil.copytree(intact("bert")[0], tmp_path / "bert")
    edit(folder, lambda tensors: {name: each for name, each in tensors.items() if "pooler" not in name})
    assert_same(numbers(folder, engine), intact("bert")[1][engine])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers(value, engine, llama):
    def poison(tensors):
        tensors["model.layers.1.mlp.up_proj.weight"][3, 5] = value

    assert "mlp.up_proj.weight" in refusal(edit(llama, poison), engine)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.float8_e4m3fn])
def test_packed_weights_without_a_word_on_how_to_unpack_them(dtype, engine, llama):
    assert "q_proj" in refusal(edit(llama, lambda tensors: tensors | {Q: tensors[Q].to(dtype)}), engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_head_of_its_own_counts_although_the_configuration_ties_it(engine, llama, intact):
    configure(llama, tie_word_embeddings=True)
    assert_same(numbers(llama, engine), intact("llama")[1][engine])


def test_a_tied_head_need_not_be_in_the_files(tmp_path):
    config = transformers.LlamaConfig(**tiny.RECIPES["llama"].settings, tie_word_embeddings=True)
    model = transformers.LlamaForCausalLM(config)
    model.save_pretrained(tmp_path)
    tiny.tiny_tokenizer().save_pretrained(tmp_path)
    assert "lm_head.weight" not in load_file(tmp_path / "model.safetensors")
    assert_same(numbers(tmp_path), numbers(tmp_path, "numpy"))


# A configuration that disagrees with the files


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "settings",
    [
        {"num_hidden_layers": 3},
        {"num_hidden_layers": 1},
        {"num_hidden_layers": 0},
        {"num_hidden_layers": -1},
        {"num_hidden_layers": 10**9},
        {"num_key_value_heads": 4},
        {"intermediate_size": 65},
        {"vocab_size": 98},
        {"vocab_size": 10**9},
        {"hidden_size": "many"},
        {"attention_bias": True},
    ],
)
def test_a_configuration_of_another_model(settings, engine, llama):
    refusal(configure(llama, **settings), engine)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("name", "count"), [("bert", "num_hidden_layers"), ("gpt2", "n_layer")])
def test_no_layers_at_all(name, count, engine, intact, tmp_path):
    refusal(configure(shutil.copytree(intact(name)[0], tmp_path / name), **{count: 0}), engine)


def test_numbers_that_would_take_for_ever(intact, tmp_path):
    for name, wrong in (("t5", "num_decoder_layers"), ("mixtral", "num_local_experts"), ("gpt2", "n_layer")):
        folder = shutil.copytree(intact(name)[0], tmp_path / name)
        assert wrong in refusal(configure(folder, **{wrong: 10**9}))


# Which files are the model


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["model_old.safetensors", "consolidated.safetensors", "a.safetensors"])
def test_other_weights_beside_the_model_are_not_read_and_said(name, engine, llama, intact):
    revision = files.weights_revision(llama)
    other = {key: each + 1 for key, each in load_file(llama / "model.safetensors").items()}
    save_file(other, llama / name, {"format": "pt"})
    info = attnviz.load(str(llama), engine=engine).info
    assert info.revision == revision == files.weights_revision(llama)
    assert len(info.notes) == 1 and name in info.notes[0]
    assert_same(numbers(llama, engine), intact("llama")[1][engine])


@pytest.mark.parametrize("engine", ENGINES)
def test_a_model_in_parts_is_the_same_model(engine, intact):
    folder, known = intact("shards")
    assert_same(known[engine], intact("llama")[1][engine])
    assert attnviz.load(str(folder), engine=engine).info.notes == ()


@pytest.fixture
def shards(intact, tmp_path):
    return shutil.copytree(intact("shards")[0], tmp_path / "in-parts")


INDEX = "model.safetensors.index.json"


def test_parts_that_are_not_there_are_named(shards):
    lost = sorted(shards.glob("*.safetensors"))[1]
    lost.unlink()
    assert lost.name in refusal(shards) and lost.name in refusal(shards, "numpy")


def test_a_part_that_is_cut_short_is_named(shards):
    part = sorted(shards.glob("*.safetensors"))[1]
    part.write_bytes(part.read_bytes()[:-100])
    assert part.name in refusal(shards)


def test_parts_without_their_list(shards):
    (shards / INDEX).unlink()
    assert INDEX in refusal(shards)


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"weight_map": {}}', '{"weight_map": 3}', '{"weight_map": {"a": 1}}']
)
def test_a_list_of_parts_that_is_none(content, shards):
    (shards / INDEX).write_text(content)
    assert INDEX in refusal(shards)


@pytest.mark.parametrize("place", ["../x.safetensors", "/x.safetensors", "a/../../x.safetensors", "x.bin"])
def test_a_list_that_leads_elsewhere(place, shards):
    save_file({"x": torch.ones(1)}, shards.parent / "x.safetensors")
    (shards / "x.bin").write_bytes(b"")
    table = json.loads((shards / INDEX).read_text())["weight_map"]
    (shards / INDEX).write_text(json.dumps({"weight_map": table | {"x": place}}))
    assert place in refusal(shards)


@pytest.mark.parametrize("engine", ENGINES)
def test_one_weight_in_two_parts(engine, shards, intact):
    one, two = sorted(shards.glob("*.safetensors"))[:2]
    first, second = load_file(one), load_file(two)
    name = next(iter(first))
    save_file(second | {name: first[name]}, two, {"format": "pt"})
    assert_same(numbers(shards, engine), intact("shards")[1][engine])
    save_file(second | {name: first[name] + 1}, two, {"format": "pt"})
    assert name in refusal(shards, engine)


def test_the_whole_file_comes_before_parts(shards, intact):
    shutil.copy(intact("llama")[0] / "model.safetensors", shards)
    for part in shards.glob("model-*"):
        save_file({name: each + 1 for name, each in load_file(part).items()}, part, {"format": "pt"})
    assert_same(numbers(shards), intact("llama")[1]["torch"])
    assert files.weights_revision(shards) == files.weights_revision(intact("llama")[0])


def test_a_file_that_the_configuration_names(llama, intact):
    (llama / "model.safetensors").rename(llama / "other.safetensors")
    assert "other.safetensors" in refusal(llama)
    configure(llama, transformers_weights="other.safetensors")
    assert_same(numbers(llama), intact("llama")[1]["torch"])
    assert "outside" in refusal(configure(llama, transformers_weights="../other.safetensors"))


def test_memory_is_asked_for_what_is_read(llama):
    said = []
    attnviz.load(str(llama), progress=said.append)
    shutil.copy(llama / "model.safetensors", llama / "model_old.safetensors")
    again = []
    attnviz.load(str(llama), progress=again.append)
    assert said == again


# Adapters


def test_an_adapter_alone(llama):
    (llama / "model.safetensors").rename(llama / "adapter_model.safetensors")
    (llama / "adapter_config.json").write_text('{"base_model_name_or_path": "someone/base", "peft_type": "LORA"}')
    assert "adapter" in refusal(llama) and "someone/base" in refusal(llama)
    (llama / "config.json").unlink()
    assert "adapter" in refusal(llama) and "someone/base" in refusal(llama)
    (llama / "adapter_config.json").write_text("?")
    assert "adapter" in refusal(llama)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_adapter_beside_its_model(engine, llama, intact):
    (llama / "adapter_config.json").write_text('{"base_model_name_or_path": "someone/base", "peft_type": "LORA"}')
    save_file({"base_model.model.x.lora_A.weight": torch.ones(1)}, llama / "adapter_model.safetensors")
    notes = attnviz.load(str(llama), engine=engine).info.notes
    assert len(notes) == 1 and "adapter" in notes[0] and "someone/base" in notes[0]
    assert_same(numbers(llama, engine), intact("llama")[1][engine])


# Which class, whose code, which tokenizer


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["llama", "gpt2", "bert"])
@pytest.mark.parametrize("named", [..., None, [], ["MyOwnForCausalLM"]])
def test_without_a_known_class_the_weights_say_whether_there_is_a_head(named, name, engine, intact, tmp_path):
    folder = configure(shutil.copytree(intact(name)[0], tmp_path / "unnamed"), architectures=named)
    assert_same(numbers(folder, engine), intact(name)[1][engine])


@pytest.mark.parametrize("engine", ENGINES)
def test_a_bare_model_without_a_named_class_gets_no_random_head(engine, llama):
    bare = {"lm_head.weight"}
    edit(llama, lambda t: {name.removeprefix("model."): each for name, each in t.items() if name not in bare})
    info = attnviz.load(str(configure(llama, architectures=...)), engine=engine).info
    assert not info.predicts and info.architecture == "LlamaModel"


@pytest.mark.parametrize("kind", ["llava", "qwen2_vl"])
@pytest.mark.parametrize("named", [True, False])
def test_multimodal_language_models_keep_their_head(kind, named, tmp_path):
    folder = _multimodal(kind, tmp_path / kind)
    if not named:
        configure(folder, architectures=...)
    engine = attnviz.load(str(folder))
    assert engine.info.predicts and engine.info.causal and engine.info.notes == ()
    trace = engine.trace(TEXT)
    model = transformers.AutoModelForImageTextToText.from_pretrained(folder)
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([[token.id for token in trace.tokens]])).logits[0, -1]
    np.testing.assert_allclose(trace.next_logits, logits, rtol=0, atol=1e-5)


def _multimodal(kind, folder):
    text = tiny.RECIPES["llama"].settings
    eye = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    if kind == "llava":
        eye |= {"image_size": 16, "patch_size": 8, "projection_dim": 16}
        text, eye = transformers.LlamaConfig(**text), transformers.CLIPVisionConfig(**eye)
        config = transformers.LlavaConfig(text_config=text, vision_config=eye, image_token_index=96)
        model = transformers.LlavaForConditionalGeneration(config)
    else:
        rope = {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 10000.0}
        eye = {"depth": 1, "embed_dim": 16, "hidden_size": 32, "num_heads": 2, "mlp_ratio": 2, "patch_size": 8}
        config = transformers.Qwen2VLConfig(text_config=text | {"rope_parameters": rope}, vision_config=eye)
        model = transformers.Qwen2VLForConditionalGeneration(config)
    model.save_pretrained(folder)
    tiny.tiny_tokenizer().save_pretrained(folder)
    return folder


@pytest.mark.parametrize("engine", ENGINES)
def test_code_of_its_own_is_left_out_and_said(engine, llama, intact, monkeypatch):
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("asked on the terminal"))
    code = {"AutoConfig": "own.Config", "AutoModelForCausalLM": "own.Model", "AutoTokenizer": ["own.Tokens", None]}
    (llama / "own.py").write_text("raise SystemExit('ran')")
    configure(llama, auto_map=code)
    configure(llama, "tokenizer_config.json", auto_map=code)
    notes = attnviz.load(str(llama), engine=engine).info.notes
    assert len(notes) == 1 and "auto_map" in notes[0]
    assert_same(numbers(llama, engine), intact("llama")[1][engine])
    assert "auto_map" in refusal(configure(llama, model_type="own_kind"), engine)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("n_words", [97, 96, 98, 500])
def test_a_tokenizer_of_another_model(n_words, engine, llama):
    words = json.loads((llama / "tokenizer.json").read_text())
    words["model"]["vocab"] |= {f"more{number}": number for number in range(91, n_words)}
    (llama / "tokenizer.json").write_text(json.dumps(words))
    if n_words <= 97:  # fewer words than vectors are usual
        assert attnviz.load(str(llama), engine=engine).info.notes == ()
    else:
        sentence = refusal(llama, engine)
        assert str(n_words - 1) in sentence and "97" in sentence


@pytest.mark.parametrize("engine", ENGINES)
def test_a_special_token_without_a_vector_is_read_as_letters_and_said(engine, llama):
    tokens = tiny.tiny_tokenizer()
    tokens.add_tokens([f"more{number}" for number in range(97 - len(tokens))])
    tokens.add_special_tokens({"additional_special_tokens": ["<extra>"]})
    tokens.save_pretrained(llama)
    loaded = attnviz.load(str(llama), engine=engine)
    assert len(loaded.info.notes) == 1 and "<extra>" in loaded.info.notes[0]
    assert [token.label for token in loaded.trace("w1 <extra> more3").tokens] == ["w1", "<unk>", "more3"]


def test_a_tokenizer_without_its_files(llama, intact, tmp_path):
    (llama / "tokenizer.json").unlink()
    assert "no tokenizer.json" in refusal(llama)
    bert = shutil.copytree(intact("bert")[0], tmp_path / "bert")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (bert / name).unlink()
    assert "vocab.txt" in refusal(bert)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_tokenizer_whose_class_nobody_names_is_what_its_file_says(engine, llama, intact):
    (llama / "tokenizer_config.json").unlink()
    assert_same(numbers(llama, engine), intact("llama")[1][engine])


SPLITTERS = {
    "digits": pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.WhitespaceSplit()]
    ),
    "letters": pre_tokenizers.Split("", "isolated"),
}


@pytest.mark.parametrize("named", [None, "PreTrainedTokenizerFast", "GPT2Tokenizer", "LlamaTokenizerFast"])
@pytest.mark.parametrize("how", ["digits", "letters", "lower"])
def test_text_is_cut_up_as_tokenizer_json_says_whatever_class_is_named(how, named, tmp_path):
    tiny.build(tiny.recipe("Qwen2ForCausalLM", "Qwen2Config", num_key_value_heads=2), tmp_path)
    letters = {letter: number for number, letter in enumerate(["<unk>", *"abcdefgwW0123456789 "])}
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel(letters | {"a1": 40, "1": 41}, unk_token="<unk>"))
    words.pre_tokenizer = SPLITTERS.get(how, SPLITTERS["letters"])
    if how == "lower":
        words.normalizer = tokenizers.normalizers.Lowercase()
    words.save(str(tmp_path / "tokenizer.json"))
    configure(tmp_path, "tokenizer_config.json", tokenizer_class=named or ...)
    text = "W1 a1 1 20"
    assert [token.id for token in attnviz.load(str(tmp_path)).trace(text).tokens] == words.encode(text).ids


@pytest.mark.parametrize("where", ["added_tokens.json", "tokenizer_config.json"])
def test_added_words_with_other_numbers_than_the_folder_states(where, llama):
    words = json.loads((llama / "tokenizer.json").read_text())
    words["added_tokens"].append(words["added_tokens"][0] | {"id": 91, "content": "<new>", "special": True})
    (llama / "tokenizer.json").write_text(json.dumps(words))
    for number, fits in ((91, True), (93, False)):
        stated = (
            {"<new>": number} if where == "added_tokens.json" else {str(number): {"content": "<new>", "special": True}}
        )
        (llama / where).write_text(
            json.dumps(stated if where == "added_tokens.json" else {"added_tokens_decoder": stated})
        )
        if fits:
            assert attnviz.load(str(llama)).trace("<new> w1").tokens[0].id == 91
        else:
            with pytest.raises(ValueError, match="93"):
                attnviz.load(str(llama))


def test_an_encoder_saved_without_its_decoder_is_an_encoder(tmp_path):
    config = transformers.T5Config(vocab_size=97, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4)
    transformers.T5EncoderModel(config).save_pretrained(tmp_path)
    tiny.tiny_tokenizer().save_pretrained(tmp_path)
    trace = attnviz.load(str(tmp_path)).trace(TEXT)
    model = transformers.T5EncoderModel.from_pretrained(tmp_path, attn_implementation="eager").eval()
    with torch.no_grad():
        own = model(torch.tensor([[token.id for token in trace.tokens]]), output_attentions=True).attentions
    assert trace.parts == ("encoder",)
    for layer, weights in enumerate(own):
        np.testing.assert_allclose(trace.layer_weights(layer), weights[0].numpy(), atol=1e-5)


@pytest.mark.parametrize("settings", [{"attn_implementation": "flash_attention_2"}, {"return_dict": False}])
def test_how_somebody_else_ran_the_model_is_no_matter(settings, llama, intact):
    configure(llama, **settings)
    assert_same(numbers(llama), intact("llama")[1]["torch"])


def test_layers_that_guess_the_token_after_the_next_are_no_fault(llama, intact):
    edit(llama, lambda tensors: tensors | {"model.layers.2.eh_proj.weight": torch.zeros(2, 2)})
    with pytest.raises(ValueError, match="layers.2"):
        attnviz.load(str(llama))
    configure(llama, num_nextn_predict_layers=1)
    assert_same(numbers(llama), intact("llama")[1]["torch"])


def test_sines_that_older_versions_saved_are_silent(tmp_path):
    sizes = {"d_model": 32, "num_layers": 2, "attention_heads": 4, "ffn_dim": 64, "max_position_embeddings": 64}
    tiny.build(tiny.recipe("XGLMForCausalLM", "XGLMConfig", sized=False, **sizes), tmp_path)
    expected = numbers(tmp_path)
    edit(tmp_path, lambda tensors: tensors | {"model.embed_positions.weights": torch.zeros(66, 32)})
    assert_same(numbers(tmp_path), expected)
    assert not any("embed_positions" in note for note in attnviz.load(str(tmp_path)).info.notes)


# Everything at once


def judge(name, changes, intact):
    """Assert that a changed folder gives the numbers of the intact one, or one sentence."""
    whole, known = intact(name)
    with tempfile.TemporaryDirectory() as place:
        folder = shutil.copytree(whole, Path(place) / "changed")
        for change in changes:
            folder_changes.apply(name, folder, change)
        for engine, expected in known.items():
            try:
                found = numbers(folder, engine)
            except ValueError as error:
                assert str(error).strip() and "\n" not in str(error)
            else:
                if found[1] is None and NAMELESS in changes:  # without its head it is a folder of the bare model
                    expected = (expected[0], None)
                assert_same(found, expected)


NAMELESS = folder_changes.Change("forget", value="architectures")
CASES = st.sampled_from(folder_changes.MODELS).flatmap(
    lambda name: st.tuples(st.just(name), folder_changes.changes(name))
)
CALM = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]


@settings(max_examples=15, derandomize=True, suppress_health_check=CALM)
@given(case=CASES)
@example(case=("llama", [folder_changes.Change("drop tensor", 0), NAMELESS]))
def test_a_changed_folder_gives_the_same_numbers_or_a_sentence(case, intact):
    judge(*case, intact)


@pytest.mark.long
@settings(max_examples=500, suppress_health_check=CALM)
@given(case=CASES)
def test_five_hundred_changed_folders_give_the_same_numbers_or_a_sentence(case, intact):
    judge(*case, intact)
