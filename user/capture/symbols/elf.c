/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The file: opening, segments, build-id, needed libraries, statically linked runtimes. */
#include "capture/symbols/elf_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/text.h"

#define MAX_SEGMENTS 1024
#define MAX_SECTIONS 65536
#define MAX_NOTES    (1 << 20) /* bytes of a note segment looked at */
#define MAX_RODATA   (64 << 20)

#if defined(__x86_64__)
#define HB_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define HB_MACHINE EM_AARCH64
#else
#error "no uprobe argument layout for this machine"
#endif

/* Everything that libelf would answer with a bare "invalid file". */
static int check_header(const unsigned char *d, size_t size, struct hb_error *e)
{
	u16 type, machine;

	if (size < EI_NIDENT || memcmp(d, ELFMAG, SELFMAG) != 0)
		return hb_error__set(e, HB_EXIT_FAILED, -ENOEXEC, "not an ELF file");
	if (d[EI_CLASS] == ELFCLASS32)
		return hb_error__set(e, HB_EXIT_TARGET, -ENOTSUP,
				     "a 32-bit ELF file: only 64-bit programs can be traced");
	if (d[EI_CLASS] != ELFCLASS64 || d[EI_DATA] != ELFDATA2LSB || size < sizeof(Elf64_Ehdr))
		return hb_error__set(e, HB_EXIT_FAILED, -ENOEXEC, "a damaged or big-endian ELF header");
	memcpy(&type, d + offsetof(Elf64_Ehdr, e_type), sizeof(type));
	memcpy(&machine, d + offsetof(Elf64_Ehdr, e_machine), sizeof(machine));
	if (machine != HB_MACHINE)
		return hb_error__set(
		    e, HB_EXIT_TARGET, -ENOTSUP,
		    "an ELF file of another machine (e_machine %u): it cannot run here natively", machine);
	if (type != ET_EXEC && type != ET_DYN)
		return hb_error__set(e, HB_EXIT_FAILED, -ENOEXEC,
				     "an ELF file of type %u, neither a program nor a shared library", type);
	return 0;
}

static int read_segments(struct hb_elf *f, struct hb_error *e)
{
	size_t n = 0;
	GElf_Phdr ph;

	if (elf_getphdrnum(f->elf, &n) != 0 || n == 0 || n > MAX_SEGMENTS)
		return hb_error__set(e, HB_EXIT_FAILED, -ENOEXEC,
				     "an ELF file without usable program headers");
	f->segs = calloc(n, sizeof(*f->segs));
	if (!f->segs)
		return hb_error__nomem(e, "program headers");
	for (size_t i = 0; i < n; i++) {
		if (!gelf_getphdr(f->elf, (int)i, &ph) || ph.p_type != PT_LOAD)
			continue;
		if (ph.p_offset > f->size) /* the part beyond the end is zeros or SIGBUS, never code */
			continue;
		if (ph.p_filesz > f->size - ph.p_offset)
			ph.p_filesz = f->size - ph.p_offset;
		f->segs[f->n_segs++] =
		    (struct hb_segment){ph.p_vaddr, ph.p_offset, ph.p_filesz, (ph.p_flags & PF_X) != 0};
	}
	return 0;
}

const struct hb_segment *hb_elf__segment(const struct hb_elf *f, u64 vaddr)
{
	for (u32 i = 0; i < f->n_segs; i++)
		if (vaddr >= f->segs[i].vaddr && vaddr - f->segs[i].vaddr < f->segs[i].filesz)
			return &f->segs[i];
	return NULL;
}

static bool note_build_id(struct hb_elf *f, Elf_Data *d)
{
	GElf_Nhdr nh;
	size_t pos = 0, name, desc;

	while (pos < d->d_size && (pos = gelf_getnote(d, pos, &nh, &name, &desc)) > 0) {
		const unsigned char *p = (const unsigned char *)d->d_buf;

		if (nh.n_type != NT_GNU_BUILD_ID || nh.n_namesz != 4 || memcmp(p + name, "GNU", 4) != 0)
			continue;
		if (nh.n_descsz == 0 || nh.n_descsz > (sizeof(f->build_id) - 1) / 2)
			continue;
		for (u32 i = 0; i < nh.n_descsz; i++)
			snprintf(f->build_id + 2 * i, 3, "%02x", p[desc + i]);
		return true;
	}
	return false;
}

