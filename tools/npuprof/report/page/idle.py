# SPDX-License-Identifier: MIT
"""The strips of the page: when each engine was idle and why, by the classes of analysis/idle.py."""

from ...analysis.rules.finding import idle_text

COLUMNS = 1_600       # of a strip with more gaps than ONE_BY_ONE: shorter pieces that touch a column are one
ONE_BY_ONE = 600


def strips(facts, zero):
    """({base track: strip}, texts, classes). A strip has five values for each piece: start from the start of
    the piece before it, ns, class, text, and how many pieces it stands for. Of several, the text is that with
    most of the time, and in place of the class there is the ns of each: [class, ns, class, ns, ...]. zero:
    the first ns of the trace."""
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
        for start, end, lengths, count in together(pieces, short):
            label, name = max(lengths, key=lengths.get)
            text = idle_text(label, names[name] if name >= 0 else "")
            strip += [start - before, end - start, kinds(lengths, classes) if count > 1 else
                      classes.setdefault(label, len(classes)), texts.setdefault(text, len(texts)), count]
            before = start
        found[base] = strip
    return found, list(texts), list(classes)


def kinds(lengths, classes):
    """[class, ns, class, ns, ...]"""
    sums = {}
    for (label, _), ns in lengths.items():
        number = classes.setdefault(label, len(classes))
        sums[number] = sums.get(number, 0) + ns
    return [value for pair in sums.items() for value in pair]


def together(pieces, short):
    """Yields (start, end, {(class, name): ns}, how many) of pieces that touch or follow each other; those
    shorter than `short` come together until they are as long."""
    start = end = None
    lengths, count = {}, 0
    for a, b, *key in pieces:
        key = tuple(key)
        alone = b - a >= short
        if count and (alone or b - start > short):
            yield start, end, lengths, count
            lengths, count = {}, 0
        if alone:
            yield a, b, {key: b - a}, 1
            continue
        if not count:
            start = a
        end, count = b, count + 1
        lengths[key] = lengths.get(key, 0) + b - a
    if count:
        yield start, end, lengths, count
