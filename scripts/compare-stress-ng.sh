#!/usr/bin/env bash
# Records stressors of stress-ng that correspond to causes here, and puts what whylag says of each
# next to what the stressor does; keeps that in docs/stress-ng.md. Needs root and stress-ng (Debian).
# Usage: scripts/compare-stress-ng.sh [WHYLAG]
set -euo pipefail

cd "$(dirname "$0")/.."
whylag=$(realpath "${1:-target/release/whylag}")
for program in stress-ng jq; do
	[[ -n $(type -P "$program") ]] || { echo "missing: $program (apt-get install $program)" >&2; exit 1; }
done
folder=$(mktemp -d "${TMPDIR:-/tmp}/whylag-stress-ng.XXXXXX")
trap 'rm -rf "$folder"' EXIT

# Options of stress-ng, and what the stressor does.
stressors=(
	"--cpu 6|six processes compute"
	"--yield 6|six processes call sched_yield in a loop"
	"--flock 4|four processes lock one file with flock and unlock it"
	"--lockf 4|four processes lock parts of one file with lockf"
	"--membarrier 2|membarrier with every command it has, in processes of several threads"
	"--tlb-shootdown 1|processes share pages and change their protection on all CPUs"
	"--ptrace 1|a process traces each system call of its child"
	"--brk 1|the heap grows page by page, each is touched, and shrinks"
	"--vm 1 --vm-bytes 256M --vm-method zero-one|maps 256 MiB, writes and checks them, unmaps, again"
	"--malloc 1 --malloc-max 8|malloc, realloc, calloc and free of all sizes"
	"--mmapfork 1|maps memory, forks, and writes to it in the children"
	"--dup 1|dup up to the limit of descriptors"
	"--pipe 1|a writer and a reader of one pipe"
	"--sleep 1|threads that sleep for 1 us to 1 s"
)

rows=$folder/rows
for entry in "${stressors[@]}"; do
	read -ra options <<<"${entry%%|*}"
	echo "== stress-ng ${options[*]}" >&2
	store=$folder/$RANDOM.db
	(cd "$folder" && "$whylag" --store "$store" record --follow -- \
		stress-ng "${options[@]}" --timeout 3s --temp-path "$folder" >/dev/null 2>&1) || true
	"$whylag" --store "$store" explain --json | jq -r --arg options "${options[*]}" \
		--arg does "${entry#*|}" '
		(.explanation // .) as $e | ($e.findings[:2] | map(
			"\(.cause) \((.lost_ns / $e.wall_ns * 1000 | round) / 10) % (confidence \((.confidence * 100 | round) / 100))"
		) | join("; ")) as $said |
		"| `\($options)` | \($does) | \(if $said == "" then "no known cause" else $said end) |"' |
		tee -a "$rows"
done

mkdir -p docs
{
	echo "# What whylag says of stress-ng"
	echo
	echo "Written by \`scripts/compare-stress-ng.sh\` with $(stress-ng --version | cut -d ' ' -f 1-3 | tr -d ,) on"
	echo "Linux $(uname -r), $(nproc) CPUs, on $(date -u +%Y-%m-%d). Each stressor ran for three seconds under"
	echo "\`whylag record --follow\`. The table has the first two findings, with the share of the wall time of all"
	echo "threads that each explains."
	echo
	echo "| stressor | what it does | what whylag says |"
	echo "|---|---|---|"
	cat "$rows"
} >docs/stress-ng.md
echo "== written to docs/stress-ng.md" >&2
