# shellcheck shell=sh
# The counters of interfaces that grow with faults, and those of CPU time.
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
# CPU time: since boot, wanted, and taken by a hypervisor for others; the smallest quota of the cgroups that this
# process is in, in CPUs / 1000, and how long it has held processes back (cgroup 2 says us, cgroup 1 ns).
quota() {
    group=/sys/fs/cgroup$1
    while [ "$group" != /sys/fs ]; do
        read -r most period <"$group/cpu.max" ||
            { read -r most <"$group/cpu.cfs_quota_us" && read -r period <"$group/cpu.cfs_period_us"; }
        case $most in
            [1-9]*)
                held=$(sed -n -e 's/^throttled_usec //p' -e 's/^throttled_time \(.*\)...$/\1/p' "$group/cpu.stat")
                echo "$((most * 1000 / period)) $held"
                ;;
        esac
        most='' group=${group%/*}
    done
}
echo "counter cpu uptime_cs $(sed 's/ .*//;s/[.]//' /proc/uptime)"
read -r _ user nice system _ _ irq softirq steal _ </proc/stat
echo "counter cpu wanted_ticks $((user + nice + system + irq + softirq + steal))"
echo "counter cpu stolen_ticks $steal"
{
    quota "$(sed -n 's/^0:://p' /proc/self/cgroup)"
    quota "/cpu$(sed -n 's/^[0-9]*:\([^:]*,\)*cpu\(,[^:]*\)*://p' /proc/self/cgroup)"
} 2>/dev/null | sort -n | sed -n 's/^\(.*\) \(.*\)$/counter cpu quota_mcpus \1\ncounter cpu held_back_us 0\2/p;q'
