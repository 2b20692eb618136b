/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Symbols of this very program, of files made byte by byte, and of programs made by the compiler. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "capture/symbols/file_map.h"
#include "capture/symbols/symbols.h"

/* ---- a file made here ---- */

#define TEXT_VADDR 0x401000
#define TEXT_OFF   0x1000
#define TEXT_SIZE  0x1000
#define DATA_VADDR 0x603000
#define DATA_OFF   0x2000
#define IMAGE	   0x3000

struct image {
	unsigned char bytes[IMAGE];
	Elf64_Sym syms[32];
	unsigned n;
	char strs[1024];
	size_t strs_n;
};

static void add(struct image *m, const char *name, u64 value, u64 size, unsigned type, unsigned shndx)
{
	Elf64_Sym *s = &m->syms[++m->n];

	*s = (Elf64_Sym){.st_name = (Elf64_Word)m->strs_n + 1,
			 .st_info = (unsigned char)ELF64_ST_INFO(STB_GLOBAL, type),
			 .st_shndx = (Elf64_Section)shndx,
			 .st_value = value,
			 .st_size = size};
	m->strs_n += (size_t)sprintf(m->strs + m->strs_n + 1, "%s", name) + 1;
}

/* ELF header, two segments, a .dynsym and its .dynstr, a build-id note. */
static void finish(struct image *m)
{
	static const unsigned char note[] = {4, 0, 0,	0,   4,	  0, 0,	   0,	 3,    0,
					     0, 0, 'G', 'N', 'U', 0, 0xde, 0xad, 0xbe, 0xef};
	Elf64_Ehdr *h = (void *)m->bytes;
	Elf64_Phdr *p = (void *)(m->bytes + 0x40);
	Elf64_Shdr *s = (void *)(m->bytes + 0x200);

	memcpy(h->e_ident, ELFMAG "\2\1\1", 7);
	h->e_type = ET_DYN;
	h->e_machine = EM_X86_64;
	h->e_version = 1;
	h->e_phoff = 0x40;
	h->e_shoff = 0x200;
	h->e_ehsize = sizeof(*h);
	h->e_phentsize = sizeof(*p);
	h->e_phnum = 3;
	h->e_shentsize = sizeof(*s);
	h->e_shnum = 3;
	p[0] = (Elf64_Phdr){PT_LOAD,	PF_R | PF_X, TEXT_OFF,	TEXT_VADDR,
			    TEXT_VADDR, TEXT_SIZE,   TEXT_SIZE, 0x1000};
	p[1] = (Elf64_Phdr){PT_LOAD, PF_R | PF_W, DATA_OFF, DATA_VADDR, DATA_VADDR, 0x100, 0x100, 0x1000};
	p[2] = (Elf64_Phdr){PT_NOTE, PF_R, 0x180, 0, 0, sizeof(note), sizeof(note), 4};
	memcpy(m->bytes + 0x180, note, sizeof(note));
	s[1] = (Elf64_Shdr){0, SHT_DYNSYM,	 0, 0, 0x2200, (m->n + 1) * sizeof(Elf64_Sym), 2, 1,
			    8, sizeof(Elf64_Sym)};
	s[2] = (Elf64_Shdr){0, SHT_STRTAB, 0, 0, 0x2800, m->strs_n + 1, 0, 0, 1, 0};
	memcpy(m->bytes + 0x2200, m->syms, (m->n + 1) * sizeof(Elf64_Sym));
	memcpy(m->bytes + 0x2800, m->strs, m->strs_n + 1);
}

static struct hb_elf *open_image(struct image *m)
{
	struct hb_error e = {0};
	struct hb_elf *f;

	finish(m);
	f = hb_elf__open_memory(m->bytes, sizeof(m->bytes), &e);
	if (!f)
		fail_msg("%s", e.text);
	return f;
}

static enum hb_sym_state state_of(const struct hb_elf *f, const char *name)
{
	struct hb_sym s;

	assert_int_equal(hb_elf__find(f, name, &s), 0);
	if (s.state != HB_SYM_OK)
		assert_int_equal(s.offset, 0);
	return s.state;
}

