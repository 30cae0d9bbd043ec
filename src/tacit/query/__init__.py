"""Questions: two doors, SQL and Python, that make one tree of frozen records, and the checks on it."""

from tacit.query.allowed_blocks import blocks_allowed
from tacit.query.check import after_in_words
from tacit.query.column_expressions import Col, col
from tacit.query.compound import (
    Aside,
    Branch,
    Compound,
    adds_up,
    grouping_name,
    listed_keys,
    with_listed_others,
)
from tacit.query.frame import (
    AggregateSpec,
    Frame,
    correlation,
    count,
    count_distinct,
    count_units,
    covariance,
    max,
    mean,
    median,
    min,
    quantile,
    quantile_name,
    std,
    sum,
    variance,
)
from tacit.query.frame_relations import frame_side, joined_frame, per_unit
from tacit.query.joins import (
    PAIRS_MOST,
    NamedRows,
    Side,
    is_public,
    join,
    public_declaration,
    public_side,
    publics_of,
    relation_lines,
    tables_of,
)
from tacit.query.language.catalogue import FUNCTIONS
from tacit.query.language.named_functions import POSITION_MAX
from tacit.query.literal import Wild, key_value, pattern_parts
from tacit.query.nodes import (
    BOOL,
    DATE,
    DIGITS_MAX,
    FLOAT,
    INT,
    INT_LEAST,
    INT_MOST,
    PLACES,
    TEXT,
    TIMESTAMP,
    Aggregate,
    AggregateKind,
    Call,
    Column,
    Expression,
    Join,
    Kind,
    Marked,
    Output,
    PerUnit,
    PostProcessing,
    PublicRows,
    QuantileOf,
    Query,
    Relation,
    RowWise,
    Scalar,
    Shown,
    SomeUnits,
    TableRows,
    Type,
    UnitAggregate,
    Value,
    Window,
    Windowed,
    columns_of,
    common,
    decimal,
    kind_of_column,
    kind_of_value,
)
from tacit.query.question_json import RowsSent, question_about, question_from, question_record
from tacit.query.ranges import ends_of, with_bounds, with_ranges
from tacit.query.relations import (
    UnitWindow,
    declaration_of,
    narrowed,
    no_more_rows_than,
    relation_mark,
    unit_aggregate_kind,
)
from tacit.query.spans import (
    AnswerSpan,
    Moves,
    Parts,
    moves_of,
    parts_of_window,
    rows_read,
    span_of,
    window_span_of,
)
from tacit.query.sql.expressions import name_of, question_text, show, show_value
from tacit.query.sql.parse import in_dialect, quoted_name
from tacit.query.sql.postgres_text import PostgresSelect
from tacit.query.sql.questions import parse_query, parse_question, selects_of, tables_named
from tacit.query.typecheck import PUBLIC_KEYS_MAX, kind_of, limit_cells, type_of
from tacit.query.windows import (
    apply_postprocessing,
    evaluate,
)
