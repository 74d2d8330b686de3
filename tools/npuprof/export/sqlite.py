# SPDX-License-Identifier: MIT
"""Writes an export as a SQLite database. Equal traces give equal bytes, with one release of SQLite."""

import sqlite3

from ..base.messages import Refused
from .rows import Rows
from .tables import BESIDE, TABLES, VERSION, WITHOUT_ROWID, columns

# Why no journal: the file is a temporary one until it is complete.
SETTINGS = ("PRAGMA page_size=4096", "PRAGMA journal_mode=OFF", "PRAGMA synchronous=OFF",
            "PRAGMA locking_mode=EXCLUSIVE", "PRAGMA cache_size=-65536", f"PRAGMA user_version={VERSION}")


def write_sqlite(trace, path, output):
    """Writes the tables, views and indexes into the empty file `path`, which will be `output`."""
    database = sqlite3.connect(path, isolation_level=None)
    try:
        for setting in SETTINGS:
            database.execute(setting)
        database.execute("BEGIN")
        for table, text in TABLES.items():
            database.execute(f"CREATE TABLE {table}({text})"
                             + (" WITHOUT ROWID" if table in WITHOUT_ROWID else ""))
        insert = {table: f"INSERT INTO {table} VALUES({','.join('?' * len(columns(table)))})"
                  for table in TABLES}
        for table, rows in Rows(trace).each():
            database.executemany(insert[table], rows)
        for text in BESIDE:
            database.execute(text)
        database.execute("COMMIT")
    except OverflowError:
        raise Refused(f"{trace.path}: a number of the trace does not fit 64 bits, which SQLite needs; "
                      "`check` names the event") from None
    except sqlite3.Error as error:
        raise Refused(f"{output}: SQLite cannot write it: {error}") from None
    finally:
        database.close()
