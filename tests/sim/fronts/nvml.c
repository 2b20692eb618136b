/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * libnvidia-ml.so.1: what management asks of a device. As the real one it does not load the driver: a process
 * that has libcuda.so.1 gets that device's memory and a truth record for each call, any other gets the
 * settings of HB_SIM_COSTS. Clocks, power, temperature and utilization are constants of a card that idles.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "front.h"

enum {
	NVML_SUCCESS = 0,
	NVML_ERROR_UNINITIALIZED = 1,
	NVML_ERROR_INVALID_ARGUMENT = 2,
	NVML_ERROR_NOT_SUPPORTED = 3,
	NVML_ERROR_NOT_FOUND = 6,
	NVML_ERROR_INSUFFICIENT_SIZE = 7,
	NVML_P2P_STATUS_NOT_SUPPORTED = 5,
	NVML_TOPOLOGY_INTERNAL = 0,
	NVML_TOPOLOGY_SYSTEM = 50,
};

#define DRIVER_VERSION	    "570.86.15"
#define NVML_VERSION	    "12.570.86.15"
#define DEVICE_NAME	    "Simulated H100 80GB"
#define POWER_LIMIT	    700000 /* mW */
#define FIRST_BUS	    4	   /* as the driver numbers them (device.c) */
#define MAX_DEVICES	    64
#define SW_THERMAL_SLOWDOWN 0x20
#define RESERVED	    (512ull << 20) /* of the driver and its firmware */

typedef int nvmlReturn_t;
typedef struct nvmlDevice_st {
	int index;
} * nvmlDevice_t;
typedef struct {
	unsigned long long total, free, used;
} nvmlMemory_t;
typedef struct {
	unsigned int version;
	unsigned long long total, reserved, free, used;
} nvmlMemory_v2_t;
typedef struct {
	unsigned int gpu, memory;
} nvmlUtilization_t;
typedef struct {
	char busIdLegacy[16];
	unsigned int domain, bus, device, pciDeviceId, pciSubSystemId;
	char busId[32];
} nvmlPciInfo_t;
_Static_assert(sizeof(nvmlMemory_v2_t) == 40 && sizeof(nvmlPciInfo_t) == 68, "layouts of nvml.h");

HB_SIM_MARK

static struct nvmlDevice_st devices[MAX_DEVICES];
static u32 n_devices = 8;
static u64 memory = 80ull << 30;
static int users;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- the settings, without the core ---- */

/* "key=value" or "key value" of HB_SIM_COSTS or of the file it names. */
static void find_setting(const char *text, const char *key, u64 *value)
{
	size_t n = strlen(key);

	for (const char *p = strstr(text, key); p; p = strstr(p + 1, key)) {
		bool starts = p == text || strchr(",;\n \t", p[-1]);

		if (starts && strchr("= \t", p[n]) && p[n])
			*value = (u64)strtod(p + n + 1, NULL);
	}
}

static void load_settings(void)
{
	const char *spec = getenv("HB_SIM_COSTS");
	char buf[65536] = "";
	u64 devices_wanted = n_devices;
	FILE *f;

	for (int i = 0; i < MAX_DEVICES; i++)
		devices[i].index = i;
	if (!spec)
		return;
	f = strchr(spec, '=') ? NULL : fopen(spec, "re");
	if (f) {
		buf[fread(buf, 1, sizeof(buf) - 1, f)] = 0;
		fclose(f);
	} else {
		snprintf(buf, sizeof(buf), "%s", spec);
	}
	find_setting(buf, "devices", &devices_wanted);
	find_setting(buf, "memory", &memory);
	n_devices = (u32)(devices_wanted < MAX_DEVICES ? devices_wanted : MAX_DEVICES);
}

/* What the planted fault clock_throttled (core/fault.h) divides the clock of a device by; 1 without it. */
static double throttled(int index)
{
	const char *path = getenv("HB_SIM_FAULTS");
	FILE *f = path ? fopen(path, "re") : NULL;
	double factor = 1;
	char line[512];

	while (f && fgets(line, sizeof(line), f)) {
		const char *start = line + strspn(line, " \t"), *by, *device;

		line[strcspn(line, "#\n")] = 0;
		if (strncmp(start, "clock_throttled", 15))
			continue;
		by = strstr(start, "factor=");
		device = strstr(start, "device=");
		if (by && (!device || atoi(device + 7) == index))
			factor = strtod(by + 7, NULL);
	}
	if (f)
		fclose(f);
	return factor >= 1 ? factor : 1;
}

