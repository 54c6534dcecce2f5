"""The project: settings, URLs, health.

Django uses whatever is importable as ``sqlite3``. The SQLite of most systems has a rare WAL race (fixed in 3.51.3); if
the ``pysqlite3`` wheel is installed, which bundles a fixed version, it replaces it.

pandas imports pyarrow if it is installed, which costs 40 MB in every process for a faster kind of text column. Nothing
here benefits, so pandas does not find it; `bank/intake/parquet.py` loads it when a Parquet file is requested.
"""

import os
import sys

# A second BLAS thread spins more than it helps on matrices of this size; web workers run side by side anyway.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

try:
    import pysqlite3
except ImportError:  # no wheel for this system: `manage.py check` says if its SQLite has the fault
    pass
else:
    sys.modules.setdefault("sqlite3", pysqlite3)
    sys.modules.setdefault("sqlite3.dbapi2", pysqlite3.dbapi2)


class _NotForPandas:
    """Finds no pyarrow as long as pandas is being loaded."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        pandas = getattr(sys.modules.get("pandas"), "__spec__", None)
        if name == "pyarrow" and getattr(pandas, "_initializing", False):
            raise ModuleNotFoundError("pyarrow is left out", name=name)


sys.meta_path.insert(0, _NotForPandas)
