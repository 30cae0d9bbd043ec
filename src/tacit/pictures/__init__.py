"""Pictures: plain records become Vega-Lite, with one palette and one writer. Answers are left to other rooms."""

from tacit.pictures.lines import Axis, LevelLine, Look, decades, line_panel, mark_at, side_by_side
from tacit.pictures.sheet import NARROW, Order, Panel, Sheet, SheetCell, chart
from tacit.pictures.writer import (
    BLUE,
    GREEN,
    INK,
    ORANGE,
    PALE,
    PINK,
    RED,
    Spec,
    as_chart,
    as_svg,
    check_path,
    nominal,
    page,
    quantity,
    themed,
    write,
)
