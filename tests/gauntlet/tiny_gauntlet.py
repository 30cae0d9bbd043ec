"""A gauntlet of a few cases that pass, fail, raise, crash and hang, for tests of what runs them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.frame.mutant import mutant
from tacit_gauntlet.targets import replaced

product = SimpleNamespace(__name__="product", release=lambda count: count // 10 * 10)


@case("N91", title="one person more does not show", feature="product")
def passes(size: Size) -> Evidence:
    print("said aloud")
    return Evidence(product.release(1) == product.release(2), {"tries": 5 if size == "quick" else 9})


@case("N92", title="<b>fails</b>", feature="product")
def fails(size: Size) -> Evidence:
    return Evidence(False, {"rows seen": {1}, "where": Path("a")})


@case("S91", title="raises", feature="product")
def raises(size: Size) -> Evidence:
    raise ZeroDivisionError("scale 0")


@case("L91", title="dies", feature="product")
def dies(size: Size) -> Evidence:
    print("last words", file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
    return Evidence(True)


@case("L92", title="hangs, with a child that holds on", feature="product")
def hangs(size: Size) -> Evidence:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(os.environ["TINY_CHILD"]).write_text(str(child.pid))
    time.sleep(600)
    return Evidence(True)


@case("L93", title="sees where it runs", feature="product")
def looks(size: Size) -> Evidence:
    home = os.environ["TACIT_HOME"]
    apart = home.startswith(os.getcwd()) and os.environ["TMPDIR"] == os.getcwd()
    return Evidence(apart, {"kernel": os.environ["TACIT_KERNEL"], "home": home})


@mutant("exact", killed_by="N91", published="everywhere")
@contextmanager
def exact() -> Iterator[None]:
    with replaced(product, "release", lambda count: count):
        yield


@mutant("harmless", killed_by="N91", published="nowhere")
@contextmanager
def harmless() -> Iterator[None]:
    with replaced(product, "release", lambda count: 0):
        yield


@mutant("stale", killed_by="N91", published="long ago")
@contextmanager
def stale() -> Iterator[None]:
    with replaced(product, "renamed_since", None):
        yield
