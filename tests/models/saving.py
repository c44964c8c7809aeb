"""Models saved into folders, with random biases and norms in place of the library's zeros and ones."""

import torch

from tests import tiny

GPT2 = {"vocab_size": 97, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 32, "initializer_range": 0.3}
GPT2 |= {"bos_token_id": 2, "eos_token_id": 3}


def saved(folder, model, dtype=torch.float32):
    """Save a model with random biases and norms, and a tokenizer, and return the folder."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith("bias") or weight.ndim == 1:
                weight += 0.2 * torch.randn(weight.shape)
    model.to(dtype).save_pretrained(folder)
    tiny.tiny_tokenizer().save_pretrained(folder)
    return folder
