# A library that is missing or too old is said in one sentence, not by a page of compiler errors. Goals that compile
# nothing go without.
NO_LIBS := demo check check-all check-engines test-setup clean help uninstall format
ifneq ($(filter-out $(NO_LIBS),$(or $(MAKECMDGOALS),all)),)
TOO_OLD := $(shell for need in 'libbpf >= 1.1' 'libelf >= 0.186' 'libdw >= 0.186' 'libzstd >= 1.5' 'yajl >= 2.1'; do \
	     pkg-config --exists "$$need" 2>/dev/null || echo "$$need;"; done)
ifneq ($(strip $(TOO_OLD)),)
$(error Needed and not found: $(TOO_OLD) run: sudo scripts/setup)
endif
endif
