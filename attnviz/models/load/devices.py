"""Whether torch can compute on a device of this machine."""

from typing import Any

import torch

from attnviz.core.arguments import got


def check_device(device: Any) -> str:
    """Return a device as torch writes it, after making a number there.

    Raises:
        ValueError: no device of torch, or one that this machine doesn't have, or one that holds no numbers.

    >>> check_device(torch.device("cpu"))
    'cpu'
    """
    if not isinstance(device, str | torch.device):
        raise ValueError(f'device must be a name of torch such as "cpu" or "cuda:0", got {got(device)}')
    try:
        found = torch.device(device)
    except RuntimeError:
        raise ValueError(f'device must be a name of torch such as "cpu" or "cuda:0", got {got(device)}') from None
    try:
        torch.zeros(1, device=found).tolist()
    except Exception as error:  # each backend that is missing has an error of its own: Assertion-, NotImplemented-, ...
        raise ValueError(f'this machine has no device {str(found)!r} that torch can use; "cpu" always works') from error
    return str(found)
