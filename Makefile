# SPDX-License-Identifier: MIT
CC ?= cc
CXX ?= c++
PYTHON ?= python3
CFLAGS ?= -O2 -g
WARNINGS = -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wundef
HEADERS = npuprof.h npuprof_npu.h
EXAMPLES = $(patsubst examples/%.c,build/examples/%,$(wildcard examples/*.c))
DIGITS = build/examples/digits/digits build/examples/digits/npusim
BUILD_DIGITS = @mkdir -p $(@D) && echo "  CC $@" && $(CC) -std=c11 -D_GNU_SOURCE $(CFLAGS) $(WARNINGS) -I. $< -o $@ -pthread -lm

PREFIX ?= /usr/local
DESTDIR ?=

.DEFAULT_GOAL := all
.PHONY: all demo test check generated san bench gen install uninstall format clean help

all: $(EXAMPLES) $(DIGITS)      ## build the examples

demo: $(DIGITS)                 ## run the digits network on the simulated NPU, print the tables, write digits.json
	@$(RUN) build/examples/digits/digits --output digits.json

test:                           ## the tests; ends with "N passed, N failed"
	@CC="$(CC)" CXX="$(CXX)" RUN="$(RUN)" $(PYTHON) tests/run.py

check: test generated           ## everything a machine with a compiler and Python 3 can check

generated:                      ## are the generated headers what the generator writes?
	@$(PYTHON) tools/npuprof.py gen --check examples/digits/npusim.toml -o examples/digits/npusim_regs.h

san:                            ## the C tests under address + undefined, then thread sanitizer
	@CC="$(CC)" CXX="$(CXX)" $(PYTHON) tests/run.py --sanitize address,undefined
	@CC="$(CC)" CXX="$(CXX)" $(PYTHON) tests/run.py --sanitize thread

bench: build/bench              ## what a span costs on this machine, as a ratio to two clock reads and a 16-byte store
	@build/bench

gen:                            ## write the generated headers anew
	$(PYTHON) tools/npuprof.py gen examples/digits/npusim.toml -o examples/digits/npusim_regs.h

install:                        ## DESTDIR, PREFIX: the headers and a pkg-config file
	install -d $(DESTDIR)$(PREFIX)/include $(DESTDIR)$(PREFIX)/lib/pkgconfig
	install -m 644 $(HEADERS) $(DESTDIR)$(PREFIX)/include
	printf 'prefix=%s\nincludedir=$${prefix}/include\n\nName: npuprof\nDescription: one timeline of host threads and NPU engines\nVersion: %s\nCflags: -I$${includedir}\n' \
	    '$(PREFIX)' "$$(sed -n 's/.*NPUPROF_VERSION_STRING "\(.*\)"/\1/p' npuprof.h)" > $(DESTDIR)$(PREFIX)/lib/pkgconfig/npuprof.pc

uninstall:                      ## remove what install put there
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/include/,$(HEADERS)) $(DESTDIR)$(PREFIX)/lib/pkgconfig/npuprof.pc

format:                         ## clang-format the examples
	clang-format -i examples/*.c

clean:                          ## remove what was built
	rm -rf build

help:                           ## this list
	@sed -n 's/^\([a-z][a-z]*\):[^#]*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 16

build/examples/%: examples/%.c $(HEADERS)
	@mkdir -p $(@D) && echo "  CC $@" && $(CC) $(CFLAGS) $(WARNINGS) -I. $< -o $@ -pthread

build/examples/digits/%: examples/digits/%.c $(HEADERS) $(wildcard examples/digits/*.h)
	$(BUILD_DIGITS)

build/bench: tests/parts/bench.c $(HEADERS)
	@mkdir -p $(@D) && $(CC) -O2 -I. $< -o $@ -pthread
