# SPDX-License-Identifier: MIT
CC ?= cc
CXX ?= c++
PYTHON ?= python3
CFLAGS ?= -O2 -g
WARNINGS = -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wundef
FLAGS = $(CPPFLAGS) $(CFLAGS) $(WARNINGS) $(LDFLAGS)
HEADERS = npuprof.h npuprof_npu.h
EXAMPLES = $(patsubst examples/%.c,build/examples/%,$(wildcard examples/*.c))
DEVICES = $(wildcard examples/*/*.toml)
DIGITS = build/examples/digits/digits build/examples/digits/npusim
STACK = build/examples/stack
STACK_JSON = stack.json
TOOLS = build/libnpuprof.so build/libnpuprof-columns.so build/libnpuprof-collect.so build/npuprof-convert \
    build/npuprof-top build/npuprof-judge build/npuprof_python.so
RUN_TESTS = CC="$(CC)" CXX="$(CXX)" RUN="$(RUN)" $(PYTHON) tests/run.py
BUILD_DIGITS = @mkdir -p $(@D) && echo "  CC $@" && \
    $(CC) -std=c11 -D_GNU_SOURCE $(CFLAGS) $(WARNINGS) -I. $< -o $@ -pthread -lm

VERSION = $$(sed -n 's/^.define NPUPROF_VERSION_STRING "\(.*\)"/\1/p' npuprof.h)

PREFIX ?= /usr/local
DESTDIR ?=
INSTALLED = $(DESTDIR)$(PREFIX)
# lib or share: where pkg-config's and CMake's files go. Why share in Debian: its cross compilers look there.
PACKAGES ?= lib
ROOMS = $(INSTALLED)/include $(INSTALLED)/$(PACKAGES)/pkgconfig $(INSTALLED)/$(PACKAGES)/cmake/npuprof
# Below PREFIX: the Python package of the command, which looks in lib/npuprof and in Python's own folders.
PYTHONDIR ?= lib/npuprof
DOCDIR ?= share/doc/npuprof
INSTALL = $(PYTHON) tools/packaging/install.py
FUZZ_SECONDS ?= 0
ROOM ?= record/ public/hot.h arena/ clock/ read/
SAMPLE ?= 40

.DEFAULT_GOAL := all
.PHONY: all headers demo demo-stack runtimes report pictures tools test rest check coverage generated house qemu
.PHONY: baremetal size san soak
.PHONY: install-headers install-tools install-docs mutation valgrind fuzz bench bench-tools gen install uninstall dist format clean help

all: $(EXAMPLES) $(DIGITS)      ## build the examples

demo: $(DIGITS)                 ## run a network on the simulated NPU: prints tables, writes digits.json
	@$(RUN) build/examples/digits/digits --output digits.json

demo-stack: $(STACK)/libstackruntime.so build/examples/digits/npusim   ## Python, C++, C and NPU on one timeline
	@$(PYTHON) examples/stack/model.py --libraries $(STACK) --output $(STACK_JSON)
	@$(PYTHON) tools/npuprof.py check $(STACK_JSON)

runtimes: build/examples/runtimes/libnpuprof_ort_ep.so   ## build the profiler for ONNX Runtime: examples/runtimes

tools: $(TOOLS)                 ## build the parts of the tools that are in C: see tools/README.md

report: $(DIGITS)               ## the demo's run as a page, a sheet and text, in build/report
	@mkdir -p build/report
	@cd build/report && $(RUN) ../examples/digits/digits --output digits.json > digits.txt
	@cd build/report && $(PYTHON) ../../tools/npuprof.py report digits.json --html digits.html --csv digits.csv
	@echo "build/report: digits.html, digits.csv, digits.txt, digits.json"

pictures: $(DIGITS)             ## make the README's pictures of such a run (needs chromium, npm and pngquant)
	@PYTHONPATH=tests $(PYTHON) tests/web/pictures.py

test:                           ## run the quick tests; ends with "N passed, N failed"
	@$(MAKE) --no-print-directory -s -j2 tools
	@$(RUN_TESTS) --quick

rest: tools                     ## run the tests that make test leaves out
	@$(RUN_TESTS) --rest

check: test rest generated house coverage    ## everything that a compiler and Python can check

coverage:                       ## print the lines and branches that the tests run, by room (needs gcc)
	@$(RUN_TESTS) --coverage

mutation:                       ## break the library, and see if a test notices: ROOM="record/ clock/" SAMPLE=40
	@$(PYTHON) tests/mutation/run.py --sample $(SAMPLE) $(ROOM)

headers:                        ## join the parts in src/ to npuprof.h and npuprof_npu.h
	@$(PYTHON) tools/join.py

house:                          ## check the laws of src/README.md: layers, sizes, names
	@CC="$(CC)" CXX="$(CXX)" $(PYTHON) tools/house.py

generated: build/npuprof-judge  ## check that the joined and the generated headers are up to date
	@$(PYTHON) tools/join.py --check
	@for d in $(DEVICES); do $(PYTHON) tools/npuprof.py gen --check $$d -o $${d%.toml}_regs.h || exit 1; done

qemu:                           ## run the library on real devices of emulated x86 and arm64 machines
	@$(PYTHON) tests/qemu/run.py

baremetal:                      ## run the library on microcontrollers and other processors, all emulated
	@$(PYTHON) tests/baremetal/run.py

size:                           ## print what npuprof takes on a Cortex-M0+ and here, in bytes, with limits
	@$(PYTHON) tests/baremetal/run.py --sizes
	@CC="$(CC)" $(PYTHON) tests/bench/sizes.py

san:                            ## run the C tests under the address, undefined and thread sanitizers
	@$(RUN_TESTS) --sanitize address,undefined
	@$(RUN_TESTS) --sanitize thread

soak:                           ## run the large tests: 10^8 spans, a million threads, 200 kills, every interrupt
	@$(RUN_TESTS) --soak
	@$(PYTHON) tests/baremetal/run.py --soak

valgrind:                       ## run a selection of the C tests under valgrind
	@$(RUN_TESTS) --valgrind

fuzz: build/fuzz_image          ## fuzz the image reader until ctrl-c, or FUZZ_SECONDS; see build/fuzz
	@mkdir -p build/fuzz/corpus
	build/fuzz_image -timeout=60 -max_len=9000 -max_total_time=$(FUZZ_SECONDS) \
	    -artifact_prefix=build/fuzz/ build/fuzz/corpus tests/fuzz/corpus

bench: tools                    ## measure what everything costs here; BENCH="--long --json FILE"
	@CC="$(CC)" $(PYTHON) tests/bench/run.py $(BENCH)

bench-tools: tools              ## measure report and convert on ten million spans; takes 7 GB of disk
	@$(PYTHON) tests/bench/tools.py

gen: build/npuprof-judge        ## write the headers of the devices anew
	@for d in $(DEVICES); do $(PYTHON) tools/npuprof.py gen $$d -o $${d%.toml}_regs.h || exit 1; done

install: install-headers install-tools install-docs    ## install headers, the command npuprof, docs (DESTDIR, PREFIX)

install-headers:                # for pkg-config and CMake, too
	install -d $(ROOMS)
	install -m 644 $(HEADERS) $(INSTALLED)/include
	printf '%s\n' 'prefix=$(PREFIX)' 'includedir=$${prefix}/include' '' 'Name: npuprof' \
	    'Description: one timeline of host threads and NPU engines' "Version: $(VERSION)" \
	    'Cflags: -I$${includedir}' 'Libs: -pthread' > $(INSTALLED)/$(PACKAGES)/pkgconfig/npuprof.pc
	install -m 644 tools/packaging/cmake/npuprof-config.cmake $(INSTALLED)/$(PACKAGES)/cmake/npuprof
	sed "s/@VERSION@/$(VERSION)/" tools/packaging/cmake/npuprof-config-version.cmake.in \
	    > $(INSTALLED)/$(PACKAGES)/cmake/npuprof/npuprof-config-version.cmake
	chmod 644 $(INSTALLED)/$(PACKAGES)/pkgconfig/npuprof.pc $(INSTALLED)/$(PACKAGES)/cmake/npuprof/*

install-tools:                  # without a C compiler, too: then what needs one is left out, and said
	@if command -v $(firstword $(CC)) > /dev/null; then $(MAKE) --no-print-directory tools; fi
	$(INSTALL) tools $(INSTALLED) $(PYTHONDIR)

install-docs:
	$(INSTALL) docs $(INSTALLED) $(DOCDIR) $(SKIP)

uninstall:                      ## remove what install put there
	rm -f $(addprefix $(INSTALLED)/include/,$(HEADERS)) $(INSTALLED)/$(PACKAGES)/pkgconfig/npuprof.pc
	rm -f $(INSTALLED)/$(PACKAGES)/cmake/npuprof/npuprof-config*.cmake
	rmdir $(INSTALLED)/$(PACKAGES)/cmake/npuprof 2>/dev/null || true
	$(INSTALL) uninstall $(INSTALLED) $(PYTHONDIR) $(DOCDIR)

dist:                           ## make the release archive and what package managers install it with
	$(PYTHON) tools/packaging/dist.py

format:                         ## clang-format the C lines that are not committed yet; the law of 110 columns
	git clang-format --force --extensions c,h,cpp

clean:                          ## remove what was built
	rm -rf build

help:                           ## this list
	@sed -n 's/^\([a-z][a-z-]*\):[^#]*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

build/examples/%: examples/%.c $(HEADERS)
	@mkdir -p $(@D) && echo "  CC $@" && $(CC) $(CFLAGS) $(WARNINGS) -I. $< -o $@ -pthread

build/examples/digits/%: examples/digits/%.c $(HEADERS) $(wildcard examples/digits/*.h)
	$(BUILD_DIGITS)

SHARED = -I. -fPIC -shared -Lbuild -Wl,-rpath,$(CURDIR)/build
$(STACK)/libstackdriver.so: examples/stack/driver.c examples/stack/driver.h build/libnpuprof.so
	@mkdir -p $(@D) && echo "  CC $@" && \
	    $(CC) -std=c11 $(CFLAGS) $(WARNINGS) $(SHARED) $< -o $@ -lnpuprof -pthread

$(STACK)/libstackruntime.so: examples/stack/runtime.cpp $(STACK)/libstackdriver.so
	@echo "  CXX $@" && $(CXX) -std=c++11 $(CFLAGS) $(WARNINGS) $(SHARED) -L$(@D) -Wl,-rpath,'$$ORIGIN' \
	    $< -o $@ -lstackdriver -lnpuprof -pthread

build/examples/runtimes/libnpuprof_ort_ep.so: $(wildcard examples/runtimes/onnxruntime/*) build/libnpuprof.so
	@mkdir -p $(@D) && echo "  CC $@" && $(CC) -std=gnu11 $(CFLAGS) $(WARNINGS) $(SHARED) \
	    examples/runtimes/onnxruntime/npuprof_ort_ep.c -o $@ -lnpuprof -pthread

build/libnpuprof.so: tools/libnpuprof.c $(HEADERS)
	@mkdir -p $(@D) && echo "  CC $@" && $(CC) $(FLAGS) -I. -fPIC -shared $< -o $@ -pthread

build/columns_loops.h: $(wildcard tools/npuprof/loops/*.py) tools/npuprof/base/contract.py
	@mkdir -p $(@D) && PYTHONPATH=tools $(PYTHON) -m npuprof.loops.to_c > $@

build/libnpuprof-columns.so: tools/npuprof_columns.c build/columns_loops.h
	@mkdir -p $(@D) && echo "  CC $@" && $(CC) $(FLAGS) -fwrapv -fPIC -shared -Ibuild $< -o $@

build/libnpuprof-collect.so: tools/npuprof_collect.c $(wildcard tools/collect/*.h) $(HEADERS)
	@mkdir -p $(@D) && echo "  CC $@" && $(CC) -std=gnu11 $(FLAGS) -I. -fPIC -shared $< -o $@ -pthread -ldl

# Why not in C11 alone: Python's header needs what a system adds. One file serves all versions from 3.11 on.
PYTHON_H = $(shell $(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("include"))')
DYNAMIC = $(if $(filter Darwin,$(shell uname)),-undefined dynamic_lookup)
build/npuprof_python.so: tools/npuprof_python.c npuprof.h
	@mkdir -p $(@D) && if [ -e "$(PYTHON_H)/Python.h" ]; then echo "  CC $@" && \
	    $(CC) -std=gnu11 $(FLAGS) -isystem "$(PYTHON_H)" -I. -fPIC -shared $(DYNAMIC) $< -o $@; \
	    else echo "  without Python.h (package python3-dev) a span in Python costs ten times as much"; fi

build/npuprof-judge: tools/npuprof_describe.c
build/npuprof-%: tools/npuprof_%.c $(wildcard tools/convert/*.h) $(HEADERS)
	@mkdir -p $(@D) && echo "  CC $@" && $(CC) $(FLAGS) -I. $< -o $@ -pthread

build/fuzz_image: tests/fuzz/image.c $(wildcard tools/convert/*.h) $(HEADERS)
	@mkdir -p $(@D)
	@clang -O2 -g -DFUZZ -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -I. -Itests $< \
	    -o $@ -pthread
