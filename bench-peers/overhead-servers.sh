#!/usr/bin/env bash
# What recording costs servers: requests a second of Redis (GET), nginx (a small file) and PostgreSQL
# (pgbench -S), and what is left of them while a tool watches the server: each on a CPU of its own, which
# it saturates, with clients and tools on the others; and nginx and PostgreSQL ("-everywhere") with more
# workers and clients than CPUs, all anywhere, so that no CPU is ever idle. The load goes on all the
# time, and each tool comes and goes: what is lost with it is compared with the seconds right before and
# after it, because a shared machine is never the same for a minute. With --docs it writes docs/cost.md,
# and keeps what is there from "What --cheap leaves out" on.
#
#     ROUNDS=7 SECONDS_EACH=2 ONLY="redis nginx-everywhere" bench-peers/overhead-servers.sh [--docs]
set -euo pipefail
ROUNDS=${ROUNDS:-7}
# shellcheck source=bench-peers/lib.sh
. "$(dirname "$0")/lib.sh"

SECONDS_EACH=${SECONDS_EACH:-2}
ONLY=${ONLY:-redis nginx postgres nginx-everywhere postgres-everywhere}
PORT=${PORT:-6398}
# Between the start of a tool and what is measured: whylag records all for 2 s, and what the last of them
# shows decides what it samples from then on.
READY_S=4

