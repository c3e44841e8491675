#!/usr/bin/env bash
# build-page.sh FOLDER: checks the page's TypeScript and builds it into FOLDER.
set -euo pipefail

out=$(realpath -m "$1")
cd "$(dirname "$0")/../crates/page/web"
# What the lock file says, and no browser: the tests use Debian's.
if ! cmp -s package-lock.json node_modules/.installed; then
	echo "== installing what builds and tests the page"
	PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm ci --no-audit --no-fund --loglevel error
	cp package-lock.json node_modules/.installed
fi
npx --no-install tsc --noEmit
npx --no-install vite build --logLevel warn --emptyOutDir --outDir "$out"
