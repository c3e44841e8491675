#!/usr/bin/env bash
# exchange.sh WHYLAG [OPTION...]: runs the traced exchange of java/exchange for 20 s under whylag and
# prints where its orders spent their time, and why the slowest were slow. The options are those of
# the exchange: its faults, for example.
set -euo pipefail

WHYLAG=$(realpath "$1")
shift
cd "$(dirname "$0")/.."
folder=$(mktemp -d "${TMPDIR:-/tmp}/whylag-exchange.XXXXXX")
export WHYLAG_STORE=$folder/whylag.db

echo "== the exchange, 20 s${*:+, with $*}"
"$WHYLAG" record --follow -- java/exchange/run.sh --seconds 20 "$@"
echo
echo "== why"
"$WHYLAG" explain
echo
echo "The run is in $WHYLAG_STORE: ${WHYLAG#"$PWD/"} --store $WHYLAG_STORE show 1"
