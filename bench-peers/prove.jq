# A proof as one line: is it as it should be, the verdict of the figure, its ratio, the cause and its
# verdict, in how many runs before and after, other causes that changed, CPUs that other programs had
# (median of all runs), the seed, the first sentence.
def verdict: if type == "object" then keys[0] else . end;
def changed: . == "gone" or . == "came" or . == "rarer" or . == "smaller";
def median: sort | .[length / 2 | floor] // 0;
def round2: . * 100 | round / 100;
(.measured.verdict | verdict) as $figure
| ([.other_causes[]? | select(.verdict | changed) | "\(.cause) \(.verdict)"]) as $others
| (.summary | startswith("Proven")) as $proven
| (if $part == "faulty" then $proven
	elif $part == "same" then $proven | not
	else ($figure != "better" and $figure != "worse" and (.cause.verdict // "" | changed | not)
		and $others == []) end) as $right
| [
	(if $right then "as it should be" else "not as it should be" end),
	$figure,
	(.measured.ratio.estimate // null | if . then round2 else "-" end),
	(.cause.cause // "-"), (.cause.verdict // "-"),
	(if .cause then "\(.cause.before[0])/\(.cause.before[1]) \(.cause.after[0])/\(.cause.after[1])" else "-" end),
	($others | join(", ") | if . == "" then "-" else . end),
	([.trials[].figures | select(. != null) | .others_cpu_ns / .length_ns] | median | round2),
	.seed, .summary
] | @tsv
