/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "schema/schema.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static void types_are_found_by_id(void **state)
{
	size_t n;
	const struct hb_type *t = hb_schema__types(&n);

	assert_true(n >= 13);
	for (size_t i = 0; i < n; i++) {
		assert_ptr_equal(hb_schema__type(t[i].id), &t[i]);
		if (i)
			assert_true(t[i].id > t[i - 1].id);
	}
	assert_null(hb_schema__type(0));
	assert_null(hb_schema__type(HB_TYPE_MAX - 1));
	assert_null(hb_schema__type(HB_TYPE_MAX));
	assert_null(hb_schema__type(0xffffffff));
}

/* Members cover a record without gaps or overlaps, in order: what a reader of the schema text relies on. */
static void members_tile_the_record(void **state)
{
	size_t n;
	const struct hb_type *t = hb_schema__types(&n);

	for (size_t i = 0; i < n; i++) {
		unsigned at = 0;

		assert_true(t[i].size <= HB_RECORD_MAX && t[i].size % 8 == 0);
		for (unsigned k = 0; k < t[i].n_fields; k++) {
			const struct hb_field *f = &t[i].fields[k];

			assert_int_equal(f->offset, at);
			assert_string_not_equal(hb_role__name(f->role), "?");
			at += f->size;
		}
		assert_int_equal(at, t[i].size);
	}
}

/* The offsets worked out from roles agree with a search through the members. */
static void special_offsets(void **state)
{
	size_t n;
	const struct hb_type *t = hb_schema__types(&n);

	for (size_t i = 0; i < n; i++) {
		int dur = -1, stack[2] = {-1, -1}, seen = 0;

		for (unsigned k = 0; k < t[i].n_fields; k++) {
			const struct hb_field *f = &t[i].fields[k];

			if (f->role == HB_ROLE_DUR) {
				assert_int_equal(dur, -1); /* one at most */
				assert_string_equal(f->ctype, "u64");
				dur = f->offset;
			}
			if (f->role == HB_ROLE_STACK) {
				assert_true(seen < 2);
				assert_string_equal(f->ctype, "u32");
				stack[seen++] = f->offset;
			}
		}
		assert_int_equal(t[i].dur_offset, dur);
		assert_int_equal(t[i].stack_offset[0], stack[0]);
		assert_int_equal(t[i].stack_offset[1], stack[1]);
	}
	assert_int_equal(hb_schema__type(HB_TYPE_accel)->dur_offset, 0);
	assert_int_equal(hb_schema__type(HB_TYPE_sample)->stack_offset[1],
			 offsetof(struct hb_rec_sample, kstack));
}

static const struct hb_field *field(unsigned type, const char *name)
{
	const struct hb_type *t = hb_schema__type(type);

	for (unsigned i = 0; i < t->n_fields; i++)
		if (strcmp(t->fields[i].name, name) == 0)
			return &t->fields[i];
	fail_msg("no member %s", name);
	return NULL;
}

static void integers_are_read_with_their_sign(void **state)
{
	struct hb_rec_accel a = {.ret = -700, .bx = 65535, .kind = 255, .dur = 1ULL << 63, .gx = 0xffffffff};
	struct hb_rec_syscall s = {.ret = -11};
	struct hb_rec_rename r = {.name = {"abc"}};

	assert_int_equal(hb_field__int(field(HB_TYPE_accel, "ret"), &a), -700);
	assert_int_equal(hb_field__int(field(HB_TYPE_accel, "bx"), &a), 65535);
	assert_int_equal(hb_field__int(field(HB_TYPE_accel, "kind"), &a), 255);
	assert_int_equal(hb_field__int(field(HB_TYPE_accel, "gx"), &a), 0xffffffffLL);
	assert_true((u64)hb_field__int(field(HB_TYPE_accel, "dur"), &a) == 1ULL << 63);
	assert_int_equal(hb_field__int(field(HB_TYPE_syscall, "ret"), &s), -11);
	assert_int_equal(hb_field__int(field(HB_TYPE_rename, "name"), &r), 0);
}

static void words_and_numbers(void **state)
{
	char buf[256], tiny[8];

	assert_string_equal(hb_word(HB_WORDS_CLASS, HB_CLASS_LAUNCH), "launch");
	assert_int_equal(hb_word__id(HB_WORDS_CLASS, "collective"), HB_CLASS_COLLECTIVE);
	assert_int_equal(hb_word__id(HB_WORDS_CLASS, "Launch"), -1);
	assert_string_equal(hb_word(HB_WORDS_CLASS, 200), "?");
	assert_string_equal(hb_word(HB_WORDS_WCTX, HB_WCTX_OWN_SEND), "own_send");
	assert_int_equal(hb_word__id(HB_WORDS_LOSS, "damaged"), HB_LOSS_DAMAGED);
	assert_string_equal(hb_word__all(HB_WORDS_LAYER, buf, sizeof(buf)), "driver, runtime, library");
	assert_string_equal(hb_word__all(HB_WORDS_LAYER, tiny, sizeof(tiny)), "driver,");
}

static void roles_and_numbers(void **state)
{
	assert_string_equal(hb_role__name(HB_ROLE_NOTELEVEL), "NOTELEVEL");
	assert_int_equal(hb_role__id("STACK"), HB_ROLE_STACK);
	assert_int_equal(hb_role__id("stack"), -1);
	assert_string_equal(hb_role__name(10000), "?");
}

static void system_calls(void **state)
{
	assert_true(hb_sysno__id("futex") > 0);
	assert_string_equal(hb_sysno__name((unsigned)hb_sysno__id("epoll_wait")), "epoll_wait");
	assert_int_equal(hb_sysno__id("no_such_call"), -1);
	assert_null(hb_sysno__name(HB_SYSNO_NONE));
	assert_null(hb_sysno__name(0xffffffff));
#ifdef __x86_64__
	assert_int_equal(hb_sysno__id("read"), 0);
	assert_int_equal(hb_sysno__id("futex"), 202);
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(types_are_found_by_id), cmocka_unit_test(members_tile_the_record),
	    cmocka_unit_test(special_offsets),	     cmocka_unit_test(integers_are_read_with_their_sign),
	    cmocka_unit_test(words_and_numbers),     cmocka_unit_test(roles_and_numbers),
	    cmocka_unit_test(system_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
