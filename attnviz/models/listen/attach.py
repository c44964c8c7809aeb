"""Get a model into a state in which its attention can be listened to, or else in which its own maps are right."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from attnviz.models.listen.cache_check import check_cache
from attnviz.models.listen.probe import NoMaps, probe
from attnviz.models.listen.wiring import Wiring
from attnviz.models.load.building import passing


def attach(read: Callable[..., tuple[Any, ...]], title: str, device: str) -> tuple[tuple[Any, ...], Wiring]:
    """Return what `read` gave, with a model that is ready to run, and the wiring.

    Args:
        read: gives a tuple that begins with the model, with our attention, or with its own for `listen=False`.
        title: what to call the model.
        device: of torch.

    Raises:
        ValueError: nothing can be shown of this architecture; the first reason that was found.
    """
    found = read()
    model = found[0]
    first: ValueError | None = None
    reason = ""
    if model.config._attn_implementation == "eager":
        return found, _prepare(model, title, device)
    if model._can_set_attn_implementation():  # others take any name and go on as they are
        try:
            wiring = _prepare(model, title, device)
            if wiring.listens:
                return found, wiring
            reason = wiring.reason
        except NoMaps:
            raise
        except ValueError as error:
            first = error
    del model, found
    found = read(listen=False)  # maps are right under the model's own attention only
    try:
        own = _prepare(found[0], title, device)
    except ValueError as error:
        raise first or error from error
    return found, replace(own, reason=reason or own.reason)


def _prepare(model: Any, title: str, device: str) -> Wiring:
    model.eval().to(device).requires_grad_(False)
    with passing(), torch.inference_mode():
        return check_cache(model, probe(model, title))
