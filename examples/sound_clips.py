"""A kind of data of your own in one file: short sound clips (WAV) in a folder.

A person sees the spectrogram of a clip on the page, a model learns from the energy in bands of frequency. On the
command line, with this folder on PYTHONPATH: ally new clips --from clips/ --kind sound_clips:SOUNDS
"""

from __future__ import annotations

import io
import tempfile
import wave
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import ally
from ally.data import FolderSamples, SampleKind, Shown, register_kind
from ally.errors import DataError

RATE, WINDOW, BANDS, LONGEST = 8000, 256, 16, 60


def spectrogram(path: Path) -> tuple[Any, float]:
    """The power of each frequency over time on a log scale, (frequencies, times), and how many seconds it lasts."""
    with wave.open(str(path), "rb") as clip:
        seconds, channels = clip.getnframes() / clip.getframerate(), clip.getnchannels()
        if clip.getsampwidth() != 2 or not WINDOW <= clip.getnframes() <= LONGEST * clip.getframerate():
            raise DataError(f"a clip has 16 bits and lasts up to {LONGEST} seconds; this one {seconds:g}; convert it")
        sound = np.frombuffer(clip.readframes(clip.getnframes()), "<i2").reshape(-1, channels).mean(1) / 2**15
    windows = np.lib.stride_tricks.sliding_window_view(sound, WINDOW)[:: WINDOW // 2]
    power = np.abs(np.fft.rfft(windows * np.hanning(WINDOW))) ** 2
    return np.log10(power[:, 1:].T + 1e-6), seconds


class SoundClips(FolderSamples):
    """Ids, hidden files, links, damaged files and everything else that is the same for all folders is there already."""

    endings = (".wav",)
    shape = (2 * BANDS,)

    @property
    def kind(self) -> SampleKind:
        return SOUNDS

    @property
    def notes(self) -> tuple[str, ...]:
        return super().notes or (f"the learner reads mean and spread of the energy in {BANDS} bands of frequency",)

    def read_file(self, path: Path) -> Any:
        bands = [band.mean(0) for band in np.array_split(spectrogram(path)[0], BANDS)]
        return np.concatenate([np.mean(bands, 1), np.std(bands, 1)])

    def show_file(self, id: str, path: Path) -> Shown:
        power, seconds = spectrogram(path)
        shade = 255 * (power[::-1] - power.min()) / max(float(np.ptp(power)), 1e-9)
        drawn = io.BytesIO()
        Image.fromarray(shade.astype(np.uint8)).resize((640, 384)).save(drawn, "PNG")
        return Shown(id, picture=drawn.getvalue(), columns={"file": path.name, "seconds": round(seconds, 2)})


def holds_clips(place: Any) -> bool:
    return isinstance(place, (str, Path)) and next(Path(place).glob("**/*.wav"), None) is not None


SOUNDS = register_kind(SampleKind("sounds", ("clip", "clips"), holds_clips, SoundClips.open, widget="image"))


def write_clips(folder: Path, n: int) -> dict[str, str]:
    """Sines, noises and chirps of half a second; what each of them is."""
    rng, truth = np.random.default_rng(0), {}
    folder.mkdir(parents=True)
    time = np.arange(RATE // 2) / RATE
    for number in range(n):
        low = rng.uniform(200, 1500)
        name, sound = (
            ("sine", np.sin(2 * np.pi * low * time)),
            ("noise", rng.normal(0, 0.4, len(time))),
            ("chirp", np.sin(2 * np.pi * (low + rng.uniform(500, 2000) * time) * time)),
        )[number % 3]
        truth[f"{number:03}.wav"] = name
        with wave.open(str(folder / f"{number:03}.wav"), "wb") as clip:
            clip.setparams((1, 2, RATE, 0, "NONE", ""))
            sound = np.clip(0.7 * sound + rng.normal(0, 0.05, len(time)), -1, 1)
            clip.writeframes((sound * 32767).astype("<i2").tobytes())
    return truth


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        truth = write_clips(Path(name) / "clips", 90)
        with ally.Campaign.create(f"{name}/clips.db", f"{name}/clips", automatic=False) as campaign:
            query = campaign.ask(12)
            campaign.tell(query, {id: truth[id] for id in query.ids})
            campaign.retrain()
            found = campaign.predict()
            right = [truth[id] == label for id, label in zip(found["id"], found["label"], strict=True)]
            print(f"{np.mean(right):.0%} of {len(found)} clips are named right after {len(query.ids)} labels")
