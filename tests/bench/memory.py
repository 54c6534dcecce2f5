"""How much memory a process took."""

import math
import re
from pathlib import Path


def most_memory() -> float:
    """Megabytes that this process held at most. Not by getrusage: on Linux that of a child starts with its parent's."""
    found = re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())
    return int(found[1]) / 1024 if found else math.nan
