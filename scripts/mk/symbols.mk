# Demangling: libiberty (Debian and Ubuntu: libiberty-dev; Fedora: binutils-devel). Static archive, no run-time dependency.
LIBS     += -liberty
