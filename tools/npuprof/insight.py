# SPDX-License-Identifier: MIT
"""What a loaded trace shows of itself, as a notebook wants it: trace.verdict(), trace.tables, trace.spans.

Trace (read/) is below the analyses, so they are handed to it here; `import npuprof` does that."""

from collections.abc import Mapping
from html import escape

from .base.contract import DEVICE, IN_WARM_UP, SAMPLED, UNFINISHED, UNWOUND, VIOLATED
from .base.messages import Refused, meant
from .base.metadata import sources
from .read.database import KIND_NAMES
from .read.trace import Trace

FLAGS = {UNFINISHED: "unfinished", UNWOUND: "unwound", VIOLATED: "violated", IN_WARM_UP: "warm_up",
         SAMPLED: "sampled"}


class Verdict:
    """What to change first, what it brings, and how sure that is. print() shows it as `report --verdict`.

    findings    the answers in order: dicts with rule, sentence, advice, gain, confidence, followers, ...
    questions   the same of what the trace does not decide
    as_dict()   all of it, as `report --verdict json` writes it"""

    def __init__(self, judged):
        from .analysis.verdict import as_json
        self._judged, self._document = judged, as_json(judged)

    @property
    def findings(self):
        return self._document["findings"]

    @property
    def questions(self):
        return self._document["questions"]

    def as_dict(self):
        return self._document

    def __str__(self):
        from .report.screen import whole_verdict
        return "\n".join(whole_verdict(self._judged))

    def __repr__(self):
        first = self.findings[0]["sentence"] if self.findings else "nothing that would bring enough"
        return f"<npuprof verdict: {len(self.findings)} findings; {first}>"

    def _repr_html_(self):
        head, *rest = str(self).split("\n")
        return f"<p>{escape(head)}</p><pre>{escape(chr(10).join(rest))}</pre>"


def verdict(self, *, wait=(), device=None, record=None, inference=None, between=None, pe=None, thread=None,
            name=None, nth=None):
    """The Verdict: what to change, what it brings, how sure. The arguments are the options of
    `npuprof report`: wait names host spans that wait for the device, device is the TOML of its description,
    the others choose a part of the trace."""
    from .analysis.verdict import judge
    part = {"record": record, "inference": inference, "between": between, "pe": pe, "thread": thread,
            "name": name, "nth": nth}
    return Verdict(judge(_facts(self, wait, device, **part)))


def _facts(trace, wait=(), device=None, **part):
    from types import SimpleNamespace

    from .report.choice import facts_of
    return facts_of(trace, SimpleNamespace(wait=list(wait) or None, device=device, **part))


class Tables(Mapping):
    """The tables of a trace by name, each made when it is asked for: those of `npuprof report`. The end of a
    column's name is its unit: "total_ns"."""

    def __init__(self, trace):
        from .analysis import catalogue
        from .report import data
        self._trace, self._names = trace, (*data.NAMES, *catalogue.TABLES)
        self._maker, self._made, self._part = data.Maker(trace), {}, None

    def __getitem__(self, name):
        from .analysis import catalogue
        from .report import data
        if name not in self._names:
            raise KeyError(f"no table {name!r}{meant(str(name), dict.fromkeys(self._names))}")
        if name not in self._made and name in data.NAMES:
            self._made[name] = self._maker.make(name)
        elif name not in self._made:
            self._part = self._part or _facts(self._trace, **dict.fromkeys(data_options()))
            (self._made[name],) = catalogue.tables(self._part, (name,))
        return self._made[name]

    def __iter__(self):
        return iter(self._names)

    def __len__(self):
        return len(self._names)

    def __repr__(self):
        return f"<npuprof tables: {', '.join(self._names)}>"

    def _repr_html_(self):
        return f"<p>{len(self)} tables: {', '.join(map(escape, self._names))}</p>"


def data_options():
    from .report.choice import OPTIONS
    return OPTIONS


class Spans:
    """All spans of a trace in columns, for pandas and Arrow.

    name, category, track, kind, start_ns (Unix), dur_ns, parent (the row that opened it), error_ns (how far a
    device's stamps may be off), flags ("unfinished warm_up"), source ("file:line"), args (a dict)."""

    def __init__(self, trace):
        self._trace = trace

    def __len__(self):
        return len(self._trace)

    def __repr__(self):
        return f"<npuprof spans: {len(self)} rows; to_pandas(), to_arrow(), columns()>"

    def columns(self):
        """{name: list of values}; what is not known is None."""
        trace, places = self._trace, sources(self._trace.metadata)
        args = list(map(trace.args, range(len(trace))))
        flags = [" ".join(text for flag, text in FLAGS.items() if flags & flag) for flags in trace.flags]
        texts = list(zip(map(trace.names.__getitem__, trace.name), map(trace.names.__getitem__, trace.cat)))
        return {"name": [name for name, _ in texts], "category": [category for _, category in texts],
                "track": [trace.tracks[trace.tracks[t].base].name for t in trace.track],
                "kind": list(map(KIND_NAMES.__getitem__, trace.kind)),
                "start_ns": [trace.base_ns + start for start in trace.start], "dur_ns": list(trace.dur),
                "parent": [row if row >= 0 else None for row in trace.callers],
                "error_ns": [a.get("error_ns") if kind == DEVICE else 0 for a, kind in zip(args, trace.kind)],
                "flags": flags, "source": [next(iter(places.get(text, ())), None) for text in texts],
                "args": args}

    def to_pandas(self):
        """A pandas data frame."""
        pandas = _needed("pandas", "to_pandas()")
        columns = self.columns()
        for name in "parent", "error_ns":
            columns[name] = pandas.array(columns[name], dtype="Int64")
        return pandas.DataFrame(columns)

    def to_arrow(self):
        """A pyarrow Table. args is a map from names to texts of JSON, because values differ in kind."""
        import json
        pyarrow = _needed("pyarrow", "to_arrow()")
        columns, whole = self.columns(), pyarrow.int64()
        columns["args"] = [[(key, json.dumps(value)) for key, value in args.items()]
                           for args in columns["args"]]
        text = pyarrow.string()
        kinds = {"start_ns": whole, "dur_ns": whole, "parent": whole, "error_ns": whole,
                 "args": pyarrow.map_(text, text)}
        return pyarrow.table({name: pyarrow.array(values, kinds.get(name, text))
                              for name, values in columns.items()})


def _needed(module, what):
    try:
        return __import__(module)
    except ImportError:
        raise Refused(f"{what} needs {module}, which is not installed; columns() gives the same as lists") \
            from None


def tables(self):
    """The Tables of a trace. Made once: several of them need the same."""
    if "_tables" not in vars(self):
        self._tables = Tables(self)
    return self._tables


Trace.verdict, Trace.tables, Trace.spans = verdict, property(tables), property(Spans)
