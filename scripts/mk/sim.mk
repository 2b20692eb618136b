# Simulated accelerator and the workloads of tests and demo. Needs only a C compiler: neither CUDA nor libbpf.
SIM      := $(B)/sim
SIM_DIR  := tests/sim
SIM_CORE := $(sort $(wildcard $(SIM_DIR)/core/*.c))
SIM_HDR  := $(wildcard $(SIM_DIR)/*.h $(SIM_DIR)/core/*.h $(SIM_DIR)/fronts/*.h $(SIM_DIR)/fronts/*.def $(SIM_DIR)/fronts/*.map)
# The first instruction decides what a probe costs: `push` in each function, no endbr64, as in the real libcudart.
SIM_CFLAGS := -std=gnu11 -D_GNU_SOURCE -O2 -g -fPIC -fvisibility=hidden -fno-omit-frame-pointer -fno-shrink-wrap \
	      -fno-optimize-sibling-calls $(WARN)
ifeq ($(shell uname -m),x86_64)
SIM_CFLAGS += -fcf-protection=none
endif
SIM_LDFLAGS := -shared -Wl,-z,defs -Wl,-z,now -Wl,-rpath,'$$ORIGIN' -lpthread -ldl -lrt
SIM_LIBS := $(SIM)/libcuda.so.1 $(SIM)/libcudart.so.13 $(SIM)/libnccl.so.2

$(SIM)/libcuda.so.1: $(SIM_CORE) $(SIM_DIR)/fronts/cuda.c $(SIM_HDR)
	@mkdir -p $(@D)
	$(CC) $(SIM_CFLAGS) -o $@ $(SIM_CORE) $(SIM_DIR)/fronts/cuda.c $(SIM_LDFLAGS) -Wl,-soname,libcuda.so.1
$(SIM)/libcudart.so.13: $(SIM_DIR)/fronts/cudart.c $(SIM_HDR)
	@mkdir -p $(@D)
	$(CC) $(SIM_CFLAGS) -o $@ $< $(SIM_LDFLAGS) -Wl,-soname,libcudart.so.13 -Wl,--version-script=$(SIM_DIR)/fronts/cudart.map
$(SIM)/libnccl.so.2: $(SIM_DIR)/fronts/nccl.c $(SIM_HDR)
	@mkdir -p $(@D)
	$(CC) $(SIM_CFLAGS) -o $@ $< $(SIM_LDFLAGS) -Wl,-soname,libnccl.so.2

.PHONY: sim workloads
sim: $(SIM_LIBS) workloads
