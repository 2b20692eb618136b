/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "capture/session/impl.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>

/* Records below the wake-up threshold wait at most this long; also the reaction time to pump_stop. */
#define TICK_MS 50

static int drain(struct hb_session *s)
{
	int n;

	pthread_mutex_lock(&s->collect_lock);
	n = hb_collect__poll(s->collect, 0);
	hb_session_pytasks__look(s, false);
	pthread_mutex_unlock(&s->collect_lock);
	return n;
}

static void *pump_main(void *arg)
{
	struct hb_session *s = arg;
	struct pollfd pfd = {.fd = hb_collect__fd(s->collect), .events = POLLIN};

	prctl(PR_SET_NAME, "hb-pump");
	while (!atomic_load(&s->pump_stop)) {
		int n = drain(s);

		if (n < 0 && !atomic_exchange(&s->pump_err, n))
			eventfd_write(s->queue_fd, 1);
		if (n < 0 && n != -EFBIG)
			break;
		/* A full file takes no more, but rings that overflow from here on would look like loss inside
		 * of the window, and its end is known when all rings were asked. */
		if (n <= 0)
			poll(&pfd, 1, TICK_MS);
	}
	return NULL;
}

int hb_pump__start(struct hb_session *s, struct hb_error *e)
{
	int err;

	atomic_store(&s->pump_stop, false);
	err = pthread_create(&s->pump, NULL, pump_main, s);
	if (err)
		return hb_error__set(e, HB_EXIT_FAILED, -err, "cannot start the collecting thread: %s",
				     strerror(err));
	s->pump_running = true;
	return 0;
}

void hb_pump__stop(struct hb_session *s)
{
	u64 deadline = hb_clock__now() + 2000000000ULL;

	if (s->pump_running) {
		atomic_store(&s->pump_stop, true);
		pthread_join(s->pump, NULL);
		s->pump_running = false;
	}
	/* Nothing produces any more: a full pass that finds nothing is the end. */
	while (s->collect && !atomic_load(&s->pump_err) && drain(s) > 0 && hb_clock__now() < deadline)
		;
	hb_session_pytasks__look(s, true);
}

void hb_session__emit(struct hb_session *s, unsigned type, u32 pid, u32 tid, u64 ts, const void *payload)
{
	pthread_mutex_lock(&s->collect_lock);
	hb_collect__emit(s->collect, type, pid, tid, ts, payload);
	pthread_mutex_unlock(&s->collect_lock);
}

void hb_session__note(struct hb_session *s, enum hb_notelevel level, const char *fmt, ...)
{
	struct hb_rec_note note = {.level = level};
	char text[512];
	va_list ap;
	u32 pid = s->n_pids ? s->pids[0] : 0;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	note.text = hb_window_writer__string(s->writer, text);
	hb_session__emit(s, HB_TYPE_note, pid, pid, hb_clock__now(), &note);
}
