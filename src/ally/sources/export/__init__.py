"""Labels to files and back: CSV, JSON lines, Parquet, and folders of images by class."""

from ally.sources.export.answers import Answer
from ally.sources.export.folders import write_image_folder
from ally.sources.export.reading import check_answers, read_answers
from ally.sources.export.writing import write_answers

__all__ = ["Answer", "check_answers", "read_answers", "write_answers", "write_image_folder"]
