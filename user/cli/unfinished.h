/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A command that is interrupted leaves no half file: what it was made from is still there. */
#ifndef HB_CLI_UNFINISHED_H
#define HB_CLI_UNFINISHED_H

/* From now on SIGINT, SIGTERM and SIGHUP remove the file that is set, and end the program as they would. */
void hb_unfinished__catch(void);
/* The file that is being written; NULL: none, or it is whole. The text must live as long. */
void hb_unfinished__set(const char *path);

#endif
