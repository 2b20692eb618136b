# The static program on other kernels, under emulation. Not part of `make check`: it fetches kernels (some 200 MB).
# KERNELS: names from tests/kernels/kernels.tbl, or --all; nothing: the usual ones.
KERNELS ?=
.PHONY: kernel-matrix
kernel-matrix: all sim static
	@scripts/kernel-matrix --build $(B) $(KERNELS)
