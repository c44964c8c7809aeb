"""From the files of a model to a model and a tokenizer of transformers, every weight accounted for.

No pickle is read and no code from a model's folder is run: transformers is handed the arrays, never the folder.
"""

import logging
import re
from collections.abc import Iterator
from contextlib import ExitStack
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors import safe_open
from transformers.models.auto import modeling_auto

from attnviz.models.listen import capture
from attnviz.models.listen.feed import check_takes_text
from attnviz.models.load.tokenizer_checks import fast_tokenizer
from attnviz.models.load.weight_checks import (
    is_table,
    refuse_endless,
    refuse_integers,
    refuse_mismatched,
    refuse_missing,
    unused_notes,
)
from attnviz.models.load.weight_files import Checkpoint, raw_config, settings_in
from attnviz.models.texts import first_line

HEADS = ("CausalLM", "Seq2SeqLM", "ImageTextToText", "MultimodalLM")  # AutoModelFor...: what predicts a next token
# a model is made layer by layer and expert by expert: more than this, and more than there are weights, can't be
MOST, MOST_EXPERTS = 1000, 20_000
_COUNTS = re.compile(r"^(n|num)_(\w+_)?(layers?|blocks|experts)$|^((en|de)coder_)?layers$|^depth$")

# transformers prints a table of what is missing or left over; here that is a sentence or a note
logging.getLogger("transformers.modeling_utils").addFilter(lambda record: "LOAD REPORT" not in record.getMessage())


def read(checkpoint: Checkpoint, dtype: str, title: str, *, listen: bool = True) -> tuple[Any, Any, tuple[str, ...]]:
    """Return (model, tokenizer, notes) of a folder of safetensors.

    Args:
        checkpoint: its files.
        dtype: "float32", "float16" or "bfloat16".
        title: what to call the model when something is wrong.
        listen: with our attention, where the architecture takes it; else with its own.

    Raises:
        ValueError: files that aren't there, are damaged, or hold other weights than the configuration describes.
    """
    config = read_config(checkpoint, title)
    model, notes = _model(_class(config, checkpoint, title), config, checkpoint, dtype, title, listen=listen)
    check_takes_text(model, title)
    tokenizer, told = fast_tokenizer(checkpoint.folder, title, _rows(model))
    return model, tokenizer, (*checkpoint.notes, *code_notes(checkpoint, title), *told, *notes)


def read_config(checkpoint: Checkpoint, title: str) -> Any:
    """Return a model's configuration; `architectures` holds what transformers knows of it, else None.

    Raises:
        ValueError: a kind of model that transformers doesn't know, or settings that can't be.
    """
    raw = raw_config(checkpoint.folder, title)
    _check_counts(raw, len(checkpoint.tensors), title)
    try:
        config = transformers.AutoConfig.from_pretrained(
            checkpoint.folder, local_files_only=True, trust_remote_code=False
        )
    except Exception as error:  # unknown kinds and wrong settings raise all sorts of errors
        code = ", and the code of its own that it brings (auto_map) is left out" if raw.get("auto_map") else ""
        raise ValueError(f"{_bad_config(raw, title, error)}{code}") from error
    config._attn_implementation, config.return_dict = "eager", True  # of whoever saved it; ours is asked for later
    named = raw.get("architectures")
    known = [name for name in named if name in transformers.__all__] if isinstance(named, list) else []
    config.architectures = known or None
    return config


def code_notes(checkpoint: Checkpoint, title: str) -> tuple[str, ...]:
    """Return a note if a folder brings code of its own, which is left out."""
    if not _brings_code(checkpoint.folder, title):
        return ()
    kind = raw_config(checkpoint.folder, title).get("model_type")
    return (f"This folder brings code of its own (auto_map), which is left out: it runs as transformers' {kind}.",)


def _check_counts(settings: dict[str, Any], n_tensors: int, title: str) -> None:
    """Raise ValueError for a number of layers or experts that would take for ever to make."""
    for name, value in settings.items():
        if isinstance(value, dict):
            _check_counts(value, n_tensors, title)
        most = max(MOST_EXPERTS if name.endswith("experts") else MOST, n_tensors)
        if _COUNTS.search(name) and isinstance(value, int | float) and value > most:
            raise ValueError(
                f"{title} can't be loaded: its config.json says {name} {value}, and its files hold {n_tensors} weights"
            )


def _brings_code(folder: Path, title: str) -> bool:
    """Return True if a configuration or a tokenizer names classes that lie in its folder."""
    settings = (raw_config(folder, title), settings_in(folder, "tokenizer_config.json", title) or {})
    return any(bool(each.get("auto_map")) for each in settings)


