"""The device that training runs on."""

from __future__ import annotations

import torch

from ally.errors import InputError


def resolve_device(device: str | torch.device) -> str:
    """``"auto"`` is CUDA if available, else the CPU; other names are checked."""
    if isinstance(device, str) and device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=torch.device(device))
    except (RuntimeError, AssertionError, TypeError) as error:
        raise InputError.about("device", device, f"cannot be used here ({error}); pass 'auto' or 'cpu'") from error
    return str(torch.device(device))
