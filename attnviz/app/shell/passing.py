"""What is said on the page while work lasts, gone when it has ended. Needs streamlit."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import streamlit as st


@contextmanager
def passing() -> Iterator[Any]:
    """Give a place on the page that is empty again when the work has ended, one way or the other."""
    place = st.empty()
    try:
        yield place
    finally:
        place.empty()
