"""What a pass over a text left behind, and the switches that act on it. NumPy only."""

from attnviz.core.trace.records import LayerMaps, LayerRecord, ModelInfo, Token
from attnviz.core.trace.switches import Switches
from attnviz.core.trace.trace import Trace

__all__ = ["LayerMaps", "LayerRecord", "ModelInfo", "Switches", "Token", "Trace"]
