# the model of the handover has the accesses of the code, in its order
# SPDX-License-Identifier: MIT
import re
import unittest

from helpers import ROOT

# What model.c was written from. Who changes one of these functions changes the model, and then this.
ACCESSES = {
    "arena/chunks.h": {
        "npuprof_chunk_retire_": "STORE_RELEASE ADD STORE_RELEASE",
        "npuprof_chunk_unqueue_": "LOAD_ACQUIRE LOAD_ACQUIRE LOAD_ACQUIRE CAS",
        "npuprof_chunk_begin_recycling_": "LOAD_SEQ ADD_SEQ LOAD_SEQ ADD_SEQ",
        "npuprof_chunk_end_recycling_": "ADD_SEQ",
        "npuprof_chunk_free_": "LOAD_ACQUIRE STORE_RELEASE STORE CAS",
        "npuprof_chunk_take_unused_": "LOAD CAS LOAD_ACQUIRE LOAD CAS",
    },
    "arena/exchange.h": {
        "npuprof_chunk_make_fresh_": "STORE STORE_RELEASE STORE STORE STORE STORE STORE STORE_RELEASE",
    },
    "record/span.h": {
        "npuprof_record_publish_": "STORE STORE STORE_RELEASE",
    },
}


class Model(unittest.TestCase):
    def test_accesses(self):
        for part, functions in ACCESSES.items():
            text = (ROOT / "src" / part).read_text(encoding="utf-8")
            for name, wanted in functions.items():
                body = re.search(rf"^static [^\n]*\b{name}\([^;{{]*\{{(.*?)\}}$(?=\n\n|\n*\Z)", text,
                                 re.M | re.S)
                found = re.findall(r"NPUPROF_((?:LOAD|STORE|ADD|CAS)\w*)_\(", body[1])
                self.assertEqual(" ".join(found), wanted, f"{name}: change tests/schedule/model.c, too")
