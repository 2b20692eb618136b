/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/import/text.h"

#include <string.h>

#define N_ELEMS(a) (sizeof(a) / sizeof(*(a)))

bool hb_piece__is(struct hb_piece p, const char *word)
{
	return strlen(word) == p.n && memcmp(p.s, word, p.n) == 0;
}

bool hb_piece__skip(struct hb_piece *p, const char *word)
{
	size_t n = strlen(word);

	if (n > p->n || memcmp(p->s, word, n) != 0)
		return false;
	p->s += n;
	p->n -= n;
	return true;
}

/* ---- numbers ---- */

static bool digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Takes digits off; those that do not fit into *v any more are counted in *more. */
static bool take_digits(struct hb_piece *p, u64 *v, int *taken, int *more)
{
	bool some = false;

	for (; p->n && digit(*p->s); p->s++, p->n--, some = true) {
		if (*v > (UINT64_MAX - 9) / 10) {
			++*more;
		} else {
			*v = *v * 10 + (u64)(*p->s - '0');
			++*taken;
		}
	}
	return some;
}

static bool take_exponent(struct hb_piece *p, int *exponent)
{
	bool minus;
	u64 v = 0;
	int taken = 0, more = 0;

	if (!p->n || (*p->s != 'e' && *p->s != 'E'))
		return true;
	p->s++, p->n--;
	minus = hb_piece__skip(p, "-");
	if (!minus)
		hb_piece__skip(p, "+");
	if (!take_digits(p, &v, &taken, &more) || more || v > 1000)
		return false;
	*exponent += minus ? -(int)v : (int)v;
	return true;
}

/* v * 10^exponent, rounded half up. */
static bool shift(u64 v, int exponent, u64 *out)
{
	u64 last = 0;

	for (; exponent > 0 && v; exponent--) {
		if (v > UINT64_MAX / 10)
			return false;
		v *= 10;
	}
	for (; exponent < 0 && (v || last); exponent++) {
		last = v % 10;
		v /= 10;
	}
	*out = v + (last >= 5 && exponent == 0);
	return true;
}

bool hb_text__decimal(struct hb_piece p, int scale, s64 *out)
{
	bool minus = hb_piece__skip(&p, "-"), some;
	int taken = 0, more = 0, after = 0, lost = 0, exponent;
	u64 v = 0;

	some = take_digits(&p, &v, &taken, &more);
	if (hb_piece__skip(&p, "."))
		some |= take_digits(&p, &v, &after, &lost);
	exponent = scale + more - after;
	if (!some || !take_exponent(&p, &exponent) || p.n || !shift(v, exponent, &v) || v > INT64_MAX)
		return false;
	*out = minus ? -(s64)v : (s64)v;
	return true;
}

bool hb_text__integer(struct hb_piece p, s64 *out)
{
	bool minus = hb_piece__skip(&p, "-");
	int taken = 0, more = 0;
	u64 v = 0;

	if (!take_digits(&p, &v, &taken, &more) || p.n || more || v > INT64_MAX)
		return false;
	*out = minus ? -(s64)v : (s64)v;
	return true;
}

bool hb_text__digits(struct hb_piece p, s64 *out)
{
	int taken = 0, more = 0;
	u64 v = 0;

	while (p.n && !digit(*p.s))
		p.s++, p.n--;
	if (!take_digits(&p, &v, &taken, &more) || more || v > INT64_MAX)
		return false;
	*out = (s64)v;
	return true;
}

/* ---- names ---- */

