# SPDX-License-Identifier: MIT
"""The texts of the project, taken apart: blocks, sentences, tables, links."""
import re

from helpers import ROOT

README = ROOT / "README.md"
GUIDE = ROOT / "examples" / "README.md"
REFERENCE = ROOT / "examples" / "REFERENCE.md"
FIRMWARE = ROOT / "examples" / "firmware" / "README.md"
TOOLS = ROOT / "tools" / "README.md"
CONTRIBUTING = ROOT / "src" / "README.md"


def pages():
    """Every text for readers. What lies under a data folder belongs to others."""
    skip = {"build", "data", "node_modules", ".git"}
    return [p for p in sorted(ROOT.rglob("*.md")) if not skip & set(p.relative_to(ROOT).parts)]


def read(page):
    return page.read_text(encoding="utf-8")


def fenced(page, language):
    """The code blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", read(page), re.M | re.S)


def section(page, title):
    """The text below a heading of the second level."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", read(page), re.M | re.S)
    if not found:
        raise AssertionError(f"{page.relative_to(ROOT)} has no section {title}")
    return found[1]


def cells_of(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))]


def rows(page, title):
    """The first table of a section: a list of its rows' cells, and the cells of its head."""
    lines = section(page, title).splitlines()
    first = next(n for n, line in enumerate(lines) if line.startswith("|"))
    table = []
    for line in lines[first:]:
        if not line.startswith("|"):
            break
        table.append(cells_of(line))
    return table[2:], table[0]


def names_in(page, title, pattern, columns=1):
    cells = [cell for row in rows(page, title)[0] for cell in row[:columns]]
    return {name for cell in cells for name in re.findall(pattern, cell)}


def deprecated_knobs():
    """What the table of knobs calls deprecated."""
    return {re.search(r"`(NPUPROF_\w+)", row[0])[1] for row in rows(REFERENCE, "Knobs")[0]
            if row[-1].startswith("Deprecated.")}


def prose(page):
    """Paragraphs, list items, headings and table cells: (kind, line number, lines)."""
    kind, start, block, code = None, 0, [], False
    for number, line in enumerate(read(page).splitlines(), 1):
        if line.startswith("```"):
            code = not code
            starts, text = None, ""
        elif code or line.startswith("    "):
            starts, text = None, ""
        elif line.startswith("|"):
            if kind:
                yield kind, start, block
            kind = None
            if not re.fullmatch(r"[|\-: ]+", line):
                yield from (("cell", number, [cell]) for cell in cells_of(line))
            continue
        else:
            text = line.strip()
            item = re.match(r"\s*(?:[-*]|\d+\.) ", line)
            starts = "paragraph" if text and not kind else None
            starts = "heading" if line.startswith("#") else "item" if item else starts
            text = line[item.end():].strip() if item else text.lstrip("# ")
        if starts or not text:
            if kind:
                yield kind, start, block
            kind, start, block = starts, number, []
        if text:
            block.append(text)
        if kind == "heading":
            yield kind, start, block
            kind = None
    if kind:
        yield kind, start, block


def sentences(text):
    """A span of code, a link's text or an address counts as its words; code as one word."""
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)
    text = re.sub(r"`[^`]*`", "code", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"<[a-z]+:[^>]*>", "link", text).replace("*", "")
    return [s for s in re.split(r"[.?!](?=[\s\"')]|$)", text) if s.strip()]


def words(sentence):
    return [word for word in sentence.split() if re.search(r"\w", word)]


def anchors(page):
    """GitHub's names of the headings."""
    headings = re.findall(r"^#+ (.*)", re.sub(r"^```.*?^```", "", read(page), flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(page):
    """The relative links: (path in the repository, anchor or "")."""
    for target in re.findall(r"\]\(([^)\s]+)\)", read(page)):
        if not re.match(r"[a-z]+:", target):
            path, _, anchor = target.partition("#")
            yield (page.parent / path).resolve() if path else page, anchor
