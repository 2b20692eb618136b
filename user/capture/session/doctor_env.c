/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What can only be read: capabilities, limits and settings. They explain why a test by doing failed. */
#include "capture/session/doctor_impl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/text.h"
#include "capture/symbols/symbols.h"

#define CAP_IS_IN(set, cap) ((set) >> (cap)&1)

/* First line of a small file; false when it cannot be read. */
static bool first_line(const char *path, char *buf, size_t size)
{
	FILE *f = fopen(path, "re");
	bool ok = f && fgets(buf, (int)size, f);

	if (f)
		fclose(f);
	if (ok)
		buf[strcspn(buf, "\n")] = 0;
	return ok;
}

/* ---- capabilities ---- */

struct cap_word {
	const char *name;
	int cap;
	bool in_admin; /* CAP_SYS_ADMIN stands in for it */
};

static const struct cap_word cap_words[] = {
    {"CAP_BPF", CAP_BPF, true},
    {"CAP_PERFMON", CAP_PERFMON, true},
    {"CAP_SYS_PTRACE", CAP_SYS_PTRACE, false},
    {"CAP_SYS_ADMIN", CAP_SYS_ADMIN, true},
    {"CAP_CHECKPOINT_RESTORE", CAP_CHECKPOINT_RESTORE, true},
    {"CAP_SYSLOG", CAP_SYSLOG, false},
    {"CAP_DAC_READ_SEARCH", CAP_DAC_READ_SEARCH, false},
};

static u64 read_caps(void)
{
	char line[128];
	FILE *f = fopen("/proc/self/status", "re");
	unsigned long long caps = 0;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "CapEff: %llx", &caps) == 1)
			break;
	if (f)
		fclose(f);
	return caps;
}

static void test_caps(struct hb_doctor_bench *b, struct hb_diagnosis *out)
{
	bool admin;
	size_t at = 0;

	b->caps = read_caps();
	admin = CAP_IS_IN(b->caps, CAP_SYS_ADMIN);
	for (size_t i = 0; i < sizeof(cap_words) / sizeof(*cap_words); i++)
		at +=
		    (size_t)snprintf(out->detail + at, sizeof(out->detail) - at, "%s%s %s", i ? ", " : "",
				     cap_words[i].name, CAP_IS_IN(b->caps, cap_words[i].cap) ? "yes" : "no");
	out->answer = admin || (CAP_IS_IN(b->caps, CAP_BPF) && CAP_IS_IN(b->caps, CAP_PERFMON))
			  ? HB_ANSWER_YES
			  : HB_ANSWER_NO;
}

static void test_ptrace_cap(struct hb_doctor_bench *b, struct hb_diagnosis *out)
{
	if (CAP_IS_IN(b->caps, CAP_SYS_PTRACE))
		hb_check__yes(out, "CAP_SYS_PTRACE");
	else
		hb_check__no(out, "without CAP_SYS_PTRACE only own processes can be looked at");
}

/* By doing: map_files links may be followed by CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE (5.9) only. */
static void test_map_files(struct hb_doctor_bench *b, struct hb_diagnosis *out)
{
	char path[512] = "";
	int rc =
	    b->self->n_maps ? hb_process__open_path(b->self, &b->self->maps[0], path, sizeof(path)) : -ENOENT;

	if (rc == 0 && strstr(path, "/map_files/"))
		hb_check__yes(out, "/proc/PID/map_files");
	else
		hb_check__no(out, "/proc/PID/map_files may not be followed; /proc/PID/root is used instead");
}

/* ---- namespaces, seccomp ---- */

static void test_pidns(struct hb_doctor_bench *b, struct hb_diagnosis *out)
{
	if (hb_target__initial_pidns())
		hb_check__yes(out, "the initial one");
	else
		hb_check__no(out, "we see the pids of a container, BPF sees those of the host");
}

static void test_seccomp(struct hb_doctor_bench *b, struct hb_diagnosis *out)
{
	if (!b->self->seccomp)
		hb_check__yes(out, "no seccomp filter on this tool");
	else
		hb_check__no(
		    out,
		    "a seccomp filter is on this tool; whether it refuses bpf(2) and perf_event_open(2) is "
		    "seen below");
}

/* ---- settings of the kernel ---- */

static void test_btf(struct hb_doctor_bench *b, struct hb_diagnosis *out)
{
	static const char path[] = "/sys/kernel/btf/vmlinux";

	if (access(path, R_OK) == 0)
		hb_check__yes(out, "%s", path);
	else
		hb_check__no(out, "%s: %s", path, strerror(errno));
}

static void test_lockdown(struct hb_doctor_bench *b, struct hb_diagnosis *out)
{
	char line[128];

	if (!first_line("/sys/kernel/security/lockdown", line, sizeof(line)))
		hb_check__yes(out, "no lockdown here");
	else if (strstr(line, "[confidentiality]"))
		hb_check__no(out,
			     "lockdown is \"confidentiality\": the kernel forbids BPF to read its memory");
	else
		hb_check__yes(out, "%s", line);
}

static void test_yama(struct hb_doctor_bench *b, struct hb_diagnosis *out)
{
	char line[32];

	if (!first_line("/proc/sys/kernel/yama/ptrace_scope", line, sizeof(line)))
		hb_check__yes(out, "no Yama here");
	else
		hb_check__yes(out,
			      "kernel.yama.ptrace_scope = %s; it restricts attaching a debugger, which "
			      "tracing does not do",
			      line);
}

