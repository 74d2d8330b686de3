# SPDX-License-Identifier: MIT
"""The device's clock, its event counters, and what must be switched on for them to run."""

from dataclasses import dataclass

from .pick import pick_register_field, value_number
from .schema import COUNTER, NEEDS_REGISTER, PMU


@dataclass(eq=False)
class Requirement:
    """A register's field that must have a value: requires = { "REG.FIELD" = 1 }."""
    register: object
    field: object          # None: the whole register
    value: int
    path: str
    table: object

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
        known = next((r for r in device.requirements if r.path == path), None)
        if known and known.value != value:
            requires.refuse(f"{path} is required to be {known.value} and {value}, correct one", path)
        if not known:
            device.requirements.append(Requirement(register, field, value, path, requires))


class WholeRegister:
    """A register as the field of all its bits."""
    values = {}

    def __init__(self, register):
        self.name, self.bits = register.name, register.width


def read_counter(table, device):
    """The counter of the device's clock."""
    c = table.read(COUNTER)
    if c.source == "register" and c.lo is None:
        table.refuse(f"{table.where()} has no 'lo', add a string")
    told = next((key for key in ("lo", "hi", "order") if getattr(c, key) is not None), None)
    if c.source != "register" and told:
        table.refuse(f"{table.where()} has two clocks: source = {c.source!r} and {told}, take one out", told)
    read_registers(table, c, device)
    return c


def read_event_counter(table, device):
    """An event counter: of registers, or without lo one that a function of the driver reads."""
    c = table.read(PMU)
    table.check_pairs(NEEDS_REGISTER)
    read_registers(table, c, device)
    if c.restarts and c.counts_down:
        table.refuse(f"event counter {c.name!r} restarts and counts down, take one out", "restarts")
    return c


def read_registers(table, c, device):
    """The registers of a counter: one, or a low and a high word; none if a function or nobody reads it."""
    c.table, where = table, table.where()
    (c.lo, c.lo_field), (c.hi, c.hi_field) = (
        (None, None) if path is None else pick_register_field(table, key, path, device.registers)
        for key, path in (("lo", c.lo), ("hi", c.hi)))
    for key, register in (("lo", c.lo), ("hi", c.hi)) if c.hi else ():
        if register.width != 32:
            table.refuse(f"{key} in {where} names the {register.width}-bit register {register.name}, "
                         "use one of 32 bits", key)
    held = sum(field.bits if field else register.width
               for register, field in ((c.lo, c.lo_field), (c.hi, c.hi_field)) if register) or 64
    c.bits = held if c.bits is None else c.bits
    if not 1 <= c.bits <= held:
        table.refuse(f"bits = {c.bits} in {where}, but the registers hold {held}, use 1 to {held}", "bits")
    orders = ("hi-lo-hi", "lo-latches-hi") if c.hi else ("single",)
    c.order = c.order or orders[0]
    if c.order not in orders:
        table.refuse(f"order {c.order!r} in {where} does not go with {'a' if c.hi else 'no'} hi "
                     f"register, use {' or '.join(orders)}", "order")
    read_requirements(table, device)


def read_pmu(roles, device):
    """The event counters."""
    counters = []
    for table in roles.tables("pmu"):
        c = read_event_counter(table, device)
        if c.name in [other.name for other in counters]:
            table.refuse(f"a second event counter is named {c.name!r}, rename one", "name")
        counters.append(c)
    return counters
