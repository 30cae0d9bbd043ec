"""`tacit plan`: what an answer would do, cost and give, with the same words as `tacit ask`. Free; no row is read."""

from tacit.cli.ask import check_output, write_text
from tacit.cli.words import Words, opening, plan_question, with_words
from tacit.errors import InvalidParameter
from tacit.printable import json_text


@with_words
def plan(words: Words) -> None:
    """Show what an answer would cost and how far off it may be: free, and no row is read.

    It takes the same words as `tacit ask`. With --budget nothing is written to the ledger, so budgets can be tried;
    without, it is planned under the budget that the ledger holds for the table.

    With a tacit.toml in the folder: `tacit plan pay "SELECT COUNT(*) FROM pay" --epsilon 1`

    Without one:

    `tacit plan pay.parquet "SELECT state, AVG(income) FROM pay GROUP BY state" --unit person_id --rows-per-unit 1
    --groups-per-unit 1 --between income=0:500000 --budget 3 --delta 1e-6 --epsilon 1`
    """
    check_output(words)
    if words.format not in ("table", "json"):
        raise InvalidParameter("a plan is words, not rows\nhint: --format table or --format json")
    if words.plot is not None:
        raise InvalidParameter("a plan has no numbers to draw\nhint: --plot belongs to tacit ask")
    report = plan_question(words, opening())
    text = str(report)
    if words.format == "json":
        text = json_text({"plan": text.splitlines(), "loss": str(report.loss)})
    write_text(text, words.output)
