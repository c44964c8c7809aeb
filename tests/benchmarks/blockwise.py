"""Attention block by block against the whole matrix in NumPy: the memory that each needs beyond its inputs."""

import statistics
from typing import Any

from tests.benchmarks.timing import peak_of

TOKENS = 8192
MOST = 0.1  # of the whole matrix's memory

MEMORY = """
import json, sys
from attnviz.models.measure.timing import way_of
from tests.benchmarks.timing import peak_while
way_of(sys.argv[1], 256)()
print(json.dumps(peak_while(way_of(sys.argv[1], int(sys.argv[2])))))
"""


def measure() -> dict[str, Any]:
    """Return megabytes of both ways, with and without skipping, and whether blocks need at most a tenth."""
    ways = {"whole": "numpy", "blocks": "numpy_blocks", "blocks_skipping": "numpy_skipping"}
    peaks = {name: statistics.median(peak_of(MEMORY, way, str(TOKENS)) for _ in range(3)) for name, way in ways.items()}
    share = max(peaks["blocks"], peaks["blocks_skipping"]) / peaks["whole"]
    megabytes = {f"{name}_peak_mb": round(peak, 1) for name, peak in peaks.items()}
    return {"tokens": TOKENS} | megabytes | {"share": round(share, 4), "at_most_a_tenth": share <= MOST}
