# SPDX-License-Identifier: MIT
CC ?= cc
CXX ?= c++
PYTHON ?= python3
CFLAGS ?= -O2 -g
WARNINGS = -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wundef
HEADERS = npuprof.h npuprof_npu.h
EXAMPLES = $(patsubst examples/%.c,build/examples/%,$(wildcard examples/*.c))
DEVICES = $(wildcard examples/*/*.toml)
DIGITS = build/examples/digits/digits build/examples/digits/npusim
TOOLS = build/libnpuprof.so build/libnpuprof-columns.so build/npuprof-convert
RUN_TESTS = CC="$(CC)" CXX="$(CXX)" RUN="$(RUN)" $(PYTHON) tests/run.py
BUILD_DIGITS = @mkdir -p $(@D) && echo "  CC $@" && $(CC) -std=c11 -D_GNU_SOURCE $(CFLAGS) $(WARNINGS) -I. $< -o $@ -pthread -lm

PREFIX ?= /usr/local
DESTDIR ?=
FUZZ_SECONDS ?= 0

.DEFAULT_GOAL := all
.PHONY: all headers demo report pictures tools test rest check generated house qemu baremetal size san soak valgrind fuzz bench bench-tools gen install uninstall format clean help

all: $(EXAMPLES) $(DIGITS)      ## build the examples

demo: $(DIGITS)                 ## run the digits network on the simulated NPU, print the tables, write digits.json
	@$(RUN) build/examples/digits/digits --output digits.json

tools: $(TOOLS)                 ## libnpuprof.so (recording from Python), npuprof-convert (reads images), libnpuprof-columns.so (large reports), in build/

report: $(DIGITS)               ## the same run for a reader, in build/report: digits.html, digits.csv (a sheet with formulas), digits.txt, digits.json
	@mkdir -p build/report && $(RUN) build/examples/digits/digits --output build/report/digits.json > build/report/digits.txt
	@$(PYTHON) tools/npuprof.py report build/report/digits.json --html build/report/digits.html --csv build/report/digits.csv
	@echo "build/report: digits.html, digits.csv, digits.txt, digits.json"

pictures: $(DIGITS)             ## the README's pictures, of such a run: examples/timeline.png and report.png (needs chromium, npm and pngquant)
	@$(PYTHON) tests/web/pictures.py

test:                           ## the quick tests; ends with "N passed, N failed"
	@$(MAKE) --no-print-directory -s -j2 tools
	@$(RUN_TESTS) --quick

rest: tools                     ## the tests that make test leaves out
	@$(RUN_TESTS) --rest

check: test rest generated house    ## everything a machine with a compiler and Python 3 can check

headers:                        ## join the parts in src/ to npuprof.h and npuprof_npu.h
	@$(PYTHON) tools/join.py

house:                          ## the laws of src/README.md: layers, sizes, names; each part alone in each language
	@CC="$(CC)" CXX="$(CXX)" $(PYTHON) tools/house.py

generated:                      ## are the joined and the generated headers what src/ and the generator give?
	@$(PYTHON) tools/join.py --check
	@for d in $(DEVICES); do $(PYTHON) tools/npuprof.py gen --check $$d -o $${d%.toml}_regs.h || exit 1; done

qemu:                           ## the library on real devices of emulated x86 and arm64 machines
	@$(PYTHON) tests/qemu/run.py

baremetal:                      ## the library on microcontrollers, other processors and byte orders, all emulated
	@$(PYTHON) tests/baremetal/run.py

size:                           ## what it takes on a Cortex-M0+, in bytes
	@$(PYTHON) tests/baremetal/run.py --sizes

san:                            ## the C tests under address + undefined, then thread sanitizer
	@$(RUN_TESTS) --sanitize address,undefined
	@$(RUN_TESTS) --sanitize thread

soak:                           ## the tests that have a large version, and that: 10^8 spans, a million threads, 200 kills; minutes
	@$(RUN_TESTS) --soak

valgrind:                       ## a selection of the C tests under valgrind's memcheck
	@$(RUN_TESTS) --valgrind

fuzz: build/fuzz_image          ## the image reader under libFuzzer with sanitizers, until ctrl-c or FUZZ_SECONDS; what it finds lies in build/fuzz
	@mkdir -p build/fuzz/corpus
	build/fuzz_image -timeout=60 -max_len=9000 -max_total_time=$(FUZZ_SECONDS) -artifact_prefix=build/fuzz/ build/fuzz/corpus tests/fuzz/corpus

bench: tools                    ## what everything costs on this machine, most of it as a ratio to two clock reads and a 16-byte store; BENCH="--long --json FILE"
	@CC="$(CC)" $(PYTHON) tests/bench/run.py $(BENCH)

bench-tools: tools              ## report and convert of ten million spans: seconds of CPU and memory against their limits; 7 GB of disk
	@$(PYTHON) tests/bench/tools.py

gen:                            ## write the generated headers anew
	@for d in $(DEVICES); do $(PYTHON) tools/npuprof.py gen $$d -o $${d%.toml}_regs.h || exit 1; done

install:                        ## DESTDIR, PREFIX: the headers and a pkg-config file
	install -d $(DESTDIR)$(PREFIX)/include $(DESTDIR)$(PREFIX)/lib/pkgconfig
	install -m 644 $(HEADERS) $(DESTDIR)$(PREFIX)/include
	printf 'prefix=%s\nincludedir=$${prefix}/include\n\nName: npuprof\nDescription: one timeline of host threads and NPU engines\nVersion: %s\nCflags: -I$${includedir}\nLibs: -pthread\n' \
	    '$(PREFIX)' "$$(sed -n 's/.*NPUPROF_VERSION_STRING "\(.*\)"/\1/p' npuprof.h)" > $(DESTDIR)$(PREFIX)/lib/pkgconfig/npuprof.pc

uninstall:                      ## remove what install put there
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/include/,$(HEADERS)) $(DESTDIR)$(PREFIX)/lib/pkgconfig/npuprof.pc

format:                         ## clang-format the examples
	clang-format -i examples/*.c

clean:                          ## remove what was built
	rm -rf build

help:                           ## this list
	@sed -n 's/^\([a-z][a-z-]*\):[^#]*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 16

build/examples/%: examples/%.c $(HEADERS)
	@mkdir -p $(@D) && echo "  CC $@" && $(CC) $(CFLAGS) $(WARNINGS) -I. $< -o $@ -pthread

build/examples/digits/%: examples/digits/%.c $(HEADERS) $(wildcard examples/digits/*.h)
	$(BUILD_DIGITS)

build/libnpuprof.so: tools/libnpuprof.c $(HEADERS)
	@mkdir -p $(@D) && echo "  CC $@" && $(CC) $(CFLAGS) $(WARNINGS) -I. -fPIC -shared $< -o $@ -pthread

build/libnpuprof-columns.so: tools/npuprof_columns.c
	@mkdir -p $(@D) && echo "  CC $@" && $(CC) $(CFLAGS) $(WARNINGS) -fPIC -shared $< -o $@

build/npuprof-%: tools/npuprof_%.c $(wildcard tools/convert/*.h) $(HEADERS)
	@mkdir -p $(@D) && echo "  CC $@" && $(CC) $(CFLAGS) $(WARNINGS) -I. $< -o $@ -pthread

build/fuzz_image: tests/fuzz/image.c $(wildcard tools/convert/*.h) $(HEADERS)
	@mkdir -p $(@D) && clang -O2 -g -DFUZZ -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -I. -Itests $< -o $@ -pthread
