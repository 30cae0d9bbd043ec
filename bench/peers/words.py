"""The page's own words: what each subject asks, what differs, and why a target is missed."""

GROUPBY = """\
## Count, sum and mean by item

Orders of people, of whom few have very many, in a Parquet file; ε = 1, δ = 1e-6 for a person, at most 5 items and 2
orders of each. The time is from the file to the answer, in a process that is already running: for Tacit and DuckDB
the median of several answers, for the others one. Tacit, DuckDB and OpenDP are asked before and after the others, and
the shorter time counts. Tacit's includes the charge on disk and an interval for every cell; its kernel is compiled.
Memory is the process's peak, with children.

![time of the group-by task](benchmarks/groupby.svg)
"""

ON_SPARK = """\
## The same question on Spark

Tumult runs on Spark; Tacit does where the rows are there. Both have one version of Spark and of Python, on both cores,
with the same file, memory and partitions, started and warm. Tacit is asked before and after, three times each, and the
shorter median counts. Processor time is that of all processes: Python, the JVM and its workers. Of a machine that is
busy the clock counts what others do as well, so the two compare by processor time.
"""

NOISE = """\
## Noise

Draws a second. Tacit's are exact, from a cipher's keystream; a float's grid has 2^20 steps to 1. numpy's are floating
and predictable: the baseline. The others draw one at a time, OpenDP a vector.

![draws a second](benchmarks/noise.svg)
"""

ONE = """\
## One number about a million people

Values in 0 … 1000 (lognormal), ε = 1, each person one row. Errors are means over as many answers as fit in a few
seconds, with their standard errors. diffprivlib makes another promise: the number of people is public and its floats
fail the precision attack, so it is shown and not compared. Tacit's median has an interval, paid for inside the same
ε.

![errors of one number](benchmarks/one.svg)
"""

KEYS = """\
## Items found privately, and the error of each item

Tables that are within the bounds already, so that what is off is noise alone. Private keys: 1000 items by Zipf's law,
of which the rarest have some 40 people; more shown is better, and errors are over what is shown. Public keys: 1000
items of some 380 orders. Each library is tried with the noises it offers, at ε = 1, δ = 1e-6 in all. What shows more
keys leaves less for their numbers: OpenDP's Laplace noise errs least in counts, and shows a third as many.

![private keys shown](benchmarks/keys.svg)
"""

BOUNDS = """\
## Where nobody declares a bound

A million orders of 100,000 people, people and items by Zipf's law; ε = 1, δ = 1e-6 for all that is found and answered.
Tacit is told who a person is, and nothing else. Each other library is used as far as it finds bounds by itself; the
rest it is told, as said beside its figure. One that finds none of the bounds that a question needs is not in that
question's table; two that find none at all are in the last table, with what they do instead. Errors are against the
whole table, nothing left out.
"""

LEARNING = """\
## Models

Who earns more than $50,000 in a census extract of 32,561 people: the area under the curve on rows that a model has not
seen, mean of ten runs, δ = 1e-5. Eight tables, accuracy, times and what to keep in mind are on
[a page of their own](benchmarks/learning.md).
"""

ACCOUNTING = """\
## What batches cost

At δ = 1e-6: Laplace noise of scale 100, Gaussian of sigma 30, and Gaussian of sigma 1 on a sample of 1 %, all for a
sensitivity of 1. dp-accounting's is its numerical (PLD) accountant; it does not bound its rounding, ours does.
"""

SYNTHETIC = """\
## Made-up rows

Codes of public bins, δ = 1e-6: Adult, on which ours was tuned, 7,042 workers (`HealthInsurance`) and 43,152 diamonds,
on which nothing was. The distance is the mean total variation of all pairs of columns between made-up and protected
rows; one draw of each. Times are of one thread. Both peers' AIM has a model of 2 MB at most and 100 iterations a fit,
not their own 80 MB and 1,000; one set of rows may take 150 s, and fifteen were made at once on sixteen cores. This run
had Python 3.12, for OpenDP numpy 2.5 and jax 0.11.2, and for dpmm pandas 2.1.4: not quite what is pinned. `private-pgm`
and `dpsynth` are not on the package index. SmartNoise's read categories and the number of rows off the data, unpaid,
and are left out. Ours is closest but on workers at ε = 0.3, and there at ε = 3 within luck.
"""

START = """\
## Starting

Seconds to import beyond starting Python, the best of five; mebibytes installed beyond a bare environment, with all
that the library asks for. Much of ours is pyarrow, DuckDB and the compiler of the kernel.

![time to import](benchmarks/start.svg)
"""

LINES = """\
## The same question in code

Mean income by state for every person, ε = 1, with error bars: lines that are neither empty nor comments, of scripts
that run ([bench/peers/snippets](../bench/peers/snippets)). Only Tacit gives a mean its interval; elsewhere it is
worked out by hand from the noise of a count and a sum.
"""

LOCAL = """\
## Reports of people who trust nobody

Reports made and estimated a second, ε = 1. Ours include an id for each report, and an interval for each estimate; the
peers make and estimate them as their documentation shows. pure-ldp is left out at 10,000 values: it asks for 13 GB.
"""

HOW = """\
## How it is measured

One library at a time, in a process and an environment of its own, on the same files. Versions are pinned in
[bench/peers/requirements](../bench/peers/requirements) to those that work together. A library that takes more than
300 seconds is stopped and shown as such; one that fails is shown with its error. Error means the mean absolute error.
What a library cannot do is not asked of it: python-dp and diffprivlib bound no rows, so they are in noise and in
single numbers alone; PipelineDP and Tumult take seconds for one number, too long for a thousand of them. `make bench`
measures Tacit alone, needs no peer, and holds each subject to a limit.
"""

# target -> why it is missed, told only while it is
REASONS = {
    "Gaussian noise, against the fastest peer": (
        "vectors of floats get a grid so fine that rounding costs no noise, and a sigma of 2^20 steps is too wide for"
        " one table, so draws are accepted or rejected, each exactly. The discrete Gaussian, which tables and integers"
        " get, is drawn from one table."
    ),
    "group-by, 1,000,000 rows, 1,000 public keys, against OpenDP": (
        "planning, charging and noise take some 30 ms of our time, whatever the rows."
    ),
}
SIZE = """\
*Installed size* has no target, and is not small: pyarrow, DuckDB and the kernel's compiler are most of it.
"""
