"""The benchmarks' programs, which run in processes of their own: what they import is there."""

import ast
from importlib import import_module

import pytest

from tests.benchmarks import all_heads, blockwise, tracing

PROGRAMS = {"all_heads": all_heads.PROGRAM, "blockwise": blockwise.MEMORY, "tracing": tracing.MEMORY}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_a_program_imports_is_there(name: str) -> None:
    found = [node for node in ast.walk(ast.parse(PROGRAMS[name])) if isinstance(node, ast.ImportFrom)]
    assert found
    for node in found:
        module = import_module(str(node.module))
        assert [each.name for each in node.names if not hasattr(module, each.name)] == []