def _bad_config(raw: dict[str, Any], title: str, error: Exception) -> str:
    kind = raw.get("model_type")
    if not isinstance(kind, str) or kind not in transformers.CONFIG_MAPPING:
        return f"{title} has an architecture that transformers doesn't know ({kind or 'unnamed'})"
    return f"{title} has a config.json that can't be ({kind}): {first_line(error)}"


def _class(config: Any, checkpoint: Checkpoint, title: str) -> Any:
    """Return the class of transformers that keeps the head its weights were saved with.

    `architectures` names it. Without, the weights decide: a class that predicts if its head is in the files or tied,
    else the bare model. An encoder that hides no token predicts no next one, whatever head it has.
    """
    named = set(config.architectures or ())
    names = [name for name in HEADS if named or config.is_encoder_decoder or name != "Seq2SeqLM"]
    heads = [kind for name in names for kind in _kinds(name, named)]
    found = [each for each in (_class_of(kind, config) for kind in heads) if each is not None]
    if named and found:
        return found[0]
    masked = config.model_type in modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES and not config.is_encoder_decoder
    if not named and not (masked and not getattr(config, "is_decoder", False)):
        for each in found:
            if _has_head(each, config, checkpoint, title):
                return each
    bare = _encoder_alone(config) or _class_of(transformers.AutoModel, config)
    if bare is None:
        raise ValueError(f"{title} has an architecture that transformers can't load by itself ({config.model_type})")
    return bare


def _encoder_alone(config: Any) -> Any:
    """Return the class that is only the encoder of a model, such as T5EncoderModel, if `architectures` names one."""
    kinds = [getattr(transformers, name) for name in config.architectures or () if name.endswith("EncoderModel")]
    found = [kind for kind in kinds if isinstance(config, kind.config_class)]
    if found:
        config.is_encoder_decoder = False
    return next(iter(found), None)


def _has_head(kind: Any, config: Any, checkpoint: Checkpoint, title: str) -> bool:
    """Return True if the output of a class has its weights in the files, or shares those of the words."""
    model = _hollow(kind, config, title)
    head = model.get_output_embeddings()
    if head is None:
        return False
    name = next(name for name, module in model.named_modules() if module is head) + ".weight"
    tail = ".".join(name.split(".")[-2:])
    return name in model.all_tied_weights_keys or any(
        f".{stored}".endswith(f".{tail}") for stored in checkpoint.tensors
    )


def _kinds(name: str, named: set[str]) -> list[Any]:
    """Return transformers' AutoModelFor... of that name, or nothing if it has none of the classes that are named."""
    kind = getattr(transformers, f"AutoModelFor{name}")
    classes: set[str] = set()
    for each in kind._model_mapping._model_mapping.values():
        classes |= {each} if isinstance(each, str) else set(each)
    return [kind] if not named or named & classes else []


def _class_of(kind: Any, config: Any) -> Any:
    """Return the class that an AutoModel has for a configuration, or None."""
    if type(config) not in kind._model_mapping:
        return None
    found = kind._model_mapping[type(config)]
    candidates = found if isinstance(found, tuple | list) else (found,)
    by_name = {each.__name__: each for each in candidates}
    return next((by_name[name] for name in config.architectures or () if name in by_name), candidates[0])


def _model(
    kind: Any, config: Any, checkpoint: Checkpoint, dtype: str, title: str, *, listen: bool
) -> tuple[Any, tuple[str, ...]]:
    """Return a model of that class with the weights of a checkpoint, and notes on what it has no place for."""
    _check_size(kind, config, checkpoint, title)
    try:
        try:
            model, told = _from_tensors(kind, config, checkpoint, dtype, capture.NAME if listen else "eager")
        except (KeyError, ValueError, ImportError):  # GPT-Neo and others pick their attention by a table of their own
            model, told = _from_tensors(kind, config, checkpoint, dtype, "eager")
        said = settings_in(checkpoint.folder, "generation_config.json", title) if model.can_generate() else None
        if said is not None:
            model.generation_config = transformers.GenerationConfig.from_dict(said)
    except Exception as error:  # whatever a damaged folder makes transformers raise: the visitor gets one sentence
        raise ValueError(f"{title} can't be loaded: {first_line(error)}") from error
    return model, _account(model, told, checkpoint, title)


def _from_tensors(
    kind: Any, config: Any, checkpoint: Checkpoint, dtype: str, attention: str
) -> tuple[Any, dict[str, Any]]:
    """Return a model and what transformers tells of loading it; arrays are read one by one as it asks for them."""
    with ExitStack() as stack:
        files = {each.file for each in checkpoint.tensors.values()}
        opened = {file: stack.enter_context(safe_open(file, "pt")) for file in files}
        arrays = {name: opened[each.file].get_slice(each.name) for name, each in checkpoint.tensors.items()}
        return kind.from_pretrained(
            None,
            config=config,
            state_dict=arrays,
            dtype=getattr(torch, dtype),
            attn_implementation=attention,
            ignore_mismatched_sizes=True,  # they are refused below, by name
            output_loading_info=True,
            local_files_only=True,
        )


