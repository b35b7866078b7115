# shellcheck shell=sh
# Describes a host. The arguments are workers with their SHA-256, `--`, and launchers with their library's name. A worker
# that is another file is not run. An interface whose speed is unknown has -1, or none. The first number with a dot in it
# is a launcher's version.
PATH=$PATH:/usr/sbin:/sbin
echo "clock $(date +%s.%N)"
echo "hostname $(uname -n)"
echo "kernel $(uname -sr)"
echo "arch $(uname -m)"
echo "machine $(cat /proc/sys/kernel/random/boot_id 2>/dev/null || uname -n)"
echo "network $(readlink /proc/self/ns/net)"
address=${SSH_CONNECTION#* * } # of the client and the server, each with its port
echo "address ${address%% *}"
echo "libc $(getconf GNU_LIBC_VERSION 2>/dev/null)"
echo "congestion $(cat /proc/sys/net/ipv4/tcp_congestion_control 2>/dev/null)"
echo "cpu $(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)"
echo "cpus $(sed -n 's/^Cpus_allowed_list:[^0-9]*//p' /proc/self/status)"
echo "cores $(cat /sys/devices/system/cpu/cpu*/topology/thread_siblings_list 2>/dev/null | sort -u | tr '\n' ' ')"
for path in /sys/class/net/*; do
    [ -r "$path/mtu" ] || continue # a file of the bonding driver, or no interface at all
    name=${path##*/}
    address=$(ip -o address show dev "$name" scope global 2>/dev/null | sed -n 's/.* inet6* \([0-9a-f.:]*\).*/\1/p;q')
    speed='' link=''
    for real in "$path"/device "$path"/lower_*/device "$path"/lower_*/lower_*/device; do # a virtual one makes its speed up
        [ -e "$real" ] || continue
        speed=$(cat "$path/speed" 2>/dev/null)
        one=$(cat "${real%/device}/speed" 2>/dev/null) # a bond is as fast as all its links, a connection as one
        [ "${one:--1}" -le 0 ] || link=$one
        case $(readlink "$real/driver") in # of a cloud, which limits the rate
            */ena | */gve | */hv_netvsc | */virtio_net | */vmxnet3 | */vif) speed='' link='' && break ;;
        esac
    done
    [ "$name" = lo ] || echo "interface $name $(cat "$path/mtu") ${speed:--1} ${link:--1} $address"
done
while [ "$1" != -- ]; do
    if [ ! -f "$1" ] || [ ! -x "$1" ] || [ "$(sha256sum <"$1")" != "$2  -" ]; then
        echo "missing $1"
    elif place=$(shared "$1") && [ "$place" ]; then
        echo "shared $place"
    elif ! said=$("$1" --version 2>&1); then
        echo "broken $1 $(printf %s "$said" | tail -n 1)"
    fi
    shift 2
done
shift
while [ $# -gt 1 ]; do
    version=$("$2" --version 2>/dev/null | sed -n 's/^[^0-9]*\([0-9][0-9]*\.[0-9.]*[0-9]\).*/\1/p' | head -n 1)
    echo "library $1 $version"
    shift 2
done
echo end
