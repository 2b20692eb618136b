# Installation. Nothing is generated here: what is built is copied.
.PHONY: install uninstall
BINDIR := $(DESTDIR)$(PREFIX)/bin
SHARE  := $(DESTDIR)$(PREFIX)/share
DOCS   := README.md CHANGELOG.md LICENSE $(wildcard docs/*.md)

install: $(B)/herschel-bpf
	install -D -m 755 $(B)/herschel-bpf $(BINDIR)/herschel-bpf
	install -D -m 644 docs/man/herschel-bpf.8 $(SHARE)/man/man8/herschel-bpf.8
	install -D -m 644 scripts/completion.bash $(SHARE)/bash-completion/completions/herschel-bpf
	install -D -m 644 user/analysis/model/peaks.tbl $(SHARE)/herschel-bpf/peaks.tbl
	install -d $(SHARE)/doc/herschel-bpf
	install -m 644 $(DOCS) $(SHARE)/doc/herschel-bpf/
uninstall:
	rm -f $(BINDIR)/herschel-bpf $(SHARE)/man/man8/herschel-bpf.8 $(SHARE)/bash-completion/completions/herschel-bpf
	rm -rf $(SHARE)/doc/herschel-bpf $(SHARE)/herschel-bpf
