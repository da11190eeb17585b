# Runs when the machine starts: authorizes our key, prints the host keys, stops the machine if contact is lost.
# Plain sh; comment lines are not sent. Paths and the API address can be overridden by variables.
home=${HOME:-/root} jobs=${STATIONMASTER_JOB_ROOT:-/opt/stationmaster/jobs}
keys=${STATIONMASTER_HOST_KEYS:-/etc/ssh} log=${STATIONMASTER_CONTAINER_LOG:-/proc/1/fd/1}
api=${STATIONMASTER_PROVIDER_URL:-https://console.vast.ai}/api/v0/instances/$CONTAINER_ID/
clock=${STATIONMASTER_UPTIME:-/proc/uptime} idle=${STATIONMASTER_GUARD_IDLE:-1800}
abandon=${STATIONMASTER_GUARD_ABANDON:-259200} look=${STATIONMASTER_GUARD_LOOK:-15}
umask 077
trap '' HUP PIPE
mkdir -p "$home/.ssh" "$jobs"
: >"$home/.no_auto_tmux"
key=@PUBLIC_KEY@
grep -qxF "$key" "$home/.ssh/authorized_keys" 2>/dev/null || printf '\n%s\n' "$key" >>"$home/.ssh/authorized_keys"
# Both are from an earlier start: the uptime may repeat, and the pid may belong to another process now.
rm -f "$jobs/.guard" "$jobs"/*/.trackside/training.pid

# Makes the container variables visible in SSH sessions, except the API key, which only the guard may use.
etc=${keys%/*}/environment
env | grep -E '^[A-Za-z_][A-Za-z0-9_]*=' |
grep -vE '^(_|PWD|OLDPWD|SHLVL|HOME|USER|LOGNAME|SHELL|TERM|CONTAINER_API_KEY)=' |
while IFS= read -r line; do
grep -qxF "$line" "$etc" || printf '%s\n' "$line" >>"$etc"
done 2>/dev/null

say_keys() {
echo "sm-host-keys begin"
cat "$keys"/ssh_host_*_key.pub | while read -r kind text _; do echo "sm-host-key $kind $text"; done
echo "sm-host-keys end"
}
# To our output and to that of the first process: one of them reaches the log. Repeated when the keys change.
tell() {
set -- "$keys"/ssh_host_*_key.pub
[ -e "$1" ] || return 1
sum=$(cat "$@" | cksum)
[ "$sum" = "$last" ] || { last=$sum; say_keys; (say_keys >>"$log"); } 2>/dev/null
}
now() {
n=
{ read -r n _ <"$clock"; } 2>/dev/null
n=${n%%.*}
case $n in '' | *[!0-9]*) n=$(date +%s) ;; esac
echo "$n"
}
training() {
for file in "$jobs"/*/.trackside/training.pid; do
{ read -r pid _ <"$file" && kill -0 "$pid"; } 2>/dev/null && return
done
return 1
}
started() {
set -- "$jobs"/*/.trackside/steps/*/started
[ -e "$1" ]
}
# The API key is passed by stdin or environment: every process can read arguments.
ask() {
if command -v curl >/dev/null; then
printf 'header = "Authorization: Bearer %s"\n' "$CONTAINER_API_KEY" |
curl -s -m 60 -K - -X "$1" -H 'Content-Type: application/json' -d "$2" "$api"
else
python3 -c 'import os,sys,urllib.request as u
_,method,body,url=sys.argv
h={"Authorization":"Bearer "+os.environ["CONTAINER_API_KEY"],"Content-Type":"application/json"}
print(u.urlopen(u.Request(url,body.encode(),h,method=method),timeout=60).read().decode())' "$1" "$2" "$api"
fi 2>/dev/null | tr -d ' ' | grep -q '"success":true'
}
# Destroy if the results are saved or nothing started; else stop and keep the disk; destroy if stopping stays refused.
leave() {
if [ -e "$jobs/.acknowledged" ] || ! started; then ask DELETE '{}'
elif ask PUT '{"state":"stopped"}'; then refused=
else
refused=${refused:-$t}
[ $((t - refused)) -lt "$abandon" ] || ask DELETE '{}'
fi
}
# .guard: seconds that a training may continue without contact, and the uptime when that was written.
guard() {
boot=$(now) seen=$boot last= refused= n=0
until tell || [ $n -ge 60 ]; do n=$((n + 1)); sleep 1; done
while :; do
t=$(now) s= at=
tell
{ read -r s at _ <"$jobs/.guard"; } 2>/dev/null
case $s:$at in *[!0-9:]* | :* | *:) s=0 at=$boot ;; esac
if [ "$at" -lt "$boot" ] || [ "$at" -gt "$t" ]; then s=0 at=$boot; fi
[ "$s" -ge "$idle" ] || s=$idle
if training; then seen=$t; else
s=$idle
[ "$at" -ge "$seen" ] || at=$seen
fi
[ $((t - at)) -lt "$s" ] || leave
sleep "$look"
done
}
guard </dev/null &
