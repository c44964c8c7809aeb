"""Count lines of code: `python -m tests.code_lines [FOLDER]`, without blank lines, comments and docstrings.

It prints a line for each folder: its lines, its functions, and the length that nine functions in ten don't exceed.
"""

import ast
import io
import sys
import tokenize
from pathlib import Path

ROOT = Path(__file__).parents[1]
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def code_lines(source: str) -> set[int]:
    """Return the numbers of the lines that hold code, from 1."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NO_CODE:
            lines |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | FUNCTION) and ast.get_docstring(node, clean=False) is not None:
            docstring = node.body[0]
            lines -= set(range(docstring.lineno, docstring.end_lineno + 1))
    return lines


def function_lengths(source: str) -> dict[str, int]:
    """Return how many lines of code each function has, its head among them, by name and line."""
    lines = code_lines(source)
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, FUNCTION)]
    return {f"{f.name}:{f.lineno}": len(lines & set(range(f.lineno, f.end_lineno + 1))) for f in functions}


def tenth_longest(lengths: list[int]) -> int:
    """Return the length that nine in ten don't exceed; 0 of none."""
    return sorted(lengths)[int(0.9 * len(lengths))] if lengths else 0


def main(folder: Path) -> None:
    """Print the counts of every folder that holds modules, and of all together."""
    total = 0
    for place in sorted({path.parent for path in folder.rglob("*.py")}):
        sources = [path.read_text(encoding="utf-8") for path in place.glob("*.py")]
        lengths = [length for source in sources for length in function_lengths(source).values()]
        n_lines = sum(len(code_lines(source)) for source in sources)
        total += n_lines
        where = place.relative_to(folder.parent)
        print(f"{n_lines:6} lines {len(lengths):4} functions, nine in ten up to {tenth_longest(lengths):2}  {where}")
    print(f"{total:6} lines")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "attnviz")
