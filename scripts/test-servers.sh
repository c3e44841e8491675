#!/usr/bin/env bash
# Plays the situations of real servers (crates/whylag/tests/servers), one at a time, and writes
# docs/servers.md. ONLY=redis_keys,nginx_healthy plays those alone, and keeps the other rows.
set -euo pipefail

cd "$(dirname "$0")/.."
scripts/install-deps.sh build test servers
echo "== building"
# Of the whole workspace, as scripts/test.sh: a part of it would be built again with fewer features.
tests=(--workspace --test servers)
scripts/cargo.sh test --locked "${tests[@]}" --no-run

echo "== playing each situation (about 8 s each)"
[[ -z ${ONLY:-} ]] || export WHYLAG_SERVER=$ONLY
AS_ROOT=1 WHYLAG_FIGURES=1 scripts/cargo.sh test --locked "${tests[@]}" -- --nocapture \
	--test-threads 1
