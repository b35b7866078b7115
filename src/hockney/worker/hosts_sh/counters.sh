# shellcheck shell=sh
# The counters of interfaces that grow with faults.
for path in /sys/class/net/*/carrier_changes /sys/class/net/*/statistics/[rt]x_errors \
    /sys/class/infiniband/*/ports/*/counters/link_downed /sys/class/infiniband/*/ports/*/counters/*_errors; do
    [ -r "$path" ] || continue
    name=${path#/sys/class/*/} # of InfiniBand with its port: mlx5_0/1
    case $path in
        */ports/*) port=${name#*/ports/} name=${name%%/*}/${port%%/*} ;;
        *) name=${name%%/*} ;;
    esac
    echo "counter $name ${path##*/} $(cat "$path" 2>/dev/null)"
done
