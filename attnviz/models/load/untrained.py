"""A tiny decoder with random weights and byte tokens, built in memory: always there, and a control to compare with."""

from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from attnviz.models.listen.capture import NAME

LAYERS, HEADS, KV_HEADS, WIDTH = 4, 4, 2, 64
SHARPEN = 12.0  # random q and k are so short that every map is flat; longer ones make pictures


def untrained_model(dtype: torch.dtype, *, listen: bool = True) -> tuple[Any, Any]:
    """Return (model, tokenizer): a Llama-shaped decoder of 4 layers x 4 heads whose weights come from seed 0."""
    tokenizer = byte_tokenizer()
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=KV_HEADS,
        max_position_embeddings=4096,
        eos_token_id=None,  # the default is an id, here the byte of "#"
        attn_implementation=NAME if listen else "eager",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = transformers.LlamaForCausalLM(config)
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.q_proj.weight *= SHARPEN
            layer.self_attn.k_proj.weight *= SHARPEN
    return model.to(dtype), tokenizer


def byte_tokenizer() -> Any:
    """Return a fast tokenizer whose 256 tokens are the bytes of UTF-8."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={letter: i for i, letter in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer)
