# The scenarios' workloads that are written in C (the others are Python).
SCENARIO_DIR := tests/scenarios/work
SCENARIO_BIN := $(patsubst $(SCENARIO_DIR)/%.c,$(B)/scenarios/%,$(wildcard $(SCENARIO_DIR)/*.c))
$(B)/scenarios/%: $(SCENARIO_DIR)/%.c $(SCENARIO_DIR)/planted.h tests/workloads/workload.h
	@mkdir -p $(@D)
	$(CC) $(WORK_CFLAGS) -fno-omit-frame-pointer -Itests/workloads -o $@ $< -lpthread -ldl
.PHONY: scenario-programs
scenario-programs: $(SCENARIO_BIN)
test-programs: scenario-programs
