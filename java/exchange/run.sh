#!/bin/bash
# Runs the exchange for some seconds and prints what the load saw: run.sh --help
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
jar=$here/target/exchange.jar
if [ ! -e "$jar" ] || [ -n "$(find "$here/src/main" "$here/../tracer/src/main" -newer "$jar" -print -quit)" ]; then
	mvn -q -f "$here/.." -pl exchange -am -DskipTests package >&2
fi
exec java -XX:+UseSerialGC -Xmx64m -jar "$jar" "$@"
