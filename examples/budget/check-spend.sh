#!/usr/bin/env bash
# Fails if the machines cost more than DOLLARS in the last DAYS days; for cron, monitoring or CI. Needs jq.
# Usage: check-spend.sh DOLLARS [DAYS]
set -euo pipefail

most=${1:?usage: check-spend.sh DOLLARS [DAYS]}
days=${2:-7}
since=$(date -u -d "$days days ago" +%Y-%m-%d 2>/dev/null || date -u -v"-${days}d" +%Y-%m-%d)

costs=$(stationmaster costs --over-time day --since "$since" --json)
jq -r '.parts[] | select(.amount_usd > 0) | "\(.start[:10])  $\(.amount_usd)  \(.split_usd)"' <<<"$costs"
spent=$(jq '.total_usd' <<<"$costs")
echo "\$$spent since $since, limit \$$most"
jq -e --argjson most "$most" '.total_usd <= $most' <<<"$costs" >/dev/null
