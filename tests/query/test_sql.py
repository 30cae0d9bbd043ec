"""The SQL door: one SELECT about one table becomes one tree; what is refused says where and what to write instead."""

import datetime as dt
from fractions import Fraction

import pytest

from tacit.errors import QueryRefused
from tacit.query.nodes import Aggregate, Call, Column, Key, Ordering, Output, PostProcessing, Value
from tacit.query.sql.questions import parse_query
from tacit.query.sql.rows import parse_expression
from tacit.tables.schema import ROW, ColumnFacts, Declaration

VISITS = Declaration(
    name="visits",
    unit="patient_id",
    columns={
        "patient_id": ColumnFacts("int"),
        "ward": ColumnFacts("text"),
        "sex": ColumnFacts("text"),
        "age": ColumnFacts("int"),
        "days": ColumnFacts("float"),
        "day": ColumnFacts("date"),
        "moment": ColumnFacts("timestamp"),
        "insured": ColumnFacts("bool"),
        "cost": ColumnFacts("decimal", scale=2, digits=10),
        "Group": ColumnFacts("text"),
        "blob": ColumnFacts("other"),
    },
)


def query(text):
    return parse_query(text, VISITS)


def expression(text):
    return parse_expression(text, VISITS)


def refused(text):
    with pytest.raises(QueryRefused) as caught:
        query(text)
    return str(caught.value)


def refused_expression(text):
    with pytest.raises(QueryRefused) as caught:
        expression(text)
    return str(caught.value)


def test_the_whole_question():
    asked = query(
        "SELECT ward, COUNT(*) AS n, COUNT(DISTINCT patient_id) AS people, AVG(days) AS stay FROM visits "
        "WHERE age BETWEEN 18 AND 65 GROUP BY ward HAVING n > 10 ORDER BY stay DESC LIMIT 5"
    )
    assert asked.keys == (Key("ward", Column("ward")),)
    assert asked.outputs == (
        Output("n", Aggregate("count")),
        Output("people", Aggregate("count_units")),
        Output("stay", Aggregate("mean", Column("days"))),
    )
    assert asked.where == expression("age >= 18 AND age <= 65")
    assert asked.after == PostProcessing(
        having=Call(">", (Column("n"), Value(10, "int"))), order=(Ordering(Column("stay"), descending=True),), limit=5
    )
    assert asked.columns == ("ward", "n", "people", "stay")


