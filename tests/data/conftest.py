from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

NOBODY = 65534


@pytest.fixture
def make_image():
    """Writes an image of one colour with a bright corner, so that turning and cropping show."""

    def make(path: Path, size=(40, 30), colour=(200, 30, 30), **options) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = np.full((size[1], size[0], 3), colour, np.uint8)
        pixels[:4, :4] = 255
        Image.fromarray(pixels).save(path, **options)
        return path

    return make


@pytest.fixture
def photos(tmp_path, make_image) -> Path:
    """Five good images in two folders and outside of them."""
    folder = tmp_path / "photos"
    for name in ("cat/1.jpg", "cat/2.png", "dog/3.jpg", "dog/deep/4.jpg", "5.jpg"):
        make_image(folder / name, colour=(200, 30, 30) if "cat" in name else (30, 30, 200))
    return folder


@pytest.fixture
def ordinary_user():
    """A folder of its own, and a function that gives up the rights of root, for whom no file is unreadable."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    before = os.geteuid()

    def become() -> None:
        if before == 0:
            os.seteuid(NOBODY)

    yield folder, become
    os.seteuid(before)
    shutil.rmtree(folder)
