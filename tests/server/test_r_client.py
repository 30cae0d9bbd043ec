"""The client in R: it is installed as a package, asks, and reads a refusal."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.changes import PROJECT

pytestmark = pytest.mark.far

ASKING = r"""
library(tacit)
address <- commandArgs(TRUE)[1]
server <- tacit_connect(paste0(address, "/"))
print(server)
sql <- "SELECT ward, COUNT(*) AS n, AVG(days) AS stay FROM visits GROUP BY ward"
cat("tables", tacit_tables(server)$name, "\n")
cat("unit", tacit_describe(server, "visits")$declaration$unit, "\n")
cat("before", tacit_budget(server, "visits")$epsilon, "\n")
plan <- tacit_plan(server, "visits", sql, epsilon = 0.5)
cat("plan", plan$loss$text, plan$fits, grepl("Plan for visits", capture.output(print(plan))[1]), "\n")
answer <- tacit_ask(server, "visits", sql, epsilon = 0.5, key = "first")
cat("names", names(answer), "\n")
stopifnot(is.numeric(answer$n), is.character(answer$ward), nrow(answer) == 3)
stopifnot(all(answer$n_low <= answer$n & answer$n <= answer$n_high), all(answer$stay_low <= answer$stay))
cat("free", attr(tacit_ask(server, "visits", sql, epsilon = 0.5), "facts")$free, "\n")
stopifnot(identical(as.data.frame(tacit_again(server, "first")), as.data.frame(answer)))
number <- attr(answer, "facts")$receipt$entry
cat("certificate", tacit_certificate(server, number)$table$name, "\n")
cat("csv", strsplit(tacit_csv(server, number), "\n")[[1]][1], "\n")
cat("after", tacit_budget(server, "visits")$epsilon, "\n")
refused <- tryCatch(tacit_ask(server, "visits", "SELECT * FROM visits", epsilon = 1), tacit_refused = identity)
cat("refused", refused$status, refused$kind, grepl("hint: ", conditionMessage(refused)), "\n")
missing <- tryCatch(tacit_public(server, "nowhere"), tacit_refused = identity)
cat("missing", missing$status, "\n")
plain <- tryCatch(tacit_connect("http://data.example.org", "tacit_x"), error = conditionMessage)
cat("plain", plain, "\n")
cat("column", format(tacit:::column_of(list(list(`$date` = "2026-02-01"), NULL), "date")), "\n")
cat("column", tacit:::column_of(list(1.5, list(`$float` = "inf")), "float"), "\n")
print(answer)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library of R with the client in it."""
    packages = "httr2" in _said("Rscript", "-e", "library(httr2); library(jsonlite); cat('httr2')")
    if shutil.which("Rscript") is None or not packages:
        message = (
            "R or httr2 is not here, so R's client was not tried: Debian has r-base-core, r-cran-httr2, r-cran-jsonlite"
        )
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    folder = tmp_path_factory.mktemp("library")
    source = shutil.copytree(PROJECT / "clients" / "r", tmp_path_factory.mktemp("r") / "tacit")
    words = ["R", "CMD", "INSTALL", "--no-docs", "--no-test-load", f"--library={folder}", str(source)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def _said(*words: str) -> str:
    if shutil.which(words[0]) is None:
        return ""
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout


def test_r_plans_asks_and_reads_a_refusal(library: Path, serving: Callable) -> None:
    address, token, _ = serving("--hold", "10ms", "--workers", "1", "--no-log")
    done = subprocess.run(
        ["Rscript", "-e", ASKING, address],
        env={**os.environ, "R_LIBS": str(library), "TACIT_TOKEN": token},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert token not in done.stdout + done.stderr
    assert lines[0] == f"<Tacit server at {address}>"
    for expected in (
        "tables visits pay",
        "unit patient",
        "before 20",
        "plan ε = 0.5 TRUE TRUE",
        "names ward n n_low n_high stay stay_low stay_high",
        "free TRUE",
        "certificate visits",
        "csv ward,n,n_low,n_high,stay,stay_low,stay_high",
        "after 19.5",
        "refused 422 QueryRefused TRUE",
        "missing 404",
        "column 2026-02-01 NA",
        "column 1.5 Inf",
    ):
        assert expected in lines, done.stdout
    assert "unencrypted" in done.stdout
    assert "Each interval holds the table's number with 95 % probability" in done.stdout
    assert "Spent ε = 0.5. Left: " in done.stdout