static void every_state_has_its_reason(void **state)
{
	static struct image m;
	struct hb_elf *f;
	struct hb_sym s;

	add(&m, "good", TEXT_VADDR + 0x10, 16, STT_FUNC, 1);
	add(&m, "imported", 0, 0, STT_FUNC, SHN_UNDEF);
	add(&m, "plt_imported", TEXT_VADDR + 0x20, 0, STT_FUNC, SHN_UNDEF);
	add(&m, "resolver", TEXT_VADDR + 0x30, 16, STT_GNU_IFUNC, 1);
	add(&m, "zero", 0, 16, STT_FUNC, 1);
	add(&m, "in_data", DATA_VADDR, 16, STT_FUNC, 1);
	add(&m, "nowhere", 0x900000, 16, STT_FUNC, 1);
	add(&m, "absolute", TEXT_VADDR + 0x40, 16, STT_FUNC, SHN_ABS);
	add(&m, "variable", DATA_VADDR, 8, STT_OBJECT, 1);
	add(&m, "versioned@@V_2", TEXT_VADDR + 0x50, 16, STT_FUNC, 1);
	f = open_image(&m);
	assert_int_equal(hb_elf__find(f, "good", &s), 0);
	assert_int_equal(s.state, HB_SYM_OK);
	assert_int_equal(s.offset, TEXT_OFF + 0x10);
	assert_true(s.dynamic);
	assert_int_equal(state_of(f, "imported"), HB_SYM_UNDEFINED);
	assert_int_equal(state_of(f, "plt_imported"), HB_SYM_UNDEFINED);
	assert_int_equal(state_of(f, "resolver"), HB_SYM_IFUNC);
	assert_int_equal(state_of(f, "zero"), HB_SYM_ZERO);
	assert_int_equal(state_of(f, "in_data"), HB_SYM_NOCODE);
	assert_int_equal(state_of(f, "nowhere"), HB_SYM_NOCODE);
	assert_int_equal(state_of(f, "absolute"), HB_SYM_NOCODE);
	assert_int_equal(state_of(f, "variable"), HB_SYM_NOTFUNC);
	assert_int_equal(hb_elf__find(f, "versioned", &s), 0);
	assert_string_equal(s.name, "versioned");
	assert_int_equal(hb_elf__find(f, "versioned@@V_2", &s), -ENOENT);
	assert_int_equal(hb_elf__find(f, "goo", &s), -ENOENT);
	for (int i = HB_SYM_OK; i <= HB_SYM_NOTFUNC; i++)
		assert_true(strlen(hb_sym_state__why((enum hb_sym_state)i)) > 10);
	assert_string_equal(hb_elf__build_id(f), "deadbeef");
	assert_false(hb_elf__has_symtab(f));
	assert_true(hb_elf__exports(f, "good"));
	assert_false(hb_elf__exports(f, "imported"));
	hb_elf__close(f);
}

static int collect(const struct hb_sym *s, void *arg)
{
	strcat(strcat(arg, s->name), " ");
	return strcmp(s->name, "stop") == 0 ? 7 : 0;
}

static void globs_find_each_symbol_once(void **state)
{
	static struct image m;
	char got[256] = "";
	struct hb_elf *f;

	add(&m, "cuMemcpy_v2", TEXT_VADDR + 0x10, 16, STT_FUNC, 1);
	add(&m, "cuMemcpy", TEXT_VADDR + 0x20, 16, STT_FUNC, 1);
	add(&m, "cuMemcpy", TEXT_VADDR + 0x20, 16, STT_FUNC, 1);
	add(&m, "cuMemcpy", TEXT_VADDR + 0x30, 16, STT_FUNC, 1);
	add(&m, "cuMemset", TEXT_VADDR + 0x20, 16, STT_FUNC, 1);
	add(&m, "stop", TEXT_VADDR + 0x40, 16, STT_FUNC, 1);
	add(&m, "stop_not", TEXT_VADDR + 0x40, 16, STT_FUNC, 1);
	f = open_image(&m);
	assert_int_equal(hb_elf__each(f, "cuMemcpy*", collect, got), 0);
	assert_string_equal(got, "cuMemcpy cuMemcpy cuMemcpy_v2 ");
	got[0] = 0;
	assert_int_equal(hb_elf__each(f, "*set", collect, got), 0);
	assert_string_equal(got, "cuMemset ");
	got[0] = 0;
	assert_int_equal(hb_elf__each(f, "stop*", collect, got), 7);
	assert_string_equal(got, "stop ");
	got[0] = 0;
	assert_int_equal(hb_elf__each(f, "cuMemcp", collect, got), 0);
	assert_string_equal(got, "");
	hb_elf__close(f);
}

