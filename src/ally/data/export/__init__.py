"""Labels to files and back: CSV, JSON lines, Parquet, and folders of images by class."""

from ally.data.export.answers import Answer
from ally.data.export.folders import write_image_folder
from ally.data.export.reading import check_answers, read_answers
from ally.data.export.writing import write_answers

__all__ = ["Answer", "check_answers", "read_answers", "write_answers", "write_image_folder"]
