"""How fast photos become vectors, in how much memory, and what a kill in the middle costs.

    python benchmarks/encoders.py --data-dir DATA [--images 10000] [--encoder efficientnet-lite0] [--threads 2]

CIFAR-10 images are written as PNG files. A process encodes them; it is killed (SIGKILL) when a part is done, and
another one goes on. Prints the figures as JSON: images per second, peak memory, how many images were encoded twice.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def work(photos: Path, cache: Path, name: str) -> None:
    """Encodes all photos in the folder and prints what it took."""
    from ally.data.encoders import encode, open_encoder

    encoder = open_encoder(name, "image")
    paths = sorted(photos.iterdir())
    encode(encoder, paths[:1])  # the weights are loaded
    loaded = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began, busy = time.perf_counter(), time.process_time()
    vectors = encode(encoder, paths, cache=cache)
    seconds = time.perf_counter() - began
    facts = {
        "seconds": round(seconds, 1),
        "cpu_seconds": round(time.process_time() - busy, 1),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "peak_mib_before": loaded // 1024,
        "vectors": list(vectors.shape),
    }
    print(json.dumps(facts))


def start(photos: Path, cache: Path, name: str, threads: int) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, "--work", str(photos), str(cache), "--encoder", name]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive"},
    )


def kept(cache: Path, name: str) -> int:
    from ally.data.encoders import open_encoder
    from ally.data.encoders.cache import kept_vectors

    encoder = open_encoder(name, "image")
    return kept_vectors(cache, encoder.identity, encoder.width)


def measure(data_dir: Path, images: int, name: str, threads: int, killed_at: float) -> dict[str, object]:
    from PIL import Image

    from ally.data.catalogue import load

    pictures = load("cifar10", data_dir).pool[:images]
    with tempfile.TemporaryDirectory() as place:
        photos, cache = Path(place) / "photos", Path(place) / "cache"
        photos.mkdir()
        for number, pixels in enumerate(pictures):
            Image.fromarray(pixels.transpose(1, 2, 0)).save(photos / f"{number:06}.png")
        began = time.perf_counter()
        first = start(photos, cache, name, threads)
        while (done := kept(cache, name)) < killed_at * len(pictures) and first.poll() is None:
            time.sleep(0.2)
        first.send_signal(signal.SIGKILL)
        first.wait()
        until = time.perf_counter() - began
        done = kept(cache, name)
        second = start(photos, cache, name, threads)
        said, _ = second.communicate()
        facts = json.loads(said)
        third = json.loads(start(photos, cache, name, threads).communicate()[0])
        rest = len(pictures) - done
        return {
            "images": len(pictures),
            "encoder": name,
            "threads": threads,
            "killed_after_images": done,
            "killed_after_seconds": round(until, 1),
            "encoded_after_the_kill": kept(cache, name) - done,
            "images_per_second": round(rest / facts["seconds"], 1),
            "images_per_cpu_second": round(rest / facts["cpu_seconds"], 1),
            "peak_mib": facts["peak_mib"],
            "peak_mib_with_the_model_alone": facts["peak_mib_before"],
            "cache_mib": round(sum(file.stat().st_size for file in cache.iterdir()) / 2**20, 1),
            "seconds_with_all_cached": third["seconds"],
            "vectors": facts["vectors"],
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, default=None)
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--encoder", default="efficientnet-lite0")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--killed-at", type=float, default=0.4)
    parser.add_argument("--work", nargs=2, type=Path, metavar=("PHOTOS", "CACHE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work is not None:
        work(*given.work, given.encoder)
        return
    facts = measure(given.data_dir, given.images, given.encoder, given.threads, given.killed_at)
    print(json.dumps(facts, indent=2))


if __name__ == "__main__":
    main()
