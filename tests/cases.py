"""Many cases in one test: a check that holds for each file, figure or text is one test, and says which one broke it."""

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any


@contextmanager
def case(name: object) -> Iterator[None]:
    """Say with what fails inside which case it was."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"the case: {name}")
        raise


def every(names: str, cases: Iterable[Any] | Mapping[str, Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a test so that it tries all cases in a row, where `parametrize` makes a test of each.

    For checks that take no time and leave nothing behind: what a fixture gave is the same for all cases.

    Args:
        names: of the test's arguments, with commas between them.
        cases: a value for each name, or the value itself if there is one name; in a mapping with what to call them.
    """
    wanted = [name.strip() for name in names.split(",")]
    called = dict(cases) if isinstance(cases, Mapping) else dict(enumerate(cases))
    rows = {key: dict(zip(wanted, each if len(wanted) > 1 else (each,), strict=True)) for key, each in called.items()}

    def around(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def try_all(**fixtures: Any) -> None:
            for key, row in rows.items():
                with case(key if isinstance(key, str) else row):
                    test(**fixtures, **row)

        own = inspect.signature(test)
        try_all.__signature__ = own.replace(parameters=[p for p in own.parameters.values() if p.name not in wanted])
        return try_all

    return around
