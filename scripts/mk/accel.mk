# Libraries that the tests of the plan and of attaching probe.
FIX := $(B)/tests/unit/fixtures
$(FIX)/libhbdrv.so.1: tests/unit/fixtures/hbdrv.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -g -fPIC -shared -fno-optimize-sibling-calls -Wl,-soname,libhbdrv.so.1 $< -o $@
$(FIX)/libhbrt.so.1: tests/unit/fixtures/hbrt.c $(FIX)/libhbdrv.so.1
	$(CC) -std=gnu11 -O2 -g -fPIC -shared -fno-optimize-sibling-calls -Wl,-soname,libhbrt.so.1 $< -o $@ \
	  -L$(FIX) -l:libhbdrv.so.1 -Wl,-rpath,'$$ORIGIN'
$(FIX)/libhbrt.e8e8b82a.so.1: $(FIX)/libhbrt.so.1
	cp $< $@
$(FIX)/libhbdrv-stripped.so.1: $(FIX)/libhbdrv.so.1
	echo 'int nothing_here(void); int nothing_here(void) { return 0; }' | $(CC) -x c -shared -fPIC - -o $@

$(B)/tests/unit/test_plan $(B)/tests/unit/test_attach: \
  | $(FIX)/libhbdrv.so.1 $(FIX)/libhbrt.so.1 $(FIX)/libhbrt.e8e8b82a.so.1 $(FIX)/libhbdrv-stripped.so.1
