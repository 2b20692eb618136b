# Tests that load the real skeleton.
$(addprefix $(B)/tests/unit/test_,$(addsuffix _bpf,sched sched_time process syscalls sample)): $(B)/gen/herschel.skel.h
