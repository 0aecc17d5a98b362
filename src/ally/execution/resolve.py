"""Engines by name. Names are checked without importing torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ally.errors import InputError

if TYPE_CHECKING:
    from ally.execution.engine import Engine

RAY, NAMES = "ray", "'local', 'ray' or 'ray://host:port'"


def is_ray(engine: Any) -> bool:
    """Whether this names a Ray cluster."""
    return isinstance(engine, str) and (engine == RAY or engine.startswith("ray://"))


def address_of(engine: str) -> str | None:
    """The address of a Ray cluster; None for the default one."""
    return None if engine == RAY else engine


def ensure_named(engine: Any) -> None:
    """Raises unless this is the name of an engine."""
    if engine != "local" and not is_ray(engine):
        raise InputError.about("engine", engine, f"is not known; use {NAMES}")


def resolve_engine(engine: Any) -> Engine:
    """The engine with this name, or the engine itself."""
    from ally.execution.engine import Engine, LocalEngine
    from ally.execution.ray import RayEngine

    if isinstance(engine, Engine) and not isinstance(engine, str):
        return engine
    ensure_named(engine)
    return RayEngine(address_of(engine)) if is_ray(engine) else LocalEngine()
