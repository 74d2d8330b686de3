# SPDX-License-Identifier: MIT
"""export: a whole trace as tables of a database, in SQLite or Parquet.

tables.py has the schema, rows.py the rows of each table, and sqlite.py and parquet.py write them."""
