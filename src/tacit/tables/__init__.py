"""Tables: the protected part, the public part, and the source of rows."""

from tacit.tables.blocks import begin_in_utc, blocks_between, read_blocks, zone_of
from tacit.tables.cells import FIRST_SECOND, LAST_SECOND, TEXT_BYTES_MAX
from tacit.tables.elsewhere import BatchReader, BatchRecipe, Elsewhere, recipe_of
from tacit.tables.formats import open_elsewhere, open_source, open_together, run_public
from tacit.tables.frames import keys_to_arrow, to_scalar
from tacit.tables.owned_rows import owned_source
from tacit.tables.public import PublicTable, make_public
from tacit.tables.schema import (
    ROW,
    ColumnFacts,
    Declaration,
    KeyValue,
    Neighbours,
    RowBlocks,
    RowUnit,
    WrittenFacts,
    declaration_from,
    is_auto,
    read_between,
    read_bound,
    read_columns,
    read_facts,
)
from tacit.tables.source import Source, WantedRows
from tacit.tables.spark_tables import SparkTable
