"""Draws what scripts/standby-long-transaction has measured: its JSON from standard input, an SVG file as the argument.

Three rows over one axis of time: reads of the standby, writes of the primary, log that is not replayed. A curve a variant,
full where the transaction has an xid and dotted where it holds a snapshot only. The time it is open is shaded.
"""

import json
import sys

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plot  # noqa: E402

ROWS = [
    ("reads", "reads/s, standby", 1, "linear"), ("writes", "writes/s, primary", 1, "linear"),
    ("behind", "KiB not replayed", 1 / 1024, "symlog"),
]


def main():
    runs = [run for run in json.load(sys.stdin)["runs"] if run["round"] == 0]
    variants = list(dict.fromkeys(run["variant"] for run in runs))
    # Letters stay letters, so that the file is small and its words can be searched.
    plot.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "clearway", "font.size": 9})
    figure, rows = plot.subplots(len(ROWS), 1, sharex=True, figsize=(9, 9), constrained_layout=True)
    for axes, (curve, words, factor, scale) in zip(rows, ROWS, strict=True):
        for run in runs:
            number = variants.index(run["variant"])
            axes.plot(
                [at for at, _ in run[curve]], [value * factor for _, value in run[curve]], color=f"C{number}", linewidth=1.2,
                linestyle="-" if run["hold"] == "xid" else ":",
                label=run["variant"] if run["hold"] == "xid" else None,
            )
        axes.axvspan(min(run["opened"] for run in runs), min(run["closed"] for run in runs), color="0.9", zorder=0)
        axes.set_ylabel(words)
        axes.set_yscale(scale)
        axes.set_ylim(bottom=0)
        axes.grid(True, linewidth=0.3)
    rows[0].set_title("A transaction is open on the primary while the ground is grey; dotted: it has no xid")
    rows[0].legend(title="known_xids", fontsize=8, loc="lower left", ncols=3)
    rows[-1].set_xlabel("seconds")
    figure.savefig(sys.argv[1], metadata={"Date": None})


main()
