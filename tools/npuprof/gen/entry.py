# SPDX-License-Identifier: MIT
"""What an entry of a ring holds: stamps, kinds, keys, names, arguments."""

from dataclasses import dataclass

from .pick import choice, pick, pick_field, pick_value, value_number
from .schema import KINDS, RING_FIELDS

ARGS_IN_RING = 4           # NPUPROF_NPU_ARGS; the others are a table
ARGS_MAX = 12
KEYS_MAX = 2
CONDITIONS_MAX = 2
STAMP_BITS_MIN = 8
SCALE_MAX = 2**32
# Below this period a stamp that is extended from the time of the drain may be taken for one of another lap.
PERIOD_MIN_S = 0.02
STAMPS = ("start", "end", "duration", "stamp")


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
    for role in RING_FIELDS:
        names = getattr(r, role)
        if names is not None:
            r.fields[role] = pick_value(table, role, names, r.record)
    read_kinds(table, r)
    check_stamps(table, r, device)
    read_clock(table, r, device)
    r.empty = read_conditions(table, "empty", r)
    r.clock_when = read_conditions(table, "clock_when", r)
    if bool(r.clock_when) != ("clock_high" in r.fields):
        table.refuse(f"{table.where()} needs clock_when and clock_high together: which entry tells the high "
                     "part of the stamps, and where", "clock_when" if r.clock_when else "clock_high")
    check_clock_high(table, r)
    r.key = [pick_value(table, "key", name, r.record) for name in r.key or ()]
    if len(r.key) > KEYS_MAX:
        table.refuse(f"key in {table.where()} has {len(r.key)} fields, use at most {KEYS_MAX}", "key")
    if r.job_scope is not None:
        choice(table, "job_scope", r.job_scope, ("ring", "lane", "device"))
    read_args(table, r)
    read_lanes(table, r, device)
    check_operators(table, r, device.operators)


def read_kinds(table, r):
    """What each value of the kind field says of the entry."""
    field, kinds, r.kinds = r.fields.get("kind"), table.table("kinds"), []
    if field is None and kinds.value:
        kinds.refuse(f"{kinds.where()} goes with no kind, add kind = \"FIELD\" to {table.where()}")
    if field is None:
        check_pairs(table, r, {r.all_are or "span"})
        return
    if not kinds.value:
        table.refuse(f"kind in {table.where()} names field {field.name}, but nothing says what its values "
                     'mean, add [roles.ring.kinds], such as START = "begin"', "kind")
    by_value = {}
    for name in kinds.value:
        is_ = choice(kinds, name, kinds.typed(name, str), KINDS)
        value = value_number(kinds, name, name, field)
        if value in by_value:
            kinds.refuse(f"{name} in {kinds.where()} is the value {value}, and so is {by_value[value]}, "
                         "take one out", name)
        by_value[value] = name
        r.kinds.append((value, is_))
    check_pairs(kinds, r, set(kinds.value.values()))


def check_pairs(table, r, used):
    """Begins need ends and something that matches them."""
    for one, other in (("begin", "end"), ("end", "begin")):
        if one in used and other not in used:
            article = "an" if one == "end" else "a"
            table.refuse(f'{table.where()} has {article} "{one}" and no "{other}", add it')
    if "begin" in used and r.key is None:
        table.refuse(f"{table.where()} has begin records without an id, add key = [\"FIELD\"]: the fields by "
                     "which an end finds its begin; key = [] if they are nested in each lane")
    if "begin" not in used and r.key:
        table.refuse(f"key in {table.where()} goes with no begin record, take it out", "key")
    if "counter" in used and "value" not in r.fields:
        table.refuse(f'{table.where()} has a "counter" but no value, add value = "FIELD"')
    r.used_kinds = used


