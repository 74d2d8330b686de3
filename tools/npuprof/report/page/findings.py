# SPDX-License-Identifier: MIT
"""What the page shows of the verdict: the findings, and which drawn spans prove each."""

from ...analysis.verdict import as_json, judge

SHOWN = 100        # spans of a finding that are marked


def verdict(facts):
    """The verdict as the dict of report --json; None if there are neither executions nor inferences."""
    return as_json(judge(facts)) if len(facts.jobs) or len(facts.window.inferences) else None


def rows_of(found):
    """The rows of all findings."""
    return {span["row"] for finding in every(found["findings"]) for span in finding["spans"][:SHOWN]}


def every(findings):
    """The findings with those that follow from them, in order."""
    for finding in findings:
        yield finding
        yield from every(finding["followers"])


def shown_verdict(found, place):
    """The verdict for the page. place: {row: (group, place in it)} of the drawn spans."""
    if found is None:
        return None
    keys = "rule", "subject", "sentence", "advice", "gain", "confidence"
    findings = []
    for above in found["findings"]:
        for n, finding in enumerate(every([above])):
            places = [place[span["row"]] for span in finding["spans"][:SHOWN] if span["row"] in place]
            findings.append({key: finding[key] for key in keys} | {"follows": n > 0, "places": places})
    return {"headline": found["headline"], "threshold_pct": found["threshold_pct"],
            "window": found["window"]["chosen"], "findings": findings,
            "not_evaluated": [[rule["rule"], rule["missing"]] for rule in found["not_evaluated"]]}
