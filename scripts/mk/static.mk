# One file for machines with another C library, an older one, or none: everything in it but the kernel. Libraries come
# from the distribution's -dev packages. libdw wants lzma and bz2 for compressed debug sections.
.PHONY: static
static: $(B)/static/herschel-bpf
STATIC_LIBS := -Wl,--start-group -lbpf -lelf -ldw -lzstd -lz -lyajl_s -llzma -lbz2 -liberty -Wl,--end-group -lpthread -ldl -lm
$(B)/static/herschel-bpf: $(B)/user/main.o $(B)/libhb.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -static -o $@ $^ $(STATIC_LIBS)
	@! readelf -lW $@ | grep -q 'program interpreter' || { echo '$@ still asks for a dynamic loader'; rm -f $@; exit 1; }
