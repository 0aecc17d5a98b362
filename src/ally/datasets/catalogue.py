"""Every data set that has a name."""

from __future__ import annotations

from ally.datasets.entry import Entry
from ally.datasets.listed_images import IMAGES
from ally.datasets.listed_tables import TABLES
from ally.datasets.text import TEXT
from ally.registry import Registry

DATASETS: Registry[Entry] = Registry("data set", {**IMAGES, **TABLES, **TEXT})
