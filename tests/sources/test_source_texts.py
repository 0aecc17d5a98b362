import json

import numpy as np
from sklearn.feature_extraction.text import TfidfTransformer

from ally.sources import as_source, fit_scaler, open_source
from ally.sources.text import WordWeights, word_counts

TEXTS = ["the cat sat", "the dog ran", "the cat ran far", "Zoë naïve 😀 cafe\u0301"]


def test_one_text_a_line(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("\n".join([TEXTS[0], "", *TEXTS[1:], TEXTS[0]]) + "\n", encoding="utf-8")
    samples = open_source(path)
    found = list(samples.scan())
    assert samples.kind == "text"
    assert len(found) == 5
    assert [samples.show(sample.id).text for sample in found] == [*TEXTS, TEXTS[0]]
    assert found[4].id == f"{found[0].id}-2"
    reordered = tmp_path / "again.txt"
    reordered.write_text("\n".join(reversed(TEXTS)), encoding="utf-8")
    assert {sample.id for sample in open_source(reordered, known=samples.fingerprint()).scan()} == {
        sample.id for sample in found[:4]
    }


def test_weights_equal_those_of_one_whole_matrix():
    texts = [f"{TEXTS[number % 4]} word{number % 7}" for number in range(50)]
    weights = WordWeights.learn([texts[:20], texts[20:]], 512)
    exact = TfidfTransformer(sublinear_tf=True).fit_transform(word_counts(texts, 512))
    np.testing.assert_allclose(weights(texts).toarray(), exact.toarray(), atol=1e-6)
    np.testing.assert_array_equal(WordWeights.from_text(weights.to_text()).idf, weights.idf)


def test_weights_are_kept(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(TEXTS), encoding="utf-8")
    samples = open_source(path)
    kept = json.loads(json.dumps(samples.fingerprint()))
    ids = [sample.id for sample in samples.scan()]
    before = samples.features(ids).read(np.arange(4))
    path.write_text("\n".join([*TEXTS, *["dog"] * 50]), encoding="utf-8")
    np.testing.assert_array_equal(open_source(path, known=kept).features(ids).read(np.arange(4)), before)
    assert not np.array_equal(open_source(path).features(ids).read(np.arange(4)), before)


def test_a_learner_scales_words_by_one_factor(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(TEXTS), encoding="utf-8")
    samples = open_source(path)
    source = as_source(samples.features([sample.id for sample in samples.scan()]))
    scaler = fit_scaler(source, np.arange(4))
    assert not scaler.mean.any()
    assert len(np.unique(scaler.scale)) == 1
    assert np.isfinite(scaler.of(source).read(np.array([2, 0]))).all()