bool hb_text__python(struct hb_piece p, struct hb_piece *file, u32 *line, struct hb_piece *func)
{
	for (const char *open = memchr(p.s, '(', p.n); open;
	     open = memchr(open + 1, '(', p.n - (size_t)(open + 1 - p.s))) {
		struct hb_piece rest = {open + 1, p.n - (size_t)(open + 1 - p.s)};
		int taken = 0, more = 0;
		u64 v = 0;

		if (!take_digits(&rest, &v, &taken, &more) || more || v > UINT32_MAX ||
		    !hb_piece__skip(&rest, "): ") || !rest.n)
			continue;
		*file = (struct hb_piece){p.s, (size_t)(open - p.s)};
		*line = (u32)v;
		*func = rest;
		return true;
	}
	return false;
}

struct word {
	const char *word;
	u8 id;
};

static u8 find(const struct word *words, size_t n, struct hb_piece p)
{
	for (size_t i = 0; i < n; i++)
		if (hb_piece__is(p, words[i].word))
			return words[i].id;
	return 0;
}

u8 hb_text__direction(struct hb_piece p)
{
	static const struct word words[] = {
	    {"HtoD", HB_COPY_HTOD},
	    {"DtoH", HB_COPY_DTOH},
	    {"DtoD", HB_COPY_DTOD},
	    {"HtoH", HB_COPY_HTOH},
	    {"PtoP", HB_COPY_PTOP},
	    {"HtoA", HB_COPY_HTOA},
	    {"AtoH", HB_COPY_ATOH},
	    {"AtoA", HB_COPY_ATOA},
	    {"AtoD", HB_COPY_ATOD},
	    {"DtoA", HB_COPY_DTOA},
	    {"CopyHostToDevice", HB_COPY_HTOD},
	    {"CopyDeviceToHost", HB_COPY_DTOH},
	    {"CopyDeviceToDevice", HB_COPY_DTOD},
	    {"HostToDevice", HB_COPY_HTOD},
	    {"DeviceToHost", HB_COPY_DTOH},
	    {"DeviceToDevice", HB_COPY_DTOD},
	};

	return find(words, N_ELEMS(words), p);
}

static u8 memory(struct hb_piece p)
{
	static const struct word words[] = {
	    {"Pageable", HB_MEMKIND_PAGEABLE},
	    {"Pinned", HB_MEMKIND_PINNED},
	    {"Device", HB_MEMKIND_DEVICE},
	    {"Array", HB_MEMKIND_ARRAY},
	    {"Managed", HB_MEMKIND_MANAGED},
	    {"Device Static", HB_MEMKIND_DEVICE_STATIC},
	    {"Managed Static", HB_MEMKIND_MANAGED_STATIC},
	};

	return find(words, N_ELEMS(words), p);
}

/* ROCm's "Host" does not say whether it was pinned: unknown. */
void hb_text__copy(struct hb_piece p, u8 *copy, u8 *from, u8 *to)
{
	const char *open, *close, *arrow = NULL;
	size_t word;

	if (!hb_piece__skip(&p, "Memcpy "))
		hb_piece__skip(&p, "Memset ");
	open = memchr(p.s, '(', p.n);
	close = open ? memchr(open, ')', p.n - (size_t)(open - p.s)) : NULL;
	for (word = 0; word < p.n && p.s[word] != ' ' && p.s[word] != '('; word++)
		;
	*copy = hb_text__direction((struct hb_piece){p.s, word});
	*from = *to = 0;
	if (!close)
		return;
	arrow = memmem(open, (size_t)(close - open), " -> ", 4);
	*from = memory((struct hb_piece){open + 1, (size_t)((arrow ? arrow : close) - open - 1)});
	if (arrow)
		*to = memory((struct hb_piece){arrow + 4, (size_t)(close - arrow - 4)});
}

u8 hb_text__sync(struct hb_piece p)
{
	static const struct word words[] = {
	    {"Event Sync", HB_SYNCKIND_EVENT},
	    {"Stream Wait Event", HB_SYNCKIND_STREAM_WAIT},
	    {"Stream Sync", HB_SYNCKIND_STREAM},
	    {"Context Sync", HB_SYNCKIND_CONTEXT},
	};

	return find(words, N_ELEMS(words), p);
}
