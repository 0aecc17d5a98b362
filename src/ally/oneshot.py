"""One question, one answer: `ally.query`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, Unpack

from ally.data import ReadOptions
from ally.errors import PoolExhausted
from ally.execution.engine import Engine
from ally.hygiene import Hygiene
from ally.learning.objectives import Objective
from ally.loop import Loop, Query
from ally.strategies import Strategy
from ally.types import NULL, Progress, Task


def query(
    X: Any,
    y: Any = None,
    *,
    n: int,
    strategy: str | Strategy = "ally",
    objective: str | Objective | None = None,
    model: Any = "auto",
    task: Task | Literal["auto"] = "auto",
    classes: Any = None,
    ids: Any = None,
    candidates: Any = None,
    embeddings: Any = None,
    validation: tuple[Any, Any] | None = None,
    missing_label: Any = NULL,
    random_state: Any = None,
    device: str = "auto",
    chunk_size: int | None = None,
    memory_budget: int | None = None,
    engine: str | Engine = "local",
    progress: Progress | None = None,
    hygiene: Hygiene | None = Hygiene(),
    channels: Literal["auto", "first", "last"] = "auto",
    encoder: Any = "auto",
    **reading: Unpack[ReadOptions],
) -> Query:
    """Which n samples to label next.

    Args:
        X: all samples, labelled and not, in anything that a campaign takes: an array, a memory map, a sparse matrix, a
            table, a dictionary of columns, a tensor, a torch or Hugging Face data set, a list of texts, dictionaries or
            pictures, the path of a file or a folder; also a Ray Dataset, or a folder of .npy or Parquet parts. The
            notes say how it is read (docs/sources.md).
        y: one label per row (if X and y are of pandas, they are brought together by the index), or a dictionary from
            ids to labels; None or NaN (or `missing_label`) where unlabelled. None for no labels beside those that X
            holds.
        n: how many; exactly this many distinct unlabelled ids come back, or an error says how many there are.
        strategy: a name of the catalogue (``ally strategies`` lists it) or an `ally.Strategy`.
        objective: how the learner is trained, if not as the strategy says: a name or an objective.
        model: ``"auto"`` chooses by cross-validation on the labels, and the notes say what and by how much; or a name,
            a scikit-learn estimator or pipeline, a torch module or function ``(shape, outputs) -> module`` that ends
            with a linear layer or has `backbone` and `head`, ``Network.of_texts(model, tokenizer)`` for a transformer
            and texts, a `ConstrainedClassifier` / `ConstrainedRegressor` for its network and training settings, or any
            `ally.learning.learner.Learner`. Networks by name see standardised features; your own
            modules and estimators see them as they are, and estimators also texts and tables of any columns
            (docs/learners.md).
        task: ``"auto"``: texts, booleans and declared classes are classes; numbers with a fraction are numbers; whole
            numbers are classes up to 100 different values that each stand for many samples or are numbered like
            classes (0 to 9), and numbers above that. Where the labels do not tell, an error asks. The decision is in
            the query's notes.
        classes: all classes, if the labels may not show every one yet.
        ids: one id per row; otherwise those that X holds (the index of a pandas frame, if it does not only number the
            rows; a column of ids), or row numbers.
        candidates: ids, or a mask over all rows, that may be asked about.
        embeddings: vectors to measure distances in, one for each row of X: anything X may be, of shape (n, d), such as
            the output of a pretrained encoder, taken as they are; or ``"inputs"`` for the samples themselves,
            standardised as the learner sees them. By default distances are those of the network's own embeddings.
            Clusters, coverage, near duplicates, outliers and the distances in ``why`` follow these vectors, also before
            there are labels. Predictions, duals and what is about the network's last layer stay with the network: the
            gradients of badge and of lcmd for classification, the information of bait, the dual head.
        validation: ``(X, y)``, labelled samples beside the pool for early stopping; never trained on.
        missing_label: a value that marks unlabelled rows besides None and NaN, such as -1.
        random_state: seed; equal seeds give equal ids.
        device: where to train.
        chunk_size: rows read at a time; does not change the ids.
        memory_budget: bytes for embeddings and probabilities before they move to a memory map; a quarter of memory if
            None.
        engine: where the candidates are looked at and chosen from: ``"local"``, this process; ``"ray"``, the cluster at
            ``RAY_ADDRESS`` or else one that is started here; ``"ray://host:port"``, another; or an
            `ally.execution.engine.Engine`. Training stays here, and the ids are the same.
        progress: called as ``progress(stage, done, total)``.
        hygiene: which candidates to set aside: by default exact copies, of each other and of what is labelled; see
            `ally.Hygiene`. The notes say how many. None for no hygiene.
        channels: where images hold their channels; ``"auto"``: last, if the last axis has 1, 3 or 4 and the first has
            more. The notes say so.
        encoder: what texts and pictures are seen through: a pretrained encoder by name, the folder of a model, an
            `ally.data.encoders.Encoder` or a function of a list of them; ``"auto"`` for the one on this machine, if
            there is one; None for none.
        reading: how X is read, as in `ally.data.open_source`: id_column, text, image, label, columns, collate,
            recursive, folder, encoding, header, size.
    """
    loop = Loop(
        X,
        y,
        strategy=strategy,
        objective=objective,
        model=model,
        task=task,
        classes=classes,
        ids=ids,
        candidates=candidates,
        embeddings=embeddings,
        validation=validation,
        hygiene=hygiene,
        missing_label=missing_label,
        random_state=random_state,
        device=device,
        chunk_size=chunk_size,
        memory_budget=memory_budget,
        progress=progress,
        channels=channels,
        engine=engine,
        encoder=encoder,
        **reading,
    )
    known = loop.known_labels()
    try:
        found = loop.ask(n)
        marker = _likely_marker(known) if missing_label is NULL else None
        marked = () if marker is None else (f"{marker!r} is a class like the others; {_meant(marker)}",)
        return replace(found, notes=(*marked, *found.notes))
    except PoolExhausted as error:
        marker = None if error.available else _likely_marker(known, surely=False)
        if marker is None or missing_label is not NULL:
            raise
        hint = f"every label is taken as known; {_meant(marker)}"
        raise PoolExhausted(error.available, error.requested, hint=hint) from None


def _meant(marker: Any) -> str:
    return f"if {marker!r} marks unlabelled samples, pass missing_label={marker!r} (--missing-label={marker})"


def _likely_marker(labels: set[Any], *, surely: bool = True) -> Any:
    """-1 or an empty text among the labels, as other libraries and tables mark what is not labelled; `surely`: -1
    only beside whole numbers from 0 on, as -1 and 1 are two classes."""
    if "" in labels:
        return ""
    numbers = {label for label in labels if isinstance(label, (int, float))}
    likely = not surely or (0 in numbers and min(numbers) == -1 and all(float(value).is_integer() for value in numbers))
    return -1 if -1 in numbers and likely else None
