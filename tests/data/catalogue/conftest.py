"""Writers of the official formats, small and byte for byte, and a local web server."""

import gzip
import http.server
import io
import struct
import tarfile
import threading
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from PIL import Image


def idx_bytes(array, code=0x08):
    return bytes([0, 0, code, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def jpeg(seed, side=64, mode="RGB", kind="JPEG"):
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 256, (side, side) if mode == "L" else (side, side, 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, kind)
    return out.getvalue()


def tar_bytes(members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            if isinstance(content, tarfile.TarInfo):
                info = content
                tar.addfile(info)
                continue
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


@pytest.fixture(scope="session")
def write():
    """The writers above, by name."""

    class Writers:
        idx = staticmethod(idx_bytes)
        jpeg = staticmethod(jpeg)
        tar = staticmethod(tar_bytes)
        gzip = staticmethod(gzip.compress)

    return Writers


@dataclass
class Site:
    """The files that a web server serves, by path, and the paths that were requested."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    cut: dict[str, int] = field(default_factory=dict)
    """Paths whose response ends after this many bytes, although the full length is announced."""
    asked: list[str] = field(default_factory=list)


@pytest.fixture
def site():
    """A real web server on this machine."""
    state = Site()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            state.asked.append(self.path)
            body = state.files.get(self.path)
            if body is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: state.cut.get(self.path, len(body))])

        def log_message(self, *arguments):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    yield state
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def mnist_folder(tmp_path):
    """A tiny MNIST in the official files: 6 + 4 images."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "mnist"
    folder.mkdir()
    for side, n in (("train", 6), ("t10k", 4)):
        images = rng.integers(0, 256, (n, 28, 28), dtype=np.uint8)
        labels = np.arange(n, dtype=np.uint8) % 10
        (folder / f"{side}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx_bytes(images)))
        (folder / f"{side}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx_bytes(labels)))
    return tmp_path


def files_below(folder: Path):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.fixture
def listing():
    return files_below
