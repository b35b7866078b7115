#!/bin/bash
# The inside of a bed, see bed.py: up.sh HOST…, each DELAY_US/CPUS, makes the hosts n1, n2, … on one switch.
# It is process 1 of namespaces of its own: when it ends, the kernel ends every process in them, and removes their
# interfaces and mounts. It ends with its standard input. Once all hosts can be reached it prints their processes.
set -euo pipefail
here=$(dirname "$0")

if [ "${1:-}" = host ]; then # in namespaces of its own: hosts are told apart by what hockney and the MPIs look at
    number=$2 delay_us=$3 cpus=$4
    hostname "n$number"
    mount -t tmpfs -o mode=1777 shm /dev/shm
    mkdir "cgroup.$number"
    mount --rbind /sys/fs/cgroup "cgroup.$number"
    mount -t sysfs sys /sys # shows this host's interfaces
    mount --rbind "cgroup.$number" /sys/fs/cgroup
    cat /proc/sys/kernel/random/uuid >"boot_id.$number"
    mount --bind "boot_id.$number" /proc/sys/kernel/random/boot_id
    on_switch() { nsenter --target 1 --net "$@"; }
    if [ "$delay_us" -gt 0 ]; then
        on_switch ./delay "$delay_us" "v$number" "far$number"
        on_switch ip link set "far$number" netns $$ name eth0
    else
        ip link add eth0 type veth peer name "v$number" netns 1
    fi
    on_switch ip link set "v$number" master switch up
    ip addr add "10.77.0.$number/24" dev eth0
    ip link set lo up
    ip link set eth0 up
    exec taskset -c "$cpus" dropbear -F -E -s -m -r host_key -p 22 -P "n$number.pid" 2>"n$number.log"
fi

# All files of the bed lie in its own ~/.ssh, which is memory. What ~/.bashrc starts would be killed with the bed, and
# leave locks behind.
home=$(getent passwd 0 | cut -d: -f6)
[ ! -e "$home/.bashrc" ] || mount --bind /dev/null "$home/.bashrc"
folder=$home/.ssh
mkdir -p "$folder"
mount -t tmpfs -o mode=700 bed "$folder"
[ "$#" -gt 0 ]
cc -O2 -D_GNU_SOURCE -o "$folder/delay" "$here/delay.c"
script=$(realpath "$0")
cd "$folder"
ssh-keygen -q -t ed25519 -N '' -f id_ed25519
cp id_ed25519.pub authorized_keys
dropbearkey -t ed25519 -f host_key 2>&1 | sed -n 's/^ssh-/* ssh-/p' >known_hosts
echo '127.0.0.1 localhost' >hosts
for ((i = 1; i <= $#; i++)); do
    echo "10.77.0.$i n$i" >>hosts
done
sed 's/^hosts:.*/hosts: files/' /etc/nsswitch.conf >nsswitch.conf
for name in hosts nsswitch.conf; do
    mount --bind "$name" "/etc/$name"
done

hostname switch
ip link add switch type bridge
ip link set switch up
for ((i = 1; i <= $#; i++)); do
    unshare --net --uts --ipc --mount -- bash "$script" host "$i" "${!i%/*}" "${!i#*/}" </dev/null &
    started[i]=$!
done
pids=()
for ((i = 1; i <= $#; i++)); do
    until [ -s "n$i.pid" ]; do
        kill -0 "${started[i]}" || exit 1
        sleep 0.01
    done
    pids+=("$(cat "n$i.pid")")
done
echo "${pids[@]}"
read -r || true
