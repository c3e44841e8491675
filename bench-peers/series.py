"""Judges what whylag and Otava say of the series that series_suite made, and writes a page of it."""

import glob
import json
import math
import sys

from otava.series import AnalysisOptions, Metric, Series

CHANGED = 30
# As series_suite makes them.
NOISE = 0.02
STEP = 2 * NOISE
LEVEL = math.log(1e5) + 0.3**2 / 2
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


def oracle(means):
    """Where a step is that most probably is within a run of it, for one who knows the level before, the
    step, the noise, and that the noise is normal: the middle of the three places that are most probable
    together. No other rule for one date is right more often, over many series."""
    beyond = [(math.log(mean) - LEVEL) / NOISE for mean in means]
    step, sums, total = STEP / NOISE, [], 0.0
    for value in reversed(beyond):
        total += step * value - step * step / 2
        sums.append(total)
    sums.reverse()
    chances = [math.exp(one - max(sums)) for one in sums]
    return max(range(1, len(sums) - 1), key=lambda at: sum(chances[at - 1 : at + 2]))


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
        "Flagged: some change was reported. Dated: one of the reported ones is within one run of the "
        "truth.\n"
    )
    print("| series | whylag: flagged | dated | Otava: flagged | dated | Otava, mean alone: flagged | dated |")
    print("|---|---|---|---|---|---|---|")
    best = []
    for kind, words, changes in KINDS:
        ours, theirs, mean = [], [], []
        for path in sorted(glob.glob(f"{folder}/{kind}-*.json")):
            ours.append(verdict(whylag(path[: -len("json")] + "whylag"), changes))
            with open(path) as file:
                values = json.load(file)
            found = otava(values)
            if kind == "step":
                best.append(abs(oracle(values["mean"]) - CHANGED) <= 1)
            theirs.append(verdict([p for points in found.values() for p in points], changes))
            mean.append(verdict(found.get("mean", []), changes))
        cells = []
        for judged in (ours, theirs, mean):
            part = lambda place: f"{sum(one[place] for one in judged)} of {len(judged)}"
            cells += [part(0), part(1) if changes else "-"]
        print(f"| {words} | {' | '.join(cells)} |")
    print("\nWho is told that there is one step of 2 noise units, both levels and the noise, and names the run "
          f"that is most probably within one of it, dates {sum(best)} of {len(best)}: a rule that "
          "gives one date a series cannot be expected to be right more often.")
    print(f"\nOf 1,000 runs with 31 latencies each: `whylag series` {series_ms} ms, "
          f"`whylag runs --grid` {grid_ms} ms.")


main()