static void read_build_id(struct hb_elf *f)
{
	size_t n = 0;
	GElf_Phdr ph;
	Elf_Data *d;

	if (elf_getphdrnum(f->elf, &n) != 0)
		return;
	for (size_t i = 0; i < n && i < MAX_SEGMENTS; i++) {
		if (!gelf_getphdr(f->elf, (int)i, &ph) || ph.p_type != PT_NOTE || ph.p_filesz > MAX_NOTES)
			continue;
		d = elf_getdata_rawchunk(f->elf, (int64_t)ph.p_offset, ph.p_filesz,
					 ph.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
		if (d && note_build_id(f, d))
			return;
	}
}

/* Next section with its header; NULL at the end, also of a file with absurdly many. */
static Elf_Scn *next_section(const struct hb_elf *f, Elf_Scn *scn, GElf_Shdr *sh)
{
	while ((scn = elf_nextscn(f->elf, scn)) != NULL && elf_ndxscn(scn) < MAX_SECTIONS)
		if (gelf_getshdr(scn, sh))
			return scn;
	return NULL;
}

static const char *section_name(const struct hb_elf *f, const GElf_Shdr *sh)
{
	size_t strs;
	const char *s = NULL;

	if (elf_getshdrstrndx(f->elf, &strs) == 0)
		s = elf_strptr(f->elf, strs, sh->sh_name);
	return s ? s : "";
}

static void scan_sections(struct hb_elf *f)
{
	GElf_Shdr sh;

	for (Elf_Scn *s = next_section(f, NULL, &sh); s; s = next_section(f, s, &sh)) {
		if (sh.sh_type == SHT_SYMTAB)
			f->has_symtab = true;
		else if (sh.sh_type == SHT_PROGBITS && strcmp(section_name(f, &sh), ".nv_fatbin") == 0)
			f->has_fatbin = true;
	}
}

static struct hb_elf *open_memory(const void *data, size_t size, struct hb_error *e)
{
	struct hb_elf *f = NULL;

	if (check_header(data, size, e) != 0)
		goto fail;
	elf_version(EV_CURRENT);
	f = calloc(1, sizeof(*f));
	if (!f || !(f->syms = hb_elf_syms__new())) {
		hb_error__nomem(e, "an ELF file");
		goto fail;
	}
	f->data = data;
	f->size = size;
	f->elf = elf_memory((char *)data, size); /* reads only */
	if (!f->elf || elf_kind(f->elf) != ELF_K_ELF) {
		hb_error__set(e, HB_EXIT_FAILED, -ENOEXEC, "a damaged ELF file: %s", elf_errmsg(-1));
		goto fail;
	}
	if (read_segments(f, e) != 0)
		goto fail;
	read_build_id(f);
	scan_sections(f);
	return f;
fail:
	hb_elf__close(f);
	return NULL;
}

struct hb_elf *hb_elf__open_memory(const void *data, size_t size, struct hb_error *e)
{
	return open_memory(data, size, e);
}

static struct hb_elf *open_mapped(int fd, size_t size, struct hb_error *e)
{
	struct hb_file_map *map = hb_file_map__new(fd, size);
	struct hb_elf *f;

	if (!map) {
		hb_error__set(e, HB_EXIT_FAILED, -errno, "cannot be mapped: %s", strerror(errno));
		return NULL;
	}
	f = open_memory(hb_file_map__data(map), size, e);
	if (f)
		f->map = map;
	else
		hb_file_map__free(map);
	return f;
}

/* Prefixes the sentence with the file it is about. */
static void name_file(struct hb_error *e, const char *path, const struct hb_error *inner)
{
	hb_error__set(e, (enum hb_exit)inner->exit, inner->err, "%s: %s", path, inner->text);
}

struct hb_elf *hb_elf__open(const char *path, struct hb_error *e)
{
	/* NONBLOCK: a path below a target's root may be a fifo by now. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct hb_error inner = {0};
	struct hb_elf *f = NULL;
	struct stat st;

	if (fd < 0) {
		hb_error__set(e, HB_EXIT_TARGET, -errno, "cannot open %s: %s", path, strerror(errno));
		return NULL;
	}
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		hb_error__set(&inner, HB_EXIT_FAILED, -ENOEXEC, "not a regular file");
	} else if (st.st_size < (off_t)sizeof(Elf64_Ehdr)) {
		hb_error__set(&inner, HB_EXIT_FAILED, -ENOEXEC, "not an ELF file (%lld bytes)",
			      (long long)st.st_size);
	} else {
		f = open_mapped(fd, (size_t)st.st_size, &inner);
	}
	close(fd);
	if (!f)
		name_file(e, path, &inner);
	return f;
}

void hb_elf__close(struct hb_elf *f)
{
	if (!f)
		return;
	hb_elf_syms__free(f->syms);
	free(f->segs);
	elf_end(f->elf);
	hb_file_map__free(f->map);
	free(f);
}

const char *hb_elf__build_id(const struct hb_elf *f)
{
	return f->build_id;
}

bool hb_elf__has_symtab(const struct hb_elf *f)
{
	return f->has_symtab;
}

#define PAGE 4096

bool hb_elf__vaddr(const struct hb_elf *f, u64 offset, u64 *vaddr)
{
	for (u32 i = 0; i < f->n_segs; i++) {
		const struct hb_segment *s = &f->segs[i];
		u64 begin = s->offset & ~(u64)(PAGE - 1);

		/* The code: what lies on the same page of the file belongs to several segments. */
		if (s->exec && offset >= begin && offset - begin < s->filesz + (s->offset - begin)) {
			*vaddr = s->vaddr - s->offset + offset;
			return true;
		}
	}
	return false;
}

