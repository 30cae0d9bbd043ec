"""Processor time of a script and of all that it has started."""

import os


def processor_seconds():
    """Return what all processes of this session have used: Python, a JVM, its workers; each script has a session."""
    ticks, session = 0, os.getsid(0)
    for name in filter(str.isdigit, os.listdir("/proc") if os.path.isdir("/proc") else []):
        try:
            with open(f"/proc/{name}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session:
            ticks += sum(map(int, fields[11:15]))  # its own, and those of children that it has waited for
    return ticks / os.sysconf("SC_CLK_TCK")