def check_stamps(table, r, device):
    """There are the times that the kinds of entries need, and not too many."""
    has = [role for role in STAMPS if role in r.fields]
    where = table.where()
    check_duration(table, r)
    if r.no_stamp:
        told = next((role for role in has if role != "duration"), None)
        if told:
            table.refuse(f'{told} in {where} goes with stamp = "none", take one out', told)
        return
    if "span" in r.used_kinds and not {"start", "end"} & r.fields.keys():
        table.refuse(f"{where} has neither start nor end, name the field with a time, "
                     'or say stamp = "none"')
    if r.used_kinds & {"begin", "end", "instant", "counter"} and "stamp" not in r.fields:
        table.refuse(f"{where} has no stamp, name the field with the time of a begin, end, instant or "
                     'counter, or say stamp = "none"')
    if "span" not in r.used_kinds and (told := {"start", "end", "duration"} & r.fields.keys()):
        table.refuse(f"{sorted(told)[0]} in {where} goes with no entry that is a span, use stamp",
                     sorted(told)[0])
    if "stamp" in has and r.used_kinds <= {"span", "skip"}:
        table.refuse(f"stamp in {where} goes with kinds; an entry that is a span has start and end", "stamp")
    if "duration" in has and "start" in has and "end" in has:
        table.refuse(f"duration in {where} goes with start or end, not with both, take one out", "duration")
    if "start" in has and "end" in has and (
            [id(part) for part in r.fields["start"].parts] == [id(part) for part in r.fields["end"].parts]):
        table.refuse(f"start and end in {where} are the same field {r.fields['end'].name}, take one out",
                     "end")


def check_duration(table, r):
    """The unit of a duration, if it is not that of the stamps."""
    where, scale, unit_ns = table.where(), r.duration_scale, r.duration_unit_ns
    told = next((key for key in ("duration_unit_ns", "duration_scale") if key in table.value), None)
    if "duration" not in r.fields:
        if told:
            table.refuse(f"{told} in {where} goes with no duration, add it", told)
        return
    if "span" not in r.used_kinds:
        table.refuse(f"duration in {where} goes with no entry that is a span, use stamp", "duration")
    if r.no_stamp and unit_ns is None:
        table.refuse(f'duration in {where} goes with stamp = "none", so no stamp has its unit, '
                     "add duration_unit_ns", "duration")
    if scale is not None and unit_ns is not None:
        table.refuse(f"duration_unit_ns and duration_scale in {where} are both a unit, take one out", told)
    if unit_ns is not None and not 1 <= unit_ns <= 10**9:
        table.refuse(f"duration_unit_ns = {unit_ns} in {where}, use 1 to 1000000000", "duration_unit_ns")
    check_scale(table, "duration_scale", scale, "[stamp units, duration units]")


def check_scale(table, key, scale, wanted):
    if scale is not None and (len(scale) != 2 or not all(1 <= number <= SCALE_MAX for number in scale)):
        table.refuse(f"{key} in {table.where()} is {scale}, write {wanted}, each 1 to {SCALE_MAX}", key)


def read_clock(table, r, device):
    """What the stamps count: the device's counter, scaled, or the host's clock."""
    where, host = table.where(), r.stamp_clock == "host"
    choice(table, "stamp_clock", r.stamp_clock, ("counter", "host"))
    if r.stamps not in (None, "ascending"):
        table.refuse(f'stamps = {r.stamps!r} in {where}, write "ascending" or leave it out', "stamps")
    if r.no_stamp:
        told = next((key for key in ("stamps", "stamp_scale", "stamp_unit_ns", "stamp_clock", "clock_when")
                     if key in table.value), None)
        if told:
            table.refuse(f'{told} in {where} goes with stamp = "none", take one out', told)
        return
    if host and r.stamp_scale is not None:
        table.refuse(f'stamp_scale in {where} goes with stamp_clock = "counter", use stamp_unit_ns',
                     "stamp_scale")
    if not host and r.stamp_unit_ns is not None:
        table.refuse(f'stamp_unit_ns in {where} goes with stamp_clock = "host", add that, or use stamp_scale',
                     "stamp_unit_ns")
    if r.stamp_unit_ns is not None and not 1 <= r.stamp_unit_ns <= 10**9:
        table.refuse(f"stamp_unit_ns = {r.stamp_unit_ns} in {where}, use 1 to 1000000000", "stamp_unit_ns")
    if r.max_age_ms is not None and not 1 <= r.max_age_ms < 2**32:
        table.refuse(f"max_age_ms = {r.max_age_ms} in {where}, use 1 to {2**32 - 1}", "max_age_ms")
    check_scale(table, "stamp_scale", r.stamp_scale, "[counter ticks, stamp units]")
    if not host and device.counter is None:
        table.refuse(f"{where} goes with no counter, add [roles.counter]: start and end are its ticks")
    check_widths(table, r, device, host)


