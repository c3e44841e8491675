#!/usr/bin/env bash
# Records every mystery and its fixed twin, and ordinary programs; judges the figures, which `make
# test` does not; prints whylag's figures next to the mysteries' own, and keeps them in
# docs/mysteries.md.
set -euo pipefail

cd "$(dirname "$0")/.."
folder=$(mktemp -d "${TMPDIR:-/tmp}/whylag-mysteries.XXXXXX")
trap 'rm -rf "$folder"' EXIT
rows=$folder/rows
: >"$rows"

echo "== building"
scripts/cargo.sh build --locked -p whylag
tests=(-p whylag --test mysteries --test timer_mysteries --test healthy)
scripts/cargo.sh test --locked "${tests[@]}" --no-run

echo "== recording each mystery and its twin (about 10 s each)"
status=0
AS_ROOT=1 WHYLAG_FIGURES=1 WHYLAG_MYSTERIES_TABLE=$rows scripts/cargo.sh test --locked \
	--no-fail-fast "${tests[@]}" -- --nocapture --test-threads 1 2>&1 | tee "$folder/log" |
	awk '/^test .* \.\.\. / { print $2; fflush() }
		/FAILED$/ { print "  FAILED"; fflush() }
		/panicked at/ { shown = 3 }
		shown > 0 { print "  " $0; shown--; fflush() }' || status=$?

echo "== by whylag, and by the programs' own clocks (parts of the threads' wall time)"
scripts/mysteries-table.sh "$rows"
# Without capturing, the first line of a test comes behind its name.
sed 's/^test .* \.\.\. //' "$folder/log" >"$folder/lines"
scripts/not-judged.sh "$folder/lines"
echo "== skipped"
grep -o 'skipped: .*' "$folder/log" || echo "nothing"

{
	echo "# What whylag says of the mysteries"
	echo
	echo "Written by \`make test-mysteries\` on Linux $(uname -r), $(nproc) CPUs, on $(date -u +%Y-%m-%d)."
	echo "Each mystery was recorded for two seconds. The columns: the cause that whylag ranks first; the lost time"
	echo "that it explains; the lost time by the program's own clocks; their ratio; time in no account; seconds"
	echo "that the test of the faulty program took, recorded again where something disturbed it. Shares are of"
	echo "the wall time of all threads."
	echo
	scripts/mysteries-table.sh --markdown "$rows"
	if grep -q '^not judged: ' "$folder/lines"; then
		printf '\nNot judged:\n\n'
		grep '^not judged: ' "$folder/lines" | sed 's/^not judged: /- /'
	fi
	if grep -q 'skipped: ' "$folder/log"; then
		printf '\nSkipped:\n\n'
		grep -o 'skipped: .*' "$folder/log" | sed 's/^skipped: /- /'
	fi
} >"$folder/mysteries.md"
mkdir -p docs
cp "$folder/mysteries.md" docs/mysteries.md
echo "== written to docs/mysteries.md"
exit "$status"