static const char *name_at(struct hb_elf *f, u64 offset)
{
	static struct hb_sym s;

	return hb_elf__at(f, offset, &s) ? s.name : NULL;
}

static void offsets_find_the_function_that_covers_them(void **state)
{
	static struct image m;
	struct hb_elf *f;

	add(&m, "outer", TEXT_VADDR + 0x100, 0x100, STT_FUNC, 1);
	add(&m, "inner", TEXT_VADDR + 0x120, 0x10, STT_FUNC, 1);
	add(&m, "__alias", TEXT_VADDR + 0x300, 0x10, STT_FUNC, 1);
	add(&m, "alias", TEXT_VADDR + 0x300, 0x10, STT_FUNC, 1);
	add(&m, "unsized", TEXT_VADDR + 0x400, 0, STT_FUNC, 1);
	add(&m, "after", TEXT_VADDR + 0x500, 0x10, STT_FUNC, 1);
	add(&m, "resolver", TEXT_VADDR + 0x600, 0x10, STT_GNU_IFUNC, 1);
	add(&m, "endless", TEXT_VADDR + 0x800, UINT64_MAX, STT_FUNC, 1);
	f = open_image(&m);
	assert_null(name_at(f, 0));
	assert_null(name_at(f, TEXT_OFF + 0xff));
	assert_string_equal(name_at(f, TEXT_OFF + 0x100), "outer");
	assert_string_equal(name_at(f, TEXT_OFF + 0x125), "inner");
	assert_string_equal(name_at(f, TEXT_OFF + 0x130), "outer");
	assert_null(name_at(f, TEXT_OFF + 0x200));
	assert_string_equal(name_at(f, TEXT_OFF + 0x30f), "alias");
	assert_string_equal(name_at(f, TEXT_OFF + 0x4ff), "unsized");
	assert_null(name_at(f, TEXT_OFF + 0x510));
	assert_string_equal(name_at(f, TEXT_OFF + 0x608), "resolver");
	assert_string_equal(name_at(f, TEXT_OFF + 0xfff), "endless");
	assert_null(name_at(f, TEXT_OFF + TEXT_SIZE)); /* its size ends with the segment */
	hb_elf__trim(f);
	assert_string_equal(name_at(f, TEXT_OFF + 0x125), "inner");
	hb_elf__close(f);
}

static void only_a_first_instruction_is_an_entry(void **state)
{
	static const unsigned char endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	static struct image m;
	struct hb_elf *f;

	add(&m, "plain", TEXT_VADDR + 0x10, 0x20, STT_FUNC, 1);
	add(&m, "marked", TEXT_VADDR + 0x40, 0x20, STT_FUNC, 1);
	memcpy(m.bytes + TEXT_OFF + 0x40, endbr64, sizeof(endbr64));
	f = open_image(&m);
	assert_true(hb_elf__is_entry(f, TEXT_OFF + 0x10));
	assert_false(hb_elf__is_entry(f, TEXT_OFF + 0x14));
	assert_true(hb_elf__is_entry(f, TEXT_OFF + 0x40));
	assert_true(hb_elf__is_entry(f, TEXT_OFF + 0x44));
	assert_false(hb_elf__is_entry(f, TEXT_OFF + 0x45));
	assert_false(hb_elf__is_entry(f, 0));
	assert_false(hb_elf__is_entry(f, UINT64_MAX));
	hb_elf__close(f);
}

static void refused(const void *data, size_t size, int err, const char *words)
{
	struct hb_error e = {0};

	assert_null(hb_elf__open_memory(data, size, &e));
	assert_int_equal(e.err, err);
	if (!strstr(e.text, words))
		fail_msg("\"%s\" does not say \"%s\"", e.text, words);
}

