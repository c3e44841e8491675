#!/usr/bin/env bash
# prove-page.sh FILE PAIRS: what bench-peers/prove.sh kept in FILE as a page, docs/proofs.md. What a reader
# has to know of how these proofs were made (a busy machine, another build) is in a file beside it whose
# name ends in .note, if there is one.
set -euo pipefail

kept=$1 pairs=$2
cat <<-END
	# What \`whylag prove\` says where the truth is known

	Written by \`make proofs\` (\`bench-peers/prove.sh --docs\`), $pairs recorded pairs and 2 unrecorded ones a proof,
	in an order drawn by lot. Linux $(uname -r), $(nproc) CPUs, from $(cut -f 1 "$kept" | sort | head -n 1) to $(cut -f 1 "$kept" | sort | tail -n 1).
	"Others" is how many CPUs other programs used meanwhile, that is, how noisy the machine was: the median of the
	runs of a proof; of several proofs the median of these, and their range.
END
[[ ! -e ${kept%.tsv}.note ]] || { echo; cat "${kept%.tsv}.note"; }
cat <<-END

	## Programs against themselves

	The truth is that nothing changed. False is every figure that is called better or worse, and every cause that
	is called gone, come, rarer or smaller. Each verdict is a test at 5 %, so one false figure in 20 proofs is
	what is to be expected.

	| program | proofs | false: the figure | false: a cause | others, CPUs |
	|---|---|---|---|---|
END
awk -F '\t' '
	function median(list, n,    i, j, t, v) {
		n = split(list, v, " ")
		for (i = 2; i <= n; i++)
			for (j = i; j > 1 && v[j - 1] + 0 > v[j] + 0; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
		return sprintf("%.1f (%.1f to %.1f)", v[int((n + 1) / 2)], v[1], v[n])
	}
	$2 == "equal" && $6 != "failed" {
		proofs[$3]++
		figure[$3] += $7 == "better" || $7 == "worse"
		cause[$3] += $10 ~ /^(gone|came|rarer|smaller)$/ || $12 != "-"
		others[$3] = others[$3] " " $13
	}
	END {
		for (name in proofs) {
			printf "| %s | %d | %d | %d | %s |\n", name, proofs[name], figure[name], cause[name],
				median(others[name]) | "sort"
			all += proofs[name]; of_figure += figure[name]; of_cause += cause[name]; every = every others[name]
		}
		close("sort")
		if (all) printf "| all | %d | %d | %d | %s |\n", all, of_figure, of_cause, median(every)
	}' "$kept"
cat <<-END

	## Mysteries

	Faulty against fixed, judged by the time that the mystery itself says it lost (\`--metric\`; programs that
	print their ticks by \`--ticks\`): "proven" is said if that fell and the cause is gone, rarer or smaller. Faulty
	against itself must never be called proven. What was not proven at first was made again, and has a line each time.

	A no has the verdict on the time with it: better (but the cause is not shown to have gone), same_within (there
	is hardly a change) or insufficient (neither is shown). Of the cause, stays is: still there; insufficient: too
	few runs had it to say. "-" for what it lost is where a run lost nothing, which makes no ratio.

	| mystery | proven | what it lost, after/before | cause | in runs before, after | against itself | others, CPUs |
	|---|---|---|---|---|---|---|
END
awk -F '\t' '
	$2 == "same" { same[$3] = $6 == "failed" ? "failed" : $6 ~ /^as/ ? "not proven" : "**proven**" }
	$2 == "faulty" && $6 != "failed" {
		line[$3, ++lines[$3]] = sprintf("%s | %s | %s | %s", $6 ~ /^as/ ? "yes" : "**no**: " $7, $8, $10, $11)
		others[$3, lines[$3]] = $13
	}
	# What the program said, not where whylag says how much of it is in a finding.
	$2 == "faulty" && $6 == "failed" {
		sub(/^whylag: the program failed before the change: /, "", $7)
		sub(/;.*/, "", $7)
		failed[$3] = $7
	}
	END {
		for (name in lines)
			for (n = 1; n <= lines[name]; n++)
				printf "| %s | %s | %s | %s |\n", name, line[name, n],
					name in same ? same[name] : "not run", others[name, n] | "sort"
		for (name in failed)
			if (!(name in lines)) printf "| %s | not here: %s | - | - | - | - | - |\n", name, failed[name] | "sort"
	}' "$kept"
bin=$(dirname "$0")/../mysteries/bin
for program in "$bin"/*-fixed; do
	name=$(basename "${program%-fixed}")
	grep -q "^[^	]*	faulty	$name	" "$kept" || echo "$name"
done | paste -sd, - | sed 's/,/, /g; /./s/^/\nNot run yet: /; /./s/$/./'
