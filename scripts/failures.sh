#!/usr/bin/env bash
# Lists the tests that failed with the end of what each has printed, from what all have printed: in
# a log of thousands of lines, and where only its end is kept, that is what a reader needs.
set -euo pipefail

LINES_OF_EACH=12
log=${1:?usage: failures.sh LOG}
echo "== failed"
awk -v most="$LINES_OF_EACH" '
	function tell(  i) {
		if (name == "") return
		print name
		for (i = n > most ? n - most : 0; i < n; i++) print "      " substr(line[i], 1, 400)
		name = ""; told++
	}
	/^successes:$/ { tell(); failed = 0 }
	/^failures:$/ { tell(); failed = 1 }
	/^test result:/ { tell(); failed = 0 }
	failed && /^---- .* stdout ----$/ { tell(); name = $2; n = 0; traced = 0; next }
	/^stack backtrace:$/ { traced = 1 }
	name != "" && !traced && NF { line[n++] = $0 }
	END { tell(); if (!told) print "nothing" }
' "$log"
