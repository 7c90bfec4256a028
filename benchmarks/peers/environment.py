"""The peers' own packages, in .tools/peers: Python ones as requirements.txt pins them, jars by coordinates.

They are installed on first use, and again when what is wanted has changed. Our own systems need none of it.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.environments import ROOT, make_environment, python_of, run
from benchmarks.peers.systems import Place

FOLDER = ROOT / ".tools" / "peers"
REQUIREMENTS = Path(__file__).with_name("requirements.txt")


@dataclass(frozen=True, slots=True)
class Jars:
    """Coordinates, and the prefixes of file names of those that PySpark does not include."""

    coordinates: tuple[str, ...]
    kept: tuple[str, ...]


JARS = {
    "delta": Jars(("io.delta:delta-spark_4.1_2.13:4.4.0",), ("io.delta_", "io.unitycatalog_")),
    "iceberg": Jars(
        ("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0", "org.xerial:sqlite-jdbc:3.50.3.0"),
        ("org.apache.iceberg_", "org.xerial_sqlite"),
    ),
}
_RESOLVE = """
import json, sys
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
for key, value in json.loads(sys.argv[1]).items():
    builder = builder.config(key, value)
builder.getOrCreate().stop()
"""


def install() -> None:
    """Bring .tools/peers to what is wanted. Raises `CannotInstall`."""
    stamp, wanted = FOLDER / "installed", _wanted()
    if stamp.exists() and stamp.read_text() == wanted:
        return
    print("peers: installing Python packages and jars into .tools/peers", file=sys.stderr, flush=True)
    make_environment(FOLDER, REQUIREMENTS)
    for name, jars in JARS.items():
        settings = {
            "spark.jars.packages": ",".join(jars.coordinates),
            "spark.jars.ivy": str(FOLDER / "jars" / name),
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
        }
        run([str(_python()), "-c", _RESOLVE, json.dumps(settings)], dict(os.environ))
    # Our own package runs on the peers' Spark, with all else as our lock has it.
    shadow = FOLDER / "spark"
    shadow.mkdir()
    for package in ("pyspark", "py4j"):
        (found,) = (FOLDER / "venv").glob(f"lib/python*/site-packages/{package}")
        (shadow / package).symlink_to(found)
    stamp.write_text(wanted)


def command(place: Place, *arguments: str) -> tuple[list[str], dict[str, str]]:
    """How the worker is run with those packages: the command, and its environment."""
    paths = [str(ROOT)]
    python = sys.executable
    environment = dict(os.environ)
    if place is Place.PEERS:
        python = str(_python())
    elif place is Place.OURS_ON_PEERS_SPARK:
        paths.insert(0, str(FOLDER / "spark"))
    if place is not Place.OURS:
        environment["PEERS_JARS"] = json.dumps({name: _jar_files(name) for name in JARS})
    environment["PYTHONPATH"] = os.pathsep.join(paths)
    environment.pop("SPARK_HOME", None)
    return [python, "-m", "benchmarks.peers.worker", *arguments], environment


def plot_command(*arguments: str) -> list[str]:
    """How the plots are drawn: matplotlib is the peers'."""
    return [str(_python()), "-m", "benchmarks.peers.plots", *arguments]


def _python() -> Path:
    return python_of(FOLDER)


def _jar_files(name: str) -> list[str]:
    folder = FOLDER / "jars" / name / "jars"
    return sorted(str(path) for path in folder.glob("*.jar") if path.name.startswith(JARS[name].kept))


def _wanted() -> str:
    made = hashlib.sha256(f"{sys.executable} {sys.version} {JARS}".encode())
    made.update(REQUIREMENTS.read_bytes())
    return made.hexdigest()
