/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names that compilers made of names. */
#ifndef HB_DEMANGLE_H
#define HB_DEMANGLE_H

#include <stddef.h>

/* Name for people: C++ and Rust demangled into buf (without parameters) when it is mangled, else the name
 * itself. A hostile name costs bounded time and memory: what would be longer than buf stays mangled. */
const char *hb_demangle(const char *name, char *buf, size_t size);
/* The same for a type, as a type_info names it: "St13runtime_error" -> "std::runtime_error". */
const char *hb_demangle__type(const char *name, char *buf, size_t size);

#endif
