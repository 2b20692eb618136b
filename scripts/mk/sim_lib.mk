# The simulated accelerator's libraries of linear algebra and of management (the rest: sim.mk).
SIM_BLAS := $(foreach v,12 13,$(SIM)/libcublasLt.so.$(v) $(SIM)/libcublas.so.$(v))

# The version node of a symbol is the SONAME. What libcublas takes from libcublasLt is ours (hb_sim_blas_*).
$(SIM)/gen/libcublas%.map:
	@mkdir -p $(@D)
	printf 'libcublas%s { global: cublas*; hb_sim_*; local: *; };\n' '$*' >$@
$(SIM)/libcublasLt.so.%: $(SIM_DIR)/fronts/cublaslt.c $(SIM_HDR) $(SIM)/gen/libcublasLt.so.%.map
	$(CC) $(SIM_CFLAGS) -DHB_CUBLAS_MAJOR=$* -o $@ $< $(SIM_LDFLAGS) -Wl,-soname,$(@F) \
		-Wl,--version-script=$(SIM)/gen/$(@F).map
$(SIM)/libcublas.so.%: $(SIM_DIR)/fronts/cublas.c $(SIM_HDR) $(SIM)/libcublasLt.so.% $(SIM)/gen/libcublas.so.%.map
	$(CC) $(SIM_CFLAGS) -DHB_CUBLAS_MAJOR=$* -o $@ $< $(SIM)/libcublasLt.so.$* $(SIM_LDFLAGS) -Wl,-soname,$(@F) \
		-Wl,--version-script=$(SIM)/gen/$(@F).map
.PRECIOUS: $(SIM)/gen/libcublas%.map

sim: $(SIM_BLAS)

# Does not load the driver, as the real one.
$(SIM)/libnvidia-ml.so.1: $(SIM_DIR)/fronts/nvml.c $(SIM_HDR)
	@mkdir -p $(@D)
	$(CC) $(SIM_CFLAGS) -o $@ $< $(SIM_LDFLAGS) -Wl,-soname,$(@F)
sim: $(SIM)/libnvidia-ml.so.1
