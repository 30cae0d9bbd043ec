"""Several machines on one: a master, three workers and drivers on loopback; what is killed changes no integer.

Every process is started here and ended by its own number. Moments are chosen by files, not by luck.
"""

import json
import os
import signal
import subprocess
import sys
import time

import pyarrow.parquet as pq
import pytest

from tacit_gauntlet.stage.postgres_server import server, server_programs
from tests.engine.cluster_driver import QUICK_JAVA, executors
from tests.engine.conftest import CACHE
from tests.engine.test_parts import people
from tests.spark_session import java_home, skip_without_spark

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("cluster")]
PORT = 17177
MASTER = f"spark://127.0.0.1:{PORT}"
WAIT = 1500
SQL = "SELECT k, COUNT(*) AS n FROM people GROUP BY k"
TURNS = [
    ["calm", "", 6, True, 0],
    ["executor", "CutTask", 6, True, 0],
    ["another", "PartTask", 6, True, 1],
    ["executor", "PartTask", 6, False, 2],
    ["worker", "CutTask", 5, True, 1],
    ["worker", "PartTask", 6, True, 0],
    ["raises once", "CutTask", 6, True, 2],
    ["raises once", "PartTask", 6, False, 1],
    ["stopped", "PartTask", 6, True, 0],
    ["calm", "", 64, True, 2],
    ["calm", "", 1, False, 1],
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A folder with people in three layouts of files, while a master and three workers run."""
    skip_without_spark()
    import pyspark

    folder = tmp_path_factory.mktemp("cluster")
    home = os.path.dirname(pyspark.__file__)
    more = {"JAVA_HOME": java_home(), "SPARK_HOME": home, "SPARK_NO_DAEMONIZE": "1", "SPARK_LOCAL_IP": "127.0.0.1"}
    more |= {
        "XDG_CACHE_HOME": str(CACHE),  # the loops are compiled there by now
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "SPARK_DAEMON_MEMORY": "300m",
        "SPARK_DAEMON_JAVA_OPTS": QUICK_JAVA,
        "SPARK_LOCAL_DIRS": str(folder / "local"),
    }
    started = []

    def start(name, *words):
        command = [f"{home}/bin/spark-class", *words]
        with open(folder / f"{name}.log", "w") as log:
            whole = with_kernel() | more
            started.append(subprocess.Popen(command, env=whole, stdout=log, stderr=log, start_new_session=True))

    try:
        start(
            "master",
            "org.apache.spark.deploy.master.Master",
            "--host",
            "127.0.0.1",
            "--port",
            str(PORT),
            "--webui-port",
            "0",
        )
        for at in range(3):
            place = ["-d", str(folder / f"worker {at}"), "--webui-port", "0"]
            start(
                f"worker{at}",
                "org.apache.spark.deploy.worker.Worker",
                "--host",
                "127.0.0.1",
                "-c",
                "1",
                "-m",
                "900m",
                *place,
                MASTER,
            )
        _wait_for_workers(folder / "master.log", 3)
        yield folder
    finally:
        for each in reversed(started):
            _end(each)
        for each in executors(MASTER):
            os.kill(each, signal.SIGKILL)


def with_kernel():
    """The environment without what leaves the kernel out, as in other tests: its stages are killed here too."""
    return {name: value for name, value in os.environ.items() if name != "TACIT_KERNEL"}


def _wait_for_workers(log, count):
    """A driver gives up on a master that is not there within a minute, which a busy machine may need to start one."""
    end = time.monotonic() + WAIT
    while log.read_text().count("Registering worker") < count:
        assert time.monotonic() < end, "the cluster did not start"
        time.sleep(0.1)


def _end(process):
    for how in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, how)
            process.wait(timeout=10)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue
        return


@pytest.fixture(scope="module")
def layouts(cluster):
    """The same people in one file, in six, and in one of many row groups."""
    rows, found = people(3000), []
    for name, files, groups in (("one", 1, 10**6), ("six", 6, 10**6), ("groups", 1, 100)):
        place = cluster / name
        place.mkdir()
        size = len(rows) // files
        for at in range(files):
            pq.write_table(rows.slice(at * size, size), place / f"{at}.parquet", row_group_size=groups)
        found.append(str(place))
    return found


def driver(job):
    environment = with_kernel() | {
        "XDG_CACHE_HOME": str(CACHE),
        "JAVA_HOME": java_home(),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
    }
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    command = [sys.executable, "-m", "tests.engine.cluster_driver", json.dumps(job | {"master": MASTER})]
    with open(f"{job['folder']}/driver.log", "a") as log:
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=log, text=True)


def said(process, folder):
    """Return the lines that a driver says, as JSON; what it says beside is shown if it fails."""
    try:
        out, _ = process.communicate(timeout=WAIT)
    finally:
        process.kill()  # one that hangs would keep its cores from the next
    if process.returncode:
        print((folder / "driver.log").read_text()[-5000:])
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


def test_integers_are_the_same_whatever_is_killed_stopped_or_run_again(cluster, layouts):
    """Executors, Python workers and attempts; adaptive execution on and off; 1 to 64 parts; three layouts of files."""
    place = cluster / "turns"
    place.mkdir()
    lines = said(driver({"folder": str(place), "layouts": layouts, "turns": TURNS}), place)
    assert [line["turn"] for line in lines] == [turn[:3] for turn in TURNS]
    assert all(line["happened"] for line in lines)
    assert [line["turn"] for line in lines if not line["equal"]] == []
    assert {line["path"] for line in lines} == {"kernel", "sql"}


def test_a_driver_that_is_killed_after_its_charge_has_paid_and_its_request_is_dead(cluster, layouts):
    place = cluster / "killed"
    place.mkdir()
    asked = {"ledger": str(place / "ledger.db"), "sql": SQL, "request": "r1"}
    job = {"folder": str(place), "layouts": layouts}
    first = driver(job | {"asks": [asked | {"hold": "PartTask"}]})
    end = time.monotonic() + WAIT
    while not (place / "reached").exists() and first.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    assert (place / "reached").exists()
    first.kill()
    first.communicate()  # which also closes what it spoke through
    (place / "go").touch()
    later = driver(job | {"asks": [asked, {**asked, "request": "r2"}]})
    assert said(later, place) == [{"error": "DeadRequest"}, {"error": "BudgetExceeded"}]


@pytest.fixture
def postgres():
    programs = server_programs()
    if programs is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(
            "PostgreSQL is not installed (apt-get install postgresql)"
        )
    with server(programs) as address:
        yield address


def test_two_drivers_cannot_spend_the_same_last_epsilon(cluster, layouts, postgres):
    place = cluster / "two"
    place.mkdir()
    asked = [{"ledger": postgres, "sql": sql} for sql in (SQL, "SELECT COUNT(*) AS n FROM people")]
    both = [driver({"folder": str(place), "layouts": layouts, "cores": 1, "asks": [each]}) for each in asked]
    found = sorted(next(iter(line)) for each in both for line in said(each, place))
    assert found == ["answer", "error"]
