# SPDX-License-Identifier: MIT
"""The device's clock, its event counters, and what must be switched on for them to run."""

from dataclasses import dataclass

from .model import UINT32_MAX
from .pick import choice, pick_register_field, value_number
from .schema import COUNTER, PMU, SOURCES

HZ_MAX = 10**15            # the fastest counter that npuprof_npu_open() accepts
PMU_MAX = 8                # event counters that npuprof samples


@dataclass(eq=False)
class Requirement:
    """A register's field that must have a value: requires = { "REG.FIELD" = 1 }."""
    register: object
    field: object          # None: the whole register
    value: int
    path: str

    @property
    def mask(self):
        return self.field.mask if self.field else 2**self.register.width - 1

    @property
    def lsb(self):
        return self.field.lsb if self.field else 0


def read_requirements(table, device):
    """Adds the conditions of a table's `requires` to those of the device."""
    requires = table.table("requires")
    for path in requires.value:
        register, field = pick_register_field(requires, path, path, device.registers)
        value = value_number(requires, path, None, field or WholeRegister(register))
        if register.width not in (32, 64):
            requires.refuse(f"{path} is in the {register.width}-bit register {register.name}, "
                            "use one of 32 or 64 bits", path)
        known = next((r for r in device.requirements if r.path == path), None)
        if known and known.value != value:
            requires.refuse(f"{path} is required to be {known.value} and {value}, correct one", path)
        if not known:
            device.requirements.append(Requirement(register, field, value, path))


class WholeRegister:
    """A register as the field of all its bits."""
    values = {}

    def __init__(self, register):
        self.name, self.bits = register.name, register.width


def read_counter(table, device):
    """The counter of the device's clock."""
    c = table.read(COUNTER)
    c.lo_field = c.hi_field = None
    choice(table, "source", c.source, SOURCES)
    if c.source == "register":
        read_registers(table, c, device)
    else:
        told = next((key for key in ("lo", "hi", "order") if getattr(c, key) is not None), None)
        if told:
            table.refuse(f"{table.where()} has two clocks: source = {c.source!r} and {told}, take one out",
                         told)
        c.bits = 64 if c.bits is None else c.bits
        check_bits(table, c.bits, 64)
    if c.lag_ns > UINT32_MAX:
        table.refuse(f"lag_ns = {c.lag_ns} in {table.where()}, use at most {UINT32_MAX}", "lag_ns")
    if c.hz > HZ_MAX:
        table.refuse(f"hz = {c.hz} in {table.where()}, use at most {HZ_MAX}, ticks a second", "hz")
    read_requirements(table, device)
    return c


def check_bits(table, bits, held):
    if not 1 <= bits <= held:
        table.refuse(f"bits = {bits} in {table.where()}, but the registers hold {held}, use 1 to {held}",
                     "bits")


def read_registers(table, c, device):
    """The registers of a counter: one, or a low and a high word."""
    if c.lo is None:
        table.refuse(f"{table.where()} has no 'lo', add a string")
    c.lo, c.lo_field = pick_register_field(table, "lo", c.lo, device.registers)
    c.hi, c.hi_field = (pick_register_field(table, "hi", c.hi, device.registers) if c.hi is not None
                        else (None, None))
    if c.hi and c.hi.offset == c.lo.offset:
        table.refuse(f"hi and lo in {table.where()} are the same register, take hi out or correct it", "hi")
    for key, register in (("lo", c.lo), ("hi", c.hi)):
        widths = (32,) if c.hi else (32, 64)
        if register and register.width not in widths:
            table.refuse(f"{key} in {table.where()} names the {register.width}-bit register {register.name}, "
                         f"use one of {' or '.join(map(str, widths))} bits", key)
    held = sum(field.bits if field else register.width
               for register, field in ((c.lo, c.lo_field), (c.hi, c.hi_field)) if register)
    c.bits = held if c.bits is None else c.bits
    check_bits(table, c.bits, held)
    c.order = c.order if c.order is not None else "hi-lo-hi" if c.hi else "single"
    orders = ("hi-lo-hi", "lo-latches-hi") if c.hi else ("single",)
    if c.order not in orders:
        table.refuse(f"order {c.order!r} in {table.where()} does not go with {'a' if c.hi else 'no'} hi "
                     f"register, use {' or '.join(orders)}", "order")


def read_event_counter(table, device):
    """An event counter: of registers, or without lo one that a function of the driver reads."""
    c = table.read(PMU)
    c.lo_field = c.hi_field = None
    if c.lo is not None:
        read_registers(table, c, device)
    else:
        told = next((key for key in ("hi", "order", "counts_down") if key in table.value), None)
        if told:
            table.refuse(f"{table.where()} has {told} but no 'lo', add the register, or take {told} out: "
                         "a function of the driver reads the counter then", told)
        c.bits = 64 if c.bits is None else c.bits
        check_bits(table, c.bits, 64)
    if not 1 <= c.scale <= UINT32_MAX:
        table.refuse(f"scale = {c.scale} in {table.where()}, use 1 to {UINT32_MAX}", "scale")
    if c.busy and c.idle:
        table.refuse(f"event counter {c.name!r} is busy and idle, take one out", "idle")
    if c.restarts and c.counts_down:
        table.refuse(f"event counter {c.name!r} restarts and counts down, take one out", "restarts")
    read_requirements(table, device)
    return c


def read_pmu(roles, device):
    """The event counters."""
    counters = []
    for table in roles.tables("pmu"):
        c = read_event_counter(table, device)
        if c.name in [other.name for other in counters]:
            table.refuse(f"a second event counter is named {c.name!r}, rename one", "name")
        if len(counters) == PMU_MAX:
            table.refuse(f"more than {PMU_MAX} event counters, take the least useful out")
        if (c.busy or c.idle) and (first := next((o for o in counters if o.busy or o.idle), None)):
            is_, was = ("busy" if o.busy else "idle" for o in (c, first))
            table.refuse(f"event counter {c.name!r} is {is_}, and so is {first.name!r}, "
                         f"say {is_} = true for one" if is_ == was else
                         f"event counter {c.name!r} is {is_}, and {first.name!r} is {was}, "
                         "both say how busy the device is: keep one", is_)
        counters.append(c)
    return counters
