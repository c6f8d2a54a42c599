"""Small plots as SVG: one dot for each system on a logarithmic axis, the fastest first."""
import html
import math

from .report import label, number

_WIDTH, _LEFT, _RIGHT, _TOP, _ROW = 680, 226, 76, 58, 26
_INK, _FAINT, _KITH, _OTHER = "#1f2328", "#d8dee4", "#c2410c", "#0550ae"


def plot(title, results, member, unit):
    """The text of an SVG, or None if no system has the figure."""
    pairs = sorted(((result[member], result) for result in results if member in result), key=lambda pair: pair[0])
    if not pairs:
        return None
    low = math.floor(math.log10(pairs[0][0]))
    high = max(low + 1, math.ceil(math.log10(pairs[-1][0])))
    across = lambda value: _LEFT + (math.log10(value) - low) / (high - low) * (_WIDTH - _LEFT - _RIGHT)
    bottom = _TOP + _ROW * len(pairs)
    height = bottom + 44
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" '
        f'height="{height}" font-family="system-ui, sans-serif" font-size="13" fill="{_INK}" role="img" '
        f'aria-label="{html.escape(title)}">',
        f'<rect width="{_WIDTH}" height="{height}" rx="6" fill="#ffffff"/>',
        f'<text x="16" y="26" font-size="15" font-weight="600">{html.escape(title)}</text>',
        f'<text x="16" y="44" font-size="12" fill="#59636e">{html.escape(unit)}, logarithmic; '
        f"less is better; filled: with fsync</text>"]
    for power in range(low, high + 1):
        x = across(10**power)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{bottom}" stroke="{_FAINT}"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle" font-size="12">{10**power:,g}</text>')
    for row, (value, result) in enumerate(pairs):
        y, x = _TOP + _ROW * row + _ROW / 2, across(value)
        color = _KITH if result["id"] == "kith" else _OTHER
        weight = ' font-weight="600"' if result["id"] == "kith" else ""
        fill = color if result["durability"].startswith("fsync") else "#ffffff"
        parts.append(
            f'<text x="{_LEFT - 12}" y="{y + 4.5}" text-anchor="end"{weight}>{html.escape(label(result))}</text>')
        parts.append(f'<line x1="{_LEFT}" x2="{x:.1f}" y1="{y}" y2="{y}" stroke="{_FAINT}" stroke-width="2"/>')
        parts.append(f'<circle cx="{x:.1f}" cy="{y}" r="5" fill="{fill}" stroke="{color}" stroke-width="2"/>')
        parts.append(
            f'<text x="{x + 11:.1f}" y="{y + 4.5}" paint-order="stroke" stroke="#ffffff" stroke-width="5"'
            f"{weight}>{number(value)}</text>")
    return "\n".join([*parts, "</svg>", ""])


def plots(document):
    """The plots by the names of their files."""
    made = {
        "peers-set-to-seen.svg": plot(
            "From a set to the program that watches", document["results"], "setToSeenMilliseconds",
            "milliseconds"),
        "peers-catch-up.svg": plot(
            "Catch-up of 1,024 values of 900 bytes", document["results"], "catchUpMilliseconds",
            "milliseconds")}
    return {name: text for name, text in made.items() if text is not None}
