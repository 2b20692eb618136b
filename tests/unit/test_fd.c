/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What descriptors are said to be, on real sockets and pipes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "capture/target/target.h"

/* ---- descriptors ---- */

static int listener(struct sockaddr_in *a)
{
	socklen_t len = sizeof(*a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memset(a, 0, sizeof(*a));
	a->sin_family = AF_INET;
	a->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)a, len), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)a, &len), 0);
	return fd;
}

static void tcp_descriptors(void **state)
{
	struct hb_fds *f = hb_fds__new();
	struct sockaddr_in a, me;
	socklen_t len = sizeof(me);
	char buf[512], want[128];
	int server = listener(&a), client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_non_null(f);
	assert_int_equal(connect(client, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(getsockname(client, (struct sockaddr *)&me, &len), 0);
	assert_int_equal(hb_fds__describe(f, (u32)getpid(), server, buf, sizeof(buf)), 0);
	snprintf(want, sizeof(want), " tcp listening on 127.0.0.1:%u", ntohs(a.sin_port));
	assert_non_null(strstr(buf, want));
	assert_int_equal(hb_fds__describe(f, (u32)getpid(), client, buf, sizeof(buf)), 0);
	snprintf(want, sizeof(want), " tcp 127.0.0.1:%u -> 127.0.0.1:%u", ntohs(me.sin_port),
		 ntohs(a.sin_port));
	assert_non_null(strstr(buf, want));
	assert_int_equal(hb_fds__describe(f, (u32)getpid(), 1000, buf, sizeof(buf)), -ENOENT);
	assert_string_equal(buf, "");
	hb_fds__free(f);
	close(client);
	close(server);
}

static void other_descriptors(void **state)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = "/tmp/hb_test\033.sock"};
	int u = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), p[2];
	char buf[512];

	unlink(a.sun_path);
	assert_int_equal(bind(u, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(hb_fd__describe((u32)getpid(), u, buf, sizeof(buf)), 0);
	assert_non_null(strstr(buf, " unix /tmp/hb_test?.sock"));
	unlink(a.sun_path);
	close(u);
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	assert_int_equal(hb_fd__describe((u32)getpid(), p[0], buf, sizeof(buf)), 0);
	assert_memory_equal(buf, "pipe:[", 6);
	close(p[0]);
	close(p[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(tcp_descriptors),
	    cmocka_unit_test(other_descriptors),
	};

	return cmocka_run_group_tests_name("fd", tests, NULL, NULL);
}
