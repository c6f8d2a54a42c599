"""What the figures look like: as a table for people, as Markdown, and in short for README."""
import statistics
import textwrap

MIB = 1 << 20


def number(value):
    """With three digits, as far as they tell something."""
    if value is None:
        return "-"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _cable(result):
    """The median of the outages, in seconds; one that was not seen in time is longer than all."""
    outages = result.get("cable")
    if not outages:
        return "-"
    middle = statistics.median_low(outage["toSeenSeconds"] or float("inf") for outage in outages)
    return number(middle) if middle != float("inf") else f"> {result['cableLimitSeconds']}"


def _memory(result):
    return f"{result['anonymousBytes'] / MIB:,.1f} / {result['residentBytes'] / MIB:,.0f}"


# Head, second head (its unit), and how a result is shown.
COLUMNS = [
    ("SET->SEEN", "ms", lambda result: number(result["setToSeenMilliseconds"])),
    ("SETS", "/s", lambda result: number(result.get("setsPerSecond"))),
    ("CATCH-UP", "ms", lambda result: number(result.get("catchUpMilliseconds"))),
    ("WIRE", "bytes", lambda result: number(result.get("wireBytesOfAChange"))),
    ("CABLE", "s", _cable),
    ("IDLE", "sw/s", lambda result: number(result["idleSwitchesPerSecond"])),
    ("IDLE", "ms/min", lambda result: number(result["idleProcessorMillisecondsPerMinute"])),
    ("MEMORY", "MiB", _memory),
]

LEGEND = """\
SET->SEEN  from the request of a set of 100 bytes to the change at a watching program, median
SETS       one after another, each answered before the next
CATCH-UP   of a returning peer, 1,024 x 900 bytes: from its first packet to its program, median
WIRE       for one change of 100 bytes, both directions, with all headers, median
CABLE      from cable-in to a set that was made while it was out, median of some outages
IDLE       of one server or device, in step: context switches; processor time
MEMORY     of one server or device with the 1,024 keys: RssAnon / VmRSS"""


def label(result):
    return f"{result['name']}, {result['durability'].removesuffix(' (default)')}"


def notes(document):
    """Sentences that the table needs."""
    results = document["results"]
    lines = []
    if results:
        fsyncs = [result["bareFsyncMilliseconds"] for result in results]
        lines.append(
            f"A bare append with fsync took {min(fsyncs):.2f} to {max(fsyncs):.2f} ms on this disk, "
            "measured before each system.")
    outages = [outage["outSeconds"] for outage in results[0].get("cable", [])] if results else []
    if outages:
        *first, last = map(str, outages)
        lines.append(f"The cable was out for {' and '.join(filter(None, [', '.join(first), last]))} s.")
    remarks = dict.fromkeys(result["remark"] for result in results)
    lines += [remark for remark in remarks if remark]
    if not document["hasCable"]:
        lines.append(
            "Catch-up, bytes and cable are not measured: this host permits no network namespaces "
            "(run as root, or permit user namespaces).")
    lines += [f"Left out: {left['name']} ({left['reason']})." for left in document["leftOut"]]
    return lines


def table(document):
    results = document["results"]
    rows = [
        ["", *(head for head, _, _ in COLUMNS)], ["", *(unit for _, unit, _ in COLUMNS)],
        *([label(result), *(show(result) for _, _, show in COLUMNS)] for result in results)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))])
        for row in rows]
    wrapped = [textwrap.fill(note, 95, subsequent_indent="  ") for note in notes(document)]
    return "\n".join([*(line.rstrip() for line in lines), "", LEGEND, "", *wrapped])


def _markdown_table(heads, rows):
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def markdown(document, plots):
    """The block for Docs/Performance.md; `plots` is the folder of the plots as that page names it."""
    heads = [
        "", "set → seen, ms", "sets/s", "catch-up, ms", "a change on the wire, bytes", "cable in → seen, s",
        "idle: switches/s", "idle: ms of processor a minute", "memory: RssAnon / RSS, MiB"]
    rows = [[label(result), *(show(result) for _, _, show in COLUMNS)] for result in document["results"]]
    host = document["host"]
    about = [
        f"One run on {host['date']}: {host['processor']}, {host['processors']} processors, Linux "
        f"{host['kernel']}.", *notes(document)]
    versions = {result["name"]: result["version"] for result in document["results"]}
    about.append(
        "Versions: " + ", ".join(f"{name} {version}" for name, version in versions.items()) + ".")
    parts = [_markdown_table(heads, rows), " ".join(about)]
    if plots:
        parts.append(
            f"![Set to seen, by system]({plots}/peers-set-to-seen.svg)\n"
            f"![Catch-up, by system]({plots}/peers-catch-up.svg)")
    return "<!-- peers -->\n" + "\n\n".join(parts) + "\n<!-- /peers -->"


# Head, member, whether less is better.
_SHORT = [
    ("set → seen, ms", "setToSeenMilliseconds", True),
    ("sets, one after another, /s", "setsPerSecond", False),
    ("catch-up of 1,024 × 900 bytes, ms", "catchUpMilliseconds", True),
    ("idle, ms of processor a minute", "idleProcessorMillisecondsPerMinute", True),
    ("private memory, MiB", "anonymousBytes", True),
]


def readme(document):
    """Figures by system; the best of a row is bold. The default stands before a flush for each set."""
    groups = {}
    for result in document["results"]:
        groups.setdefault(result["name"], []).append(result)
    rows = []
    for head, member, less in _SHORT:
        values = [result[member] for result in document["results"] if member in result]
        # Those that are shown as the best are as good.
        best = _short((min if less else max)(values), member) if values else None
        row = [head]
        for results in groups.values():
            cells = [_short(result.get(member), member) for result in results]
            cells = [f"**{cell}**" if cell == best else cell for cell in cells]
            row.append(cells[0] if len(set(cells)) == 1 else " / ".join(cells))
        rows.append(row)
    heads = [
        f"{name}, {' / '.join(_short_durability(result) for result in results)}"
        for name, results in groups.items()]
    return _markdown_table(["", *heads], rows)


def _short(value, member):
    return f"{value / MIB:,.1f}" if value is not None and member.endswith("Bytes") else number(value)


def _short_durability(result):
    return result["durability"].removesuffix(" (default)").removesuffix(", signed, sealed").removeprefix(
        "fsync, ")
