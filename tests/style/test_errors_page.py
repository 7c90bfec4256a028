"""docs/errors.md lists every error with its code, and every error is raised somewhere."""

import pickle
import re
from importlib import import_module
from pathlib import Path

import pytest

from lakehouse import errors
from lakehouse.apart.wire import read_error, write_error
from lakehouse.errors import LakehouseError

ROOT = Path(__file__).resolve().parents[2]
CLASSES = {
    name: one
    for name, one in vars(errors).items()
    if isinstance(one, type) and issubclass(one, LakehouseError) and one is not LakehouseError
}


def meaning(one: type[LakehouseError]) -> str:
    return (one.__doc__ or "").strip().split("\n\n")[0].replace("``", "`").replace("\n    ", " ")


def test_the_page_lists_every_error() -> None:
    page = (ROOT / "docs/errors.md").read_text()
    listed = re.findall(r"^\| `(\w+)` \| `(\w+)` \| `(\w+)` \| (.+) \|$", page, re.MULTILINE)
    assert listed == [(one.code, name, one.kind, meaning(one)) for name, one in sorted(CLASSES.items())]


def test_codes_are_distinct() -> None:
    assert len({one.code for one in CLASSES.values()}) == len(CLASSES)


def test_an_error_of_one_module_has_a_code_that_is_listed() -> None:
    codes = {one.code for one in CLASSES.values()}
    unlisted = []
    for path in (ROOT / "lakehouse").rglob("*.py"):
        for name, base in re.findall(r"^class (\w+)\((\w+)[,)]", path.read_text(), re.MULTILINE):
            if base in CLASSES and path.name != "errors.py":
                made = getattr(import_module(".".join(path.relative_to(ROOT).with_suffix("").parts)), name)
                unlisted += [name] if made.code not in codes else []
    assert unlisted == []


def test_every_error_is_raised_somewhere() -> None:
    sources = [path for path in (ROOT / "lakehouse").rglob("*.py") if path.name != "errors.py"]
    text = "\n".join(path.read_text() for path in sources)
    assert [name for name in CLASSES if not re.search(rf"\b{name}\b", text)] == []


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_an_error_survives_another_process(name: str) -> None:
    error = CLASSES[name]("too long; cut it", most=7)
    for found in (pickle.loads(pickle.dumps(error)), read_error(write_error(error))):
        assert (type(found), found.code, str(found), found.most) == (type(error), error.code, str(error), 7)