/* ---- the truth log, where there is one ---- */

enum {
#define F(name, params, work) ID_##name,
#define V(name, value)	      ID_##name,
#define U(name)		      ID_##name,
#include "nvml.def"
#undef F
#undef V
#undef U
	N_FUNCTIONS
};
static const char *const names[] = {
#define F(name, params, work) #name,
#define V(name, value)	      #name,
#define U(name)		      #name,
#include "nvml.def"
#undef F
#undef V
#undef U
};

static const struct hb_sim_core *core;
static u32 first_id;

/* Found once the process has loaded the driver by itself. */
static void find_core(void)
{
	const struct hb_sim_core *c;
	void *lib;

	if (__atomic_load_n(&core, __ATOMIC_ACQUIRE))
		return;
	lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	c = lib ? dlsym(lib, "hb_sim_core") : NULL;
	pthread_mutex_lock(&lock);
	if (c && !core) {
		first_id = c->register_names(HB_LIBRARY, names, N_FUNCTIONS);
		__atomic_store_n(&core, c, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&lock);
}

/* ---- init and devices ---- */

static nvmlReturn_t init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load_settings);
	__atomic_fetch_add(&users, 1, __ATOMIC_RELAXED);
	return NVML_SUCCESS;
}

static nvmlReturn_t shut_down(void)
{
	__atomic_fetch_sub(&users, 1, __ATOMIC_RELAXED); /* not called when there is none */
	return NVML_SUCCESS;
}

static int index_of(nvmlDevice_t d)
{
	uintptr_t at = (uintptr_t)d - (uintptr_t)devices;

	return at < n_devices * sizeof(devices[0]) && at % sizeof(devices[0]) == 0
		   ? (int)(at / sizeof(devices[0]))
		   : -1;
}

