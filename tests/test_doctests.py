"""The examples in docstrings give what stands there."""

import doctest
import importlib
import pkgutil

import pytest

import attnviz.core
import attnviz.figures
from tests.cases import case


@pytest.mark.parametrize("room", [attnviz.core, attnviz.figures], ids=["core", "figures"])
def test_the_examples_of_a_room_give_what_stands_there(room):
    attempted = 0
    for found in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
        with case(found.name):
            said = []
            for test in doctest.DocTestFinder().find(importlib.import_module(found.name)):
                result = doctest.DocTestRunner(verbose=False).run(test, out=said.append)
                attempted += result.attempted
            assert said == [], "".join(said)
    assert attempted > 15