static void what_is_no_library_is_refused_with_its_own_sentence(void **state)
{
	static struct image m, good;
	Elf64_Ehdr *h = (void *)m.bytes;
	struct hb_error e = {0};

	finish(&good);
	refused("", 0, -ENOEXEC, "not an ELF");
	refused("#!/bin/sh\necho hello", 20, -ENOEXEC, "not an ELF");
	m = good;
	refused(m.bytes, 17, -ENOEXEC, "damaged");
	m.bytes[EI_CLASS] = ELFCLASS32;
	refused(m.bytes, IMAGE, -ENOTSUP, "32-bit");
	m = good;
	m.bytes[EI_DATA] = ELFDATA2MSB;
	refused(m.bytes, IMAGE, -ENOEXEC, "big-endian");
	m = good;
	h->e_machine = EM_RISCV;
	refused(m.bytes, IMAGE, -ENOTSUP, "another machine");
	m = good;
	h->e_type = ET_REL;
	refused(m.bytes, IMAGE, -ENOEXEC, "neither a program nor");
	m = good;
	h->e_phnum = 0;
	refused(m.bytes, IMAGE, -ENOEXEC, "program headers");
	m = good;
	h->e_phoff = UINT64_MAX - 10;
	refused(m.bytes, IMAGE, -ENOEXEC, "");

	assert_null(hb_elf__open("/nonexistent", &e));
	assert_int_equal(e.err, -ENOENT);
	hb_error__clear(&e);
	assert_null(hb_elf__open("/proc", &e));
	assert_non_null(strstr(e.text, "/proc: not a regular file"));
	hb_error__clear(&e);
	assert_null(hb_elf__open("/dev/zero", &e));
	assert_non_null(strstr(e.text, "not a regular file"));
}

/* Cut anywhere, a file is either refused or answers without reading past its end. */
static void a_file_cut_anywhere_is_survived(void **state)
{
	static struct image m;
	struct hb_sym s;

	add(&m, "good", TEXT_VADDR + 0x10, 16, STT_FUNC, 1);
	finish(&m);
	for (size_t n = 0; n <= IMAGE; n += n < 0x300 ? 1 : 97) {
		unsigned char *cut =
		    malloc(n ? n : 1); /* on the heap, so that valgrind and ASan see the end */
		struct hb_elf *f;

		assert_non_null(cut);
		memcpy(cut, m.bytes, n);
		f = hb_elf__open_memory(cut, n, NULL);
		if (f) {
			hb_elf__find(f, "good", &s);
			hb_elf__at(f, TEXT_OFF + 0x10, &s);
			hb_elf__is_entry(f, TEXT_OFF + 0x10);
			hb_elf__static_runtime(f);
		}
		hb_elf__close(f);
		free(cut);
	}
}

/* ---- this program ---- */

int hb_test_landmark(int x);
__attribute__((noinline, noclone, used)) int hb_test_landmark(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x * 3;
}

static int base_of_program(struct dl_phdr_info *i, size_t size, void *arg)
{
	*(u64 *)arg = i->dlpi_addr;
	return 1;
}

/* Its owner cuts the file while we hold it: what is gone is not found, nothing is read that is not there. */
static void a_file_cut_while_it_is_open_is_survived(void **state)
{
	char name[] = "/tmp/hb-elf-XXXXXX";
	int fd = mkstemp(name);
	struct image m = {0};
	struct hb_elf *f;
	struct hb_sym s;

	(void)state;
	assert_true(fd >= 0);
	add(&m, "alpha", TEXT_VADDR + 16, 16, STT_FUNC, 1);
	finish(&m);
	assert_int_equal(write(fd, m.bytes, sizeof(m.bytes)), sizeof(m.bytes));
	f = hb_elf__open(name, NULL);
	assert_non_null(f);
	assert_int_equal(hb_elf__find(f, "alpha", &s), 0);
	hb_elf__trim(f);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(hb_elf__find(f, "alpha", &s), -ENOENT);
	assert_false(hb_elf__at(f, TEXT_OFF + 16, &s));
	hb_elf__close(f);
	unlink(name);
	close(fd);
}