/* The code for a bad device or a missing place for the answer. */
static nvmlReturn_t check(nvmlDevice_t d, const void *out)
{
	return out && index_of(d) >= 0 ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

static nvmlReturn_t number(int *out, int value)
{
	if (!out)
		return NVML_ERROR_INVALID_ARGUMENT;
	*out = value;
	return NVML_SUCCESS;
}

static nvmlReturn_t of_device(nvmlDevice_t d, int *out, int value)
{
	nvmlReturn_t r = check(d, out);

	return r ? r : number(out, value);
}

static nvmlReturn_t pair(nvmlDevice_t d, int *a, int value_a, int *b, int value_b)
{
	nvmlReturn_t r = of_device(d, a, value_a);

	return r ? r : of_device(d, b, value_b);
}

static nvmlReturn_t wide(nvmlDevice_t d, unsigned long long *out, u64 value)
{
	nvmlReturn_t r = check(d, out);

	if (!r)
		*out = value;
	return r;
}

static nvmlReturn_t two_devices(nvmlDevice_t a, nvmlDevice_t b, int *out, int value)
{
	return index_of(b) < 0 ? NVML_ERROR_INVALID_ARGUMENT : of_device(a, out, value);
}

static nvmlReturn_t text(char *out, unsigned int length, const char *value)
{
	if (!out)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (strlen(value) >= length)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	strcpy(out, value);
	return NVML_SUCCESS;
}

static nvmlReturn_t text_of_device(nvmlDevice_t d, char *out, unsigned int length, const char *value)
{
	nvmlReturn_t r = check(d, out);

	return r ? r : text(out, length, value);
}

/* The uuid is the driver's: "hb-sim", zeros, the ordinal. */
static void uuid_of(int index, char *out, size_t size)
{
	snprintf(out, size, "GPU-68622d73-696d-0000-0000-0000000000%02x", (unsigned int)index & 0xff);
}

static void serial_of(int index, char *out, size_t size)
{
	snprintf(out, size, "5132%08d", index);
}

typedef void (*maker)(int index, char *out, size_t size);

static nvmlReturn_t made_text(nvmlDevice_t d, maker make, char *out, unsigned int length)
{
	char value[96];

	make(index_of(d), value, sizeof(value));
	return text_of_device(d, out, length, value);
}

static nvmlReturn_t by_index(unsigned int index, nvmlDevice_t *out)
{
	if (!out || index >= n_devices)
		return NVML_ERROR_INVALID_ARGUMENT;
	*out = &devices[index];
	return NVML_SUCCESS;
}

static nvmlReturn_t by_text(const char *wanted, maker make, nvmlDevice_t *out)
{
	char value[96];

	if (!wanted || !out)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (u32 i = 0; i < n_devices; i++) {
		make((int)i, value, sizeof(value));
		if (!strcmp(value, wanted))
			return by_index(i, out);
	}
	return NVML_ERROR_NOT_FOUND;
}

static nvmlReturn_t by_bus(const char *bus, nvmlDevice_t *out)
{
	unsigned int domain, number, slot;

	if (!bus || !out || sscanf(bus, "%x:%x:%x", &domain, &number, &slot) != 3)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (domain || slot || number < FIRST_BUS || number >= FIRST_BUS + n_devices)
		return NVML_ERROR_NOT_FOUND;
	return by_index(number - FIRST_BUS, out);
}

static nvmlReturn_t pci_info(nvmlDevice_t d, nvmlPciInfo_t *info)
{
	nvmlReturn_t r = check(d, info);

	if (r)
		return r;
	*info = (nvmlPciInfo_t){.bus = FIRST_BUS + (unsigned int)index_of(d),
				.pciDeviceId = 0x233010de,
				.pciSubSystemId = 0x16c110de};
	snprintf(info->busId, sizeof(info->busId), "00000000:%02X:00.0", info->bus);
	snprintf(info->busIdLegacy, sizeof(info->busIdLegacy), "0000:%02X:00.0", info->bus);
	return NVML_SUCCESS;
}

/* ---- what it measures ---- */

static void usage(u64 *free_bytes, u64 *total)
{
	*total = memory;
	*free_bytes = memory > RESERVED ? memory - RESERVED : 0;
	if (core && core->memory_info)
		core->memory_info(free_bytes, total);
}

static nvmlReturn_t memory_info(nvmlDevice_t d, nvmlMemory_t *out)
{
	nvmlReturn_t r = check(d, out);
	u64 free_bytes, total;

	if (r)
		return r;
	usage(&free_bytes, &total);
	*out = (nvmlMemory_t){total, free_bytes, total - free_bytes};
	return NVML_SUCCESS;
}

static nvmlReturn_t memory_info_v2(nvmlDevice_t d, nvmlMemory_v2_t *out)
{
	nvmlReturn_t r = check(d, out);
	u64 free_bytes, total;

	if (r)
		return r;
	usage(&free_bytes, &total);
	*out = (nvmlMemory_v2_t){out->version, total, 0, free_bytes, total - free_bytes};
	return NVML_SUCCESS;
}

static nvmlReturn_t bar1(nvmlDevice_t d, nvmlMemory_t *out)
{
	nvmlReturn_t r = check(d, out);

	if (!r)
		*out = (nvmlMemory_t){128ull << 30, 128ull << 30, 0};
	return r;
}

static nvmlReturn_t utilization(nvmlDevice_t d, nvmlUtilization_t *out)
{
	nvmlReturn_t r = check(d, out);

	if (!r)
		*out = (nvmlUtilization_t){0, 0};
	return r;
}

enum { MHZ_GRAPHICS = 1980, MHZ_MEMORY = 2619, MHZ_VIDEO = 1545 };

static nvmlReturn_t max_clock_of(nvmlDevice_t d, int type, unsigned int *mhz)
{
	static const int clocks[] = {MHZ_GRAPHICS, MHZ_GRAPHICS, MHZ_MEMORY, MHZ_VIDEO};

	if (type < 0 || type > 3)
		return NVML_ERROR_INVALID_ARGUMENT;
	return of_device(d, (int *)mhz, clocks[type]);
}

static nvmlReturn_t clock_of(nvmlDevice_t d, int type, unsigned int *mhz)
{
	nvmlReturn_t r = max_clock_of(d, type, mhz);

	if (!r && type < 2)
		*mhz = (unsigned int)(MHZ_GRAPHICS / throttled(index_of(d)));
	return r;
}

/* A hot card: software has lowered its clock. */
static nvmlReturn_t throttle_reasons(nvmlDevice_t d, unsigned long long *reasons)
{
	return wide(d, reasons, throttled(index_of(d)) > 1 ? SW_THERMAL_SLOWDOWN : 0);
}

static nvmlReturn_t energy(nvmlDevice_t d, unsigned long long *mj)
{
	return wide(d, mj, hb_now() / 1000000 * 120);
}

/* This process, where it has loaded the driver. The real library's own protocol: the size that is needed. */
static nvmlReturn_t processes(nvmlDevice_t d, unsigned int *count, void *infos, size_t size)
{
	nvmlReturn_t r = check(d, count);
	u64 free_bytes, total, used;
	u32 n = core ? 1 : 0, pid = (u32)getpid(), room;

	if (r)
		return r;
	room = *count;
	*count = n;
	if (n && (room < n || !infos))
		return NVML_ERROR_INSUFFICIENT_SIZE;
	if (!n)
		return NVML_SUCCESS;
	usage(&free_bytes, &total);
	used = total - free_bytes;
	memset(infos, 0xff, size); /* its instances of a partitioned device: none */
	memcpy(infos, &pid, sizeof(pid));
	memcpy((char *)infos + 8, &used, sizeof(used));
	return NVML_SUCCESS;
}

static nvmlReturn_t process_name(unsigned int pid, char *name, unsigned int length)
{
	char path[64], buf[256] = "";
	FILE *f;

	if (!name || !length)
		return NVML_ERROR_INVALID_ARGUMENT;
	snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
	f = fopen(path, "re");
	if (!f)
		return NVML_ERROR_NOT_FOUND;
	buf[fread(buf, 1, sizeof(buf) - 1, f)] = 0;
	fclose(f);
	return text(name, length, buf);
}

/* All processors of this machine are near to each device. */
static nvmlReturn_t cpus(nvmlDevice_t d, unsigned int n, unsigned long *set)
{
	nvmlReturn_t r = check(d, set);
	long cpu = sysconf(_SC_NPROCESSORS_CONF);

	if (r || !n)
		return r ? r : NVML_ERROR_INSUFFICIENT_SIZE;
	memset(set, 0, n * sizeof(*set));
	while (--cpu >= 0)
		if ((unsigned long)cpu / (8 * sizeof(*set)) < n)
			set[(unsigned long)cpu / (8 * sizeof(*set))] |=
			    1ul << ((unsigned long)cpu % (8 * sizeof(*set)));
	return NVML_SUCCESS;
}

static nvmlReturn_t nodes(nvmlDevice_t d, unsigned int n, unsigned long *set)
{
	nvmlReturn_t r = check(d, set);

	if (r || !n)
		return r ? r : NVML_ERROR_INSUFFICIENT_SIZE;
	memset(set, 0, n * sizeof(*set));
	set[0] = 1;
	return NVML_SUCCESS;
}

/* ---- what the linker sees ---- */

static bool may_call(int id)
{
	return __atomic_load_n(&users, __ATOMIC_RELAXED) > 0 || id == ID_nvmlInit || id == ID_nvmlInit_v2 ||
	       id == ID_nvmlInitWithFlags;
}

#define F(name, params, work)                                                                                \
	HB_EXPORT nvmlReturn_t name params;                                                                  \
	nvmlReturn_t name params                                                                             \
	{                                                                                                    \
		const struct hb_sim_core *log;                                                               \
		struct hb_call call;                                                                         \
		nvmlReturn_t r;                                                                              \
		find_core();                                                                                 \
		log = core;                                                                                  \
		if (log)                                                                                     \
			log->enter(&call, first_id + ID_##name);                                             \
		r = may_call(ID_##name) ? work : NVML_ERROR_UNINITIALIZED;                                   \
		if (log)                                                                                     \
			log->leave(&call, r, 0, 0);                                                          \
		return r;                                                                                    \
	}
#define V(name, value) F(name, (nvmlDevice_t device, unsigned int *out), of_device(device, (int *)out, value))
#define U(name)	       F(name, (void), NVML_ERROR_NOT_SUPPORTED)
#include "nvml.def"

HB_EXPORT const char *nvmlErrorString(nvmlReturn_t result);
const char *nvmlErrorString(nvmlReturn_t result)
{
	switch (result) {
	case NVML_SUCCESS:
		return "The operation was successful";
	case NVML_ERROR_UNINITIALIZED:
		return "The library was not initialized";
	case NVML_ERROR_INVALID_ARGUMENT:
		return "An argument is invalid";
	case NVML_ERROR_NOT_SUPPORTED:
		return "The simulated device does not support this";
	case NVML_ERROR_NOT_FOUND:
		return "Not found";
	case NVML_ERROR_INSUFFICIENT_SIZE:
		return "The buffer is too small";
	default:
		return "Unknown error";
	}
}
