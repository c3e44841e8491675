#!/usr/bin/env bash
# Lists the figures that the tests did not judge, because something disturbed the recordings (see
# crates/whylag/tests/common/disturbance.rs), from what they have printed.
set -euo pipefail

log=${1:?usage: not-judged.sh LOG}
judged=$(grep -c '^judged: ' "$log" || true)
not_judged=$(grep -c '^not judged: ' "$log" || true)
echo "== not judged: $not_judged of $((judged + not_judged)) figures"
grep '^not judged: ' "$log" | sort || true
if ((not_judged > judged)); then
	cat <<-END
		!! Most figures were not judged. What noise cannot change was tested; how much time each
		!! cause took was not. Run this again when less else runs on this machine and its host.
	END
fi