begin overhead-servers "% lost"
need redis-server redis-benchmark redis-cli nginx wrk curl pgbench setpriv taskset strace perf bpftrace cc
need_whylag
mount_tracefs
built empty
PATH=$PATH:$(echo /usr/lib/postgresql/*/bin)

CPUS=$(getconf _NPROCESSORS_ONLN)

# is_everywhere SERVER
is_everywhere() {
	[[ $1 == *-everywhere ]]
}

# places SERVER: where it runs and where its clients and the tools do, and how many clients of one are
# wanted in place of one.
places() {
	SERVER_CPUS=$BENCH_CPU CLIENT_CPUS=$TOOL_CPUS TIMES=1
	is_everywhere "$1" || return 0
	SERVER_CPUS=0-$((CPUS - 1)) CLIENT_CPUS=0-$((CPUS - 1)) TIMES=$CPUS
}

# To be run in the background: its pid is then the server's.
on_server_cpus() {
	exec taskset -c "$SERVER_CPUS" "$@"
}

on_client_cpus() {
	exec taskset -c "$CLIENT_CPUS" "$@"
}

# started PID: the server is to be recorded, and ended with the script.
started() {
	SERVER=$1
	sleep 1
	kill -0 "$SERVER" 2>/dev/null || die "a server did not start: is one on port $PORT to $((PORT + 3))?"
}

start_redis() {
	on_server_cpus redis-server --port "$PORT" --save "" --appendonly no >"$TMP/redis.log" 2>&1 &
	started $!
}

load_redis() {
	on_client_cpus redis-benchmark -p "$PORT" -n 2000000000 -c 50 -t get
}

# Requests that the server says it has answered.
count_redis() {
	redis-cli -p "$PORT" info stats | tr -d '\r' | awk -F : '$1 == "total_commands_processed" { print $2 }'
}

start_nginx() {
	local processes="master_process off;"
	((TIMES == 1)) || processes="worker_processes $TIMES;"
	mkdir -p "$TMP/www" "$TMP/nginx"
	chmod 755 "$TMP" "$TMP/www"
	head -c 600 /dev/zero | tr '\0' x >"$TMP/www/index.html"
	cat >"$TMP/nginx.conf" <<-END
		daemon off; $processes pid $TMP/nginx/pid; error_log $TMP/nginx/error.log;
		events { worker_connections 512; }
		http {
			access_log off; keepalive_requests 1000000000;
			client_body_temp_path $TMP/nginx; proxy_temp_path $TMP/nginx;
			fastcgi_temp_path $TMP/nginx; uwsgi_temp_path $TMP/nginx; scgi_temp_path $TMP/nginx;
			server { listen 127.0.0.1:$((PORT + 1)); root $TMP/www; }
			server { listen 127.0.0.1:$((PORT + 2)); location / { stub_status; } }
		}
	END
	on_server_cpus nginx -p "$TMP/nginx" -c "$TMP/nginx.conf" >"$TMP/nginx.log" 2>&1 &
	started $!
}

load_nginx() {
	on_client_cpus wrk -t "$TIMES" -c "$((32 * TIMES))" -d 24h "http://127.0.0.1:$((PORT + 1))/"
}

count_nginx() {
	curl -s "http://127.0.0.1:$((PORT + 2))/" | awk 'NR == 3 { print $3 }'
}

start_postgres() {
	chmod 755 "$TMP"
	install -d -o postgres "$TMP/pg"
	as_postgres initdb -D "$TMP/pg" -A trust >"$TMP/initdb.log" 2>&1
	as_postgres taskset -c "$SERVER_CPUS" postgres -D "$TMP/pg" -p "$((PORT + 3))" -k "$TMP/pg" \
		-c listen_addresses=127.0.0.1 >"$TMP/postgres.log" 2>&1 &
	sleep 3
	started "$(head -n 1 "$TMP/pg/postmaster.pid")"
	pgbench -h "$TMP/pg" -p "$((PORT + 3))" -U postgres -i -s 5 -q postgres >"$TMP/pgbench.log" 2>&1
}

as_postgres() {
	setpriv --reuid postgres --regid postgres --clear-groups "$@"
}

load_postgres() {
	on_client_cpus pgbench -h 127.0.0.1 -p "$((PORT + 3))" -U postgres -n -S \
		-c "$((4 * TIMES))" -j "$TIMES" -P 1 -T 86400 postgres
}

# pgbench says each second how many there were in it; statistics of PostgreSQL itself come late.
count_postgres() {
	awk '/^progress:/ { n += $4 } END { printf "%.0f\n", n }' "$TMP/load.log"
}

# watch_with TOOL: starts it, watching $SERVER; its pids are in WATCHERS.
watch_with() {
	WATCHERS=()
	case $1 in
	whylag) watcher "$WHYLAG" --store "$(mktemp -u "$TMP/store.XXXXXX")" record --follow -p "$SERVER" ;;
	cheap) watcher "$WHYLAG" --store "$(mktemp -u "$TMP/store.XXXXXX")" record --cheap --follow -p "$SERVER" ;;
	empty) watcher "$TMP/empty" sys_enter sys_exit -- sleep infinity ;;
	bpftrace)
		watcher bpftrace "$HERE/offcputime.bt"
		watcher bpftrace "$HERE/syscall-latency.bt"
		;;
	perf-trace) watcher perf trace -s -p "$(threads_of_server)" -o "$TMP/perf.out" ;;
	strace) watcher strace -c -f -o "$TMP/strace.out" -p "$(threads_of_server)" ;;
	esac
	sleep "$READY_S"
}

watcher() {
	taskset -c "$CLIENT_CPUS" "$@" >"$TMP/tool.log" 2>&1 &
	WATCHERS+=($!)
}

# The server and its children, with commas.
threads_of_server() {
	echo "$SERVER" "$(pgrep -P "$SERVER" || true)" | xargs | tr ' ' ,
}

# Of a tool that has ended nothing can be said: it would seem to cost nothing.
all_are_watching() {
	local pid
	for pid in "${WATCHERS[@]}"; do
		kill -0 "$pid" 2>/dev/null && continue
		tail -n 5 "$TMP/tool.log" >&2
		return 1
	done
}

# A tool may miss the signal while it starts (bpftrace did once).
stop_watching() {
	local pid
	for pid in "${WATCHERS[@]}"; do
		kill -INT "$pid" || true
		pkill -TERM -P "$pid" || true # what `empty` runs: it ends with that
	done
	for pid in "${WATCHERS[@]}"; do
		timeout 10 tail --pid="$pid" -s 0.1 -f /dev/null || kill -INT "$pid" || true
		wait "$pid" || true
	done
}

# rate SERVER: its requests a second. It begins and ends when the server has counted, for one that
# does so once a second.
rate() {
	local before after began ended
	before=$(next_count "${1%-everywhere}")
	began=$EPOCHREALTIME
	sleep "$SECONDS_EACH"
	after=$(next_count "${1%-everywhere}")
	ended=$EPOCHREALTIME
	awk -v n="$((after - before))" -v a="$began" -v b="$ended" 'BEGIN { printf "%.0f\n", n / (b - a) }'
}

next_count() {
	local count now
	count=$("count_$1")
	now=$count
	while [[ $1 == postgres && $now == "$count" ]]; do
		sleep 0.02
		now=$("count_$1")
	done
	echo "$now"
}

# measured SERVER/TOOL: the share of its requests that is lost with the tool, in per cent of those
# before and after it.
measured() {
	local server=${1%/*} before with after
	before=$(rate "$server")
	watch_with "${1#*/}"
	with=$(rate "$server")
	all_are_watching || { stop_watching; return 1; }
	stop_watching
	sleep 0.5
	after=$(rate "$server")
	printf '%s\n' "$before" "$after" >>"$TMP/$server.bare"
	awk -v a="$before" -v b="$after" -v w="$with" 'BEGIN { printf "%.2f\n", 100 * (1 - 2 * w / (a + b)) }'
}

# losses SERVER TOOL: those of each round, in order.
losses() {
	figures "$1/$2" | sort -g
}

# Goals: per cent of the requests that may be lost.
declare -A MOST=([whylag]=8 [cheap]=3)

