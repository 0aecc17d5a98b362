"""A transformer with random weights, fine-tuned from texts with its tokenizer."""

import numpy as np
import pandas as pd
import pytest
import torch

import ally
from ally.data import as_source
from ally.errors import InputError, ModelError
from ally.learning.network import Network
from ally.learning.tokens import Tokenizing
from ally.learning.training import Training
from ally.loop import Loop
from ally.testing.learner import check_learner

transformers = pytest.importorskip("transformers")
WORDS = {"sport": "ball goal team win", "money": "bank bonds price fell", "home": "cat sofa soup bread"}
QUICK = Training(lr=5e-3, epochs=15, batch_size=16, optimizer="adamw", device="cpu")


def draw_texts(n, seed=0):
    rng = np.random.default_rng(seed)
    labels = [list(WORDS)[k % 3] for k in range(n)]
    texts = [" ".join(rng.choice(WORDS[label].split(), rng.integers(1, 9))) for label in labels]
    return texts, labels


TEXTS, LABELS = draw_texts(240)
KNOWN = [label if k < 60 else None for k, label in enumerate(LABELS)]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *" ".join(WORDS.values()).split()]
    place = tmp_path_factory.mktemp("words") / "vocab.txt"
    place.write_text("\n".join(words))
    return transformers.BertTokenizerFast(str(place))


def tiny(kind="BertForSequenceClassification", labels=3):
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = transformers.BertConfig(vocab_size=17, max_position_embeddings=12, num_labels=labels, **sizes)
    return getattr(transformers, kind)(config)


@pytest.mark.parametrize("kind", ["BertForSequenceClassification", "BertModel"])
def test_it_learns_from_texts(tokenizer, kind):
    model = tiny(kind)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    loop = Loop(TEXTS, KNOWN, model=Network.of_texts(model, tokenizer, QUICK), strategy="badge", random_state=0)
    assert loop.predict_proba(TEXTS[:5]).shape == (5, 3)
    others, truth = draw_texts(90, 1)
    assert (loop.predict(others) == np.asarray(truth)).mean() > 0.9
    fit = loop.fit()
    assert fit.texts.length == max(len(text.split()) for text in TEXTS) + 2
    x = fit.inputs(as_source(TEXTS, objects=True), np.arange(4))
    assert fit.embed(x)[0].shape == (4, 16)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


@pytest.mark.parametrize("texts", [TEXTS, pd.Series(TEXTS), np.asarray(TEXTS), np.asarray(TEXTS, dtype=object)])
def test_a_query_takes_texts_of_any_container(tokenizer, texts):
    q = ally.query(texts, KNOWN, n=6, model=Network.of_texts(tiny(), tokenizer, QUICK), random_state=0)
    assert len(set(q.ids.tolist())) == 6
    assert min(q.ids) >= 60
    assert any("its last linear layer, 'transformer.classifier'" in note for note in q.notes)


@pytest.mark.parametrize("strategy", ["ally", "coreset"])
def test_the_first_batch_covers_the_embedding_before_training(tokenizer, strategy):
    model = Network.of_texts(tiny(), tokenizer, QUICK)
    assert len(ally.query(TEXTS, n=6, model=model, classes=list(WORDS), strategy=strategy, random_state=0).ids) == 6
    source = as_source(TEXTS, objects=True)
    points = model.points(source, np.arange(70))
    encoded = tokenizer(TEXTS[:3], padding=True, return_tensors="pt")
    pooled = tiny().eval().bert(**encoded).pooler_output
    torch.testing.assert_close(points[:3], pooled.detach(), atol=1e-5, rtol=1e-4)


def test_bald_draws_masks_for_all_texts(tokenizer):
    model = Network.of_texts(tiny(), tokenizer, QUICK)
    assert len(ally.query(TEXTS, KNOWN, n=4, model=model, strategy="bald", random_state=0).ids) == 4


