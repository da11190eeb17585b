# Becomes pid 1 of a machine: its own view of the files, its own process table, two SSH servers, and onstart.
# Arguments: the machine's disk, its host name, and a folder with Python to show inside where the system has none.
set -eu
disk=$1 name=$2 python=$3

mount -t overlay overlay -o "lowerdir=/,upperdir=$disk/up,workdir=$disk/wk" "$disk/root"
cd "$disk/root"
mkdir -p proc dev sys run .outside
mount -t proc proc proc
mount --rbind /dev dev
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts dev/pts
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount -t tmpfs -o mode=755 tmpfs run
mkdir -p run/sshd
if [ -n "$python" ]; then
    mkdir -p ".$python"
    mount --bind -o ro "$python" ".$python"
fi
hostname "$name" 2>/dev/null || echo "$name" >/proc/sys/kernel/hostname
pivot_root . .outside
umount -l /.outside
cd /root
# A pipe, as in a container: a process that writes to /proc/1/fd/1 appends to the log and cannot truncate it.
exec </dev/null > >(exec cat >>/var/log/container.log) 2>&1
set +eu

# Refused while its flag is there; started again whenever it ends.
serve_ssh() {
    while :; do
        if [ -e "/run/refuse-$1" ]; then
            sleep 0.05
        else
            /usr/sbin/sshd -D -e -f /etc/ssh/sshd_config -p "$1" -o "PidFile=/run/sshd-$1.pid" 2>>/var/log/sshd.log
        fi
    done
}
serve_ssh 22 &
serve_ssh 2222 &
(exec setsid bash /root/onstart.sh) &
wait
