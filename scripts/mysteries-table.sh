#!/usr/bin/env bash
# Renders the rows that the tests of the mysteries have written (see
# crates/whylag/tests/mysteries/table.rs): as text, or with --markdown.
set -euo pipefail

style=text
if [[ ${1:-} == --markdown ]]; then
	style=markdown
	shift
fi
sort "${1:?usage: mysteries-table.sh [--markdown] ROWS}" | awk -F '\t' -v style="$style" '
function percent(part) { return sprintf("%.1f %%", part * 100) }
BEGIN {
	if (style == "markdown") {
		print "| mystery | cause named first | lost, by whylag | lost, by the program | ratio | unaccounted | s |"
		print "|---|---|---|---|---|---|---|"
	} else {
		row = "%-22s %-22s %7s %7s %6s %8s\n"
		printf row, "mystery", "cause named first", "whylag", "truth", "ratio", "unacc."
	}
}
{
	ratio = $4 > 0 ? sprintf("%.2f", $3 / $4) : "-"
	if (style == "markdown")
		printf "| %s | %s | %s | %s | %s | %s | %.0f |\n", $1, $2, percent($3), percent($4),
			ratio, percent($5), $6
	else
		printf row, $1, $2, percent($3), percent($4), ratio, percent($5)
	named += $1 == $2
}
END { if (style == "text") printf "%d of %d named first\n", named, NR }
'
