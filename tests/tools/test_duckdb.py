# test: thorough time=300 - DuckDB reads the CSV, and its GROUP BY name is the operators table
# SPDX-License-Identifier: MIT
import json
import shutil
import unittest

import helpers
import npuprof
from npuprof.base import contract
from npuprof.tables.executions import npu_operators

PACKAGE = "@duckdb/node-api"
HOME = helpers.ROOT / "build" / "duckdb"
QUERY = """
const { DuckDBInstance } = require('@duckdb/node-api');
(async () => {
    const connection = await (await DuckDBInstance.create(':memory:')).connect();
    const table = `read_csv('${process.argv[2]}', header = true)`;
    const rows = async query => (await connection.runAndReadAll(query)).getRowObjects();
    const types = await rows(`DESCRIBE SELECT * FROM ${table}`);
    const groups = await rows(`SELECT name, count(*) AS count, sum(dur) AS total FROM ${table}
        WHERE pe_index IS NOT NULL AND "thread.id" IS NULL AND name NOT IN ('Execution', 'Load', 'Store')
        GROUP BY name`);
    const check = await rows(`SELECT count(*) AS n FROM ${table} WHERE "end" - start = dur`);
    const plain = (key, value) => typeof value === 'bigint' ? Number(value) : value;
    console.log(JSON.stringify({ types, groups, check }, plain));
})().catch(error => { console.error(error); process.exit(1); });
"""


def installed():
    """The folder with DuckDB's package; the test is skipped where npm cannot bring it."""
    for tool in ("node", "npm"):
        helpers.need(tool)
    if not (HOME / "node_modules" / PACKAGE).exists():
        HOME.mkdir(parents=True, exist_ok=True)
        done = helpers.run(["npm", "install", "--no-audit", "--no-fund", "--prefix", HOME, PACKAGE], cwd=HOME)
        if done.returncode:
            shutil.rmtree(HOME, ignore_errors=True)
            raise unittest.SkipTest(f"npm cannot install {PACKAGE}: "
                                    f"{(done.stderr.strip() or 'no reason given').splitlines()[0]}")
    return HOME


class DuckDB(unittest.TestCase):
    def test_group_by_name_is_the_operators_table(self):
        home = installed()
        path = helpers.scratch() / "published.csv"
        helpers.run([helpers.build("published.c", "published"), "2", path], env=helpers.environment())
        (home / "query.js").write_text(QUERY)
        done = helpers.run(["node", "query.js", path], code=0, cwd=home)
        answer = json.loads(done.stdout)
        trace = npuprof.load(path)
        self.assertEqual({row["name"]: (row["count"], row["total"]) for row in answer["groups"]},
                         {name: (count, total) for name, _, count, total, _ in npu_operators(trace)})
        self.assertEqual(sum(row["total"] for row in answer["groups"]), 432536)
        self.assertEqual(answer["check"], [{"n": len(trace)}])
        types = {row["column_name"]: row["column_type"] for row in answer["types"]}
        self.assertEqual(list(types), [*contract.COLUMNS, contract.SOURCE])
        for column in ("start", "end", "thread.id", "pe_index", "dur"):
            self.assertEqual(types[column], "BIGINT")
