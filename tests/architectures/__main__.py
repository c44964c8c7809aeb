"""`python -m tests.architectures` writes docs/architectures.md; with names of architectures it prints their lines."""

import sys

from tests.architectures.sweep import every, rows
from tests.architectures.table import PAGE, faults, markdown


def main(names: list[str]) -> None:
    """Look at the architectures of those names, all of them without one."""
    found = []
    for row in rows(every(names)):
        found.append(row)
        print(f"{row.model_type:32} {row.class_name:44} {row.outcome:10} {row.seconds:5.1f} s", file=sys.stderr)
        for fault in faults(row):
            print("   ", fault, file=sys.stderr)
    if names:
        print(markdown(found))
    else:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(markdown(found), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