# missed TOOL LOSS: a mark if that is beyond its goal.
missed() {
	[[ -z ${MOST[$1]:-} ]] || awk -v loss="$2" -v most="${MOST[$1]}" 'BEGIN { if (loss > most) printf "! " }'
}

# interval < SORTED FIGURES: the narrowest pair of them that has the median of all such windows between
# them with 95 % confidence (by the binomial distribution of how many are below it), or the first and last.
interval() {
	awk '{ v[NR] = $1 }
		END {
			below = p = 0.5 ^ NR
			for (k = 1; k < NR / 2; k++) {
				below += p *= (NR - k + 1) / k
				if (2 * below > 0.05)
					break
			}
			printf "%.1f to %.1f", v[k], v[NR + 1 - k]
		}'
}

# row SERVER: medians and their intervals of what each tool takes.
row() {
	local tool loss
	printf '| %s | %.0f |' "${1/-everywhere/, no CPU idle}" "$(median <"$TMP/$1.bare")"
	for tool in "${TOOLS[@]}"; do
		loss=$(losses "$1" "$tool")
		[[ -n $loss ]] || { printf ' - |'; continue; }
		printf ' %s%.1f %% (%s) |' "$(missed "$tool" "$(median <<<"$loss")")" \
			"$(median <<<"$loss")" "$(interval <<<"$loss")"
	done
	echo
}

# A server is ended before another has its port.
end_load() {
	[[ $load ]] || return 0
	kill "$load" "$SERVER" 2>/dev/null || true
	wait "$load" "$SERVER" 2>/dev/null || true
	while kill -0 "$SERVER" 2>/dev/null; do sleep 0.1; done
	rm -rf "$TMP/pg"
	load='' SERVER=''
}

load='' SERVER=''
at_exit end_load
TOOLS=(empty whylag cheap bpftrace perf-trace strace)
for server in $ONLY; do
	places "$server"
	"start_${server%-everywhere}"
	"load_${server%-everywhere}" >"$TMP/load.log" 2>&1 &
	load=$!
	sleep 1
	# --cheap comes three times in a round: its goal is lower than what so few windows can tell apart.
	subjects=("$server"/{empty,whylag,cheap,bpftrace,cheap})
	# What the others cost beyond the CPU that they take is known by then.
	is_everywhere "$server" || subjects+=("$server"/{perf-trace,strace})
	run_rounds measured "${subjects[@]}" "$server/cheap"
	end_load
done

table_of_losses() {
	local server
	echo '| server | requests/s | floor | whylag | whylag --cheap | bpftrace | perf trace -s | strace -c |'
	echo '|---|---|---|---|---|---|---|---|'
	for server in $ONLY; do row "$server"; done
}

page() {
	cat <<-END
		# What recording costs a server

		Written by \`bench-peers/overhead-servers.sh --docs\` on $(date -u +%F), Linux $(uname -r),
		$CPUS CPUs.

		The server saturates one CPU, its clients and the tools share the others, and leave a good part of
		them idle; with "no CPU idle" there are more workers and clients than CPUs, which run anywhere, as
		the tools do. Under one load each tool came and went $ROUNDS times, \`--cheap\` $((3 * ROUNDS)) times. The table has the
		share of the server's requests per second that it took away, from $READY_S s after its start on, of those
		right before and after it: the median, and its interval of 95 % by ranks, which of fewer than 9 is
		their range. The goals are 8 % with whylag and 3 % with \`--cheap\`; what is beyond them is marked !.
		whylag is told to follow the server's children; bpftrace sums off-CPU time by kernel stack and has a
		histogram of calls, of the whole host.

	END
	table_of_losses
	cat <<-END

		"-" is a tool that failed, or was not tried. The floor is the cost of empty BPF programs on
		sys_enter and sys_exit: no tool that counts calls by tracepoints can cost less. A negative value is
		noise.
		\`--cheap\` leaves out system calls, requests and softirqs, and samples each CPU 49 times a
		second (without it 997 times for the first 2 s, then 99). Without it system calls are sampled, too, once
		they take more than 4 % of a CPU (2 %, if it is never idle), and softirqs not timed once they take 1 %, but
		not before 2 s have passed: before them it costs more.
	END
}

# The rest of the page: words, and figures of earlier versions, which are not here to be measured.
kept_text() {
	sed -n '/^## What --cheap leaves out/,$p' "$HERE/../docs/cost.md"
}

if [[ ${1:-} == --docs ]]; then
	kept=$(kept_text)
	page >"$HERE/../docs/cost.md"
	[[ -z $kept ]] || printf '\n%s\n' "$kept" >>"$HERE/../docs/cost.md"
	echo "written to docs/cost.md"
fi
table_of_losses
for server in $ONLY; do
	goal "$server, requests lost to whylag" "$(losses "$server" whylag | median)" "${MOST[whylag]}" %
	goal "$server, requests lost to whylag --cheap" "$(losses "$server" cheap | median)" "${MOST[cheap]}" %
done
