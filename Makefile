# herschel-bpf: one Makefile. `make` builds build/herschel-bpf; `make help` lists the targets.
SHELL := /bin/bash
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

B        ?= build
PREFIX   ?= /usr/local
DESTDIR  ?=
CC       ?= gcc
ifeq ($(origin CC),default)
CC       := gcc
endif
CLANG    ?= clang
BPFTOOL  ?= bpftool
PKGS     := libbpf libelf libdw libzstd zlib yajl
VERSION  := $(shell cat VERSION)
ARCH     := $(shell uname -m | sed -e s/x86_64/x86/ -e s/aarch64/arm64/)

WARN     := -Wall -Wextra -Werror -Werror=undef -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wno-unused-parameter
CFLAGS   ?= -O2 -g
CPPFLAGS += -D_GNU_SOURCE -DHB_VERSION='"$(VERSION)"' -Iuser -I$(B) -I$(B)/gen $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
CSTD     := -std=gnu11
LIBS     := $(shell pkg-config --libs $(PKGS) 2>/dev/null) -lpthread -lm

# ---- sources -------------------------------------------------------------------------------------------------------
SRC      := $(shell find user -name '*.c' -not -path 'user/controller/*' -not -name main.c | sort)
OBJ      := $(SRC:%.c=$(B)/%.o)
GEN_SRC  := $(B)/gen/exporters.c $(B)/gen/patterns.c $(B)/gen/commands.c $(B)/gen/tables.c $(B)/gen/sysno.c $(B)/gen/api_names.c $(B)/gen/html.c
GEN_SRC  += $(B)/gen/peaks.c
GEN_OBJ  := $(GEN_SRC:.c=.o)
BPF_SRC  := $(sort $(wildcard bpf/*.bpf.c))
BPF_OBJ  := $(BPF_SRC:%.c=$(B)/%.o)
TABLES   := $(sort $(wildcard user/capture/probes/tables/*.tbl))

.PHONY: all
all: $(B)/herschel-bpf

# ---- BPF: one object per family, linked into one skeleton ------------------------------------------------------------
# vmlinux.h comes from the running kernel's BTF; where there is none the minimal CO-RE header under vendor/ serves.
VMLINUX_BTF ?= /sys/kernel/btf/vmlinux
$(B)/gen/vmlinux.h:
	@mkdir -p $(@D)
	@if [ -r $(VMLINUX_BTF) ] && $(BPFTOOL) btf dump file $(VMLINUX_BTF) format c > $@.tmp 2>/dev/null; then mv $@.tmp $@; \
	 else echo "no kernel BTF at $(VMLINUX_BTF): using vendor/vmlinux/vmlinux.h"; rm -f $@.tmp; cp vendor/vmlinux/vmlinux.h $@; fi

BPF_CFLAGS := -O2 -g -target bpf -mcpu=v3 -D__TARGET_ARCH_$(ARCH) -D__bpf__ -Iuser -Ibpf -I$(B)/gen \
	      -Wall -Wextra -Werror -Wno-unused-parameter -Wno-unused-function -Wno-missing-declarations $(shell pkg-config --cflags libbpf 2>/dev/null)
$(B)/bpf/%.bpf.o: bpf/%.bpf.c $(B)/gen/vmlinux.h
	@mkdir -p $(@D)
	$(CLANG) $(BPF_CFLAGS) -MMD -MP -MF $(@:.o=.d) -c $< -o $@

$(B)/bpf/herschel.linked.o: $(BPF_OBJ)
	$(BPFTOOL) gen object $@ $^
$(B)/gen/herschel.skel.h: $(B)/bpf/herschel.linked.o
	$(BPFTOOL) gen skeleton $< name herschel > $@

# ---- generated lists: nothing is listed by hand ----------------------------------------------------------------------
EXPORT_SRC := $(sort $(wildcard user/analysis/export/*.c))
$(B)/gen/exporters.c: $(EXPORT_SRC) Makefile
	@mkdir -p $(@D)
	@names=$$(sed -n 's/^HB_EXPORTER(\([a-z_]*\)).*/\1/p' $(EXPORT_SRC)); \
	{ echo '#include "analysis/export/export.h"'; \
	  for n in $$names; do echo "extern const struct hb_exporter hb_exporter_$$n;"; done; \
	  echo 'static const struct hb_exporter *const list[] = {'; \
	  for n in $$names; do echo "	&hb_exporter_$$n,"; done; echo '	0};'; \
	  echo 'const struct hb_exporter *const *hb_exporters(void)'; echo '{'; echo '	return list;'; echo '}'; } > $@

PATTERN_SRC := $(sort $(wildcard user/analysis/patterns/*.c))
$(B)/gen/patterns.c: $(PATTERN_SRC) Makefile
	@mkdir -p $(@D)
	@names=$$(sed -n 's/^HB_PATTERN(\([a-z0-9_]*\)).*/\1/p' $(PATTERN_SRC)); \
	{ echo '#include "analysis/patterns/patterns.h"'; \
	  for n in $$names; do echo "extern const struct hb_pattern hb_pattern_$$n;"; done; \
	  echo 'static const struct hb_pattern *const list[] = {'; \
	  for n in $$names; do echo "	&hb_pattern_$$n,"; done; echo '	0};'; \
	  echo 'const struct hb_pattern *const *hb_patterns(void)'; echo '{'; echo '	return list;'; echo '}'; } > $@

CLI_SRC := $(sort $(wildcard user/cli/*.c))
$(B)/gen/commands.c: $(CLI_SRC) Makefile
	@mkdir -p $(@D)
	@names=$$(sed -n 's/^HB_COMMAND(\([a-z_]*\)).*/\1/p' $(CLI_SRC)); \
	{ echo '#include "cli/cli.h"'; \
	  for n in $$names; do echo "extern const struct hb_command hb_command_$$n;"; done; \
	  echo 'extern const struct hb_command *const hb_commands[];'; \
	  echo 'const struct hb_command *const hb_commands[] = {'; \
	  for n in $$names; do echo "	&hb_command_$$n,"; done; echo '	0};'; } > $@

$(B)/gen/tables.c: $(TABLES) Makefile
	@mkdir -p $(@D)
	@{ echo '/* probe tables, embedded */'; echo '#include "capture/probes/embedded.h"'; \
	  i=0; for t in $(TABLES); do \
	    echo "__asm__(\".section .rodata\\n.global hb_tbl_$$i\\nhb_tbl_$$i:\\n.incbin \\\"$$t\\\"\\n.global hb_tbl_end_$$i\\nhb_tbl_end_$$i:\\n.byte 0\\n.text\\n\");"; \
	    echo "extern const char hb_tbl_$$i[], hb_tbl_end_$$i[];"; i=$$((i+1)); done; \
	  echo 'const struct hb_embedded hb_embedded_tables[] = {'; \
	  i=0; for t in $(TABLES); do echo "	{\"$$(basename $$t)\", hb_tbl_$$i, hb_tbl_end_$$i},"; i=$$((i+1)); done; \
	  echo '	{0, 0, 0}};'; } > $@

# System call names of this architecture, from the kernel's own header.
$(B)/gen/sysno.c: Makefile
	@mkdir -p $(@D)
	@{ echo '#include "schema/sysno.h"'; echo 'const char *const hb_sysnos[] = {'; \
	  echo '#include <asm/unistd.h>' | $(CC) -E -dM - | sed -n 's/^#define __NR_\([a-z0-9_]*\) \([0-9]*\)$$/	[\2] = "\1",/p' | sort -t'[' -k2n; \
	  echo '};'; echo 'const unsigned hb_n_sysnos = sizeof(hb_sysnos) / sizeof(*hb_sysnos);'; } > $@

# ---- program ---------------------------------------------------------------------------------------------------------
$(filter $(B)/user/capture/session/%,$(OBJ)): | $(B)/gen/herschel.skel.h
$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CSTD) $(CPPFLAGS) $(CFLAGS) $(WARN) -MMD -MP -c $< -o $@
$(B)/gen/%.o: $(B)/gen/%.c
	$(CC) $(CSTD) $(CPPFLAGS) $(CFLAGS) $(WARN) -MMD -MP -c $< -o $@
$(B)/libhb.a: $(OBJ) $(GEN_OBJ)
	@rm -f $@
	ar qcs $@ $^
$(B)/herschel-bpf: $(B)/user/main.o $(B)/libhb.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

# ---- unit tests ------------------------------------------------------------------------------------------------------
UNIT_SRC := $(sort $(wildcard tests/unit/test_*.c))
UNIT_BIN := $(UNIT_SRC:%.c=$(B)/%)
$(B)/tests/unit/%: tests/unit/%.c $(B)/libhb.a
	@mkdir -p $(@D)
	$(CC) $(CSTD) $(CPPFLAGS) $(CFLAGS) $(WARN) -MMD -MP $< -o $@ $(B)/libhb.a $(LIBS) -lcmocka
.PHONY: unit
unit: $(UNIT_BIN)
	@rc=0; for t in $^; do $$t || rc=1; done; exit $$rc

.PHONY: clean format
clean:
	rm -rf $(B)
C_FILES = $(shell git ls-files '*.c' '*.h' '*.def')
format:
	@clang-format -i $(filter-out %.def,$(C_FILES))

-include $(wildcard scripts/mk/*.mk)
-include $(shell find $(B) -name '*.d' 2>/dev/null)
