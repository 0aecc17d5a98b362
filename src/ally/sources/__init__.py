"""Samples by row number, read in chunks (arrays, tables, torch data sets, files), and samples by id for a labelling
campaign."""

from ally.sources.arrays.carried import carried
from ally.sources.arrays.convert import as_source
from ally.sources.arrays.ray_blocks import is_lazy_dataset
from ally.sources.arrays.scaling import Checked, Scaler, fit_scaler
from ally.sources.base import BLOCK, Source, blocks, chunks
from ally.sources.defaults import DefaultLearner, default_learner
from ally.sources.embeddings import Vectors, open_vectors
from ally.sources.export import Answer, check_answers, read_answers, write_answers, write_image_folder
from ally.sources.once import Once
from ally.sources.opening import open_source
from ally.sources.problems import Problems, SampleProblem
from ally.sources.samples import Kind, Sample, Samples, Shown

__all__ = [
    "BLOCK",
    "Answer",
    "Checked",
    "DefaultLearner",
    "Kind",
    "Once",
    "Problems",
    "Sample",
    "SampleProblem",
    "Samples",
    "Scaler",
    "Shown",
    "Source",
    "Vectors",
    "as_source",
    "blocks",
    "carried",
    "check_answers",
    "chunks",
    "default_learner",
    "fit_scaler",
    "is_lazy_dataset",
    "open_source",
    "open_vectors",
    "read_answers",
    "write_answers",
    "write_image_folder",
]
