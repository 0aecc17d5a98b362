import base64
import json

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

from ally.data import as_source, fit_scaler, open_source
from ally.data.text import FEATURES, WordWeights, word_counts
from ally.errors import DataError

TEXTS = ["the cat sat", "the dog ran", "the cat ran far", "Zoë naïve 😀 cafe\u0301"]


def test_one_text_a_line(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("\n".join([TEXTS[0], "", *TEXTS[1:], TEXTS[0]]) + "\n", encoding="utf-8")
    samples = open_source(path)
    found = list(samples.scan())
    assert samples.kind.name == "text"
    assert len(found) == 5
    assert [samples.show(sample.id).text for sample in found] == [*TEXTS, TEXTS[0]]
    assert found[4].id == f"{found[0].id}-2"
    reordered = tmp_path / "again.txt"
    reordered.write_text("\n".join(reversed(TEXTS)), encoding="utf-8")
    assert {sample.id for sample in open_source(reordered, known=samples.fingerprint()).scan()} == {
        sample.id for sample in found[:4]
    }


def texts_with_rare_words():
    return [f"{TEXTS[number % 4]} word{number % 7} only{number} I x{number % 3}" for number in range(50)]


def test_weights_equal_those_of_one_whole_matrix():
    """The weights from scikit-learn with the same settings; a word in only one text has no column."""
    texts = texts_with_rare_words()
    weights = WordWeights.learn([texts[:20], texts[20:]])
    exact = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), min_df=2, token_pattern=r"\b\w+\b")
    whole, ours = exact.fit_transform(texts), weights(texts)
    assert ours.shape == whole.shape
    np.testing.assert_allclose((ours @ ours.T).toarray(), (whole @ whole.T).toarray(), atol=1e-6)
    order = np.lexsort(ours.toarray().round(5)), np.lexsort(whole.toarray().round(5))
    np.testing.assert_allclose(ours.toarray()[:, order[0]], whole.toarray()[:, order[1]], atol=1e-5)


def test_the_commonest_words_have_a_column():
    texts = ["a b", "a b", "a c", "a c", "a d"]
    weights = WordWeights.learn([texts], features=1)
    assert weights.idf == pytest.approx([1.0])
    np.testing.assert_allclose(weights(["a", "z", "", "a a z"]).toarray(), [[1], [0], [0], [1]])


def test_weights_are_read_as_they_were_written():
    texts = texts_with_rare_words()
    weights = WordWeights.learn([texts])
    again = WordWeights.from_json(json.loads(json.dumps(weights.to_json())))
    np.testing.assert_array_equal(again(texts).toarray(), weights(texts).toarray())


def test_what_is_kept_of_many_words_is_small():
    rng = np.random.default_rng(0)
    texts = [" ".join(f"word{number}" for number in rng.zipf(1.2, 60) % 40_000) for _ in range(3000)]
    weights = WordWeights.learn([texts[:1000], texts[1000:]])
    assert len(weights.idf) == FEATURES
    assert len(json.dumps(weights.to_json())) < 60_000


def test_weights_of_0_1_0_keep_their_columns():
    """They are one text: a weight for each of 4096 hashes."""
    idf = np.linspace(1, 5, 4096, dtype=np.float32)
    kept = base64.b64encode(idf.tobytes()).decode()
    old = WordWeights.from_json(kept)
    assert old.to_json() == kept
    counts = word_counts(TEXTS, 4096, short=False)
    counts.data = (1 + np.log(counts.data)) * idf[counts.indices]
    np.testing.assert_allclose(old(TEXTS).toarray(), normalize(counts).toarray(), atol=1e-6)


@pytest.mark.parametrize("kept", ["?", {"steps": "?", "idf": ""}, {"idf": ""}, {}, 3, None])
def test_damaged_weights_are_refused(kept):
    with pytest.raises(DataError, match="word weights are damaged"):
        WordWeights.from_json(kept)


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
