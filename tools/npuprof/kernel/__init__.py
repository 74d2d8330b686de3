# SPDX-License-Identifier: MIT
"""The kernel as a witness: jobs of a device, and why threads waited, from what the kernel's tracer wrote.

    lines        the one reader of all texts: events, and holes where events were lost
    clock        the tracer's clock against CLOCK_BOOTTIME, by markers or by its name
    contexts     who ran on each CPU: interrupts, threads, and who woke whom
    patterns     which lines of a driver tell of a job: devices.toml, or a file of the user
    jobs         jobs of the device, with the error of each begin and end
    fences       jobs of the DRM scheduler, from its own events and from dma_fence
    power        clock rates, runtime power management and temperatures, and what they did to jobs
    sleeps       sleeps of threads with marks that the end of a job ended
    tracefs      records with the tracer of this machine
    waits        where threads were off the CPU, and what ended it
    witness      one pass over a text: all of it
    merged       the lines that it adds to a trace
"""
