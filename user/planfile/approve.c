/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who may say yes to a plan, and how that is kept. With a key: ssh-keygen signs a short statement that names
 * the plan's hash, so the approval holds wherever the signer is known. Without: the file's owner is the
 * witness, and it holds on this boot of this machine only. */
#include "planfile/members.h"

#include <errno.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/child.h"
#include "base/text.h"

#define NAMESPACE     "herschel-bpf-plan"
#define SIGN_TIMEOUT  (180ULL * 1000000000) /* a person types a passphrase */
#define CHECK_TIMEOUT (10ULL * 1000000000)

/* ---- here ---- */

static char *first_line(const char *path, char *buf, size_t size)
{
	FILE *f = fopen(path, "re");

	if (!f || !fgets(buf, (int)size, f))
		buf[0] = 0;
	if (f)
		fclose(f);
	buf[strcspn(buf, "\n")] = 0;
	return hb_text__clean(buf);
}

char *hb_planfile__boot(char *buf, size_t size)
{
	return first_line("/proc/sys/kernel/random/boot_id", buf, size);
}

char *hb_planfile__machine(char *buf, size_t size)
{
	if (!*first_line("/etc/machine-id", buf, size))
		first_line("/var/lib/dbus/machine-id", buf, size);
	return buf;
}

/* Of the person, where sudo says who that is. */
static void user_name(char *buf, size_t size)
{
	const char *sudo = geteuid() == 0 ? getenv("SUDO_USER") : NULL;
	const struct passwd *pw = sudo && *sudo ? NULL : getpwuid(geteuid());

	if (sudo && *sudo)
		snprintf(buf, size, "%s", sudo);
	else if (pw)
		snprintf(buf, size, "%s", pw->pw_name);
	else
		snprintf(buf, size, "uid %u", geteuid());
	hb_text__clean(buf);
}

static void drop(struct hb_approval *a)
{
	char **texts[] = {&a->plan, &a->by, &a->host, &a->at, &a->method, &a->machine, &a->boot};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		free(*texts[i]);
		*texts[i] = NULL;
	}
	for (u32 i = 0; i < a->n_signature; i++)
		free(a->signature[i]);
	a->n_signature = 0;
}

/* What is signed: one form, of what is in the file. */
static void statement(const struct hb_approval *a, struct hb_buf *out)
{
	hb_buf__printf(out, "herschel-bpf plan approval 1\nplan %s\nby %s\nuid %llu\nhost %s\nat %s\n",
		       a->plan ? a->plan : "", a->by ? a->by : "", (unsigned long long)a->uid,
		       a->host ? a->host : "", a->at ? a->at : "");
}

/* ---- saying yes ---- */

static int fill(struct hb_planfile *p, const struct hb_planfile_by *by)
{
	struct hb_approval *a = &p->approval;
	char hash[HB_SHA256_TEXT], name[128], host[128] = "", at[32], buf[64];
	time_t now = time(NULL);
	struct tm tm;
	int err;

	drop(a);
	err = hb_planfile__hash(p, hash);
	if (err)
		return err;
	user_name(name, sizeof(name));
	gethostname(host, sizeof(host) - 1);
	gmtime_r(&now, &tm);
	strftime(at, sizeof(at), "%Y-%m-%dT%H:%M:%SZ", &tm);
	a->uid = geteuid();
	a->plan = strdup(hash);
	a->by = hb_planfile__text(by->name ? by->name : name);
	a->host = hb_planfile__text(host);
	a->at = strdup(at);
	a->method = strdup(by->key ? "ssh" : "yes");
	a->machine = by->key ? NULL : hb_planfile__text(hb_planfile__machine(buf, sizeof(buf)));
	a->boot = by->key ? NULL : hb_planfile__text(hb_planfile__boot(buf, sizeof(buf)));
	return a->plan && a->by && a->host && a->at && a->method && (by->key || (a->machine && a->boot))
		   ? 0
		   : -ENOMEM;
}

static int keep_signature(struct hb_approval *a, const char *text, struct hb_error *e)
{
	for (const char *s = text; *s;) {
		size_t n = strcspn(s, "\n");

		if (a->n_signature == HB_PLANFILE_SIGNATURE || !hb_planfile__text_ok(s, n))
			return hb_error__set(e, HB_EXIT_FAILED, -EINVAL,
					     "ssh-keygen wrote a signature that does not fit a plan");
		a->signature[a->n_signature] = strndup(s, n);
		if (!a->signature[a->n_signature])
			return hb_error__nomem(e, "the signature");
		a->n_signature++;
		s += n + (s[n] != 0);
	}
	return 0;
}

