#!/usr/bin/env bash
# Builds the Java tracer and the exchange, and runs their tests. Maven fetches what is not in its
# local repository yet (from Maven Central), and does without a network after that.
set -euo pipefail

cd "$(dirname "$0")/../java"
log=$(mktemp "${TMPDIR:-/tmp}/whylag-java.XXXXXX")
# Under sudo the tests stay root, which some of them need, and nothing of theirs belongs to root.
give_back() {
	rm -f "$log"
	[[ -z ${SUDO_USER:-} ]] || chown -R "$SUDO_USER": ./*/target
}
trap give_back EXIT

if ! mvn --batch-mode --no-transfer-progress package >"$log" 2>&1; then
	grep -E '^\[(ERROR|WARNING)\]' "$log" >&2 || tail -n 40 "$log" >&2
	exit 1
fi
grep -oE 'Tests run: .* -- in .*' "$log"
grep -oh '<skipped message="[^"]*"' ./*/target/surefire-reports/*.xml |
	sed 's/<skipped message="/skipped: /; s/"$//' || true
