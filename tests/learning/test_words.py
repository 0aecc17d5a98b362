"""A learner of words beside the vectors of an encoder."""

import numpy as np
import pytest
import scipy.sparse
import torch

from ally.data import as_source
from ally.data.samples import ById
from ally.errors import InputError
from ally.learning.auto import AutoLearner
from ally.learning.candidates import slate_for
from ally.learning.learner import Examples
from ally.learning.linear import LinearLearner
from ally.learning.objectives import ERM, PDCL
from ally.learning.posterior import MutualInformationReadout
from ally.learning.trained import Trained
from ally.learning.training import Training
from ally.learning.words import OfWords
from ally.rng import streams

RNG = np.random.default_rng(0)
LABELS = np.arange(120) % 2
WORDS = scipy.sparse.csr_matrix(
    (RNG.random((120, 30)) < np.where(LABELS[:, None] == np.arange(30) % 2, 0.2, 0.05)) * 1.0
)
VECTORS = (RNG.standard_normal((120, 6)) + 0.3 * LABELS[:, None]).astype(np.float32)
ALL = np.arange(120)


def beside(words=WORDS):
    known = None if words is None else as_source(words)
    return ById([*map(str, ALL)], (6,), lambda ids: VECTORS[[*map(int, ids)]], vectors=True, words=known)


def fitted(learner, source, objective=ERM(), **more):
    examples = Examples(source, ALL[:60], LABELS[:60], "classification", (0, 1))
    return learner.prepared(source, ALL).fit(examples, objective, streams(0), **more)


@pytest.mark.parametrize("objective", [ERM(), PDCL()])
def test_it_is_the_learner_on_the_words(objective):
    mine, alone = (
        fitted(OfWords(LinearLearner()), beside(), objective),
        fitted(LinearLearner(), as_source(WORDS), objective),
    )
    seen, other = mine.view(beside(), ALL), alone.view(as_source(WORDS), ALL)
    assert torch.equal(seen.probabilities, other.probabilities)
    assert torch.equal(seen.embeddings, other.embeddings)
    assert mine.duals.keys() == alone.duals.keys()
    assert mine.predict(beside()).tolist() == alone.predict(as_source(WORDS)).tolist()


def test_members_of_an_ensemble_read_words():
    learner = OfWords(LinearLearner())
    fits = [fitted(learner, beside(), member=number) for number in range(2)]
    read = MutualInformationReadout()
    seen = fits[0].view(beside(), ALL, readouts=[read], members=fits[1:])
    assert seen.readouts[read.name].shape == (120,)
    assert (seen.readouts[read.name] > 0).any()


def test_validation_is_read_as_words():
    extra = Examples(beside(), ALL[60:], LABELS[60:], "classification", (0, 1))
    assert fitted(OfWords(LinearLearner()), beside(), validation=extra).report.samples == 60


def test_samples_without_words_are_refused():
    fit = fitted(OfWords(LinearLearner()), beside())
    with pytest.raises(InputError, match="reads the words of texts, and these samples have none"):
        fit.view(beside(None), ALL)


def test_words_are_averaged_with_vectors_where_both_are_there():
    slate = [one.name for one in slate_for(beside())]
    assert slate == ["linear", "linear-columns", "graph", "words", "mlp"]
    assert "words" not in [one.name for one in slate_for(beside(None))]
    auto = AutoLearner(Training(epochs=5, device="cpu"))
    fit = fitted(auto, beside())
    assert "words" in fit.report.notes[0]
    assert "averaged" in fit.report.notes[0]
    again = Trained.from_bytes(Trained(fit).to_bytes())
    assert again.predict(beside())[0].tolist() == fit.predict(beside()).tolist()
