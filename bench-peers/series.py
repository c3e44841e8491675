"""Judges what whylag and Otava say of the series that series_suite made, and writes a page of it."""

import glob
import json
import sys

from otava.series import AnalysisOptions, Metric, Series

CHANGED = 30
KINDS = [
    ("stationary", "nothing changes: normal noise", False),
    ("heavy-tails", "nothing changes: every tenth run has six times the noise", False),
    ("correlated", "nothing changes: half of each run's noise is in the next one", False),
    ("step", "2 noise units slower from one run on", True),
    ("second-mode", "a second mode at an equal mean from one run on", True),
]


def otava(values):
    """The places of change points of p50, p99 and mean, with Otava's own defaults."""
    n = len(values["p50"])
    series = Series(
        test_name="suite",
        branch=None,
        time=list(range(n)),
        metrics={name: Metric(1, 1.0) for name in values},
        data={name: values[name] for name in values},
        attributes={},
    )
    found = series.analyze(AnalysisOptions()).change_points
    return {name: [point.index for point in points] for name, points in found.items()}


def whylag(path):
    with open(path) as file:
        return [change["run"] - 1 for change in json.load(file)[0]["changes"]]


def verdict(places, changes):
    """(called, dated within a run)"""
    return bool(places), changes and any(abs(place - CHANGED) <= 1 for place in places)


def main():
    folder, sets, series_ms, grid_ms = sys.argv[1:5]
    print("# Change points over runs: whylag beside Otava\n")
    print(
        f"Written by `bench-peers/series.sh --docs`: {sets} made-up series of 50 runs of each kind, "
        "4,000 requests a run, noise of 2 % between runs.\n\n"
        "Otava is 0.8.0 with its defaults, on mean, p50 and p99 of each run: a series is flagged if any of "
        "them is. whylag sees the quantiles of the same requests.\n\n"
        "Flagged: some change was reported. Dated: one was, within one run of the truth. With both levels "
        "known beforehand the likeliest place of a step of 2 noise units is within one run in 87 %.\n"
    )
    print("| series | whylag: flagged | dated | Otava: flagged | dated | Otava, mean alone: flagged | dated |")
    print("|---|---|---|---|---|---|---|")
    for kind, words, changes in KINDS:
        ours, theirs, mean = [], [], []
        for path in sorted(glob.glob(f"{folder}/{kind}-*.json")):
            ours.append(verdict(whylag(path[: -len("json")] + "whylag"), changes))
            with open(path) as file:
                found = otava(json.load(file))
            theirs.append(verdict([p for points in found.values() for p in points], changes))
            mean.append(verdict(found.get("mean", []), changes))
        cells = []
        for judged in (ours, theirs, mean):
            part = lambda place: f"{sum(one[place] for one in judged)} of {len(judged)}"
            cells += [part(0), part(1) if changes else "-"]
        print(f"| {words} | {' | '.join(cells)} |")
    print(f"\nOf 1,000 runs with 31 latencies each: `whylag series` {series_ms} ms, "
          f"`whylag runs --grid` {grid_ms} ms.")


main()