@pytest.mark.parametrize(
    "variant",
    [
        "select WARD, count(*) n from VISITS v where v.age >= 18 group by 1 order by 2 desc",
        "SELECT ward, COUNT(1) AS n FROM visits WHERE NOT NOT (18 <= age) GROUP BY ward ORDER BY COUNT(*) DESC;",
        "SELECT /*+ fast */ ward, COUNT(*) n --x\nFROM visits WHERE age >= 18.0 GROUP BY visits.ward ORDER BY n DESC",
        'SELECT "ward", COUNT(*) AS "n" FROM "visits" WHERE ("age" >= 18) GROUP BY "ward" ORDER BY "n" DESC',
        "SELECT ward, COUNT(*) AS n FROM visits WHERE age >= 18 AND age >= 18 GROUP BY ward ORDER BY n DESC",
    ],
)
def test_textual_variants_give_equal_trees(variant):
    assert query(variant) == query(
        "SELECT ward, COUNT(*) AS n FROM visits WHERE age >= 18 GROUP BY ward ORDER BY n DESC"
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("age BETWEEN 1 AND 2", "2 >= age AND 1 <= age"),
        ("age IN (3, 1, 3)", "age IN (1, 3)"),
        ("age IN (3)", "age = 3"),
        ("ward NOT IN ('a', 'b')", "NOT (ward IN ('b', 'a'))"),
        ("ward IS NOT NULL", "NOT (ward IS NULL)"),
        ("ward NOT LIKE 'a%'", "NOT (ward LIKE 'a%')"),
        ("ward NOT LIKE '5!%' ESCAPE '!'", "NOT (ward LIKE '5!%' ESCAPE '!')"),
        ("NOT ward NOT LIKE 'a%'", "ward LIKE 'a%'"),
        ("age NOT BETWEEN 1 AND 2", "NOT (age BETWEEN 1 AND 2)"),
        ("day > '2011-01-31'", "day > DATE '2011-01-31'"),
        ("moment > '2011-01-31'", "moment > TIMESTAMP '2011-01-31 00:00:00'"),
        ("days > 1", "days > 1.0"),
        ("days > -0.0", "days > 0"),
        ("cost > 1.50", "cost > 1.5"),
        ("CASE ward WHEN 'a' THEN 1 END = 1", "CASE WHEN ward = 'a' THEN 1 ELSE NULL END = 1"),
        ("IFNULL(age, 0) = 1", "COALESCE(age, 0) = 1"),
        ("age::TEXT = '1'", "CAST(age AS VARCHAR) = '1'"),
        ("TRY_CAST(ward AS BIGINT) = 1", "CAST(ward AS INT) = 1"),
        ("ward LIKE 'a%' ESCAPE '!'", "ward LIKE 'a%'"),
        ("age > 1 OR (age = 0 OR age < 3)", "age < 3 OR age = 0 OR age > 1"),
        ("LEAST(days, age, 1) = 1", "LEAST(1.0, age, days, age) = 1"),
        ("ROUND(age, 2) = 1", "age = 1"),
        ("FLOOR(age) = 1", "age = 1"),
        ("ROUND(cost, 2) = 1", "cost = 1"),
        ("ROUND(days, 0) = 1", "ROUND(days) = 1"),
        ("CEILING(days) = 1", "CEIL(days) = 1"),
        ("ward || (sex || 'x') = 'y'", "CONCAT(ward, sex, 'x') = 'y'"),
        ("SUBSTR(ward, 2, 3) = 'x'", "SUBSTRING(ward FROM 2 FOR 3) = 'x'"),
        ("LEN(ward) = 1", "CHAR_LENGTH(ward) = 1"),
        ("YEAR(day) = 2011", "EXTRACT('year' FROM day) = 2011"),
        ("WEEK(moment) = 1", "EXTRACT(WEEK FROM moment) = 1"),
        ("DATE_TRUNC('MONTH', day) = '2011-01-01'", "DATE_TRUNC('month', day) = DATE '2011-01-01'"),
        ("day - DATE '2011-01-31' = 1", "DATEDIFF('day', '2011-01-31', day) = 1"),
        ("day + INTERVAL 1 YEAR > day", "day + INTERVAL '12 months' > day"),
        ("day - INTERVAL 1 WEEK > day", "INTERVAL '-7' DAY + day > day"),
        ("moment + INTERVAL 1 HOUR > day", "moment + INTERVAL (3600) SECONDS > day"),
    ],
)
def test_one_meaning_has_one_tree(one, other):
    assert expression(one) == expression(other)


def test_constants_take_the_type_of_what_they_meet():
    assert expression("day = '2011-01-31'").arguments[1] == Value(dt.date(2011, 1, 31), "date")
    assert expression("cost = 0.10").arguments[1] == Value(Fraction(1, 10), "decimal")
    assert expression("days = 0.1").arguments[1] == Value(0.1, "float")


def test_columns_named_like_keywords_or_in_capitals_are_found():
    assert query('SELECT "Group", COUNT(*) FROM visits GROUP BY "Group"').keys == (Key("Group", Column("Group")),)
    assert "did you mean 'Group'" in refused("SELECT COUNT(*) FROM visits WHERE \"group\" = 'a'")


def test_default_names():
    asked = query("SELECT COUNT(*), SUM(days), COUNT(age), COUNT(DISTINCT patient_id), SUM(age + 1) FROM visits")
    names = ["count", "sum_days", "count_age", "count_distinct_patient_id", "sum"]
    assert [output.name for output in asked.outputs] == names


def test_keys_may_be_expressions_positions_and_hidden():
    asked = query("SELECT LOWER(ward) AS w, age % 10 AS digit, COUNT(*) FROM visits GROUP BY 2, w, sex")
    assert [key.name for key in asked.keys] == ["digit", "w", "sex"]
    assert asked.columns == ("w", "digit", "count")
    same = query("SELECT LOWER(ward) AS w, COUNT(*) FROM visits GROUP BY LOWER(ward)")
    assert same.keys == (Key("w", Call("lower", (Column("ward"),))),)


