"""The rows and the texts of TPC-H or TPC-DS, as DuckDB's extensions make them: run by the generators' environment.

    python generate.py tpch 0.1 FOLDER

Writes FOLDER/<table>.parquet for each table, and FOLDER/queries.json: texts by number. At scale 1 a minute and 1 GB.
"""

import importlib
import json
import sys
from pathlib import Path

import duckdb

CALLS = {"tpch": "CALL dbgen(sf = {})", "tpcds": "CALL dsdgen(sf = {})"}


def main() -> None:
    """Make the folder."""
    suite, scale, folder = sys.argv[1], float(sys.argv[2]), Path(sys.argv[3])
    package = Path(str(importlib.import_module(f"duckdb_extension_{suite}").__file__)).parent
    (extension,) = package.glob(f"extensions/*/{suite}.duckdb_extension")
    connection = duckdb.connect()
    connection.execute(f"LOAD '{extension}'")
    connection.execute(CALLS[suite].format(scale))
    folder.mkdir(parents=True)
    for (table,) in connection.execute("SELECT table_name FROM duckdb_tables() ORDER BY ALL").fetchall():
        connection.execute(f"COPY {table} TO '{folder}/{table}.parquet' (FORMAT parquet, COMPRESSION zstd)")
    texts = connection.execute(f"SELECT query_nr, query FROM {suite}_queries() ORDER BY ALL").fetchall()
    (folder / "queries.json").write_text(json.dumps(dict(texts), indent=1) + "\n")


if __name__ == "__main__":
    main()
