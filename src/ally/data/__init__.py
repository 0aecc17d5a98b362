"""The one road in for data: samples by id or by row number, their labels, encoders and named data sets.

`open_source` opens what a user has (a folder, a file, a frame, an array) as samples by id, `open_pool` the same by row
number, for a query; `as_source` wraps numbers in memory, read in chunks. `parse_labels` and `decide_task` say what a
label is, and whether labels are classes or numbers. Nothing outside this folder looks at types and file endings.
"""

from ally.data.arrays.carried import carried
from ally.data.arrays.convert import as_source
from ally.data.arrays.ray_blocks import is_lazy_dataset
from ally.data.arrays.scaling import Checked, Scaler, fit_scaler
from ally.data.base import BLOCK, Source, blocks, chunks
from ally.data.defaults import DefaultLearner, default_learner
from ally.data.embeddings import Vectors, open_vectors
from ally.data.export import Answer, check_answers, read_answers, write_answers, write_image_folder
from ally.data.ids import Ids
from ally.data.labels import LabelCode, ParsedLabels, parse_labels
from ally.data.once import Once
from ally.data.opening import ReadOptions, open_source
from ally.data.oracle import Oracle
from ally.data.pool import Pool, State
from ally.data.problems import Problems, SampleProblem
from ally.data.row_pool import RowPool, open_pool
from ally.data.samples import Kind, Sample, Samples, Shown
from ally.data.task_rule import decide_task

__all__ = [
    "BLOCK",
    "Answer",
    "Checked",
    "DefaultLearner",
    "Ids",
    "Kind",
    "LabelCode",
    "Once",
    "Oracle",
    "ParsedLabels",
    "Pool",
    "Problems",
    "ReadOptions",
    "RowPool",
    "Sample",
    "SampleProblem",
    "Samples",
    "Scaler",
    "Shown",
    "Source",
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
    "write_answers",
    "write_image_folder",
]