def test_what_has_no_name_gets_one_of_its_words():
    asked = query("SELECT YEAR(day), LOWER(ward), COUNT(*), ROUND(AVG(age), 1), AVG(age + 1), AVG(age + 2) FROM visits "
        "GROUP BY 1, 2")  # fmt: skip
    assert asked.columns == ("year_day", "lower_ward", "count", "round_avg_age_1", "avg", "avg_2")
    hidden = query("SELECT COUNT(*) FROM visits GROUP BY YEAR(day) HAVING AVG(age) > 3")
    assert [key.name for key in hidden.keys] == ["year_day"]
    assert {output.name for output in hidden.outputs} == {"count", "AVG(age)"}
    taken = query("SELECT LOWER(ward) AS ward, COUNT(*) FROM visits GROUP BY LOWER(ward)")
    assert taken.columns == ("ward", "count")


def test_every_row_its_own_unit():
    rows = Declaration("visits", ROW, VISITS.columns)
    assert parse_query("SELECT COUNT(*) FROM visits WHERE patient_id = 1", rows).where is not None
    (asked,) = parse_query("SELECT COUNT(DISTINCT patient_id) FROM visits", rows).outputs
    assert asked.aggregate == Aggregate("count_distinct", Column("patient_id"))  # a column like any other


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "SELECT ag, COUNT(*) FROM visits GROUP BY ag",
            "no column 'ag' in 'visits' (line 1, column 8)\nhint: did you mean 'age'?",
        ),
        ("SELECT COUNT(*)\nFROM visits\nWHERE  agee > 1", "(line 3, column 8)\nhint: did you mean 'age'?"),
        ("SELECT COUNT(*) FROM visit", "no table 'visit' here (line 1, column 22)\nhint: the table is 'visits'"),
        ("SELECT * FROM visits", "* is not in the language (line 1, column 8)\nhint: name columns"),
        ("SELECT COUNT(*) FROM visits JOIN b USING (x)", "there is no table 'b' here"),
        ("SELECT SUM(AVG(age)) AS m FROM visits", "AVG inside another aggregate, a key or a filter is not"),
        ("SELECT SUM(AVG(age)) AS m FROM visits", "SUM(AVG(x)) OVER () adds up the rows of the answer"),
        (
            "SELECT KURTOSIS(age) FROM visits",
            "the function KURTOSIS is not in the language (line 1, column 8)\nhint: the aggregates are",
        ),
        ("SELECT COUNT(*) FROM visits WHERE MODE(ward) = 'A'", "the function MODE is not in the language"),
        ("SELECT SUM((SELECT COUNT(*) FROM visits)) FROM visits", "a SELECT inside another is not in the language"),
        ("SELECT (SELECT ward FROM visits GROUP BY ward) FROM visits", "must be one aggregate, without GROUP BY"),
        ("SELECT (SELECT COUNT(*), SUM(age) FROM visits) FROM visits", "must be one aggregate, without GROUP BY"),
        ("SELECT COUNT(DISTINCT ward, days) FROM visits", "takes one expression"),
        (
            "SELECT ward, COUNT(*) FROM visits",
            "'ward' must be inside an aggregate or in the GROUP BY (line 1, column 8)\nhint: GROUP BY ward",
        ),
        ("SELECT age + COUNT(*) AS n FROM visits GROUP BY ward", "'age' must be inside an aggregate or"),
        ("SELECT COUNT(*) AS n FROM visits GROUP BY ward ORDER BY age", "'age' must be inside an aggregate or"),
        ("SELECT COUNT(*) AS n, AVG(age) AS n FROM visits", "two columns 'n'\nhint: give them different names"),
        ("SELECT COUNT(*) AS n, SUM(age) AS n_low FROM visits", "two columns 'n_low'"),
        ("SELECT COUNT(*) AS n FROM visits HAVING m > 1", "'m' is not a column of the answer"),
        ("SELECT COUNT(*) AS n FROM visits HAVING RANK() OVER (ORDER BY n) = 1", "HAVING is before windows (OVER)"),
        ("SELECT COUNT(*) AS n FROM visits QUALIFY n + 1", "QUALIFY n + 1 is not a condition"),
        (
            "SELECT ROW_NUMBER() OVER () AS r FROM visits",
            "lacks an aggregate and a GROUP BY: single rows are never shown",
        ),
        ("SELECT 1 AS one FROM visits", "lacks an aggregate and a GROUP BY: single rows are never shown"),
        ("SELECT RANK() OVER () AS r FROM visits", "RANK needs an order\nhint: write RANK() OVER (ORDER BY n DESC)"),
        ("SELECT NTILE(0) OVER (ORDER BY COUNT(*)) AS r FROM visits", "NTILE takes a whole constant from 1"),
        ("SELECT SUM(SUM(COUNT(*)) OVER ()) OVER () AS r FROM visits", "a window inside a window is not in the"),
        ("SELECT SUM(COUNT(*)) OVER w AS r FROM visits", "there is no window 'w'"),
        (
            "SELECT SUM(COUNT(*)) OVER (ORDER BY ward RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS r FROM visits "
            "GROUP BY ward",
            "a frame is of ROWS here",
        ),
        ("SELECT MEDIAN(COUNT(*)) OVER () AS r FROM visits", "this function cannot be a window (OVER)"),
        ("SELECT COUNT(*) FROM visits WHERE RANK() OVER (ORDER BY age) = 1", "windows are over the answer's rows"),
        (
            "SELECT DISTINCT ON (ward) ward, COUNT(*) FROM visits GROUP BY ward",
            "DISTINCT ON (ward) is not in the language",
        ),
        ("SELECT COUNT(*) AS n FROM visits ORDER BY 3", "does not have a column 3"),
        ("SELECT COUNT(*) FROM visits LIMIT -1", "LIMIT takes a whole number"),
        ("SELECT COUNT(*) FROM visits LIMIT 5 OFFSET -2", "OFFSET takes a whole number"),
        ("SELECT COUNT(*) FROM visits WHERE age", "age is an int; a filter must be true or false"),
        (
            "SELECT SUM(ward) FROM visits",
            "a text: ward\nhint: if it holds numbers (a CSV file's columns are text), declare it",
        ),
        ("SELECT SUM(LOWER(ward)) FROM visits", "hint: if it holds numbers, CAST(x AS FLOAT) reads them"),
        ("SELECT COUNT(*) FROM visits WHERE AVG(age) > 2", "AVG inside another aggregate, a key or a filter is not"),
        ('SELECT COUNT(*) FROM visits WHERE ward = "Xyz"', "hint: text goes in single quotes; there are "),
        ("SELECT COUNT(*) FROM visits WHERE ward = Xyz", "; text goes in single quotes"),
        ("SELECT COUNT(NULL) FROM visits", "count of a constant does not depend on the rows"),
        ("SELECT COUNT(*) FROM visits WHERE blob = 'x'", "column 'blob'"),
        ("SELECT COUNT(*) FROM visits WHERE", "cannot be read as SQL"),
        ("SELECT COUNT(*) FROM visits WHERE ward = 'a", "cannot be read as SQL"),
    ],
)
def test_a_refusal_says_what_where_and_the_way_out(text, said):
    assert said in refused(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("age = '18'", "age = '18' mixes an int with a text\nhint: write numbers without quotes"),
        ("ward = 18", "mixes a text with an int"),
        ("ward > 1.5", "CAST(x AS FLOAT)"),
        ("day = '31/01/2011'", "'31/01/2011' is not a date\nhint: write it as DATE '2011-01-31'"),
        ("day = DATE '2011-02-30'", "is not a date (line 1"),
        ("day > 5", "mixes a date with an int"),
        ("insured = 1", "mixes a bool with an int\nhint: turn the bool into a number: CAST(x AS INT)"),
        ("age = NULL", "is NULL for every row\nhint: write x IS NULL"),
        ("age IN (1, NULL)", "is NULL for every row"),
        ("age AND TRUE", "needs conditions, but has an int"),
        ("ward + 1 > 0", "needs numbers, but has a text\nhint: CAST(x AS INT)"),
        ("days % 2 = 0", "days % 2 needs whole numbers\nhint: CAST(x AS INT) % 10"),
        ("LOWER(age) = 'a'", "needs text, but has an int"),
        ("CAST(days AS TEXT) = 'a'", "a float cannot become a text\nhint: CAST to text takes"),
        ("CAST(days AS DECIMAL(30, 20)) > 0", "a float cannot become a decimal"),
        ("CAST(ward AS VARCHAR(3)) = 'a'", "CAST does not know this type"),
        ("CAST(cost AS DECIMAL(39, 2)) > 0", "a decimal has 1 to 38 digits"),
        ("cost * cost * cost * cost > 0", "can need 40 digits, 8 after the point; the limits are 38 and 37"),
        ("ward LIKE sex", "a LIKE pattern must be a constant"),
        ("ward LIKE 'a!' ESCAPE '!'", "ends in its escape"),
        ("ward || age = 'x'", "needs text, but has an int"),
        ("LEAST(age) = 1", "LEAST(a, b) compares values of one row; MIN(x) compares rows"),
        ("LEAST(age, ward) = 1", "mixes an int with a text"),
        ("ROUND(days, age) = 1", "the number of decimals must be a whole number from -15 to 15"),
        ("ROUND(days, 16) = 1", "the number of decimals must be a whole number from -15 to 15"),
        ("SUBSTRING(ward, age) = 'x'", "start (from 1) and length (from 0) must be whole constants"),
        ("SUBSTRING(ward, 0, 2) = 'x'", "start (from 1) and length (from 0) must be whole constants"),
        ("SUBSTRING(ward, -2) = 'x'", "SUBSTRING(x, 1, 3) is the first three characters"),
        ("REPLACE(ward, '', 'x') = 'x'", "must be constants, and the first must not be empty"),
        ("REPLACE(ward, sex, 'x') = 'x'", "must be constants, and the first must not be empty"),
        ("REPLACE(ward, 'a') = 'x'", "write REPLACE(a, 'old', 'new')"),
        ("LENGTH(age) = 1", "needs text, but has an int"),
        ("EXTRACT(EPOCH FROM day) = 1", "the units are year, isoyear, quarter"),
        ("HOUR(day) = 1", "a date does not have a time of day"),
        ("YEAR(ward) = 1", "CAST(x AS DATE) reads text"),
        ("WEEK(day, 1) = 1", "WEEK with 1 is not in the language"),
        ("DATE_DIFF(day, day) = 1", "DATE_DIFF('day', a, b)"),
        ("DATEDIFF(ward, day, day) = 1", "DATE_DIFF('day', a, b)"),
        ("DATE_DIFF('decade', day, day) = 1", "the units are year, quarter, month"),
        ("moment - moment = 1", "DATE_DIFF('day', a, b) is a time difference"),
        ("day + 1 > day", "x + INTERVAL 3 DAY another day"),
        ("day + INTERVAL age DAY > day", "an interval is a whole number and one unit (line 1, column 16)"),
        ("day + INTERVAL '1 year 2 months' > day", "an interval is a whole number and one unit"),
        ("day + INTERVAL 10000 YEAR > day", "fits in the years 1 to 9999"),
        ("age + INTERVAL 1 DAY > day", "needs dates or timestamps, but has an int"),
        ("DATE_ADD(day, INTERVAL 1 DAY) > day", "hint: x + INTERVAL 3 DAY"),
        ("CONCAT(ward, " + ", ".join(["ward"] * 100) + ") = 'x'", "more than 100 times longer than the row's own"),
        ("REPLACE(REPLACE(ward, 'a', 'bbbbbbbbbbb'), 'b', 'cccccccccc') = 'x'", "100 times longer"),
        ("cbrt(age) > 1", "the function CBRT is not in the language (line 1, column 1)"),
        ("age ^ 2 > 1", "POWER(x, 2)"),
        ("age IS 3", "IS takes NULL, TRUE or FALSE"),
        ("cost // 2 = 1", "cost // 2 needs whole numbers"),
        (
            "patient_id = 7",
            "'patient_id' is the unit, and a question about it would single out one person (line 1, column 1)",
        ),
        ("CASE WHEN age > 1 THEN NULL END = 1", "is NULL for every row"),
        ("days = 1e999", "must be a finite number"),
        ("", "not one expression"),
        ("age > 1; age > 2", "more than one statement"),
        ("age > 1;", "without a semicolon"),
        ("age > 1 FROM visits", "cannot be read as SQL (line 1, column 9)"),
        ("SELECT 1", ""),
    ],
)
def test_a_refused_expression_says_why(text, said):
    assert said in refused_expression(text)


def test_text_that_is_no_text_is_refused():
    with pytest.raises(QueryRefused, match="a question must be text, not int"):
        parse_query(7, VISITS)
    with pytest.raises(QueryRefused, match="an expression must be text, not NoneType"):
        parse_expression(None, VISITS)
