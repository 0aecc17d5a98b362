import subprocess
import sys

import pytest

IMPORTS = """
import warnings
import ally
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import ally.sources.rows.columns, ally.datasets, ally.encoders
    from ally.pool import Pool
    assert ally.sources is ally.data and ally.datasets is ally.data.catalogue and ally.encoders is ally.data.encoders
assert ally.sources.rows.columns is ally.data.tables.columns
assert ally.data.__spec__.name == "ally.data" and Pool is ally.data.Pool
print([str(one.message) for one in caught])
"""


def test_modules_are_found_under_their_names_of_0_1_with_a_warning():
    done = subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "ally.sources.rows is ally.data.tables now; the old name goes with 0.3" in done.stdout


def test_other_unknown_modules_are_not_found():
    with pytest.raises(ModuleNotFoundError):
        __import__("ally.source")