/* The last thing that it said: earlier lines are progress. */
static const char *last_line(struct hb_buf *b)
{
	char *end;

	while (b->size && (b->data[b->size - 1] == '\n' || b->data[b->size - 1] == '\r'))
		b->data[--b->size] = 0;
	end = b->size ? strrchr(b->data, '\n') : NULL;
	return end ? end + 1 : b->size ? b->data : "no reason given";
}

static int sign(struct hb_approval *a, const char *key, struct hb_error *e)
{
	const char *const argv[] = {"ssh-keygen", "-Y", "sign", "-f", key, "-n", NAMESPACE, NULL};
	struct hb_buf text = {0}, out = {0}, said = {0};
	struct hb_child c = {.argv = argv, .timeout = SIGN_TIMEOUT};
	int status = 0, err;

	statement(a, &text);
	c.in = text.data;
	c.in_size = text.size;
	err = text.oom ? hb_error__nomem(e, "the approval") : hb_child__run(&c, &out, &said, &status, e);
	if (!err && (status || !out.size))
		err = hb_error__set(e, HB_EXIT_FAILED, -EACCES, "ssh-keygen could not sign with %s: %s", key,
				    last_line(&said));
	err = err ? err : keep_signature(a, out.data, e);
	hb_buf__free(&text);
	hb_buf__free(&out);
	hb_buf__free(&said);
	return err;
}

int hb_planfile__approve(struct hb_planfile *p, const struct hb_planfile_by *by, struct hb_error *e)
{
	int err = fill(p, by);

	if (err)
		hb_error__nomem(e, "the approval");
	else if (!by->key && !*p->approval.boot)
		err = hb_error__set(
		    e, HB_EXIT_FAILED, -ENOENT,
		    "this machine does not say which boot it is in "
		    "(/proc/sys/kernel/random/boot_id), so that an approval without a key could "
		    "not be bound to it: sign with --key");
	if (!err && by->key)
		err = sign(&p->approval, by->key, e);
	if (err)
		drop(&p->approval);
	return err;
}

/* ---- is it? ---- */

