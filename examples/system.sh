#!/bin/sh
# Records a program and the kernel's scheduler on one timeline: system.sh OUT.pftrace PROGRAM [ARGUMENT...]
#
# The program writes its trace at its end, as NPUPROF_OUTPUT_PATH says. The kernel writes sched_switch,
# wake-ups and interrupts into tracefs. Needs root, Linux, and nothing but the tools of this project.
# Events of a driver of yours: EVENTS="sched/sched_switch my_driver" system.sh ...
set -eu
[ $# -ge 2 ] || { echo "usage: $0 OUT.pftrace PROGRAM [ARGUMENT...]" >&2; exit 2; }
out=$1
shift
tools=$(dirname "$0")/../tools
tracing=/sys/kernel/tracing
events=${EVENTS:-sched/sched_switch sched/sched_waking sched/sched_wakeup_new irq}
work=$(mktemp -d)
[ -e $tracing/trace ] || mount -t tracefs none $tracing

put() { echo "$2" > "$tracing/$1"; }
clock=$(sed 's/.*\[\(.*\)\].*/\1/' $tracing/trace_clock)
finish() {
    put tracing_on 0
    for event in $events; do put events/$event/enable 0; done
    put trace_clock "$clock"
    rm -rf "$work"
}
trap finish EXIT

put tracing_on 0
put trace_clock mono                       # the clock that both sides know
put options/record-tgid 1
put buffer_size_kb "${BUFFER_KB:-8192}"    # of each CPU
put trace ""
for event in $events; do put events/$event/enable 1; done
put tracing_on 1
status=0
NPUPROF_OUTPUT_PATH="$work/program.npuprof" "$@" || status=$?
put tracing_on 0
cat $tracing/trace > "$work/kernel.txt"
grep -H overrun $tracing/per_cpu/cpu*/stats | grep -v ': 0$' >&2 || true       # what did not fit: BUFFER_KB
python3 "$tools/npuprof.py" merge "$work/program.npuprof" --ftrace "$work/kernel.txt" -o "$out"
exit $status
