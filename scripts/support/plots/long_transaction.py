"""Draws what scripts/standby-long-transaction has measured: its JSON from standard input, an SVG file as the argument.

A row a variant; side by side reads of the standby, writes of the primary, log that is not replayed. A full line where the
transaction has an xid, a dotted one where it holds a snapshot only. The time it is open is shaded. A column has one scale.
"""

import json
import sys

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plot  # noqa: E402

COLUMNS = [
    ("reads", "reads/s, standby", 1, "linear"), ("writes", "writes/s, primary", 1, "linear"),
    ("behind", "KiB not replayed", 1 / 1024, "symlog"),
]


def main():
    runs = [run for run in json.load(sys.stdin)["runs"] if run["round"] == 0]
    variants = list(dict.fromkeys(run["variant"] for run in runs))
    # Letters stay letters, so that the file is small and its words can be searched.
    plot.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "clearway", "font.size": 9})
    figure, rows = plot.subplots(
        len(variants), len(COLUMNS), sharex=True, sharey="col", squeeze=False, figsize=(10, 1 + 1.5 * len(variants)),
        constrained_layout=True,
    )
    for panels, variant in zip(rows, variants, strict=True):
        for axes, (curve, words, factor, scale) in zip(panels, COLUMNS, strict=True):
            for run in runs:
                if run["variant"] == variant:
                    line = ("-", 1.2, "C0") if run["hold"] == "xid" else (":", 1.2, "C1")
                    axes.plot(
                        [point[0] for point in run[curve]], [point[1] * factor for point in run[curve]],
                        linestyle=line[0], linewidth=line[1], color=line[2], label=f"holds {run['hold']}",
                    )
                    for opened, closed in run["open"]:
                        axes.axvspan(opened, closed, color="0.93", zorder=0, linewidth=0)
            axes.set_yscale(scale)
            axes.grid(True, linewidth=0.3)
            if variant == variants[0]:
                axes.set_title(words, fontsize=9)
            if variant == variants[-1]:
                axes.set_xlabel("seconds")
        panels[0].set_ylabel(variant)
    # With all curves drawn: it fixes both ends.
    for axes in rows[0]:
        axes.set_ylim(bottom=0)
    rows[0][0].legend(fontsize=7, loc="lower right")
    figure.suptitle("A transaction is open on the primary while the ground is grey", fontsize=10)
    figure.savefig(sys.argv[1], metadata={"Date": None, "Creator": None})


main()