static int no(struct hb_error *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int no(struct hb_error *e, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return hb_error__set(e, HB_EXIT_TARGET, -EACCES, "%s", text);
}

static const char *or_unknown(const char *s)
{
	return s && *s ? s : "somebody";
}

/* Without a key nothing but the file itself tells who said yes, so only that user may have written it. */
static int check_yes(const struct hb_approval *a, const char *path, const struct hb_planfile_owner *owner,
		     struct hb_error *e)
{
	char boot[64], machine[64];

	hb_planfile__boot(boot, sizeof(boot));
	hb_planfile__machine(machine, sizeof(machine));
	if (!a->boot || !*boot || strcmp(a->boot, boot) != 0 || !a->machine ||
	    strcmp(a->machine, machine) != 0)
		return no(
		    e,
		    "%s was approved without a key by %s on %s, which is valid there and until its next "
		    "start only: approve it here (plan approve --yes), or sign it (--key)",
		    path, or_unknown(a->by), or_unknown(a->host));
	if (owner->mode & 022)
		return no(
		    e,
		    "%s was approved without a key, but others may write the file: chmod go-w it and approve "
		    "it again",
		    path);
	if (owner->uid != 0 && owner->uid != a->uid)
		return no(e,
			  "%s says that %s (uid %llu) approved it without a key, but belongs to uid %llu: "
			  "approve it "
			  "again",
			  path, or_unknown(a->by), (unsigned long long)a->uid,
			  (unsigned long long)owner->uid);
	return 0;
}

static int find_signers(const char *given, char *buf, size_t size, struct hb_error *e)
{
	const char *home = getenv("HOME");
	struct stat st;

	if (given)
		snprintf(buf, size, "%s", given);
	else
		snprintf(buf, size, "%s/.ssh/allowed_signers", home && *home ? home : "");
	if (stat(buf, &st))
		return no(
		    e,
		    "the plan is signed, but its signer cannot be known: %s: %s; name the file of allowed "
		    "signers with --signers",
		    buf, strerror(errno));
	if (st.st_mode & 022 || (st.st_uid != 0 && st.st_uid != geteuid()))
		return no(e,
			  "the plan is signed, but others than you may write %s: it is to say whom you trust",
			  buf);
	return 0;
}

/* One run of ssh-keygen -Y on the signature; its first line of output in `line`. */
static int keygen(const char *const *argv, const struct hb_buf *text, const struct hb_buf *signature,
		  char *line, size_t size, struct hb_error *e)
{
	struct hb_child c = {.argv = argv,
			     .timeout = CHECK_TIMEOUT,
			     .in = text->data,
			     .in_size = text->size,
			     .extra = signature->data,
			     .extra_size = signature->size};
	struct hb_buf out = {0}, said = {0};
	int status = 0, err = hb_child__run(&c, &out, &said, &status, e);

	if (!err) {
		snprintf(line, size, "%s", status ? last_line(&said) : out.data);
		line[strcspn(line, "\n")] = 0;
		hb_text__clean(line);
	}
	hb_buf__free(&out);
	hb_buf__free(&said);
	return err ? err : status;
}

static int check_ssh(const struct hb_approval *a, const char *path, const char *given,
		     char who[HB_PLANFILE_WHO], struct hb_error *e)
{
	char signers[4096], name[128], line[256];
	const char *const find[] = {"ssh-keygen",   "-Y", "find-principals", "-s",
				    HB_CHILD_EXTRA, "-f", signers,	     NULL};
	const char *const verify[] = {"ssh-keygen", "-Y", "verify",  "-f", signers,	   "-I",
				      name,	    "-n", NAMESPACE, "-s", HB_CHILD_EXTRA, NULL};
	struct hb_buf text = {0}, signature = {0};
	int err = find_signers(given, signers, sizeof(signers), e);

	for (u32 i = 0; i < a->n_signature; i++)
		hb_buf__printf(&signature, "%s\n", a->signature[i]);
	statement(a, &text);
	if (!err && (text.oom || signature.oom || !signature.size))
		err =
		    signature.size ? hb_error__nomem(e, "the approval") : no(e, "%s has no signature", path);
	if (!err && keygen(find, &text, &signature, name, sizeof(name), e))
		err = e->err ? e->err
			     : no(e,
				  "%s is signed by nobody that %s allows (it says: %s); add the signer's "
				  "public key there, or have it approved by somebody else",
				  path, signers, or_unknown(a->by));
	if (!err && keygen(verify, &text, &signature, line, sizeof(line), e))
		err = e->err ? e->err
			     : no(e, "the signature in %s does not fit its approval (%s): approve it again",
				  path, line);
	if (!err)
		snprintf(who, HB_PLANFILE_WHO, "%s, signed as %s, %s", or_unknown(a->by), name,
			 or_unknown(a->at));
	hb_buf__free(&text);
	hb_buf__free(&signature);
	return err;
}

int hb_planfile__check(const struct hb_planfile *p, const char *path, const struct hb_planfile_owner *owner,
		       const char *signers, char who[HB_PLANFILE_WHO], struct hb_error *e)
{
	const struct hb_approval *a = &p->approval;
	char hash[HB_SHA256_TEXT];
	int err = hb_planfile__hash(p, hash);

	if (err)
		return hb_error__nomem(e, "the plan");
	if (!a->plan)
		return no(
		    e,
		    "%s is not approved: look at it with `herschel-bpf plan show`, then `herschel-bpf plan "
		    "approve` it",
		    path);
	if (strcmp(a->plan, hash) != 0)
		return no(e, "%s was changed after %s approved it (%s): approve it again", path,
			  or_unknown(a->by), or_unknown(a->at));
	if (a->method && strcmp(a->method, "ssh") == 0)
		return check_ssh(a, path, signers, who, e);
	if (!a->method || strcmp(a->method, "yes") != 0)
		return no(e, "%s is approved by a method that this program does not know", path);
	err = check_yes(a, path, owner, e);
	if (!err)
		snprintf(who, HB_PLANFILE_WHO, "%s (uid %llu) on %s, without a key, %s", or_unknown(a->by),
			 (unsigned long long)a->uid, or_unknown(a->host), or_unknown(a->at));
	return err;
}
