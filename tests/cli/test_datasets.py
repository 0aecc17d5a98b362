"""`ally datasets`: the list at any width, JSON, fetching, verifying, and how it ends."""

import gzip
import hashlib
import http.server
import io
import json
import struct
import threading
from functools import partial

import pytest
from rich.cells import cell_len
from rich.console import Console
from typer.testing import CliRunner

from ally.cli import datasets as page
from ally.data.catalogue import DATASETS, Entry, File
from ally.data.catalogue.official_images import read_mnist
from ally.errors import DataError, InputError, UnknownName


def invoke(*arguments):
    return CliRunner().invoke(page.app, list(map(str, arguments)), catch_exceptions=False)


def idx(shape, fill):
    return (
        bytes([0, 0, 8, len(shape)])
        + struct.pack(f">{len(shape)}I", *shape)
        + bytes([fill]) * int(shape[0] * (784 if shape[1:] else 1))
    )


@pytest.fixture
def folder(tmp_path):
    """Two of the four files of MNIST, readable but not the official ones, and all of a small set of text."""
    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist" / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx((2, 28, 28), 0)))
    (tmp_path / "mnist" / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx((2,), 1)))
    (tmp_path / "text" / "sst2").mkdir(parents=True)
    for side in ("train", "test"):
        (tmp_path / "text" / "sst2" / f"{side}.tsv").write_text("sentence\tlabel\ngood\t1\nbad\t0\n")
    return tmp_path


@pytest.mark.parametrize("columns", [80, 100, 200])
def test_the_list_fits_and_says_what_is_missing(folder, monkeypatch, columns):
    out = io.StringIO()
    monkeypatch.setattr(page, "stdout", Console(file=out, width=columns))
    invoke("list", "--data-dir", folder)
    assert max(map(cell_len, out.getvalue().splitlines())) <= columns
    words = " ".join(out.getvalue().split())
    assert all(name in words for name in DATASETS)
    if columns < page.WIDE:
        assert "classification · 60 000 + 10 000, 1×28×28 · partly; missing: mnist/t10k-images-idx3-ubyte.gz" in words
        assert "built in" in words
    assert "absent; write its 1030 rows" in words or columns >= page.WIDE


def test_list_as_json_and_without_a_command(folder):
    listed = json.loads(invoke("list", "--data-dir", folder, "--json").stdout)
    assert listed == json.loads(invoke("--data-dir", folder, "--json").stdout)
    assert listed == json.loads(invoke("--data-dir", folder, "--json", "list").stdout)
    assert listed["data_dir"] == str(folder)
    rows = {row["name"]: row for row in listed["datasets"]}
    assert list(rows) == list(DATASETS)
    assert (rows["mnist"]["state"], len(rows["mnist"]["missing"])) == ("partly", 2)
    assert (rows["sst2"]["state"], rows["sst2"]["missing"]) == ("here", [])
    assert (rows["digits"]["state"], rows["svhn"]["state"]) == ("built in", "absent")
    assert rows["svhn"]["fetchable"]
    assert not rows["sst2"]["fetchable"]
    assert all(row["terms"] and row["citation"] for row in rows.values())


def test_the_environment_names_the_folder(folder, monkeypatch):
    monkeypatch.setenv("ALLY_DATA", str(folder))
    assert json.loads(invoke("--json").stdout)["data_dir"] == str(folder)
    monkeypatch.delenv("ALLY_DATA")
    assert "ally" in json.loads(invoke("--json").stdout)["data_dir"]


def test_verify(folder):
    result = invoke("verify", "--data-dir", folder)
    assert "sst2: text/sst2/train.tsv: readable (no official checksum is known)" in result.stdout
    assert "mnist: mnist/t10k-images-idx3-ubyte.gz: missing" in result.stdout
    assert "mnist: mnist/train-images-idx3-ubyte.gz: bad (expected md5:f68b3c2d" in result.stdout
    assert result.exit_code == 2
    good = invoke("verify", "sst2", "digits", "--data-dir", folder)
    assert good.exit_code == 0
    assert "digits: ships with scikit-learn" in good.stdout
    assert invoke("verify", "svhn", "--data-dir", folder).exit_code == 2, "a set that was asked for is missing"
    checks = json.loads(invoke("verify", "sst2", "--data-dir", folder, "--json").stdout)["checks"]
    assert [check["verdict"] for check in checks["sst2"]] == ["readable", "readable"]
    (folder / "empty").mkdir()
    assert invoke("verify", "--data-dir", folder / "empty").exit_code == 0


@pytest.fixture
def served(tmp_path, monkeypatch):
    """A data set of one file, served by this machine."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "a.bin").write_bytes(b"content")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/a.bin"
    file = File("set/a.bin", "sha256:" + hashlib.sha256(b"content").hexdigest(), (url,))
    entry = Entry("classification", "images", "about", "1 + 1", "someone", "none", read_mnist, (file,))
    monkeypatch.setitem(DATASETS._entries, "served", entry)
    yield site
    server.shutdown()
    server.server_close()


def test_fetch(served, tmp_path):
    folder = tmp_path / "data"
    first = invoke("fetch", "served", "--data-dir", folder)
    assert (first.exit_code, first.stdout) == (0, "served: set/a.bin fetched\n")
    assert invoke("fetch", "served", "--data-dir", folder).stdout == "served: set/a.bin is already here\n"
    assert (folder / "set" / "a.bin").read_bytes() == b"content"
    done = json.loads(invoke("fetch", "served", "digits", "--data-dir", folder, "--json").stdout)["done"]
    assert list(done) == ["served", "digits"]
    (served / "a.bin").write_bytes(b"tampered")
    with pytest.raises(DataError, match="expected sha256"):
        invoke("fetch", "served", "--data-dir", tmp_path / "other")


def test_names_are_checked_before_anything_is_fetched(served, tmp_path):
    with pytest.raises(UnknownName, match="unknown data set 'nope'"):
        invoke("fetch", "served", "nope", "--data-dir", tmp_path / "data")
    assert not (tmp_path / "data").exists()
    with pytest.raises(InputError, match="no data set given"):
        invoke("fetch")


def test_as_a_process(process, folder):
    listed = process("datasets", "list", "--data-dir", folder, "--json")
    assert listed.returncode == 0, listed.stderr
    assert len(json.loads(listed.stdout)["datasets"]) == len(DATASETS)


def test_exit_codes_and_errors(command, folder):
    unknown = command("datasets", "fetch", "nope")
    assert unknown.returncode == 2
    assert unknown.stderr.startswith("error: unknown data set 'nope'")
    by_hand = command("datasets", "fetch", "concrete", "--data-dir", folder)
    assert by_hand.returncode == 2
    assert "error: concrete cannot be fetched: write its 1030 rows into uci/concrete.csv.gz" in by_hand.stderr
    assert command("datasets", "verify", "mnist", "--data-dir", folder).returncode == 2