/* Only our own mappings are patched: a fault elsewhere still ends the program. */
static void a_fault_elsewhere_still_kills(void **state)
{
	char name[] = "/tmp/hb-elf-XXXXXX";
	int fd = mkstemp(name), status;
	struct hb_file_map *m;
	pid_t pid;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 8192), 0);
	m = hb_file_map__new(fd, 8192);
	assert_non_null(m);
	pid = fork();
	if (pid == 0) {
		volatile char *own = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);

		if (ftruncate(fd, 0) || own == MAP_FAILED ||
		    ((const volatile char *)hb_file_map__data(m))[5000])
			_exit(1);
		_exit(own[5000] ? 2 : 3);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGBUS);
	assert_int_equal(((const char *)hb_file_map__data(m))[5000], 0);
	assert_true(hb_file_map__torn(m));
	hb_file_map__free(m);
	unlink(name);
	close(fd);
}

static void our_own_functions_are_where_the_file_says(void **state)
{
	struct hb_error e = {0};
	struct hb_elf *f = hb_elf__open("/proc/self/exe", &e);
	unsigned char code[16];
	struct hb_sym s;
	u64 base = 0;
	FILE *fp;

	assert_non_null(f);
	assert_true(hb_elf__has_symtab(f));
	assert_int_equal(hb_elf__find(f, "hb_test_landmark", &s), 0);
	assert_int_equal(s.state, HB_SYM_OK);
	dl_iterate_phdr(base_of_program, &base);
	assert_int_equal(base + s.value, (u64)(uintptr_t)hb_test_landmark);
	fp = fopen("/proc/self/exe", "re");
	assert_non_null(fp);
	assert_int_equal(fseek(fp, (long)s.offset, SEEK_SET), 0);
	assert_int_equal(fread(code, 1, sizeof(code), fp), sizeof(code));
	fclose(fp);
	assert_memory_equal(code, (const void *)(uintptr_t)hb_test_landmark, sizeof(code));
	assert_true(hb_elf__is_entry(f, s.offset));
	assert_string_equal(name_at(f, s.offset + 1), "hb_test_landmark");
	assert_int_equal(state_of(f, "dlsym"), HB_SYM_UNDEFINED);
	assert_true(hb_elf__needs(f, "libc.so*"));
	assert_false(hb_elf__needs(f, "libcudart*"));
	hb_elf__close(f);
}

static void libc_has_resolvers_and_versions(void **state)
{
	struct hb_error e = {0};
	struct hb_elf *f;
	char got[1024] = "";
	Dl_info info;

	assert_int_not_equal(dladdr(dlsym(RTLD_DEFAULT, "getenv"), &info), 0);
	f = hb_elf__open(info.dli_fname, &e);
	assert_non_null(f);
	assert_int_equal(state_of(f, "strlen"), HB_SYM_IFUNC);
	assert_int_equal(state_of(f, "getenv"), HB_SYM_OK);
	assert_int_equal(state_of(f, "environ"), HB_SYM_NOTFUNC);
	assert_int_equal(hb_elf__static_runtime(f), HB_STATIC_NONE);
	assert_true(strlen(hb_elf__build_id(f)) >= 32);
	assert_int_equal(hb_elf__each(f, "pthread_cond_wait", collect, got), 0);
	assert_string_equal(got,
			    "pthread_cond_wait pthread_cond_wait "); /* two versions, both can be called */
	hb_elf__close(f);
}

/* ---- programs made by the compiler ---- */

static char dir[] = "/tmp/hb-test-elf-XXXXXX";

static int make_dir(void **state)
{
	return mkdtemp(dir) ? 0 : -1;
}

static int drop_dir(void **state)
{
	char cmd[128];

	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	return system(cmd);
}

static struct hb_elf *build(const char *source, const char *how)
{
	char path[128], cmd[1024];
	struct hb_error e = {0};
	struct hb_elf *f;
	FILE *fp;

