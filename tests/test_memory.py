"""Memory for one batch of rows is that of the batch before, not fresh pages from the system."""

import platform
import subprocess
import sys

import pytest

FAULTS = """
import resource, sys
from tacit.memory import reuse_freed_memory
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        held = [b"x" * 2**20 for _ in range(8)]
        del held
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
if sys.argv[1] == "reused":
    reuse_freed_memory()
faults()
print(faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have other rules")
def test_what_is_freed_is_used_again():
    fresh, reused = (
        int(subprocess.run([sys.executable, "-c", FAULTS, how], capture_output=True, check=True).stdout)
        for how in ("fresh", "reused")
    )
    assert reused < 100  # of the 40,960 pages that the second round writes to
    assert fresh > 1000
