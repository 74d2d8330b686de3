# SPDX-License-Identifier: MIT
"""Which register and record plays which role: the counter, the event counters, the rings."""

from .counters import read_counter, read_pmu
from .index import read_progress
from .ring import read_ring
from .schema import RINGS_MAX, ROLES


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
    count = 0
    for ring in device.rings:
        ring.number, count = count, count + ring.instances
    if count > RINGS_MAX:
        device.rings[-1].table.refuse(f"the device has more than {RINGS_MAX} rings, take some out",
                                      "instances")
    if has.progress is not None:
        device.progress = read_progress(roles.table("progress"), device)