def check_widths(table, r, device, host):
    """Narrow stamps: too narrow to extend, or only in order."""
    hz = 10**9 if host else device.counter.hz
    num, den = [r.stamp_unit_ns or 1, 1] if host else r.stamp_scale or [1, 1]
    for role in ("start", "end", "stamp"):
        value = r.fields.get(role)
        if value is None:
            continue
        if value.bits < STAMP_BITS_MIN:
            table.refuse(f"{role} in {table.where()} has {value.bits} bits, use a stamp of at least "
                         f"{STAMP_BITS_MIN}", role)
        told = "job" in r.fields or r.max_age_ms
        if hz and not told and 2**value.bits * num / den < PERIOD_MIN_S * hz:
            table.warn(f"the {value.bits}-bit {role} in {table.where()} comes round every "
                       f"{2**value.bits * num / den / hz * 1e3:.3g} ms; a record that fits two periods is "
                       "lost, so say max_age_ms: how long after its work began it is seen, at most", role)


def read_conditions(table, key, r):
    """The conditions of `empty` or `clock_when`: { FIELD = value, ... }."""
    sub = table.table(key)
    if len(sub.value) > CONDITIONS_MAX:
        table.refuse(f"{key} in {table.where()} has {len(sub.value)} conditions, use at most "
                     f"{CONDITIONS_MAX}", key)
    conditions = []
    for name in sub.value:
        field = pick_field(sub, name, name, r.record)
        conditions.append(Condition(pick_value(sub, name, name, r.record),
                                    value_number(sub, name, None, field)))
    return conditions


def check_clock_high(table, r):
    """The high part of a clock entry goes above the bits of `stamp`."""
    if not r.clock_when:
        return
    if "stamp" not in r.fields:
        table.refuse(f"clock_when in {table.where()} tells the high part of stamp, and there is none, "
                     'add stamp = "FIELD"', "clock_when")
    bits = r.fields["stamp"].bits + r.fields["clock_high"].bits
    if bits > 64:
        table.refuse(f"stamp and clock_high in {table.where()} have {bits} bits, use at most 64 in all",
                     "clock_high")


def read_args(table, r):
    """Fields that become arguments of the span, by their own names."""
    if len(r.args) > ARGS_MAX:
        table.refuse(f"args in {table.where()} has {len(r.args)} fields, use at most {ARGS_MAX}", "args")
    args = []
    for name in r.args:
        if name in [other.name for other in args]:
            table.refuse(f"args in {table.where()} names field {name} twice, take one out", "args")
        args.append(pick_value(table, "args", name, r.record))
    r.args = args


def read_lanes(table, r, device):
    """The names of the values of the pe field."""
    names, field, lanes = table.table("pe_names"), r.fields.get("pe"), {}
    if names.value and field is None:
        names.refuse(f"pe_names in {table.where()} goes with no pe, add pe = \"FIELD\"")
    for key in names.value:
        value = value_number(names, key, key, field)
        if value in lanes:
            names.refuse(f"{key} in {names.where()} is a value that has a name already, take one out", key)
        lanes[value] = names.typed(key, str)
    if lanes and len(lanes) + r.pe_base > device.pe_count:
        behind = f" from lane {r.pe_base} on" if r.pe_base else ""
        names.refuse(f"{names.where()} has {len(lanes)} names{behind}, but pe_count is {device.pe_count}, "
                     "correct one")
    r.lanes = list(lanes.items())      # lane i of the table is PE i


def check_operators(table, r, operators):
    """The operators fit the op field, and that which ends a job exists."""
    if r.execution_op is not None:
        pick(table, "execution_op", r.execution_op, operators, "operator")
    for operator in operators if "op" in r.fields else ():
        if operator.code >> r.fields["op"].bits:
            operator.table.refuse(f"op code {operator.code} of {operator.name} does not fit the "
                                  f"{r.fields['op'].bits}-bit field {r.fields['op'].name}, correct one")
