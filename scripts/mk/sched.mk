# Tests that load the real skeleton.
$(B)/tests/unit/test_sched_bpf $(B)/tests/unit/test_process_bpf $(B)/tests/unit/test_syscalls_bpf $(B)/tests/unit/test_sample_bpf: \
	$(B)/gen/herschel.skel.h
