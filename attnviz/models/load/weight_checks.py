"""Whether all weights of a model come from its files, and all weights in the files went into the model.

Names and shapes alone: both engines ask here. What is wrong is a sentence; what is left over and harmless is a note.
"""

import re
from collections.abc import Collection, Iterable, Mapping

import numpy as np

from attnviz.models.load.weight_files import FLOATS, Stored, few

# saved by older versions though no training changed them: numbers of positions, angles, masks
_TABLES = re.compile(
    r"(^|\.)(position_ids|token_type_ids|inv_freq|cos_cached|sin_cached|masked_bias|num_batches_tracked|_extra_state"
    r"|embed_positions\.weights)$"  # sines, which have no training; tables that have one are called weight
)
_MASK = re.compile(r"(^|\.)(attn|attention|self_attn|self_attention)\.(bias|causal_mask|mask)$")
_POOLER = re.compile(r"(^|\.)pooler\.")  # makes one vector of a text, after all layers
_ADAPTED = re.compile(r"(^|\.)(lora_\w+|base_layer|modules_to_save)\.")
_HEAD = re.compile(r"(^|\.)(lm_head|cls|score|classifier|predictions|qa_outputs|\w*_head)(\.|$)")


def is_table(name: str, shape: tuple[int, ...] | None = None) -> bool:
    """Return True for what isn't a weight: numbers of positions, angles, and masks (1, 1, tokens, tokens).

    >>> is_table("embeddings.position_ids"), is_table("layers.0.self_attn.q_proj.weight")
    (True, False)
    """
    if _TABLES.search(name):
        return True
    square = shape is not None and len(shape) == 4 and shape[:2] == (1, 1)
    return bool(_MASK.search(name)) and square


def refuse_missing(missing: Collection[str], title: str) -> None:
    """Raise ValueError for weights that the model has and its files don't.

    A pooler changes neither maps nor predictions, and tables of positions are made from the configuration.
    """
    lost = [name for name in missing if not is_table(name) and not _POOLER.search(name)]
    if lost:
        count = "one weight" if len(lost) == 1 else f"{len(lost)} weights"
        raise ValueError(f"{title} can't be loaded: its files lack {count} of the model: {few(lost)}")


def refuse_mismatched(mismatched: Iterable[tuple[str, Iterable[int], Iterable[int]]], title: str) -> None:
    """Raise ValueError for weights whose shape in the files, given first, isn't that of the configuration."""
    wrong = {name: (tuple(found), tuple(expected)) for name, found, expected in mismatched}
    if wrong:
        name = min(wrong)
        others = f"; {len(wrong) - 1} more don't fit" if len(wrong) > 1 else ""
        raise ValueError(
            f"{title} can't be loaded: its config.json asks for {name} of shape {wrong[name][1]}, "
            f"and its files hold {wrong[name][0]}{others}"
        )


def refuse_integers(tensors: Mapping[str, Stored], tables: Collection[str], title: str) -> None:
    """Raise ValueError for weights stored as whole numbers or in 8 bits, of a model that doesn't say how to read them.

    Args:
        tensors: what the files hold.
        tables: last parts of the names of what the model itself keeps as whole numbers.
        title: what to call the model.
    """
    packed = [
        name
        for name, stored in tensors.items()
        if stored.dtype not in FLOATS and not is_table(name, stored.shape) and name.rpartition(".")[2] not in tables
    ]
    if packed:
        kind = tensors[min(packed)].dtype
        raise ValueError(
            f"{title} can't be loaded: {few(packed)} stored as {kind}, and its config.json names no quantization "
            "that transformers can undo"
        )


def unused_notes(
    unused: Mapping[str, tuple[int, ...] | None], modules: Collection[str], base: str, title: str
) -> tuple[str, ...]:
    """Return a note on weights in the files that the model has no place for, () where all are known to be harmless.

    Args:
        unused: names in the files and, where known, their shapes.
        modules: dotted names of all modules of the model, those of its body without `base`.
        base: what stands before the names of the body in a model with a head, as "model".
        title: what to call the model.

    Raises:
        ValueError: a weight belongs inside the model: its layer or its module is there, but has no such weight. Then
            what the configuration describes is another model than the files hold.
    """
    left = [name for name, shape in unused.items() if not is_table(name, shape) and not _POOLER.search(name)]
    adapted = [name for name in left if _ADAPTED.search(name)]
    if adapted:
        raise ValueError(f"{title} holds an adapter (LoRA) that isn't merged into its weights: {few(adapted)}")
    inside = [name for name in left if _is_inside(name, modules, base)]
    if inside:
        count = "a weight" if len(inside) == 1 else f"{len(inside)} weights"
        raise ValueError(
            f"{title} can't be loaded: its files hold {count} that the model of its config.json has no place for: "
            f"{few(inside)}"
        )
    if not left:
        return ()
    count = "A weight" if len(left) == 1 else f"{len(left)} weights"
    return (f"{count} in its files, outside of what makes its maps, isn't used: {few(left)}.",)


def _is_inside(name: str, modules: Collection[str], base: str) -> bool:
    """Return True if the nearest module that the name leads to is part of the model and not its outermost one."""
    inner = name.removeprefix(f"{base}.") if base else name
    parts = inner.split(".")
    if any(".".join(parts[:n]) in modules for n in range(1, len(parts))):
        return True
    return inner != name and not _HEAD.search(inner)


def refuse_endless(numbers: Iterable[tuple[str, bool]], title: str) -> None:
    """Raise ValueError for weights that hold what is no number. `numbers`: (name, whether all of it is finite)."""
    broken = [name for name, finite in numbers if not finite]
    if broken:
        raise ValueError(f"{title} can't be loaded: not every number of {few(broken)} is finite (NaN or infinity)")


def all_finite(array: np.ndarray) -> bool:
    """Return True if an array holds no NaN and no infinity, without making an array of answers."""
    return array.size == 0 or bool(np.isfinite(array.min()) and np.isfinite(array.max()))
