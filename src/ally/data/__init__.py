"""The one road in for data: samples by id or by row number, their labels, encoders and named data sets.

What the words mean:

- A *sample* is one thing that may be labelled: a file in a folder, a row of a table, a line of a text file, a row of an
  array.
- Its *id* is a text that is unique in its source and stays the same when the source is opened again: a path, a value of
  an id column, a hash of the content, a row number. Within a pool that is read by row, a sample is its row number.
- Its *kind* (`SampleKind`) says all that differs from one kind of data to another: how a source is recognised and
  opened, how a sample is shown, which encoder reads it, what learns it by default. `KINDS` has an entry for each;
  `register_kind` adds one of your own.
- A *label* is one class (a text, a truth value, a whole number) or one number. `parse_labels` turns the labels of a
  pool into what a learner fits, `decide_task` says whether they are classes or numbers; nothing else decides either.
- A *fingerprint* is what was learned from a source, as plain values. It names no code, no place and no person.

`open_source` opens what a user has (a folder, a file, a frame, an array) as `Samples` by id. `Samples` promises: a scan
in bounded memory that may be repeated, ids that are unique and stable, features in the order of the ids asked for and
equal for any chunking, something to see of each sample, the ids that are missing by name, and problems with single
samples that are collected and never fatal. The contract in full is in `ally.data.samples`, and
`ally.testing.samples.check_samples` tries it.

`open_pool` opens the same data by row number, for a query. `as_source` wraps numbers as a `Source`: samples by row
number, read in chunks. Nothing outside this folder looks at types and file endings.
"""

from ally.data.arrays.carried import carried
from ally.data.arrays.convert import as_source
from ally.data.arrays.ray_blocks import is_lazy_dataset
from ally.data.arrays.scaling import Checked, Scaler, fit_scaler
from ally.data.base import BLOCK, Source, blocks, chunks
from ally.data.defaults import DefaultLearner, default_learner
from ally.data.embeddings import Vectors, open_vectors
from ally.data.export import Answer, check_answers, read_answers, write_answers, write_image_folder
from ally.data.folders import FolderSamples
from ally.data.ids import Ids
from ally.data.kinds import KINDS, SampleKind, SourceRequest, register_kind
from ally.data.labels import LabelCode, ParsedLabels, parse_labels
from ally.data.once import Once
from ally.data.opening import ReadOptions, open_source
from ally.data.oracle import Oracle
from ally.data.pool import Pool, State
from ally.data.problems import Problems, SampleProblem
from ally.data.row_pool import RowPool, open_pool
from ally.data.samples import ById, Sample, Samples, Shown
from ally.data.task_rule import decide_task

__all__ = [
    "BLOCK",
    "KINDS",
    "Answer",
    "ById",
    "Checked",
    "DefaultLearner",
    "FolderSamples",
    "Ids",
    "LabelCode",
    "Once",
    "Oracle",
    "ParsedLabels",
    "Pool",
    "Problems",
    "ReadOptions",
    "RowPool",
    "Sample",
    "SampleKind",
    "SampleProblem",
    "Samples",
    "Scaler",
    "Shown",
    "Source",
    "SourceRequest",
    "State",
    "Vectors",
    "as_source",
    "blocks",
    "carried",
    "check_answers",
    "chunks",
    "decide_task",
    "default_learner",
    "fit_scaler",
    "is_lazy_dataset",
    "open_pool",
    "open_source",
    "open_vectors",
    "parse_labels",
    "read_answers",
    "register_kind",
    "write_answers",
    "write_image_folder",
]
