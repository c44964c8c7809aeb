"""Tiny models with random weights, one for each way in which architectures differ. Built in a second, no download.

Uses torch, transformers and tokenizers; they are imported with the first model, not with this module.
`python -m tests.tiny FOLDER` builds all of them.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SHARP = 12.0  # random weights give nearly flat maps; q and k multiplied by this give rows with a clear maximum

WORDS = ("<unk>", "<pad>", "<s>", "</s>", "<br>", "<b>x</b>", "&lt;i&gt;", "$x$", "1", "2", "2024-01-01")
WORDS += tuple(f"w{i}" for i in range(80))


@dataclass(frozen=True)
class Recipe:
    """What a tiny model is made of: classes of transformers by name, and the settings that differ from the default."""

    model: str
    config: str
    settings: dict[str, Any]
    flat: bool  # random weights give flat maps, which `sharpen` makes clear


def _recipe(model: str, config: str, *, flat: bool = True, **settings: Any) -> Recipe:
    return Recipe(model, config, {"vocab_size": 97} | settings, flat)


_SHAPE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
_LLAMA = _SHAPE | {"intermediate_size": 64, "num_key_value_heads": 2}
_BERT = _SHAPE | {"intermediate_size": 64}
_GEMMA2 = _LLAMA | {"head_dim": 8, "sliding_window": 4, "query_pre_attn_scalar": 16}
_IDS = {"bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 1}
_GPT2 = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 16} | _IDS

# Two layers of four heads, d_head 8, unless a comment says otherwise.
RECIPES = {
    # --- decoders ---
    "llama": _recipe("LlamaForCausalLM", "LlamaConfig", **_LLAMA),
    # a window of 4 in both layers
    "mistral_sw4": _recipe("MistralForCausalLM", "MistralConfig", **_LLAMA, sliding_window=4),
    # layer 0 has a window of 4, layer 1 is full; the factor is 1/sqrt(16), and scores are soft-capped at 50
    "gemma2": _recipe("Gemma2ForCausalLM", "Gemma2Config", **_GEMMA2, attn_logit_softcapping=50.0),
    "gemma2_nocap": _recipe("Gemma2ForCausalLM", "Gemma2Config", **_GEMMA2, attn_logit_softcapping=None),
    # a learned sink in every head: rows sum to less than 1; layer 0 has a window of 4, layer 1 is full
    "gptoss": _recipe(
        "GptOssForCausalLM",
        "GptOssConfig",
        **_SHAPE,
        intermediate_size=32,
        num_key_value_heads=2,
        head_dim=8,
        sliding_window=4,
        num_local_experts=2,
        num_experts_per_tok=1,
    ),
    "gpt2": _recipe("GPT2LMHeadModel", "GPT2Config", **_GPT2),
    # the factor of layer n is 1 / (sqrt(8) (n + 1))
    "gpt2_inv": _recipe("GPT2LMHeadModel", "GPT2Config", **_GPT2, scale_attn_by_inverse_layer_idx=True),
    # never scales; layer 0 is full, layer 1 has a window of 4
    "gptneo": _recipe(
        "GPTNeoForCausalLM",
        "GPTNeoConfig",
        hidden_size=32,
        num_layers=2,
        num_heads=4,
        attention_types=[[["global", "local"], 1]],
        window_size=4,
        **_IDS,
    ),
    # scales q before the product and passes 1 as the factor
    "opt": _recipe(
        "OPTForCausalLM", "OPTConfig", **_SHAPE, ffn_dim=64, max_position_embeddings=64, word_embed_proj_dim=32
    ),
    # a position bias of its own (ALiBi), and an attention that can't be replaced from outside
    "bloom": _recipe("BloomForCausalLM", "BloomConfig", hidden_size=32, n_layer=2, n_head=4),
    # no attention at all
    "mamba": _recipe("MambaForCausalLM", "MambaConfig", hidden_size=32, num_hidden_layers=2, state_size=4, flat=False),
    # four layers, and only layer 3 has softmax attention; it normalises q and k, so their size changes nothing
    "qwen3next": _recipe(
        "Qwen3NextForCausalLM",
        "Qwen3NextConfig",
        **_LLAMA | {"num_hidden_layers": 4},
        head_dim=8,
        linear_num_value_heads=4,
        linear_num_key_heads=2,
        linear_key_head_dim=8,
        linear_value_head_dim=8,
        num_experts=2,
        num_experts_per_tok=1,
        moe_intermediate_size=16,
        shared_expert_intermediate_size=16,
        flat=False,
    ),
    # --- encoders ---
    "bert": _recipe("BertModel", "BertConfig", **_BERT),
    # both layers are one module, run twice; small default weights would leave layer 0 flat whatever q and k are
    "albert": _recipe("AlbertModel", "AlbertConfig", **_BERT, embedding_size=16, initializer_range=0.3, flat=False),
    # its attention modules don't know which layer they are in
    "distilbert": _recipe("DistilBertModel", "DistilBertConfig", dim=32, n_layers=2, n_heads=4, hidden_dim=64),
    # layer 0 is full, layer 1 sees 2 tokens on either side
    "modernbert": _recipe(
        "ModernBertModel",
        "ModernBertConfig",
        **_BERT,
        **_IDS,
        local_attention=4,
        global_attn_every_n_layers=2,
        cls_token_id=2,
        sep_token_id=3,
    ),
    # returns its maps folded: columns are places in a window of 4, not tokens
    "longformer": _recipe(
        "LongformerModel", "LongformerConfig", **_BERT, attention_window=4, max_position_embeddings=64
    ),
    # --- encoder and decoder ---
    # a position bias shared between layers, never scales
    "t5": _recipe(
        "T5ForConditionalGeneration",
        "T5Config",
        d_model=32,
        d_kv=8,
        d_ff=64,
        num_layers=2,
        num_heads=4,
        decoder_start_token_id=1,
        flat=False,
    ),
}

NAMES = tuple(RECIPES)

_SEPARATE = {"q_proj", "k_proj", "query", "key", "query_global", "key_global", "q_lin", "k_lin"}


def tiny_tokenizer() -> Any:
    """Return a tokenizer that splits at white space, knows `WORDS` and adds no special tokens."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=words, unk_token="<unk>", pad_token="<pad>", bos_token="<s>", eos_token="</s>"
    )


