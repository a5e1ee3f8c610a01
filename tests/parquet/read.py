"""Reads what `bunko export --type parquet` has written with DuckDB: read.py FILE COUNT

The documents are those that tests/parquet/run has inserted.
"""

import datetime
import json
import sys

import duckdb


def main(path, count):
    columns = {name: kind for name, kind, *_ in duckdb.sql(f"describe select * from '{path}'").fetchall()}
    expected = {
        "_id": "BIGINT", "oid": "VARCHAR", "int": "INTEGER", "long": "BIGINT", "double": "DOUBLE", "bool": "BOOLEAN",
        "date": "TIMESTAMP", "text": "VARCHAR", "decimal": "VARCHAR", "binary": "BLOB", "inner": "JSON", "list": "JSON",
        "mixed": "JSON", "nothing": "VARCHAR",
    }
    assert columns == expected, columns
    (row,) = duckdb.sql(f"select * from '{path}' where _id = 1").fetchall()
    row = dict(zip(columns, row, strict=True))
    row["inner"], row["list"], row["mixed"] = (json.loads(row[name]) for name in ("inner", "list", "mixed"))
    assert row == {
        "_id": 1, "oid": "0123456789abcdef01234567", "int": 1, "long": 1, "double": 1.0, "bool": True,
        "date": datetime.datetime(2020, 2, 29, 12, 30, 0, 5000), "text": "text 1 \u672c", "decimal": "1.50", "binary": b"\x01\x02\x03",
        "inner": {"a": [1]}, "list": [1, {"b": None}], "mixed": 1, "nothing": None,
    }, row
    # Every other document has only an `_id` and a null.
    facts = "count(*), count(text), sum(long), max(double), count(*) filter (bool), max(date), count(nothing)"
    (found,) = duckdb.sql(f"select {facts} from '{path}'").fetchall()
    odd = count // 2
    expected = (count, odd, 1 + (odd - 1) * 2**40, 1.0, odd, datetime.datetime(2020, 2, 29, 12, 30, 0, 5000), 0)
    assert found == expected, (found, expected)
    groups = duckdb.sql(f"select row_group_num_rows, row_group_bytes from parquet_metadata('{path}')").fetchall()
    assert len({rows for rows, _ in groups}) > 1, "one row group"
    assert all(size < 17 << 20 for _, size in groups), groups
    print(f"parquet: {count} rows and {len(columns)} columns as expected")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
