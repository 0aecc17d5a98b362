"""The data sets of the paper and others, by name, and any table, array file or folder of images, by path."""

from ally.datasets.catalogue import DATASETS
from ally.datasets.dataset import Dataset, Kind, Parts
from ally.datasets.entry import Archive, Entry, File
from ally.datasets.load import fetch, load, verify
from ally.datasets.places import default_data_dir, missing, state
from ally.datasets.reading import Reading
from ally.datasets.verify import Check

__all__ = [
    "DATASETS",
    "Archive",
    "Check",
    "Dataset",
    "Entry",
    "File",
    "Kind",
    "Parts",
    "Reading",
    "default_data_dir",
    "fetch",
    "load",
    "missing",
    "state",
    "verify",
]