	snprintf(path, sizeof(path), "%s/t.c", dir);
	fp = fopen(path, "we");
	assert_non_null(fp);
	fputs(source, fp);
	fclose(fp);
	snprintf(cmd, sizeof(cmd), "cd %s && rm -f prog && %s", dir, how);
	if (system(cmd) != 0)
		fail_msg("cannot build: %s", cmd);
	snprintf(path, sizeof(path), "%s/prog", dir);
	f = hb_elf__open(path, &e);
	if (!f)
		fail_msg("%s", e.text);
	return f;
}

static void a_static_runtime_is_recognised(void **state)
{
	static const char fake[] =
	    "const char *msg(void){return \"CUDA driver version is insufficient for CUDA runtime "
	    "version\";}\nint cudaMalloc(void){return (int)msg()[1];}\nint main(void){return "
	    "cudaMalloc();}\n";
	static const char user[] = "int cudaMalloc(void);\nint main(void){return cudaMalloc();}\n";
	struct hb_elf *f = build(fake, "gcc -O0 -o prog t.c");

	assert_int_equal(hb_elf__static_runtime(f), HB_STATIC_NAMED);
	hb_elf__close(f);
	f = build(fake, "gcc -O0 -s -o prog t.c");
	assert_int_equal(hb_elf__static_runtime(f), HB_STATIC_STRIPPED);
	assert_false(hb_elf__has_symtab(f));
	hb_elf__close(f);
	f = build(fake, "gcc -O0 -shared -fPIC -Wl,-soname,libcudart.so.13 -o libcudart.so.13 t.c && cp "
			"libcudart.so.13 prog");
	/* it is the runtime, not a user of it */
	assert_int_equal(hb_elf__static_runtime(f), HB_STATIC_NONE);
	hb_elf__close(f);
	f = build(user, "gcc -O0 -o prog t.c libcudart.so.13");
	assert_true(hb_elf__needs(f, "libcudart*"));
	assert_int_equal(hb_elf__static_runtime(f), HB_STATIC_NONE);
	hb_elf__close(f);
}

/* The toolkit's own library, where there is one. */
static void the_real_static_runtime_is_recognised(void **state)
{
	static const char source[] = "int cudaMalloc(void **, unsigned long);\n"
				     "int main(void){void *p; return cudaMalloc(&p, 4);}\n";
	static const char lib[] = "/usr/local/cuda/lib64/libcudart_static.a";
	struct hb_elf *f;
	char cmd[256];

	if (access(lib, R_OK) != 0)
		skip();
	snprintf(cmd, sizeof(cmd), "gcc -o prog t.c %s -ldl -lrt -lpthread", lib);
	f = build(source, cmd);
	assert_int_equal(hb_elf__static_runtime(f), HB_STATIC_NAMED);
	assert_int_equal(state_of(f, "cudaMemcpyAsync"), HB_SYM_OK);
	hb_elf__close(f);
	strcat(cmd, " && strip prog");
	f = build(source, cmd);
	assert_int_equal(hb_elf__static_runtime(f), HB_STATIC_STRIPPED);
	hb_elf__close(f);
}

/* ---- names ---- */

