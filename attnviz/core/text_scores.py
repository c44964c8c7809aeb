"""The name under which notebooks import `attnviz.core.heads.scored_text`."""

from attnviz.core.heads.scored_text import SORTS, PatternScores, Sort, score_pattern, score_text

__all__ = ["SORTS", "PatternScores", "Sort", "score_pattern", "score_text"]