def _check_size(kind: Any, config: Any, checkpoint: Checkpoint, title: str) -> None:
    """Raise ValueError for a configuration of a model far larger than its files, before memory is taken for it."""
    if getattr(config, "quantization_config", None):
        return  # several weights lie in one number
    asked = sum(parameter.numel() for parameter in _hollow(kind, config, title).parameters())
    if asked > 3 * checkpoint.n_weights + 10_000_000:  # tied weights stand once in the files; a pooler may be missing
        raise ValueError(
            f"{title} can't be loaded: its config.json asks for {asked / 1e6:,.0f} million weights, and its files hold "
            f"{checkpoint.n_weights / 1e6:,.0f} million"
        )


def _hollow(kind: Any, config: Any, title: str) -> Any:
    """Return a model of that class without numbers, which takes no memory."""
    try:
        with torch.device("meta"):
            return kind(deepcopy(config))
    except Exception as error:  # a width that isn't a multiple of the heads, a negative size: all sorts of errors
        raise ValueError(f"{title} can't be loaded: {first_line(error)}") from error


def _account(model: Any, told: dict[str, Any], checkpoint: Checkpoint, title: str) -> tuple[str, ...]:
    """Return notes on weights without a place; raise ValueError for what is missing, doesn't fit or isn't numbers."""
    tensors, base = checkpoint.tensors, model.base_model_prefix
    unused = {
        name: _shape(name, base, checkpoint)
        for name in told["unexpected_keys"]
        if not _looks_further(name, model.config)
    }
    modules = {name.removeprefix(f"{base}.") for name, _ in model.named_modules() if name}
    unplaced = unused_notes(unused, modules, base, title)
    refuse_missing(told["missing_keys"], title)
    refuse_mismatched(told["mismatched_keys"], title)
    _refuse_twins(model, checkpoint, title)
    if getattr(model, "hf_quantizer", None) is None:
        tables = {name.rpartition(".")[2] for name, each in model.named_buffers() if not each.is_floating_point()}
        refuse_integers({name: tensors[name] for name in tensors if name not in unused}, tables, title)
    refuse_endless(_finite(model), title)
    return unplaced


def _looks_further(name: str, config: Any) -> bool:
    """Return True for a weight of the layers behind the last one that guess the token after the next (DeepSeek-V3)."""
    config = config.get_text_config()
    n_layers, n_more = (getattr(config, name, 0) or 0 for name in ("num_hidden_layers", "num_nextn_predict_layers"))
    found = re.search(r"(?:^|\.)layers\.(\d+)\.", name)
    return "mtp" in name or (found is not None and n_layers <= int(found[1]) < n_layers + n_more)


def _shape(name: str, base: str, checkpoint: Checkpoint) -> tuple[int, ...] | None:
    """Return the shape in the files of what transformers names with or without the part before the body's names."""
    names = (name, f"{base}.{name}", name.removeprefix(f"{base}."))
    return next((checkpoint.tensors[each].shape for each in names if each in checkpoint.tensors), None)


def _refuse_twins(model: Any, checkpoint: Checkpoint, title: str) -> None:
    """Raise ValueError for two arrays that stand for one weight: with and without "model.", or by its older name."""
    base, own = model.base_model_prefix, set(model.state_dict())
    seen: dict[str, str] = {}  # plain name -> name in the files
    for name in checkpoint.tensors:
        plain = name.removeprefix(f"{base}.") if base else name
        for old, new in ((".gamma", ".weight"), (".beta", ".bias")):
            plain = plain.removesuffix(old) + new if plain.endswith(f"LayerNorm{old}") else plain
        twin = seen.setdefault(plain, name)
        if twin != name and not {twin, name} <= own and not is_table(name):
            raise ValueError(f"{title} can't be loaded: its files hold {plain} twice, as {twin} and as {name}")


def _finite(model: Any) -> Iterator[tuple[str, bool]]:
    """Yield (name, whether all numbers are finite) of each weight; bounds beside them may well be infinite."""
    for name, tensor in model.named_parameters():
        if tensor.is_floating_point() and tensor.numel() and tensor.element_size() > 1:
            yield name, bool(torch.isfinite(torch.stack(tensor.detach().aminmax())).all())


def _rows(model: Any) -> int | None:
    """Return how many tokens a model has a vector for, or None where that is no plain table."""
    try:
        words = model.get_input_embeddings()
    except (NotImplementedError, AttributeError):
        return None
    return words.num_embeddings if isinstance(words, torch.nn.Embedding) else None
