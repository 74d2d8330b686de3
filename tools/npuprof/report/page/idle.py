# SPDX-License-Identifier: MIT
"""The strips of the page: when each engine was idle and why, by the classes of analysis/idle.py."""

from ...analysis.rules.finding import idle_text

COLUMNS = 1_600       # of a strip with more gaps than ONE_BY_ONE: shorter pieces that touch a column are one
ONE_BY_ONE = 600


def strips(facts, zero):
    """({base track: strip}, texts, classes). A strip has five numbers for each piece: start from the start of
    the piece before it, ns, class, text, and how many pieces it stands for, if not one: then class and text
    are those with most of the time. zero: the first ns of the trace."""
    idle, jobs, found = facts.idle, facts.jobs, {}
    texts, classes, names = {}, {}, facts.trace.names
    of = {}
    for q, queue in enumerate(jobs.queues):
        of.setdefault(queue.base, []).append(q)
    for base, queues in of.items():
        short = facts.window.length_ns // COLUMNS if sum(map(len, map(jobs.of_queue.__getitem__, queues))
                                                         ) > ONE_BY_ONE else 0
        strip, before = [], 0
        pieces = ((start - zero, end - zero, label, facts.trace.name[row] if row >= 0 else -1)
                  for start, end, label, row, *_ in idle.all_pieces(queues))
        for start, end, (label, name), count in together(pieces, short):
            text = idle_text(label, names[name] if name >= 0 else "")
            strip += [start - before, end - start, classes.setdefault(label, len(classes)),
                      texts.setdefault(text, len(texts)), count]
            before = start
        found[base] = strip
    return found, list(texts), list(classes)


def together(pieces, short):
    """Yields (start, end, (class, name), how many) of pieces that touch or follow each other; those shorter
    than `short` come together until they are as long."""
    start = end = None
    lengths, count = {}, 0
    for a, b, *key in pieces:
        key = tuple(key)
        alone = b - a >= short
        if count and (alone or b - start > short):
            yield start, end, max(lengths, key=lengths.get), count
            lengths, count = {}, 0
        if alone:
            yield a, b, key, 1
            continue
        if not count:
            start = a
        end, count = b, count + 1
        lengths[key] = lengths.get(key, 0) + b - a
    if count:
        yield start, end, max(lengths, key=lengths.get), count
