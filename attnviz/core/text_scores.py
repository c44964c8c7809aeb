"""The old name of `attnviz.core.heads.text_scores`, which notebooks import."""

from attnviz.core.heads.scored_text import SORTS, PatternScores, Sort, score_pattern, score_text

__all__ = ["SORTS", "PatternScores", "Sort", "score_pattern", "score_text"]
