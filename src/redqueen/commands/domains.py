"""``redqueen domains``: the values of ``propose.domains``, from this package and from plug-ins."""

from __future__ import annotations

from typing import Any

from redqueen.display import visible
from redqueen.domains.registry import OWN, entry_points, open_domain


def domain_rows() -> list[dict[str, Any]]:
    """Return one record for each domain; a domain that cannot be loaded has an ``error`` and no kinds."""
    points = entry_points()
    return [_row(name, "redqueen") for name in OWN] + [
        _row(name, f"{point.dist.name if point.dist else 'a package'} ({point.value})")
        for name, point in points.items()
    ]


def domains_table() -> str:
    """Return the content of ``domain_rows`` as text."""
    lines = []
    for row in domain_rows():
        lines.append(
            f"{row['name']}, from {row['from']}: {row['items']} frozen items"
            + (f" ({row['error']})" * bool(row["error"]))
        )
        lines += [f"    {kind['title']}: formats {', '.join(kind['formats'])}" for kind in row["kinds"]]
    return visible("\n".join(lines))


def _row(name: str, source: str) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name, "from": source, "kinds": [], "items": 0, "error": ""}
    try:
        domain = open_domain(name)
        items = domain.suite()
    except Exception as error:  # another package may raise anything
        return row | {"error": str(error)}
    kinds = [{"name": kind.name, "title": kind.shown.title, "formats": sorted(kind.words)} for kind in domain.kinds]
    return row | {"kinds": kinds, "items": len(items)}
