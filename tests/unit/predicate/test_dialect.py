"""What filters and statements are written in, beside a parser that is not the one that is asked for."""

from __future__ import annotations

import runpy
from typing import Any

import pytest
from sqlglot.parsers.spark import SparkParser

from lakehouse.errors import EngineUnavailable
from lakehouse.predicate import dialect


def test_the_parser_s_compiled_build_is_named_with_what_takes_it_away(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise TypeError("interpreted classes cannot inherit from compiled")  # as the compiled classes say

    monkeypatch.setattr(SparkParser, "__init__", refuse)
    with pytest.raises(EngineUnavailable, match="pip uninstall sqlglotc"):
        runpy.run_path(str(dialect.__file__))
