# SPDX-License-Identifier: MIT
"""Writes an export as Parquet files, one a table, through pyarrow or DuckDB, whichever is installed."""

import csv
import importlib.util
import os
import shutil
import subprocess
import tempfile

from ..base.files import whole_folder
from ..base.messages import Refused
from .rows import Rows
from .tables import TABLES, columns

TYPES = {"INTEGER": "BIGINT", "INT": "BIGINT", "REAL": "DOUBLE", "TEXT": "VARCHAR"}


def writer():
    """The class that writes Parquet here; Refused if nothing does."""
    if importlib.util.find_spec("pyarrow"):
        return Arrow
    if importlib.util.find_spec("duckdb") or shutil.which("duckdb"):
        return Duck
    raise Refused("--parquet needs pyarrow or DuckDB (the Python module or the program duckdb), and neither "
                  "is installed: install one of them, or use --sqlite FILE")


def write_parquet(trace, folder):
    """Writes TABLE.parquet for every table into the folder, which exists."""
    kind = writer()
    try:
        with whole_folder(folder) as private:
            sink = kind(private)
            for table, rows in Rows(trace).each():
                sink.add(table, rows)
            sink.finish()
    except (OSError, ValueError, OverflowError, kind.Error) as error:
        raise Refused(f"{folder}: cannot be written: {' '.join(str(error).split())[:300]}") from None


class Arrow:
    """By pyarrow: a row group for every 2^16 rows or more."""

    Error = OSError                # until pyarrow is there

    def __init__(self, folder):
        import pyarrow
        import pyarrow.parquet
        type(self).Error = pyarrow.ArrowException
        self.arrow, self.rows = pyarrow, {table: [] for table in TABLES}
        types = {"BIGINT": pyarrow.int64(), "DOUBLE": pyarrow.float64(), "VARCHAR": pyarrow.string()}
        self.schema = {table: pyarrow.schema([(name, types[TYPES[kind]]) for name, kind in columns(table)])
                       for table in TABLES}
        self.files = {table: pyarrow.parquet.ParquetWriter(os.path.join(folder, f"{table}.parquet"), schema)
                      for table, schema in self.schema.items()}

    def add(self, table, rows):
        self.rows[table] += rows
        if len(self.rows[table]) >= 1 << 16:
            self.flush(table)

    def flush(self, table):
        schema, rows = self.schema[table], self.rows[table]
        cells = zip(*rows) if rows else [()] * len(schema)
        arrays = [self.arrow.array(column, type=field.type) for column, field in zip(cells, schema)]
        self.files[table].write_table(self.arrow.Table.from_arrays(arrays, schema=schema))
        self.rows[table] = []

    def finish(self):
        for table, file in self.files.items():
            self.flush(table)
            file.close()


class Duck:
    """By DuckDB, from a CSV of each table in a temporary folder. Why: it inserts single rows slowly."""

    Error = RuntimeError

    def __init__(self, folder):
        self.folder, self.temporary = folder, tempfile.mkdtemp(prefix="npuprof-", dir=folder)
        self.files = {table: open(self.csv(table), "w", encoding="utf-8", newline="") for table in TABLES}

    def csv(self, table):
        return os.path.join(self.temporary, f"{table}.csv")

    def add(self, table, rows):
        # Why quotes around every text: an empty cell without them is NULL.
        write = csv.writer(self.files[table], lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC).writerow
        for row in rows:
            write(Bare() if value is None else value for value in row)

    def finish(self):
        for file in self.files.values():
            file.close()
        try:
            run_duckdb("".join(self.copy(table) for table in TABLES))
        finally:
            shutil.rmtree(self.temporary)

    def copy(self, table):
        kinds = ", ".join(f"'{name}': '{TYPES[kind]}'" for name, kind in columns(table))
        source, target = (text.replace("'", "''") for text in
                          (self.csv(table), os.path.join(self.folder, f"{table}.parquet")))
        return (f"COPY (SELECT * FROM read_csv('{source}', header=false, auto_detect=false, delim=',', "
                f"quote='\"', escape='\"', nullstr='', allow_quoted_nulls=false, columns={{{kinds}}})) "
                f"TO '{target}' (FORMAT parquet);\n")


class Bare(float):
    """Writes as nothing: NULL. Why a number: csv.writer quotes everything else."""

    def __new__(cls):
        return super().__new__(cls, 0)

    def __repr__(self):
        return ""

    __str__ = __repr__


def run_duckdb(text):
    """Runs SQL in the Python module, else in the program."""
    if importlib.util.find_spec("duckdb"):
        import duckdb
        try:
            duckdb.connect().execute(text)
        except duckdb.Error as error:
            raise RuntimeError(str(error)) from None
        return
    done = subprocess.run(["duckdb", "-bail", "-c", text], stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise RuntimeError(f"duckdb: {done.stderr}")
