/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Plan files: reading, writing, the hash, approvals with and without a key; and what they rest on: SHA-256
 * and child processes. */
#include "base/child.h"
#include "base/clock.h"
#include "planfile/planfile.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static char dir[] = "/tmp/hb-planfile-XXXXXX";

static const char *in_dir(const char *name)
{
	static char bufs[8][256];
	static unsigned next;
	char *b = bufs[next++ % 8];

	snprintf(b, sizeof(bufs[0]), "%s/%s", dir, name);
	return b;
}

static int setup(void **state)
{
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	char cmd[300];

	snprintf(cmd, sizeof(cmd), "rm -rf '%s'", dir);
	return system(cmd);
}

static void put(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

/* ---- SHA-256 ---- */

static void digests_are_those_of_the_standard(void **state)
{
	char hash[HB_SHA256_TEXT], *million = malloc(1000000);

	hb_sha256("", 0, hash);
	assert_string_equal(hash, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	hb_sha256("abc", 3, hash);
	assert_string_equal(hash, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	hb_sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56, hash);
	assert_string_equal(hash, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	assert_non_null(million);
	memset(million, 'a', 1000000);
	hb_sha256(million, 1000000, hash);
	assert_string_equal(hash, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	free(million);
}

/* Against another implementation, at every length around the ends of blocks. */
static void digests_agree_with_sha256sum(void **state)
{
	const char *const argv[] = {"sha256sum", NULL};
	char data[200], hash[HB_SHA256_TEXT];

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (char)(i * 7 + 1);
	for (size_t n = 50; n < 135; n += n < 70 || n > 115 ? 1 : 15) {
		struct hb_child c = {.argv = argv, .in = data, .in_size = n, .timeout = 10000000000ULL};
		struct hb_buf out = {0}, said = {0};
		struct hb_error e = {0};
		int status;

		assert_int_equal(hb_child__run(&c, &out, &said, &status, &e), 0);
		assert_int_equal(status, 0);
		hb_sha256(data, n, hash);
		assert_int_equal(strncmp(out.data, hash, 64), 0);
		hb_buf__free(&out);
		hb_buf__free(&said);
	}
}

/* ---- children ---- */

static int child(const char *script, const char *in, const char *extra, u64 timeout, struct hb_buf *out,
		 struct hb_buf *said, struct hb_error *e)
{
	const char *const argv[] = {"sh", "-c", script, NULL};
	struct hb_child c = {.argv = argv,
			     .in = in,
			     .in_size = in ? strlen(in) : 0,
			     .extra = extra,
			     .extra_size = extra ? strlen(extra) : 0,
			     .timeout = timeout};
	int status = -1, err = hb_child__run(&c, out, said, &status, e);

	return err ? err : status;
}

static void a_child_is_given_and_gives(void **state)
{
	struct hb_buf out = {0}, said = {0};
	struct hb_error e = {0};

	assert_int_equal(child("cat; cat " HB_CHILD_EXTRA "; echo no >&2; exit 7", "in ", "extra",
			       10000000000ULL, &out, &said, &e),
			 7);
	assert_string_equal(out.data, "in extra");
	assert_string_equal(said.data, "no\n");
	hb_buf__free(&out);
	hb_buf__free(&said);
}

static void a_child_that_hangs_is_killed(void **state)
{
	struct hb_buf out = {0}, said = {0};
	struct hb_error e = {0};
	u64 begin = hb_clock__now();

	assert_int_equal(child("exec sleep 60", NULL, NULL, 50000000ULL, &out, &said, &e), -ETIMEDOUT);
	assert_true(hb_clock__now() - begin < 20000000000ULL);
	assert_non_null(strstr(e.text, "did not end"));
	hb_buf__free(&out);
	hb_buf__free(&said);
}

static void a_program_that_is_not_there_is_named(void **state)
{
	const char *const argv[] = {"hb-no-such-program", NULL};
	struct hb_child c = {.argv = argv, .timeout = 1000000000ULL};
	struct hb_buf out = {0}, said = {0};
	struct hb_error e = {0};
	int status;

	assert_int_equal(hb_child__run(&c, &out, &said, &status, &e), -ENOENT);
	assert_non_null(strstr(e.text, "hb-no-such-program"));
}

/* ---- reading and writing ---- */

#define WINDOW "\"window\":{\"id\":\"w1\",\"boot\":\"b1\"}"
#define TARGET "\"target\":[{\"pid\":42,\"start_ns\":7}]"
#define RECORD "\"record\":{\"syscalls\":\"all\"}"
#define WHOLE  "{\"plan\":1," WINDOW "," TARGET "," RECORD "}"

static struct hb_planfile *parsed(const char *text)
{
	struct hb_error e = {0};
	struct hb_planfile *p = hb_planfile__parse("x.plan", text, strlen(text), &e);

	if (!p)
		fail_msg("%s", e.text);
	return p;
}

static void refused(const char *text, const char *word)
{
	struct hb_error e = {0};

	assert_null(hb_planfile__parse("x.plan", text, strlen(text), &e));
	assert_int_equal(e.exit, HB_EXIT_USAGE);
	assert_int_equal(strncmp(e.text, "x.plan is no plan: ", 19), 0);
	if (!strstr(e.text, word))
		fail_msg("\"%s\" not in: %s", word, e.text);
}

static char *hash_of(const struct hb_planfile *p)
{
	static char bufs[4][HB_SHA256_TEXT];
	static unsigned next;
	char *b = bufs[next++ % 4];

	assert_int_equal(hb_planfile__hash(p, b), 0);
	return b;
}

static struct hb_planfile *made(void)
{
	struct hb_planfile *p = parsed(WHOLE);

	assert_int_equal(hb_planfile__set(p, "calls", "engine.py:Engine.step"), 0);
	assert_int_equal(hb_planfile__set(p, "calls", "*:Kv.get"), 0);
	assert_int_equal(hb_planfile__set(p, "calls", "*:Kv.get"), 0);
	assert_int_equal(hb_planfile__set(p, "duration", "20s"), 0);
	assert_int_equal(hb_planfile__set(p, "duration", "30s"), 0);
	p->reason[0] = (struct hb_planfile_reason){.pattern = strdup("P13"), .why = strdup("it is inferred")};
	p->n_reasons = 1;
	p->cost[0] = (struct hb_planfile_cost){
	    .what = strdup("launches"), .known = true, .rate = 1000, .price_ns = 300, .ns_per_s = 300000};
	p->cost[1] = (struct hb_planfile_cost){
	    .what = strdup("calls"), .most_ns_per_s = 7000000, .basis = strdup("not counted")};
	p->n_costs = 2;
	return p;
}

static void what_is_written_is_read_again(void **state)
{
	struct hb_planfile *p = made(), *q;
	const char *path = in_dir("whole.plan");
	struct hb_planfile_owner owner;
	struct hb_error e = {0};

	assert_int_equal(hb_planfile__write(p, path, false, &e), 0);
	q = hb_planfile__read(path, &owner, &e);
	if (!q)
		fail_msg("%s", e.text);
	assert_int_equal(owner.uid, geteuid());
	assert_string_equal(hash_of(p), hash_of(q));
	assert_int_equal(q->process[0].pid, 42);
	assert_int_equal(q->process[0].start_ns, 7);
	assert_int_equal(q->n_options, 4);
	assert_string_equal(hb_planfile__get(q, "duration"), "30s");
	assert_string_equal(hb_planfile__get(q, "syscalls"), "all");
	assert_null(hb_planfile__get(q, "python"));
	assert_string_equal(q->option[2].value, "engine.py:Engine.step");
	assert_string_equal(q->option[3].value, "*:Kv.get");
	assert_string_equal(q->reason[0].why, "it is inferred");
	assert_int_equal(q->n_costs, 2);
	assert_true(q->cost[0].known && q->cost[0].ns_per_s == 300000);
	assert_true(!q->cost[1].known && q->cost[1].rate == 0 && q->cost[1].most_ns_per_s == 7000000);
	assert_null(q->approval.plan);
	hb_planfile__free(q);
	assert_int_equal(hb_planfile__write(p, path, false, &e), -EEXIST);
	assert_non_null(strstr(e.text, "exists already"));
	hb_planfile__free(p);
}

/* Blanks and the order of members are no contents. */
static void the_hash_is_of_the_contents(void **state)
{
	struct hb_planfile *p = parsed(WHOLE),
			   *q = parsed("{ " RECORD ",\n" TARGET ", \"plan\": 1, \"window\" : "
				       "{\"boot\":\"b1\", \"id\":\"w1\"} }"),
			   *r = parsed("{\"plan\":1," WINDOW
				       ",\"target\":[{\"pid\":43,\"start_ns\":7}]," RECORD "}");

	assert_string_equal(hash_of(p), hash_of(q));
	assert_string_not_equal(hash_of(p), hash_of(r));
	assert_int_equal(hb_planfile__set(q, "syscalls", "none"), 0);
	assert_string_not_equal(hash_of(p), hash_of(q));
	hb_planfile__free(p);
	hb_planfile__free(q);
	hb_planfile__free(r);
}

/* A form that changes between versions would void every approval there is. */
static void the_hash_does_not_change_between_versions(void **state)
{
	struct hb_planfile *p = parsed(WHOLE);
	char want[HB_SHA256_TEXT];
	const char *text = "{\"plan\":1,\"window\":{\"id\":\"w1\",\"boot\":\"b1\"},"
			   "\"target\":[{\"pid\":42,\"start_ns\":7}],\"record\":{\"syscalls\":\"all\"},"
			   "\"reasons\":[],\"cost\":[]}\n";

	hb_sha256(text, strlen(text), want);
	assert_string_equal(hash_of(p), want);
	hb_planfile__free(p);
}

static void hostile_files_get_one_sentence(void **state)
{
	static const char *const files[][2] = {
	    {"", "empty"},
	    {"nonsense", "no JSON"},
	    {"{\"plan\":1,", "cut off"},
	    {"[]", "list where"},
	    {"7", "objects only"},
	    {"{}", "\"plan\" is missing"},
	    {"{\"plan\":2," WINDOW "," TARGET "," RECORD "}", "version 2"},
	    {"{\"plan\":1," TARGET "," RECORD "}", "\"window\" is missing"},
	    {"{\"plan\":1,\"window\":{\"id\":\"x\"}," TARGET "," RECORD "}", "\"window.boot\" is missing"},
	    {"{\"plan\":1," WINDOW "," RECORD "}", "no process"},
	    {"{\"plan\":1," WINDOW "," TARGET "}", "nothing to be recorded"},
	    {"{\"plan\":1,\"evil\":1}", "\"evil\" is no member"},
	    {"{\"plan\":1,\"evil\":{}}", "\"evil\" is no object"},
	    {"{\"plan\":1,\"evil\":[]}", "\"evil\" is no list"},
	    {"{\"plan\":1,\"plan\":1}", "twice"},
	    {"{\"plan\":1," WINDOW "," WINDOW "}", "twice"},
	    {"{\"plan\":\"1\"}", "to be a number"},
	    {"{\"plan\":-1}", "whole number"},
	    {"{\"plan\":1.5}", "whole number"},
	    {"{\"plan\":1e3}", "whole number"},
	    {"{\"plan\":99999999999999999999}", "whole number"},
	    {"{\"plan\":null}", "null"},
	    {"{\"plan\":true}", "to be a number"},
	    {"{\"plan\":1,\"tool\":\"a\\u001b[31m\"}", "control characters"},
	    {"{\"plan\":1,\"window\":{\"id\":{}}}", "no object"},
	    {"{\"plan\":1,\"window\":{\"id\":[]}}", "to be a text"},
	    {"{\"plan\":1,\"window\":7}", "no member"},
	    {"{\"plan\":1,\"window\":[]}", "no list"},
	    {"{\"plan\":1,\"target\":{}}", "no object"},
	    {"{\"plan\":1,\"target\":[1]}", "objects only"},
	    {"{\"plan\":1,\"target\":[[]]}", "list where"},
	    {"{\"plan\":1,\"target\":[{\"pid\":1}]}", "\"target[].start_ns\" is missing"},
	    {"{\"plan\":1," WINDOW ",\"target\":[{\"pid\":0,\"start_ns\":1}]," RECORD "}", "no process id"},
	    {"{\"plan\":1," WINDOW ",\"target\":[{\"pid\":4294967338,\"start_ns\":1}]," RECORD "}",
	     "no process id"},
	    {"{\"plan\":1,\"record\":{\"output\":\"/etc/passwd\"}}", "nothing that a plan can ask for"},
	    {"{\"plan\":1,\"record\":{\"syscalls\":7}}", "texts only"},
	    {"{\"plan\":1,\"record\":{\"syscalls\":[\"all\"]}}", "to be a text"},
	    {"{\"plan\":1,\"record\":{\"calls\":\"x\"}}", "to be a list"},
	    {"{\"plan\":1,\"record\":{\"calls\":[[]]}}", "list where"},
	    {"{\"plan\":1,\"record\":{\"calls\":[],\"calls\":[]}}", "twice"},
	    {"{\"plan\":1,\"record\":{\"python\":\"off\",\"python\":\"off\"}}", "twice"},
	    {WHOLE "{}", "no JSON"},
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		refused(files[i][0], files[i][1]);
}

/* A file cut at any byte is refused. */
static void no_part_of_a_plan_is_a_plan(void **state)
{
	for (size_t n = 0; n < strlen(WHOLE); n++) {
		struct hb_error e = {0};

		assert_null(hb_planfile__parse("x", WHOLE, n, &e));
		assert_true(e.text[0]);
	}
}

static void limits_hold(void **state)
{
	struct hb_error e = {0};
	char *big = malloc(HB_PLANFILE_SIZE + 2);
	struct hb_buf b = {0};

	assert_non_null(big);
	memset(big, ' ', HB_PLANFILE_SIZE + 1);
	assert_null(hb_planfile__parse("x", big, HB_PLANFILE_SIZE + 1, &e));
	assert_non_null(strstr(e.text, "KiB"));
	memset(big, '[', HB_PLANFILE_SIZE);
	hb_error__clear(&e);
	assert_null(hb_planfile__parse("x", big, HB_PLANFILE_SIZE, &e));
	free(big);
	hb_buf__printf(&b, "{\"plan\":1,\"target\":[");
	for (int i = 0; i <= HB_PLANFILE_PROCESSES; i++)
		hb_buf__printf(&b, "%s{\"pid\":%d,\"start_ns\":1}", i ? "," : "", i + 1);
	hb_buf__printf(&b, "]}");
	refused(b.data, "more than 128");
	b.size = 0;
	hb_buf__printf(&b, "{\"plan\":1,\"tool\":\"%01500d\"}", 0);
	refused(b.data, "longer than");
	b.size = 0;
	hb_buf__printf(&b, "{\"plan\":1,\"record\":{\"calls\":[");
	for (int i = 0; i <= HB_PLANFILE_OPTIONS; i++)
		hb_buf__printf(&b, "%s\"f%d\"", i ? "," : "", i);
	hb_buf__printf(&b, "]}}");
	refused(b.data, "more than 192");
	hb_buf__free(&b);
}

static void options_are_those_of_a_plan(void **state)
{
	struct hb_planfile *p = parsed(WHOLE);
	char *long_text = hb_planfile__text("\033[31m");

	assert_int_equal(hb_planfile__set(p, "output", "x"), -EINVAL);
	assert_int_equal(hb_planfile__set(p, "python", "a\nb"), -EINVAL);
	assert_string_equal(long_text, "?[31m");
	free(long_text);
	hb_planfile__free(p);
}

/* ---- approval ---- */

static void said_no(struct hb_planfile *p, const struct hb_planfile_owner *o, const char *signers,
		    const char *word)
{
	char who[HB_PLANFILE_WHO];
	struct hb_error e = {0};

	assert_int_equal(hb_planfile__check(p, "x.plan", o, signers, who, &e), -EACCES);
	assert_int_equal(e.exit, HB_EXIT_TARGET);
	if (!strstr(e.text, word))
		fail_msg("\"%s\" not in: %s", word, e.text);
}

static void change(char **text, const char *to)
{
	free(*text);
	*text = strdup(to);
	assert_non_null(*text);
}

static void approval_without_a_key_is_for_here(void **state)
{
	struct hb_planfile_owner own = {.uid = geteuid(), .mode = 0644}, root = {.uid = 0, .mode = 0600};
	struct hb_planfile_owner other = {.uid = 4711, .mode = 0644}, open_file = {.uid = 0, .mode = 0664};
	struct hb_planfile_by by = {0};
	struct hb_planfile *p = made();
	char who[HB_PLANFILE_WHO];
	struct hb_error e = {0};

	said_no(p, &own, NULL, "not approved");
	if (hb_planfile__approve(p, &by, &e))
		fail_msg("%s", e.text);
	assert_int_equal(hb_planfile__check(p, "x.plan", &own, NULL, who, &e), 0);
	assert_int_equal(hb_planfile__check(p, "x.plan", &root, NULL, who, &e), 0);
	assert_non_null(strstr(who, "without a key"));
	said_no(p, &other, NULL, "belongs to uid 4711");
	said_no(p, &open_file, NULL, "others may write");
	change(&p->approval.boot, "11111111-1111-1111-1111-111111111111");
	said_no(p, &own, NULL, "valid there");
	assert_int_equal(hb_planfile__approve(p, &by, &e), 0);
	change(&p->approval.machine, "somewhere else");
	said_no(p, &own, NULL, "valid there");
	assert_int_equal(hb_planfile__approve(p, &by, &e), 0);
	change(&p->approval.method, "nod");
	said_no(p, &own, NULL, "does not know");
	hb_planfile__free(p);
}

static void any_change_voids_an_approval(void **state)
{
	struct hb_planfile_owner own = {.uid = geteuid(), .mode = 0644};
	struct hb_planfile_by by = {.name = "alice"};
	struct hb_planfile *p = made();
	struct hb_error e = {0};

	assert_int_equal(hb_planfile__approve(p, &by, &e), 0);
	assert_int_equal(hb_planfile__set(p, "calls", "*:Other.one"), 0);
	said_no(p, &own, NULL, "changed after alice approved");
	assert_int_equal(hb_planfile__approve(p, &by, &e), 0);
	p->process[0].pid++;
	said_no(p, &own, NULL, "changed after alice approved");
	assert_int_equal(hb_planfile__approve(p, &by, &e), 0);
	p->cost[0].price_ns--;
	said_no(p, &own, NULL, "changed after alice approved");
	hb_planfile__free(p);
}

static bool make_key(const char *path, const char *signers, const char *who)
{
	char cmd[1024];

	snprintf(cmd, sizeof(cmd),
		 "ssh-keygen -q -t ed25519 -N '' -C x -f '%s' </dev/null && "
		 "echo \"%s $(cat '%s.pub')\" > '%s' && chmod 600 '%s'",
		 path, who, path, signers, signers);
	return system(cmd) == 0;
}

/* Through a file and back, as it is used. */
static struct hb_planfile *again(const struct hb_planfile *p)
{
	const char *path = in_dir("signed.plan");
	struct hb_error e = {0};
	struct hb_planfile *q;

	assert_int_equal(hb_planfile__write(p, path, true, &e), 0);
	q = hb_planfile__read(path, NULL, &e);
	if (!q)
		fail_msg("%s", e.text);
	return q;
}

static void approval_with_a_key_is_the_signers(void **state)
{
	struct hb_planfile_owner other = {.uid = 4711, .mode = 0666};
	const char *key = in_dir("key"), *signers = in_dir("signers"), *strangers = in_dir("strangers");
	struct hb_planfile_by by = {.key = key};
	struct hb_planfile *p = made(), *q;
	char who[HB_PLANFILE_WHO];
	struct hb_error e = {0};

	if (system("command -v ssh-keygen >/dev/null"))
		skip();
	assert_true(make_key(key, signers, "alice@example.org"));
	assert_true(make_key(in_dir("stranger"), strangers, "mallory"));
	if (hb_planfile__approve(p, &by, &e))
		fail_msg("%s", e.text);
	assert_true(p->approval.n_signature > 2);
	q = again(p);
	if (hb_planfile__check(q, "x.plan", &other, signers, who, &e))
		fail_msg("%s", e.text);
	assert_non_null(strstr(who, "signed as alice@example.org"));
	said_no(q, &other, strangers, "nobody that");
	said_no(q, &other, in_dir("none"), "cannot be known");
	assert_int_equal(chmod(signers, 0666), 0);
	said_no(q, &other, signers, "may write");
	assert_int_equal(chmod(signers, 0600), 0);
	/* The signature is of who and when too. */
	change(&q->approval.by, "bob");
	said_no(q, &other, signers, "does not fit");
	hb_planfile__free(q);
	/* Another plan with this signature. */
	q = again(p);
	assert_int_equal(hb_planfile__set(q, "syscalls", "none"), 0);
	said_no(q, &other, signers, "changed after");
	change(&q->approval.plan, hash_of(q));
	said_no(q, &other, signers, "does not fit");
	hb_planfile__free(q);
	hb_planfile__free(p);
}

static void a_key_that_is_none_is_said(void **state)
{
	struct hb_planfile_by by = {.key = in_dir("not-there")};
	struct hb_planfile *p = made();
	struct hb_error e = {0};

	if (system("command -v ssh-keygen >/dev/null"))
		skip();
	assert_true(hb_planfile__approve(p, &by, &e) < 0);
	assert_non_null(strstr(e.text, "not-there"));
	assert_null(p->approval.plan);
	hb_planfile__free(p);
}

/* ---- files ---- */

static void files_that_cannot_be_read_are_said(void **state)
{
	const char *const paths[] = {in_dir("missing"), dir, "/dev/null", "/proc/self/mem"};
	struct hb_error e;

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		hb_error__clear(&e);
		e = (struct hb_error){0};
		assert_null(hb_planfile__read(paths[i], NULL, &e));
		assert_true(e.text[0]);
	}
	put(in_dir("cut.plan"), "{\"plan\":1,");
	e = (struct hb_error){0};
	assert_null(hb_planfile__read(in_dir("cut.plan"), NULL, &e));
	assert_int_equal(e.exit, HB_EXIT_USAGE);
}

static void a_link_stays_a_link(void **state)
{
	const char *file = in_dir("linked.plan"), *link = in_dir("link.plan");
	struct hb_planfile *p = made();
	struct hb_error e = {0};
	struct stat st;

	assert_int_equal(hb_planfile__write(p, file, false, &e), 0);
	assert_int_equal(symlink(file, link), 0);
	assert_int_equal(hb_planfile__write(p, link, true, &e), 0);
	assert_int_equal(lstat(link, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(hb_planfile__write(p, in_dir("no/such/folder"), false, &e), -ENOENT);
	hb_planfile__free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(digests_are_those_of_the_standard),
	    cmocka_unit_test(digests_agree_with_sha256sum),
	    cmocka_unit_test(a_child_is_given_and_gives),
	    cmocka_unit_test(a_child_that_hangs_is_killed),
	    cmocka_unit_test(a_program_that_is_not_there_is_named),
	    cmocka_unit_test(what_is_written_is_read_again),
	    cmocka_unit_test(the_hash_is_of_the_contents),
	    cmocka_unit_test(the_hash_does_not_change_between_versions),
	    cmocka_unit_test(hostile_files_get_one_sentence),
	    cmocka_unit_test(no_part_of_a_plan_is_a_plan),
	    cmocka_unit_test(limits_hold),
	    cmocka_unit_test(options_are_those_of_a_plan),
	    cmocka_unit_test(approval_without_a_key_is_for_here),
	    cmocka_unit_test(any_change_voids_an_approval),
	    cmocka_unit_test(approval_with_a_key_is_the_signers),
	    cmocka_unit_test(a_key_that_is_none_is_said),
	    cmocka_unit_test(files_that_cannot_be_read_are_said),
	    cmocka_unit_test(a_link_stays_a_link),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
