"""How bars are filled, one series full and the one that is compared with it hatched. Uses plotly's settings."""

from collections.abc import Sequence

from attnviz.figures.theme import Settings, Theme

BESIDE: Settings = {"textposition": "outside", "textangle": 0, "cliponaxis": False}  # where bars' numbers stand


def full(colour: str) -> Settings:
    """Return bars of one flat colour."""
    return {"color": colour, "line": {"width": 0}}


def hatched(colour: str | Sequence[str], page: str, *, size: int = 6, solidity: float = 0.35) -> Settings:
    """Return hatched and outlined bars, which are told from full ones without colour too."""
    pattern = {"shape": "/", "fgcolor": colour, "bgcolor": page, "size": size, "solidity": solidity}
    return {"color": colour, "line": {"color": colour, "width": 1}, "pattern": pattern}


def first_and_second(theme: Theme) -> tuple[Settings, Settings]:
    """Return how bars are filled that stand side by side: the first ones full, those compared with them hatched."""
    return full(theme.first), hatched(theme.second, theme.page)


def check_names(names: Sequence[str]) -> None:
    """Refuse anything but one name for what is drawn first and one for what is compared with it."""
    if len(names) != 2 or isinstance(names, str):
        raise ValueError(f"names are two strings, one for each of the two series, got {names!r}")