bool hb_elf__section(const struct hb_elf *f, const char *name, u64 *vaddr, u64 *size)
{
	GElf_Shdr sh;

	for (Elf_Scn *s = next_section(f, NULL, &sh); s; s = next_section(f, s, &sh)) {
		if (!sh.sh_addr || strcmp(section_name(f, &sh), name) != 0)
			continue;
		*vaddr = sh.sh_addr;
		*size = sh.sh_size;
		return true;
	}
	return false;
}

static bool dynamic_needs(const struct hb_elf *f, Elf_Scn *scn, const GElf_Shdr *sh, const char *glob)
{
	Elf_Data *d = elf_getdata(scn, NULL);
	GElf_Dyn dyn;
	const char *name;

	for (int i = 0; d && gelf_getdyn(d, i, &dyn) && dyn.d_tag != DT_NULL; i++) {
		if (dyn.d_tag != DT_NEEDED)
			continue;
		name = elf_strptr(f->elf, sh->sh_link, dyn.d_un.d_val);
		if (name && hb_text__glob(glob, name))
			return true;
	}
	return false;
}

bool hb_elf__needs(const struct hb_elf *f, const char *glob)
{
	GElf_Shdr sh;

	for (Elf_Scn *s = next_section(f, NULL, &sh); s; s = next_section(f, s, &sh))
		if (sh.sh_type == SHT_DYNAMIC && dynamic_needs(f, s, &sh, glob))
			return true;
	return false;
}

/* One of the runtime's own messages, which a stripped copy still carries. */
static bool has_runtime_message(const struct hb_elf *f)
{
	static const char msg[] = "CUDA driver version is insufficient for CUDA runtime version";
	GElf_Shdr sh;

	for (Elf_Scn *s = next_section(f, NULL, &sh); s; s = next_section(f, s, &sh)) {
		if (sh.sh_type != SHT_PROGBITS || strcmp(section_name(f, &sh), ".rodata") != 0)
			continue;
		if (sh.sh_offset > f->size || sh.sh_size > f->size - sh.sh_offset || sh.sh_size > MAX_RODATA)
			continue;
		if (memmem(f->data + sh.sh_offset, sh.sh_size, msg, sizeof(msg)))
			return true;
	}
	return false;
}

enum hb_static_runtime hb_elf__static_runtime(const struct hb_elf *f)
{
	struct hb_sym s;

	if (hb_elf__needs(f, "libcudart*") || hb_elf__exports(f, "cudaMalloc"))
		return HB_STATIC_NONE;
	if (hb_elf__find(f, "cudaMalloc", &s) == 0 && s.state == HB_SYM_OK)
		return HB_STATIC_NAMED;
	if (f->has_fatbin || has_runtime_message(f))
		return HB_STATIC_STRIPPED;
	return HB_STATIC_NONE;
}
