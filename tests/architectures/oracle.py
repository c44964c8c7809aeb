"""What transformers alone says about a small model: its eager maps and its greedy tokens. Nothing here is attnviz's."""

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

NEW_TOKENS = 16
MAPS = {"encoder": "encoder_attentions", "decoder": "decoder_attentions", "cross": "cross_attentions"}


class NoOracle(Exception):
    """transformers says nothing; the message says why."""


def eager(folder: Path, class_name: str) -> Any:
    """Return the model of a folder with transformers' own plain attention, by the class that saved it."""
    return getattr(transformers, class_name).from_pretrained(folder, attn_implementation="eager").eval()


def plain_pass(model: Any, ids: list[int], target: list[int] | None = None, **options: Any) -> Any:
    """Return the output of one pass without a cache.

    Raises:
        NoOracle: the model can't read these inputs.
    """
    known = inspect.signature(model.forward).parameters
    inputs: dict[str, Any] = {"input_ids": torch.tensor([ids])} | options
    if target is not None:
        inputs["decoder_input_ids"] = torch.tensor([target])
    if "attention_mask" in known and known["attention_mask"].default is inspect.Parameter.empty:
        inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
    if "use_cache" in known:
        inputs["use_cache"] = False  # with one, FSMT's decoder looks ahead
    try:
        with torch.no_grad():
            return model(**inputs)
    except Exception as error:  # transformers raises all sorts of errors
        raise NoOracle(f"{type(error).__name__}: {error}".splitlines()[0][:100]) from error


def maps(model: Any, ids: list[int], target: list[int] | None) -> dict[str, list[np.ndarray]]:
    """Return part -> for each layer that has one, (heads, queries, keys), as `output_attentions=True` gives them."""
    output = plain_pass(model, ids, target, output_attentions=True)
    output = output.get("text_model_output") or output  # of a model with a tower for each kind of input
    names = {"": "attentions"} if target is None else MAPS
    found = {part: [a for a in output.get(name) or () if a is not None] for part, name in names.items()}
    if not all(found.values()):
        raise NoOracle("it returns no maps")
    return {part: [a[0].float().numpy() for a in layers] for part, layers in found.items()}


def greedy(model: Any, ids: list[int], *, from_0: bool = False) -> list[int]:
    """Return the likeliest tokens one after the other, each from a pass over the whole text.

    Args:
        from_0: number the positions from 0, as `generate` does with every model, instead of as the model does.
    """
    ends = _ends(model)
    read = list(ids)
    while len(read) < len(ids) + NEW_TOKENS:
        positions = {"position_ids": torch.arange(len(read))[None]} if from_0 else {}
        read.append(int(plain_pass(model, read, **positions).logits[0, -1].argmax()))
        if read[-1] in ends:
            break
    return read[len(ids) :]


def generated(model: Any, ids: list[int], *, cache: bool) -> list[int] | str:
    """Return what transformers' own `generate` adds without sampling, or the error it ends with."""
    model.generation_config.forced_eos_token_id = None  # BART and its kin end a text by force
    read = torch.tensor([ids])
    options = {"max_new_tokens": NEW_TOKENS, "do_sample": False, "pad_token_id": 1, "use_cache": cache}
    try:
        with torch.no_grad():
            made = model.generate(input_ids=read, attention_mask=torch.ones_like(read), **options)
    except Exception as error:  # as above
        return f"{type(error).__name__}: {error}".splitlines()[0][:100]
    return made[0, len(ids) :].tolist() if made.dim() == 2 else f"it makes {tuple(made.shape)} numbers, not tokens"


def _ends(model: Any) -> set[int]:
    eos = model.generation_config.eos_token_id
    return set() if eos is None else {eos} if isinstance(eos, int) else set(eos)