static void places_of_usdt_arguments(void **state)
{
	static const struct {
		const char *args;
		bool ok, deref;
		unsigned reg;
		int disp;
	} rows[] = {
	    {"-4@112(%rsp)", true, true, 19, 112}, {"-8@%r12", true, false, 3, 0},
	    {"4@%esi 8@%rax", true, false, 13, 0}, {"-4@-20(%rbp) 8@%rax", true, true, 4, -20},
	    {"4@%r8d", true, false, 9, 0},	   {"8@(%rdi)", true, true, 14, 0},
	    {"-4@$2", false, false, 0, 0},	   {"8@8(%rax,%rbx,4)", false, false, 0, 0},
	    {"8@%xmm0", false, false, 0, 0},	   {"", false, false, 0, 0},
	    {"4@$1 8@%rax", false, false, 0, 0},   {"8@99999(%rax)", false, false, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		unsigned reg = 0;
		bool deref = false;
		int disp = 0;

		assert_int_equal(hb_usdt__place(rows[i].args, &reg, &deref, &disp), rows[i].ok);
		if (!rows[i].ok)
			continue;
		assert_int_equal(reg, rows[i].reg);
		assert_int_equal(deref, rows[i].deref);
		assert_int_equal(disp, rows[i].disp);
	}
}

static void types_are_demangled(void **state)
{
	char buf[64];

	(void)state;
	assert_string_equal(hb_demangle__type("St13runtime_error", buf, sizeof(buf)), "std::runtime_error");
	assert_string_equal(hb_demangle__type("N6engine13out_of_blocksE", buf, sizeof(buf)),
			    "engine::out_of_blocks");
	assert_string_equal(hb_demangle__type("i", buf, sizeof(buf)), "int");
	assert_string_equal(hb_demangle__type("N6engine13out_of", buf, sizeof(buf)), "N6engine13out_of");
	assert_string_equal(hb_demangle__type("", buf, sizeof(buf)), "");
}

static void names_are_demangled_within_bounds(void **state)
{
	char buf[256], small[8], bomb[1024];

	assert_string_equal(hb_demangle("_ZNSt6vectorIiSaIiEE9push_backERKi", buf, sizeof(buf)),
			    "std::vector<int, std::allocator<int> >::push_back");
	assert_string_equal(hb_demangle("_ZN4core3fmt5write17h0123456789abcdefE", buf, sizeof(buf)),
			    "core::fmt::write");
	assert_string_equal(hb_demangle("cuLaunchKernel", buf, sizeof(buf)), "cuLaunchKernel");
	assert_string_equal(hb_demangle("_Zwrong", buf, sizeof(buf)), "_Zwrong");
	assert_string_equal(hb_demangle("", buf, sizeof(buf)), "");
	assert_string_equal(hb_demangle("_ZN3foo3barEv", small, sizeof(small)), "_ZN3foo3barEv");
	/* pair<int, int>, then 30 times a pair of two of the last: 2^31 numbers to print. */
	strcpy(bomb, "_Z1fISt4pairIiiE");
	for (int i = 1; i <= 30; i++) {
		char id = (char)(i < 10 ? '0' + i : 'A' + i - 10);

		sprintf(bomb + strlen(bomb), "S0_IS%c_S%c_E", id, id);
	}
	strcat(bomb, "Evv");
	assert_ptr_equal(hb_demangle(bomb, buf, sizeof(buf)), bomb);
}

static void kernel_functions_have_names(void **state)
{
	struct hb_ksyms *k = hb_ksyms__new();
	unsigned long addr = 0;
	char line[256], name[128] = "";
	FILE *fp;

	if (!k)
		skip(); /* not root: addresses are hidden */
	fp = fopen("/proc/kallsyms", "re");
	assert_non_null(fp);
	while (fgets(line, sizeof(line), fp))
		if (sscanf(line, "%lx T %127s", &addr, name) == 2 && strcmp(name, "vfs_read") == 0)
			break;
	fclose(fp);
	assert_string_equal(name, "vfs_read");
	assert_string_equal(hb_ksyms__at(k, addr + 1), "vfs_read");
	assert_null(hb_ksyms__at(k, 1));
	hb_ksyms__free(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_state_has_its_reason),
	    cmocka_unit_test(globs_find_each_symbol_once),
	    cmocka_unit_test(offsets_find_the_function_that_covers_them),
	    cmocka_unit_test(only_a_first_instruction_is_an_entry),
	    cmocka_unit_test(what_is_no_library_is_refused_with_its_own_sentence),
	    cmocka_unit_test(a_file_cut_anywhere_is_survived),
	    cmocka_unit_test(a_file_cut_while_it_is_open_is_survived),
	    cmocka_unit_test(a_fault_elsewhere_still_kills),
	    cmocka_unit_test(our_own_functions_are_where_the_file_says),
	    cmocka_unit_test(libc_has_resolvers_and_versions),
	    cmocka_unit_test(a_static_runtime_is_recognised),
	    cmocka_unit_test(the_real_static_runtime_is_recognised),
	    cmocka_unit_test(names_are_demangled_within_bounds),
	    cmocka_unit_test(types_are_demangled),
	    cmocka_unit_test(places_of_usdt_arguments),
	    cmocka_unit_test(kernel_functions_have_names),
	};

	return cmocka_run_group_tests(tests, make_dir, drop_dir);
}