def test_numbers_are_learned_from_texts(tokenizer):
    lengths = [float(len(text.split())) + 0.5 for text in TEXTS]
    known = [value if k < 80 else np.nan for k, value in enumerate(lengths)]
    model = Network.of_texts(tiny(labels=1), tokenizer, QUICK)
    loop = Loop(TEXTS, known, model=model, strategy="coreset", random_state=0)
    assert np.corrcoef(loop.predict(TEXTS), lengths)[0, 1] > 0.8


def test_it_keeps_the_contract_of_learners(tokenizer):
    texts, labels = draw_texts(2100)
    unlike = [f"{text} {number}" for number, text in enumerate(texts)]
    few = Training(lr=5e-3, epochs=8, batch_size=16, optimizer="adamw", device="cpu")
    check_learner(Network.of_texts(tiny("BertModel"), tokenizer, few), X=unlike, y=labels)


def test_long_and_empty_texts_are_read_as_far_as_the_model_can(tokenizer):
    texts = ["", "ball " * 100, *TEXTS]
    loop = Loop(texts, ["sport", "sport", *KNOWN], model=Network.of_texts(tiny(), tokenizer, QUICK), random_state=0)
    assert len(loop.ask(3).ids) == 3
    assert loop.fit().texts.length == 12
    assert Tokenizing(tokenizer, 5).open(as_source(texts, objects=True)).read(np.asarray([1])).shape == (1, 2, 5)


def test_texts_for_a_module_without_a_tokenizer_are_refused():
    for call in (lambda: ally.query(TEXTS, KNOWN, n=3, model=tiny()), lambda: Loop(TEXTS, KNOWN, model=tiny())):
        with pytest.raises(ModelError, match=r"BertForSequenceClassification has no tokenizer.*Network.of_texts"):
            call()
    # Networks that fit any number of columns learn from the weights of words, as before.
    assert len(ally.query(TEXTS, KNOWN, n=3, model="mlp", random_state=0).ids) == 3


def test_what_is_no_text_is_refused(tokenizer):
    model = Network.of_texts(tiny(), tokenizer, QUICK)
    with pytest.raises(InputError, match="has a tokenizer, and the samples are not texts"):
        ally.query(np.zeros((20, 3)), [0, 1] * 5 + [None] * 10, n=3, model=model)
    with pytest.raises(InputError, match="entry 70 of X is None and others are texts"):
        ally.query([*TEXTS[:70], None, *TEXTS[71:]], KNOWN, n=3, model=model)
    with pytest.raises(ModelError, match=r"the last linear layer 'transformer.classifier' .* 2 outputs and 3"):
        ally.query(TEXTS, KNOWN, n=3, model=Network.of_texts(tiny(labels=2), tokenizer, QUICK))
    with pytest.raises(ModelError, match="of_texts was given a str and a"):
        Network.of_texts("bert-base-uncased", tokenizer)


def test_a_model_that_predicts_token_by_token_is_passed_without_its_head(tokenizer):
    sizes = {"vocab_size": 17, "n_positions": 12, "n_embd": 16, "n_layer": 1, "n_head": 2}
    config = transformers.GPT2Config(**sizes, num_labels=3, pad_token_id=0, bos_token_id=2, eos_token_id=3)
    with pytest.raises(ModelError, match=r"GPT2ForSequenceClassification has no linear layer .* without its head"):
        ally.query(
            TEXTS, KNOWN, n=3, model=Network.of_texts(transformers.GPT2ForSequenceClassification(config), tokenizer)
        )
    model = Network.of_texts(transformers.GPT2Model(config), tokenizer, QUICK)
    loop = Loop(TEXTS, KNOWN, model=model, strategy="margin", random_state=0)
    assert (loop.predict(TEXTS) == np.asarray(LABELS)).mean() > 0.9


def test_it_is_not_kept_in_a_file(tokenizer):
    loop = Loop(TEXTS, KNOWN, model=Network.of_texts(tiny(), tokenizer, QUICK), strategy="random", random_state=0)
    with pytest.raises(ModelError, match="cannot be rebuilt from a file"):
        loop.trained().to_bytes()
