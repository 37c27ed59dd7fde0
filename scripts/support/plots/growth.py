"""Draws what scripts/compare-growth has measured: a directory with its results, and an SVG file, as the arguments.

A panel a measure, with both axes logarithmic: a line that falls as steeply as the sizes rise is a cost in proportion to them.
"""

import json
import pathlib
import sys

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plot  # noqa: E402

ACROSS = 3


def number(text):
    return float(text.replace(",", ""))


def panel(axes, path):
    result = json.loads(path.read_text())
    columns, rows = result["columns"], result["rows"]
    for at, style in ((1, "C1s--"), (3, "C0o-")):
        server, unit = columns[at].rsplit(", ", 1)
        values = [number(row[at]) for row in rows]
        axes.plot([number(row[0]) for row in rows], values, style, markersize=3, linewidth=1.2, label=server)
    axes.set_xscale("log")
    # A lag may be nothing.
    axes.set_yscale("log" if all(number(row[at]) > 0 for row in rows for at in (1, 3)) else "symlog")
    axes.set_title(path.stem.removeprefix("growth-").replace("-", ": ", 1).replace("-", " "), fontsize=9)
    axes.set_xlabel(columns[0], fontsize=8)
    axes.set_ylabel(unit, fontsize=8)
    axes.grid(True, linewidth=0.3)


def main():
    directory, picture = sys.argv[1:]
    paths = sorted(pathlib.Path(directory).glob("growth-*.json"))
    # Letters stay letters, so that the file is small and its words can be searched.
    plot.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "clearway", "font.size": 8})
    down = -(-len(paths) // ACROSS)
    figure, rows = plot.subplots(down, ACROSS, squeeze=False, figsize=(10, 2.4 * down), constrained_layout=True)
    panels = list(rows.flat)
    for axes, path in zip(panels, paths, strict=False):
        panel(axes, path)
    for axes in panels[len(paths):]:
        axes.set_visible(False)
    panels[0].legend(fontsize=7)
    figure.savefig(picture, metadata={"Date": None, "Creator": None})


main()