def recipe(model: str, config: str, *, flat: bool = True, sized: bool = True, **settings: Any) -> Recipe:
    """Return a recipe of one's own; `sized`: two layers of four heads, as most of those here, but for the settings."""
    return _recipe(model, config, flat=flat, **(_BERT if sized else {}) | settings)


def tiny_model(name: str | Recipe, *, sharpen: float = 1.0, seed: int = 0) -> Any:
    """Return the tiny model of that name, ready to run, the same weights for the same seed.

    Args:
        name: one of `NAMES`, or a recipe.
        sharpen: factor on the weights that make q and k, so that scores grow by its square; `SHARP` gives rows with a
            clear maximum. Models that aren't flat to begin with stay as they are.
        seed: of the random weights.
    """
    import torch
    import transformers

    if isinstance(name, str) and name not in RECIPES:
        raise ValueError(f"expected one of {', '.join(NAMES)}, got {name!r}")
    recipe = RECIPES[name] if isinstance(name, str) else name
    config = getattr(transformers, recipe.config)(**recipe.settings)
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(seed)
        model = getattr(transformers, recipe.model)(config)
        for weights in _query_and_key_weights(model) if recipe.flat else ():
            weights *= sharpen
    return model.eval()


def build(name: str | Recipe, folder: Path | str, *, sharpen: float = 1.0, seed: int = 0) -> Path:
    """Save the tiny model of that name and its tokenizer into a folder, as `from_pretrained` reads it."""
    folder = Path(folder)
    tiny_model(name, sharpen=sharpen, seed=seed).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder


def _query_and_key_weights(model: Any) -> Iterator[Any]:
    """Yield views of the weights that make q and k, whichever way the architecture lays them out."""
    for name, module in model.named_modules():
        weight = getattr(module, "weight", None)
        leaf = name.rpartition(".")[2]
        if leaf in _SEPARATE:
            yield weight
        elif leaf == "c_attn":  # (d_model, 3 d_model): q, k, v side by side
            yield weight[:, : 2 * weight.shape[0]]
        elif leaf == "Wqkv":  # (3 d_model, d_model): q, k, v on top of each other
            yield weight[: 2 * weight.shape[1]]
        elif leaf == "qkv_proj":  # (q, k, v on top of each other, fewer of k and v)
            yield weight[
                : (model.config.num_attention_heads + model.config.num_key_value_heads)
                * module.out_features
                // (model.config.num_attention_heads + 2 * model.config.num_key_value_heads)
            ]
        elif leaf == "query_key_value":  # (heads * 3 * d_head, d_model): q, k, v of each head
            yield weight.view(model.config.n_head, 3, -1, weight.shape[1])[:, :2]


if __name__ == "__main__":
    for each in NAMES:
        print(build(each, Path(sys.argv[1]) / each))
