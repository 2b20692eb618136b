# Simulated accelerator and the workloads of tests and demo. Needs only a C compiler: neither CUDA nor libbpf.
SIM      := $(B)/sim
SIM_DIR  := tests/sim
SIM_CORE := $(sort $(wildcard $(SIM_DIR)/core/*.c))
SIM_HDR  := $(wildcard $(SIM_DIR)/*.h $(SIM_DIR)/core/*.h $(SIM_DIR)/core/*.def $(SIM_DIR)/fronts/*.h $(SIM_DIR)/fronts/*.def $(SIM_DIR)/fronts/*.map)
# The first instruction decides what a probe costs: `push` in each function, no endbr64, as in the real libcudart.
SIM_CFLAGS := -std=gnu11 -D_GNU_SOURCE -O2 -g -fPIC -fvisibility=hidden -fno-omit-frame-pointer \
	      -fno-optimize-sibling-calls $(WARN)
SIM_CFLAGS += $(shell $(CC) -Werror -fno-shrink-wrap -S -x c /dev/null -o /dev/null 2>/dev/null && echo -fno-shrink-wrap)
# SIM_FRONT=push, endbr or nop5: another begin of libcuda's functions; with endbr of all libraries' (after `make clean`).
SIM_FRONT ?=
SIM_CFLAGS += $(if $(SIM_FRONT),-DHB_FRONT_$(SIM_FRONT))
ifeq ($(shell uname -m),x86_64)
SIM_CFLAGS += -fcf-protection=$(if $(filter endbr,$(SIM_FRONT)),branch,none)
endif
# With SIM_STUBS=DIR the file DIR/NAME.c (stubs.py) is linked into NAME: tests/sim/lay does so, in a SIM of its own.
SIM_STUBS ?=
SIM_STUB = $(if $(SIM_STUBS),-I$(SIM_DIR)/fronts $(wildcard $(SIM_STUBS)/$(@F).c))
SIM_LDFLAGS = $(SIM_STUB) -shared -Wl,-z,defs -Wl,-z,now -Wl,-rpath,'$$ORIGIN' -lpthread -ldl -lrt
SIM_LIBS := $(SIM)/libcuda.so.1 $(SIM)/libcudart.so.12 $(SIM)/libcudart.so.13 $(SIM)/libnccl.so.2
$(foreach f,$(if $(SIM_STUBS),$(wildcard $(SIM_STUBS)/*.c)),$(eval $(SIM)/$(notdir $(f:.c=)): $(f)))

# The table of costs is compiled in: the library is copied to wherever a program looks for it.
$(SIM)/gen/h100.tbl.h: $(SIM_DIR)/costs/h100.tbl
	@mkdir -p $(@D)
	sed 's/[\\"]/\\&/g; s/.*/"&\\n"/' $< >$@
$(SIM)/libcuda.so.1: $(SIM_CORE) $(SIM_DIR)/fronts/cuda.c $(SIM_HDR) $(SIM)/gen/h100.tbl.h
	@mkdir -p $(@D)
	$(CC) $(SIM_CFLAGS) -I$(SIM)/gen -o $@ $(SIM_CORE) $(SIM_DIR)/fronts/cuda.c $(SIM_LDFLAGS) -Wl,-soname,libcuda.so.1
# One source for both; the version node of a symbol is the SONAME.
$(SIM)/gen/libcudart%.map:
	@mkdir -p $(@D)
	printf 'libcudart%s { global: cuda*; __cuda*; hb_simulated_accelerator; local: *; };\n' '$*' >$@
$(SIM)/libcudart.so.%: $(SIM_DIR)/fronts/cudart.c $(SIM_HDR) $(SIM)/gen/libcudart.so.%.map
	$(CC) $(SIM_CFLAGS) -DHB_CUDART=$* -o $@ $< $(SIM_LDFLAGS) -Wl,-soname,$(@F) -Wl,--version-script=$(SIM)/gen/$(@F).map
.PRECIOUS: $(SIM)/gen/libcudart%.map
$(SIM)/libnccl.so.2: $(SIM_DIR)/fronts/nccl.c $(SIM_HDR)
	@mkdir -p $(@D)
	$(CC) $(SIM_CFLAGS) -o $@ $< $(SIM_LDFLAGS) -Wl,-soname,libnccl.so.2

.PHONY: sim workloads
sim: $(SIM_LIBS) workloads

# ---- workloads: what cannot be built here is left out, with the reason ----
WORK      := $(B)/workloads
WORK_DIR  := tests/workloads
WORK_BIN  := $(WORK)/accel_loop $(WORK)/cudart_real $(WORK)/storm
CUDA_HOME ?= /usr/local/cuda
CUDART_STATIC := $(wildcard $(CUDA_HOME)/lib64/libcudart_static.a)
HAVE_OPENCL := $(shell echo 'int main(void){return clGetPlatformIDs(0,0,0);}' | \
		 $(CC) -DCL_TARGET_OPENCL_VERSION=120 -include CL/cl.h -x c - -o /dev/null -lOpenCL 2>/dev/null && echo yes)
WORK_CFLAGS := -std=gnu11 -D_GNU_SOURCE -O2 -g $(WARN)
ifneq ($(CUDART_STATIC),)
WORK_BIN += $(WORK)/cudart_static
endif
ifeq ($(HAVE_OPENCL),yes)
WORK_BIN += $(WORK)/opencl_loop
endif

$(WORK)/%: $(WORK_DIR)/%.c $(WORK_DIR)/workload.h
	@mkdir -p $(@D)
	$(CC) $(WORK_CFLAGS) -o $@ $< $(WORK_LIBS) -lpthread -ldl
$(WORK)/opencl_loop: WORK_LIBS := -lOpenCL
$(WORK)/cudart_static: $(WORK_DIR)/cudart_real.c $(WORK_DIR)/workload.h
	@mkdir -p $(@D)
	$(CC) $(WORK_CFLAGS) -DHB_STATIC -o $@ $< $(CUDART_STATIC) -lpthread -ldl -lrt

workloads: $(WORK_BIN)
ifeq ($(CUDART_STATIC),)
	@echo "not built: cudart_static (no $(CUDA_HOME)/lib64/libcudart_static.a)"
endif
ifneq ($(HAVE_OPENCL),yes)
	@echo "not built: opencl_loop (no OpenCL headers or loader: apt install ocl-icd-opencl-dev)"
endif

.PHONY: check-sim
check-sim: sim
	HB_BUILD=$(abspath $(B)) python3 -m pytest -q tests/sim
