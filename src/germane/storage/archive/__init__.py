"""The archive: closed days in Parquet files, in a folder or on S3. Only this package imports DuckDB and pyarrow."""

from __future__ import annotations
