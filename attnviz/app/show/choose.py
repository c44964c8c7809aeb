"""A row of buttons of which one is always on: how a page lets a visitor choose one of a few."""

from collections.abc import Callable, Mapping
from typing import TypeVar

import streamlit as st

Option = TypeVar("Option", bound=str)


def choose(
    label: str,
    key: str,
    options: Mapping[Option, str],
    *,
    hide_label: bool = False,
    help: str | None = None,
    disabled: bool = False,
    on_change: Callable[[], object] | None = None,
) -> Option:
    """Show the row and return what is chosen; the session and the address hold it under `key`.

    Args:
        label: what is chosen; screen readers say it even where it is hidden.
        key: of the field.
        options: what is written on the button of each value.
        hide_label: leave the label out of the picture.
        help: a sentence behind a question mark.
        disabled: show the row, but let nobody choose.
        on_change: called before the next run of the page when the visitor chose.
    """
    return st.segmented_control(
        label,
        list(options),
        key=key,
        persist_state="session",
        required=True,
        format_func=options.get,
        label_visibility="collapsed" if hide_label else "visible",
        help=help,
        disabled=disabled,
        on_change=on_change,
    )
