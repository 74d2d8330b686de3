# SPDX-License-Identifier: MIT
"""The forms that convert writes. A new one is a file with its writer, and a line in FORMS."""

from collections import namedtuple
from functools import partial

from . import folded, otlp, pftrace, spans_csv, speedscope

# ending      of the output's name
# of_image    npuprof-convert makes it of an image
# write       the writer of any other trace, None if there is none: write(trace, file). It may return how many
#             instants had no place
# ids         it needs the ids of all spans
# read        every tool reads it
Form = namedtuple("Form", "ending of_image write ids read", defaults=(False, False))

FORMS = (Form(".json", True, None, read=True),
         Form(".csv", True, spans_csv.write_csv, read=True),
         Form(".npuprof", True, None, read=True),
         Form(".otlp.json", False, otlp.write_otlp, ids=True),
         Form(".otlp.jsonl", False, partial(otlp.write_otlp, lines=True), ids=True),
         Form(".speedscope.json", False, speedscope.write_speedscope),
         Form(".folded", False, folded.write_folded),
         Form(".pftrace", True, pftrace.write_pftrace))

ENDINGS = tuple(form.ending for form in FORMS)
READ = tuple(form.ending + packed for form in FORMS if form.read for packed in ("", ".gz"))


def form_of(path):
    """The form that the name of an output asks for; None: its name says none, as that of a device."""
    name = path.removesuffix(".gz")
    return max((form for form in FORMS if name.endswith(form.ending)), key=lambda form: len(form.ending),
               default=None)
