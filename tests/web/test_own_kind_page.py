"""The page of `ally label` over a kind of data of a user's own: the spectrograms of the example, in a real browser."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest_web import Running, free_port, until
from screens import Screen

EXAMPLES = Path(__file__).parents[2] / "examples"
pytestmark = [pytest.mark.long, pytest.mark.xdist_group("browser")]
MAKE = "import sys, pathlib, sound_clips; sound_clips.write_clips(pathlib.Path(sys.argv[1]), 12)"
SHADES = """(() => {
  const image = document.querySelector(".stage .sample.image img");
  const canvas = new OffscreenCanvas(image.naturalWidth, image.naturalHeight);
  const drawing = canvas.getContext("2d");
  drawing.drawImage(image, 0, 0);
  const pixels = drawing.getImageData(0, 0, canvas.width, canvas.height).data;
  const middle = canvas.width >> 1;
  const rows = Array.from({ length: canvas.height }, (_, row) => pixels[4 * (row * canvas.width + middle)]);
  const box = image.getBoundingClientRect();
  return { width: canvas.width, height: canvas.height, shown: [box.width, box.height], rows };
})()"""


def test_the_spectrogram_is_on_the_page(browser, tmp_path, monkeypatch):
    """Made and served by commands alone: both import the kind, which neither was told but by its path."""
    monkeypatch.setenv("PYTHONPATH", f"{EXAMPLES}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    clips, place = tmp_path / "clips", str(tmp_path / "clips.db")
    subprocess.run([sys.executable, "-c", MAKE, str(clips)], check=True)
    new = [sys.executable, "-m", "ally", "new", place, "--from", str(clips), "--kind", "sound_clips:SOUNDS"]
    made = subprocess.run([*new, "--classes", "sine,noise,chirp", "--evaluate", "0"], capture_output=True, text=True)
    assert "12 clips of" in made.stdout, made.stdout + made.stderr
    running = Running(place, free_port()).start()
    try:
        screen = Screen(browser, running.origin)
        number = int(screen.ready()[:3])
        until(lambda: screen.run("!!document.querySelector('.stage .sample.image img')?.naturalWidth"), what="an image")
        seen = screen.run(SHADES)
        assert (seen["width"], seen["height"]) == (640, 384)
        assert min(seen["shown"]) > 100
        brightest = 1 - seen["rows"].index(max(seen["rows"])) / seen["height"]
        loud = sum(shade > 160 for shade in seen["rows"]) / seen["height"]
        kind = ("sine", "noise", "chirp")[number % 3]
        assert loud > 0.5 if kind == "noise" else loud < 0.3, f"{loud:.0%} of the column of a {kind} is bright"
        assert kind == "noise" or brightest < 0.9
        if "ALLY_SCREENSHOT" in os.environ:
            screen.page.screenshot(path=os.environ["ALLY_SCREENSHOT"])
        screen.press(str(1 + number % 3))
        until(lambda: screen.id not in (None, f"{number:03}.wav"), what="the next clip")
        screen.saved()
        past = screen.page.locator(".strip img")
        until(lambda: past.count() == 1, what="a thumbnail of the answer")
        until(lambda: past.evaluate("image => image.naturalWidth") > 0, what="the thumbnail's pixels")
        screen.page.goto(f"{running.origin}/review")
        until(lambda: screen.page.locator("img.small").count() == 1, what="the clip among the answers to review")
        assert screen.trouble == []
        screen.close()
    finally:
        running.kill(signal.SIGINT)
