"""Every data set that has a name."""

from __future__ import annotations

from ally.data.catalogue.entry import Entry
from ally.data.catalogue.listed_images import IMAGES
from ally.data.catalogue.listed_tables import TABLES
from ally.data.catalogue.text import TEXT
from ally.registry import Registry

DATASETS: Registry[Entry] = Registry("data set", {**IMAGES, **TABLES, **TEXT})
