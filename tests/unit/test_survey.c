/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which files are a Python, and which version their names tell. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "capture/session/survey.h"

static void python_names(void **state)
{
	static const char *const cases[][2] = {
	    {"/usr/bin/python3.11", "3.11"},
	    {"/usr/bin/python3.13t", "3.13t"},
	    {"/usr/bin/python3", "?"},
	    {"python", "?"},
	    {"/usr/lib/libpython3.8.so.1.0", "3.8"},
	    {"/usr/lib/libpython3.14t.so.1.0", "3.14t"},
	    {"/usr/lib/libpython3.so", "?"},
	    {"/usr/bin/python3-config", NULL},
	    {"/opt/libpython3.9.a", NULL},
	    {"/usr/bin/pythonista", NULL},
	    {"/usr/bin/ipython3", NULL},
	    {"/srv/python3.11/bin/node", NULL},
	    {"", NULL},
	};
	char version[16];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		version[0] = 0;
		assert_int_equal(hb_survey__python(cases[i][0], version, sizeof(version)),
				 cases[i][1] != NULL);
		assert_string_equal(version, cases[i][1] ? cases[i][1] : "");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(python_names)};

	return cmocka_run_group_tests_name("survey", tests, NULL, NULL);
}