static void test_paranoid(struct hb_doctor_bench *b, struct hb_diagnosis *out)
{
	bool may = CAP_IS_IN(b->caps, CAP_PERFMON) || CAP_IS_IN(b->caps, CAP_SYS_ADMIN);
	char line[32];

	if (!first_line("/proc/sys/kernel/perf_event_paranoid", line, sizeof(line)))
		hb_check__no(out,
			     "/proc/sys/kernel/perf_event_paranoid is missing: a kernel without perf events");
	else if (may)
		hb_check__yes(out, "kernel.perf_event_paranoid = %s does not apply to us (CAP_PERFMON)",
			      line);
	else if (line[0] == '-')
		hb_check__yes(out, "kernel.perf_event_paranoid = %s", line);
	else
		hb_check__no(out, "kernel.perf_event_paranoid = %s and no CAP_PERFMON", line);
}

static void test_memlock(struct hb_doctor_bench *b, struct hb_diagnosis *out)
{
	struct rlimit r = {0};
	char size[32];

	getrlimit(RLIMIT_MEMLOCK, &r);
	hb_check__yes(out,
		      "limit %s; only kernels before 5.11 charge BPF maps to it, and it is raised where that "
		      "is allowed",
		      r.rlim_cur == RLIM_INFINITY ? "none" : hb_text__bytes(size, sizeof(size), r.rlim_cur));
}

static void test_nofile(struct hb_doctor_bench *b, struct hb_diagnosis *out)
{
	struct rlimit r = {0};

	getrlimit(RLIMIT_NOFILE, &r);
	if (r.rlim_max >= 4096)
		hb_check__yes(out, "up to %llu", (unsigned long long)r.rlim_max);
	else
		hb_check__no(out, "at most %llu descriptors", (unsigned long long)r.rlim_max);
}

static void test_tracefs(struct hb_doctor_bench *b, struct hb_diagnosis *out)
{
	bool there = access("/sys/kernel/tracing/events", F_OK) == 0 ||
		     access("/sys/kernel/debug/tracing/events", F_OK) == 0;

	hb_check__yes(out, "%s; not needed: events come by BTF and raw tracepoints",
		      there ? "mounted" : "not mounted");
}

static void test_kallsyms(struct hb_doctor_bench *b, struct hb_diagnosis *out)
{
	struct hb_ksyms *k = hb_ksyms__new();

	if (k)
		hb_check__yes(out, "/proc/kallsyms");
	else
		hb_check__no(out, "/proc/kallsyms cannot be read, or hides its addresses");
	hb_ksyms__free(k);
}

const struct hb_check hb_checks_env[] = {
    {"capabilities", "capabilities", "loading and attaching BPF programs",
     "run as root, or give the tool CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE (container: privileged, or "
     "cap_add)",
     HB_NEED_FACT, test_caps},
    {"ptrace-capability", "other users' processes may be looked at", "reading what a target has mapped",
     "run as root, or with CAP_SYS_PTRACE", HB_NEED_FEATURE, test_ptrace_cap},
    {"map-files", "mapped files can be opened",
     "libraries that were deleted or replaced after the target loaded them",
     "run as root, or with CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE", HB_NEED_FEATURE, test_map_files},
    {"pid-namespace", "pid namespace", "telling BPF which process is meant",
     "run on the host, or in a container that shares its pids (docker: --pid=host, Kubernetes: hostPID: "
     "true)",
     HB_NEED_MUST, test_pidns},
    {"btf", "kernel type information (BTF)", "scheduler events and reading kernel structures",
     "use a kernel built with CONFIG_DEBUG_INFO_BTF=y (all current distributions)", HB_NEED_MUST, test_btf},
    {"seccomp", "no seccomp filter in the way", "bpf(2) and perf_event_open(2)",
     "where they are refused: seccomp=unconfined for this container, or privileged", HB_NEED_FACT,
     test_seccomp},
    {"lockdown", "kernel lockdown", "BPF programs that read kernel memory",
     "boot without lockdown=confidentiality (integrity is fine)", HB_NEED_FACT, test_lockdown},
    {"yama", "Yama ptrace scope", "nothing in this version", "", HB_NEED_FACT, test_yama},
    {"perf-paranoid", "perf_event_paranoid", "CPU samples and noticing libraries that are loaded later",
     "run as root or with CAP_PERFMON, or set kernel.perf_event_paranoid to -1", HB_NEED_FACT, test_paranoid},
    {"memlock", "locked memory", "BPF maps on old kernels", "", HB_NEED_FACT, test_memlock},
    {"descriptors", "open files",
     "single uprobes, where the kernel has no uprobe_multi (one descriptor each)",
     "raise the hard limit: ulimit -Hn 65536, or LimitNOFILE= in the unit", HB_NEED_FEATURE, test_nofile},
    {"tracefs", "tracefs", "nothing", "", HB_NEED_FACT, test_tracefs},
    {"kallsyms", "names of kernel functions", "kernel frames in stacks",
     "run as root or with CAP_SYSLOG, or set kernel.kptr_restrict to 0", HB_NEED_FEATURE, test_kallsyms},
    {0},
};
