"""Rows that do not fit into memory: in blocks, from Dask arrays, Parquet, npy and zarr files.

The estimators take what the functions here return in the place of X. Without a Dask client, rows
are read block by block in this process; with one, functions go to the workers, and only statistics
come back. See ``docs/scale.md``.
"""

from newfound.scale.sources import from_dask, from_npy, from_parquet, from_zarr
from newfound.scale.workers import connect
from newfound.scale.writing import write_labels

__all__ = ["connect", "from_dask", "from_npy", "from_parquet", "from_zarr", "write_labels"]
