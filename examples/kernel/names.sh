#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR MIT
# Gives a kernel module's trace its names: names.sh MODULE.ko [SECTIONS] > MODULE.elf
#
# A trace holds addresses in the loaded module, and the .ko file has none. This links its data to where the
# kernel loaded it, for `npuprof-convert --elf MODULE.elf`. Run it as root while the module is loaded.
# SECTIONS: a copy of the folder /sys/module/MODULE/sections. Needs binutils.
set -eu
[ $# -ge 1 ] || { echo "usage: $0 MODULE.ko [SECTIONS] > MODULE.elf" >&2; exit 2; }
name=$(basename "$1" .ko | tr - _)
sections=${2:-/sys/module/$name/sections}
[ -r "$sections/.rodata" ] || {
    echo "$0: $sections/.rodata: cannot be read: is $name loaded, are you root?" >&2
    exit 2
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Strings are merged by a linker, so theirs must lose that flag to stay where they are.
cp "$1" "$work/module.ko"
echo "SECTIONS {" > "$work/script"
for path in "$sections"/.text "$sections"/.[rdb]*; do
    section=$(basename "$path")
    case $section in
    .rodata.str*)
        objcopy --set-section-flags "$section=alloc,load,readonly,data,contents" "$work/module.ko" ;;
    .text | .rodata* | .data | .data.* | .bss) ;;
    *) continue ;;
    esac
    address=$(cat "$path")
    case $address in
    0x0000000000000000) echo "$0: the kernel hides its addresses: run it as root" >&2; exit 2 ;;
    esac
    echo "$section $address : { *($section) }" >> "$work/script"
done
echo "/DISCARD/ : { *(*) } }" >> "$work/script"
ld -T "$work/script" --noinhibit-exec --unresolved-symbols=ignore-all -e 0 -o "$work/module.elf" \
    "$work/module.ko" 2>"$work/said" || { cat "$work/said" >&2; exit 1; }
cat "$work/module.elf"
