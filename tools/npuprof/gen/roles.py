# SPDX-License-Identifier: MIT
"""Which register and record plays which role: the counter, the event counters, the rings."""

from .counters import read_counter, read_pmu
from .index import read_progress
from .ring import read_ring
from .schema import ROLES

RINGS_MAX = 128            # NPUPROF_NPU_RINGS


def read_roles(device, roles):
    """Fills in device.counter, .rings, .progress, .pmu and .requirements."""
    has = roles.read(ROLES)
    device.counter = device.progress = None
    device.rings, device.requirements = [], []
    if has.counter is not None:
        device.counter = read_counter(roles.table("counter"), device)
    device.pmu = read_pmu(roles, device)
    device.many_rings = isinstance(has.ring, list)
    for table in roles.tables("ring") if device.many_rings else () if has.ring is None else (
            roles.table("ring"),):
        device.rings.append(read_ring(table, device))
    check_rings(device)
    if has.progress is not None:
        table = roles.table("progress")
        if device.rings:
            table.refuse(f"{table.where()} goes with no ring: its jobs end by an index alone, take one out")
        device.progress = read_progress(table, device)


def check_rings(device):
    """Numbers the rings. They are not too many and lie apart."""
    count = 0
    for ring in device.rings:
        ring.number, count = count, count + ring.instances
    if count > RINGS_MAX:
        device.rings[-1].table.refuse(f"the device has more than {RINGS_MAX} rings, take some out",
                                      "instances")
    placed = [(r.offset + i * (r.stride or 0), r) for r in device.rings
              if not r.feed and not r.memory for i in range(r.instances)]
    for index, (start, ring) in enumerate(placed):
        for other_start, other in placed[:index]:
            if start < other_start + other.bytes and other_start < start + ring.bytes:
                ring.table.refuse(f"the ring at {start:#x} overlaps that at {other_start:#x}, move one",
                                  "offset")
