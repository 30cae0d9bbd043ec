"""The closed table of functions for questions, with their types and their meaning on every input.

Other functions do not exist: the doors refuse a name that is not here, and the engine translates exactly these names.
Every function is total: it has a result, perhaps NULL, for every row, and never an error. The rules that all share:

- A float that is NaN reads as NULL and so does any operation that would yield NaN; −0.0 is 0.0; ±Inf stay, ordered
  beyond every number. Float arithmetic is IEEE 754 binary64, rounded to nearest.
- An int is 64 bits wide; an int result that would not fit is NULL. A decimal is exact, and an operation that could
  need more than 38 digits is refused before any row is read.
- Text of more than 32,768 bytes in UTF-8 is NULL: in a cell, and as a result of CONCAT or REPLACE. An expression that
  could make text more than 100 times longer than the row's own, or that reads texts too many times, is refused before
  any row is read.
- A date or timestamp before year 1 or after year 9999, infinite ones included, reads as NULL. Timestamps are in
  microseconds, without a zone; a zoned column is read in UTC.
- Text is compared code point by code point. Empty text is text, not NULL.
- Any NULL argument makes NULL, with the exceptions below.
- int widens to decimal and either widens to float, correctly rounded, if they meet; a date compared with a timestamp
  is its midnight. Other types are not converted.
"""

from tacit.errors import QueryRefused
from tacit.query.language.functions import Function
from tacit.query.language.math_functions import FORMATS, MATHS
from tacit.query.language.named_functions import FOLDS, NUMBERS, TEXTS, TIMES
from tacit.query.language.operators import CASTS, OPERATORS

_ALL = (*OPERATORS, *FOLDS, *CASTS, *NUMBERS, *MATHS, *TEXTS, *TIMES, *FORMATS)
FUNCTIONS = {record.name: record for record in _ALL}


def function(name: str) -> Function:
    """Return the record of a name, or refuse a name that is not in the catalogue."""
    if name not in FUNCTIONS:
        raise QueryRefused(f"there is no function '{name}'\nhint: the functions are {written_forms()}")
    return FUNCTIONS[name]


def written_forms() -> str:
    return "; ".join(record.form for record in FUNCTIONS.values())
