"""Pictures: arrays and strings in, one `plotly.graph_objects.Figure` out, one function a picture."""

from attnviz.core.values.first_column import first_column_share
from attnviz.figures.bars import next_token_bars, row_bars, sum_bars
from attnviz.figures.candidates import candidate_bars
from attnviz.figures.cost_curves import Curve, Mark, cost_curves
from attnviz.figures.curves import Line, distance_curve, share_curves
from attnviz.figures.flash_grid import flash_grid
from attnviz.figures.heatmap import head_map
from attnviz.figures.histogram import gradient_histogram, saturation_histogram, score_histogram
from attnviz.figures.one_file import figure_html
from attnviz.figures.overview import layer_overview, overview
from attnviz.figures.rates import rate_dots
from attnviz.figures.signed import component_bars, labelled_bars
from attnviz.figures.strips import heads_changed, layers_by_heads
from attnviz.figures.talk import code_on_slide, map_on_slide, on_slide, talk_html
from attnviz.figures.theme import OKABE_ITO, THEMES, escape, on_page
from attnviz.figures.units import quantity
from attnviz.figures.vectors import cache_bands, component_map

__all__ = [
    "Curve",
    "Line",
    "Mark",
    "OKABE_ITO",
    "THEMES",
    "cache_bands",
    "candidate_bars",
    "code_on_slide",
    "component_bars",
    "component_map",
    "cost_curves",
    "distance_curve",
    "escape",
    "figure_html",
    "first_column_share",
    "flash_grid",
    "gradient_histogram",
    "head_map",
    "heads_changed",
    "labelled_bars",
    "map_on_slide",
    "layer_overview",
    "layers_by_heads",
    "next_token_bars",
    "on_page",
    "on_slide",
    "overview",
    "quantity",
    "rate_dots",
    "row_bars",
    "saturation_histogram",
    "score_histogram",
    "share_curves",
    "sum_bars",
    "talk_html",
]
