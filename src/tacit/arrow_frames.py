"""Arrow tables as the frames of other libraries, each of which may be missing."""

from typing import Any

import pyarrow as pa

from tacit.errors import InvalidParameter


def as_pandas(table: pa.Table) -> Any:
    """Return an Arrow table as a pandas frame; refuse if pandas is not installed."""
    try:
        return table.to_pandas()
    except ImportError:
        raise InvalidParameter("pandas is not installed\nhint: pip install pandas, or use to_arrow()") from None


def as_polars(table: pa.Table) -> Any:
    """Return an Arrow table as a Polars frame; refuse if Polars is not installed."""
    try:
        import polars as pl
    except ImportError:
        raise InvalidParameter("polars is not installed\nhint: pip install polars, or use to_arrow()") from None
    return pl.from_arrow(table)
