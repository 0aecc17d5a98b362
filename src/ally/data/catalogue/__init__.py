"""The data sets of the paper and others, by name, and any table, array file or folder of images, by path."""

from ally.data.catalogue.catalogue import DATASETS
from ally.data.catalogue.dataset import Dataset, Kind, Parts
from ally.data.catalogue.entry import Archive, Entry, File
from ally.data.catalogue.load import fetch, load, verify
from ally.data.catalogue.places import default_data_dir, missing, state
from ally.data.catalogue.reading import Reading
from ally.data.catalogue.verify import Check

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
