"""Everything that knows streamlit."""

import attnviz.figures  # noqa: F401  whole, before a part is taken: two first visitors at once would trip over each other
