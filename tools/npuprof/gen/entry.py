# SPDX-License-Identifier: MIT
"""What an entry of a ring holds: stamps, kinds, keys, names, arguments. What C refuses of it is left to C."""

from dataclasses import dataclass

from .pick import choice, pick, pick_field, pick_value, value_number
from .schema import KINDS, NEEDS, RING_FIELDS

# Below this period a stamp that is extended from the time of the drain may be taken for one of another lap.
PERIOD_MIN_S = 0.02
# Keys of a stamp; of an entry that has none, C would not look at them.
OF_STAMPS = ("stamps", "stamp_scale", "stamp_unit_ns", "stamp_clock", "clock_when")


@dataclass(eq=False)
class Condition:
    """A field of the entry that has a value."""
    field: object
    value: int


def read_entry(table, r, device):
    """Resolves the keys of [roles.ring] that say what is where in an entry. r: what the table holds."""
    r.no_stamp, r.all_are, r.fields = r.stamp == "none", None, {}
    if r.no_stamp:
        r.stamp = None
    if isinstance(r.kind, str) and r.kind in KINDS and r.kind not in [f.name for f in r.record.fields]:
        r.all_are, r.kind = r.kind, None
    table.check_pairs(NEEDS)
    for role in RING_FIELDS:
        names = getattr(r, role)
        if names is not None:
            r.fields[role] = pick_value(table, role, names, r.record)
    read_kinds(table, r)
    check_use(table, r)
    check_clock(table, r, device)
    r.empty = read_conditions(table, "empty", r)
    r.clock_when = read_conditions(table, "clock_when", r)
    r.key = [pick_value(table, "key", name, r.record) for name in r.key or ()]
    r.args = [pick_value(table, "args", name, r.record) for name in r.args]
    if twice := next((value.name for i, value in enumerate(r.args)
                      if value.name in [other.name for other in r.args[:i]]), None):
        table.refuse(f"args in {table.where()} names field {twice} twice, take one out", "args")
    r.lanes = read_numbers(table, "pe_names", r.fields.get("pe"))      # lane i of the table is PE i
    check_operators(table, r, device.operators)


def read_numbers(table, key, field):
    """A table of a field's values, or of names for them, and what each is: [(number, text)]."""
    sub = table.table(key)
    return [(value_number(sub, name, name, field), sub.typed(name, str)) for name in sub.value]


def read_kinds(table, r):
    """What each value of the kind field says of the entry."""
    kinds = table.table("kinds")
    if kinds.value and "kind" not in r.fields:
        kinds.refuse(f"{kinds.where()} goes with no kind, add kind = \"FIELD\" to {table.where()}")
    r.kinds = read_numbers(table, "kinds", r.fields.get("kind"))
    for name in kinds.value:
        choice(kinds, name, kinds.value[name], KINDS)
    # A kind without kinds is for C to refuse.
    r.used_kinds = set(kinds.value.values() or KINDS) if "kind" in r.fields else {r.all_are or "span"}
    if "begin" in r.used_kinds and r.key is None and (r.kinds or r.all_are):
        (kinds if kinds.value else table).refuse(
            f"{table.where()} has begin records without an id, add key = [\"FIELD\"]: the fields by which an "
            "end finds its begin; key = [] if they are nested in each lane")
    if not {"begin", "end"} & r.used_kinds and r.key:
        table.refuse(f"key in {table.where()} goes with no begin record, take it out", "key")


def check_use(table, r):
    """Each stamp is of a kind of entry that there is. Why not left to C: it does not look at the others."""
    where, fields = table.where(), r.fields
    if told := next((key for key in OF_STAMPS if r.no_stamp and key in table.value), None):
        table.refuse(f'{told} in {where} goes with stamp = "none", take one out', told)
    if "span" not in r.used_kinds and (told := sorted({"start", "end"} & fields.keys())):
        table.refuse(f"{told[0]} in {where} goes with no entry that is a span, use stamp", told[0])
    if "stamp" in fields and r.used_kinds <= {"span", "skip"}:
        table.refuse(f"stamp in {where} goes with kinds; an entry that is a span has start and end", "stamp")
    if "start" in fields and "end" in fields and fields["start"].parts == fields["end"].parts:
        table.refuse(f"start and end in {where} are the same field {fields['end'].name}, take one out", "end")


def check_clock(table, r, device):
    """The stamps count something, and come round seldom."""
    where, host = table.where(), r.stamp_clock == "host"
    if r.stamp_unit_ns is not None and not host:
        table.refuse(f'stamp_unit_ns in {where} goes with stamp_clock = "host", add that, or use stamp_scale',
                     "stamp_unit_ns")
    if r.no_stamp:
        return
    if not host and device.counter is None:
        table.refuse(f"{where} goes with no counter, add [roles.counter]: start and end are its ticks")
    hz = 10**9 if host else device.counter.hz
    num, den = [r.stamp_unit_ns or 1, 1] if host else r.stamp_scale or [1, 1]
    if not hz or r.max_age_ms or "job" in r.fields:
        return
    for role in ("start", "end", "stamp"):
        bits = r.fields[role].bits if role in r.fields else 64
        if 2**bits * num / den < PERIOD_MIN_S * hz:
            table.warn(f"the {bits}-bit {role} in {where} comes round every "
                       f"{2**bits * num / den / hz * 1e3:.3g} ms; a record that fits two periods is lost, so "
                       "say max_age_ms: how long after its work began it is seen, at most", role)


def read_conditions(table, key, r):
    """The conditions of `empty` or `clock_when`: { FIELD = value, ... }."""
    sub = table.table(key)
    return [Condition(pick_value(sub, name, name, r.record),
                      value_number(sub, name, None, pick_field(sub, name, name, r.record)))
            for name in sub.value]


def check_operators(table, r, operators):
    """The operators fit the op field, and that which ends a job exists."""
    if r.execution_op is not None:
        pick(table, "execution_op", r.execution_op, operators, "operator")
    for operator in operators if "op" in r.fields else ():
        if operator.code >> r.fields["op"].bits:
            operator.table.refuse(f"op code {operator.code} of {operator.name} does not fit the "
                                  f"{r.fields['op'].bits}-bit field {r.fields['op'].name}, correct it")
