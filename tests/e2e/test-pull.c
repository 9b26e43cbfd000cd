/*
 * samovar pull, models and rm against a server that imitates the hub of Hugging Face, with all the
 * faults that a network and a server can have (hub.py).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/gguf-head.h"
#include "store/text-file.h"
#include "tests/e2e/daemon-fixture.h"
#include "tests/e2e/python-server.h"
#include "tests/skip.h"
#include "tests/unit/good-folder.h"

#define COMMIT_ID "0123456789abcdef0123456789abcdef01234567"
#define REPO      "$1/repositories/acme/tea-GGUF"
#define LAY                                                                                        \
        "mkdir -p " REPO " && cp $TOY_MODEL " REPO "/tea-Q8_0.gguf && echo hi >" REPO "/README.md"
#define SAME_URL "cmp $TOY_MODEL $1/models/tea/tea.gguf"
#define SAME     "cmp $TOY_MODEL $1/models/tea-Q8_0/tea-Q8_0.gguf"

static unsigned hub_port;

static int set_up(void **state)
{
        struct daemon_fixture *fixture;

        if (fixture_set_up(state))
                return 1;
        fixture = *state;
        hub_port = python_server_start("hub", fixture->directory);
        return 0;
}

static int tear_down(void **state)
{
        python_server_stop();
        return fixture_tear_down(state);
}

/* A shell line with the fixture's folder as $1, and what pull needs in the environment. */
static void complete_line(const char *line, char whole[4096])
{
        snprintf(whole, 4096,
                 "unset HF_TOKEN HF_TOKEN_PATH; export SOCK=$SAMOVAR_SOCKET; export "
                 "SAMOVAR_MODELS=$1/models HF_HOME=$1 "
                 "TMPDIR=$1 "
                 "SAMOVAR_SOCKET=$1/none HF_ENDPOINT=http://127.0.0.1:%u "
                 "FILES=http://127.0.0.1:%u/files; "
                 "%s",
                 hub_port, hub_port, line);
}

static struct run_result shell(const struct daemon_fixture *fixture, const char *line)
{
        char whole[4096];

        complete_line(line, whole);
        return RUN(fixture, NULL, "/bin/sh", "-c", whole, "sh", fixture->directory);
}

/* Starts it, silently. */
static pid_t spawn(const struct daemon_fixture *fixture, const char *line)
{
        char whole[4096];
        pid_t pid;

        complete_line(line, whole);
        pid = fork();
        if (!pid) {
                int none = open("/dev/null", O_WRONLY);

                dup2(none, STDOUT_FILENO);
                dup2(none, STDERR_FILENO);
                execl("/bin/sh", "sh", "-c", whole, "sh", fixture->directory, (char *)NULL);
                _exit(127);
        }
        assert_true(pid > 0);
        return pid;
}

/* The line ends with this status; what stderr has must contain `said` (NULL: anything). */
static void expect(const struct daemon_fixture *fixture, const char *line, int status,
                   const char *said)
{
        struct run_result ran = shell(fixture, line);

        if (ran.status != status || (said && !strstr(ran.err, said)))
                fail_msg("%s: status %d, stderr: %s", line, ran.status, ran.err);
        run_result_free(&ran);
}

static void expect_good(const struct daemon_fixture *fixture, const char *line)
{
        expect(fixture, line, 0, NULL);
}

static void set_faults(const struct daemon_fixture *fixture, const char *faults)
{
        char to[128];
        FILE *out;

        snprintf(to, sizeof(to), "%s/faults", fixture->directory);
        out = fopen(to, "w");
        assert_non_null(out);
        fputs(faults, out);
        fclose(out);
}

/* How many lines of the server's log match this pattern of grep. */
static unsigned logged(const struct daemon_fixture *fixture, const char *pattern)
{
        char line[512];
        struct run_result ran;
        unsigned count = 0;

        snprintf(line, sizeof(line), "grep -c -e '%s' $1/log", pattern);
        ran = shell(fixture, line);
        sscanf(ran.out, "%u", &count);
        run_result_free(&ran);
        return count;
}

static void pulls_a_model_of_the_hub_and_serves_it_by_its_name(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran;

        expect_good(fixture, LAY);
        ran = shell(fixture, "$SAMOVAR pull acme/tea-GGUF");
        assert_int_equal(ran.status, 0);
        assert_non_null(strstr(ran.out, "/models/tea-Q8_0/tea-Q8_0.gguf\n"));
        assert_non_null(strstr(ran.err, "samovar: pulled tea-Q8_0, "));
        run_result_free(&ran);
        expect_good(fixture, SAME " && test ! -e $1/models/.pull");
        expect(fixture, "$SAMOVAR pull hf:acme/tea-GGUF:q8_0", 0,
               "is there already, and up to date");
        ran = shell(fixture, "$SAMOVAR models --json");
        assert_int_equal(ran.status, 0);
        assert_non_null(strstr(
                ran.out, "{\"models\":[],\"daemon\":null,\"folder\":[{\"name\":\"tea-Q8_0\","));
        assert_non_null(strstr(ran.out, "\"revision\":\"" COMMIT_ID "\""));
        run_result_free(&ran);
        expect_good(fixture, "$SAMOVAR models | grep -q '^tea-Q8_0 .* hf:acme/tea-GGUF$'");
        expect_good(fixture, "$SAMOVARD --inspect --model tea-q8_0 | grep -q '^served *yes'");
        /* No service: a private daemon serves it. */
        ran = shell(fixture, "$SAMOVAR tokenize --model tea-Q8_0 hi");
        assert_int_equal(ran.status, 0);
        assert_string_equal(ran.out, "104 105\n");
        run_result_free(&ran);
}

static void asks_the_service_before_a_private_daemon(void **state)
{
        struct daemon_fixture *fixture = *state;

        expect_good(fixture, LAY " && $SAMOVAR pull acme/tea-GGUF");
        START_DAEMON(fixture, "--threads", "1");
        /* It serves another model; with --socket only this daemon is meant. */
        expect_good(fixture, "SAMOVAR_SOCKET=$SOCK $SAMOVAR tokenize --model tea-Q8_0 hi");
        expect(fixture, "$SAMOVAR tokenize --socket $SOCK --model tea-Q8_0 hi", 1, "no_model");
        expect(fixture, "SAMOVAR_SOCKET=$SOCK $SAMOVAR tokenize --model nosuch hi", 1, "no_model");
        expect_good(fixture, "SAMOVAR_SOCKET=$SOCK $SAMOVAR models | grep -q '^tea-Q8_0 '");
        python_server_stop();
        fixture_stop(fixture);
}

static void says_what_is_not_there(void **state)
{
        struct daemon_fixture *fixture = *state;

        expect_good(fixture, LAY);
        expect(fixture, "$SAMOVAR pull acme/none", 1, "there is no acme/none, or it is private");
        expect(fixture, "$SAMOVAR pull acme/tea-GGUF@v9", 1, "acme/tea-GGUF has no revision v9");
        expect(fixture, "$SAMOVAR pull acme/tea-GGUF:Q4_K_M", 1,
               "there is no file or quantisation Q4_K_M; there are: Q8_0");
        expect(fixture, "$SAMOVAR pull $FILES/none.gguf --retries 0", 1, "there is no such file");
        expect(fixture, "$SAMOVAR pull http://localhost/none.txt", 1, "is no URL of a GGUF file");
        expect(fixture, "$SAMOVAR pull ./none.gguf", 1, "No such file or directory");
        expect(fixture, "$SAMOVAR pull", 2, "pull takes one model");
        expect(fixture, "$SAMOVAR pull a/b --sha256 12", 2, "--sha256 is 12; it must be 64");
        expect(fixture, "$SAMOVAR pull acme/tea-GGUF --name a/b", 2, "a/b is no name of a model");
        expect(fixture, "HF_ENDPOINT=http://127.0.0.1:1 $SAMOVAR pull a/b --retries 1", 1,
               "cannot connect to 127.0.0.1:1: Connection refused");
        expect(fixture, "$SAMOVARD --inspect --model nosuch | grep -q 'no model of this name in'",
               0, NULL);
        set_faults(fixture, "api 500\n");
        expect(fixture, "$SAMOVAR pull acme/tea-GGUF --retries 1", 1, "answers with status 500");
        expect_good(fixture, "test ! -e $1/models/tea-Q8_0");
}

static void sends_the_token_to_the_hub_only(void **state)
{
        struct daemon_fixture *fixture = *state;

        expect_good(fixture, LAY);
        set_faults(fixture, "gated\n");
        expect(fixture, "$SAMOVAR pull acme/tea-GGUF", 1,
               "is gated: read and accept its conditions");
        expect_good(fixture, "HF_TOKEN=secret $SAMOVAR pull acme/tea-GGUF && " SAME);
        assert_int_equal(logged(fixture, "^hub .*authorization=Bearer secret 302"), 1);
        assert_int_equal(logged(fixture, "^store .*authorization=None 200"), 1);
        assert_int_equal(logged(fixture, "^store .*secret"), 0);
        /* The token that the hub's own tool has stored. */
        expect_good(fixture, "echo secret >$1/token && $SAMOVAR pull acme/tea-GGUF --name again");
        assert_int_equal(logged(fixture, "^store .*secret"), 0);
        expect_good(fixture,
                    "rm $1/token && mkdir $1/huggingface && "
                    "echo secret >$1/huggingface/token && "
                    "HF_HOME= XDG_CACHE_HOME=$1 $SAMOVAR pull acme/tea-GGUF --name cached");
        /* A host that is not this machine would get it without encryption. */
        expect_good(fixture, "for host in hub.invalid localhost.hub.invalid 127.hub.invalid "
                             "localhost:1@hub.invalid; do "
                             "HF_TOKEN=secret HF_ENDPOINT=http://$host $SAMOVAR pull a/b --dry-run "
                             "--retries 1 2>&1 | grep -q '^samovar: the token .* is not sent'; "
                             "test $? = 0 || exit 1; done");
}

static void continues_where_connections_were_dropped(void **state)
{
        struct daemon_fixture *fixture = *state;

        expect_good(fixture, LAY);
        set_faults(fixture, "drop 900000\n");
        expect_good(fixture, "$SAMOVAR pull acme/tea-GGUF --retries 30 && " SAME);
        assert_true(logged(fixture, "^store .*range=bytes=[1-9][0-9]*- if-range=None .* 206") > 0);
        assert_int_equal(logged(fixture, "^store .* 200"), 1);
        /* The servers that the hub redirects to may have other ETags: the digest decides. */
        set_faults(fixture, "drop 900000\netags\n");
        expect_good(fixture, "$SAMOVAR pull acme/tea-GGUF --name again --retries 30 && "
                             "cmp $TOY_MODEL $1/models/again/tea-Q8_0.gguf");
        assert_int_equal(logged(fixture, "^store .* 200"), 2);
        /* The file of a URL has no digest. */
        set_faults(fixture, "drop 900000\n");
        expect_good(fixture, "mkdir $1/files && cp $TOY_MODEL $1/files/url.gguf && "
                             "$SAMOVAR pull $FILES/url.gguf --retries 30 && "
                             "cmp $TOY_MODEL $1/models/url/url.gguf");
        assert_true(logged(fixture,
                           "^hub .*range=bytes=[1-9][0-9]*- if-range=\"[0-9a-f]*\" .* 206") > 0);
}

static void reads_over_what_is_there_if_a_server_ignores_ranges(void **state)
{
        struct daemon_fixture *fixture = *state;

        expect_good(fixture, "mkdir -p " REPO " && head -c 60000 $TOY_MODEL >" REPO "/tea.gguf");
        set_faults(fixture, "cut 20000 2\nignore-range\n");
        expect_good(fixture, "$SAMOVAR pull acme/tea-GGUF --retries 100 --force && "
                             "cmp " REPO "/tea.gguf $1/models/tea/tea.gguf");
        assert_int_equal(logged(fixture, "^store .* 206"), 0);
        assert_int_equal(logged(fixture, "^store .*range=bytes=20000- .* 200"), 2);
}

static void does_without_validators_where_there_is_a_digest(void **state)
{
        struct daemon_fixture *fixture = *state;

        expect_good(fixture, LAY);
        set_faults(fixture, "drop 900000\netag weak\n");
        expect_good(fixture, "$SAMOVAR pull acme/tea-GGUF --retries 30 && " SAME);
        assert_true(logged(fixture, "^store .*range=bytes=[1-9][0-9]*- if-range=None .* 206") > 0);
        set_faults(fixture, "drop 900000\netag none\n");
        expect_good(fixture, "$SAMOVAR pull acme/tea-GGUF --name again --retries 30 && "
                             "cmp $TOY_MODEL $1/models/again/tea-Q8_0.gguf");
}

/* The file of a URL has no digest: only its ETag says that it is another. */
static void begins_again_if_the_file_changes(void **state)
{
        struct daemon_fixture *fixture = *state;

        expect_good(fixture, "mkdir $1/files && seq 100000 >$1/files/tea.gguf");
        set_faults(fixture, "slow 20\nchange 2\ndrop 500000\n");
        expect_good(
                fixture,
                "$SAMOVAR pull $FILES/tea.gguf --retries 30 --force && "
                "python3 -c 'import sys; a, b = (open(n, \"rb\").read() for n in sys.argv[1:]); "
                "sys.exit(a != b and a != b[::-1])' $1/files/tea.gguf $1/models/tea/tea.gguf");
}

/* Without a digest and without lengths, nothing else would notice. */
static void a_file_is_not_joined_from_two_or_cut(void **state)
{
        struct daemon_fixture *fixture = *state;

        expect_good(fixture, "mkdir $1/files && cp $TOY_MODEL $1/files/tea.gguf");
        set_faults(fixture, "cut 60000 2\nunmarked\n");
        expect(fixture, "$SAMOVAR pull $FILES/tea.gguf --retries 30 && " SAME_URL, 0,
               "the file has changed on the server");
        /* Now without a length: 60000 bytes of the file, then an answer that is its end. */
        expect_good(fixture, "rm -r $1/models && cp $1/files/tea.gguf $1/files/cup.gguf");
        set_faults(fixture, "cut 60000 6\nignore-range\nshort 1000 7\n");
        expect(fixture, "$SAMOVAR pull $FILES/cup.gguf --retries 1", 1,
               "the answer ended 59000 bytes before what is there already");
        set_faults(fixture, "gzip\n");
        expect(fixture, "$SAMOVAR pull $FILES/tea.gguf --force", 1,
               "the server sends it compressed (gzip)");
        expect_good(fixture, "test ! -e $1/models/tea");
}

/* A file that was refused may have been mended on the server since. */
static void fetches_a_whole_file_again_if_it_has_changed(void **state)
{
        struct daemon_fixture *fixture = *state;

        expect_good(fixture, "mkdir $1/files && tr 'a-z' 'A-Z' <$TOY_MODEL >$1/files/tea.gguf");
        expect(fixture, "$SAMOVAR pull $FILES/tea.gguf", 1, "samovard cannot serve it");
        expect(fixture, "$SAMOVAR pull $FILES/tea.gguf", 1, "samovard cannot serve it");
        assert_int_equal(logged(fixture, "^hub .* 416"), 1);
        expect_good(
                fixture,
                "cp $TOY_MODEL $1/files/tea.gguf && $SAMOVAR pull $FILES/tea.gguf && " SAME_URL);
}

static void refuses_bytes_with_another_digest(void **state)
{
        struct daemon_fixture *fixture = *state;

        expect_good(fixture, LAY);
        set_faults(fixture, "wrong 1\n");
        expect(fixture, "$SAMOVAR pull acme/tea-GGUF && " SAME, 0, "its SHA-256 is ");
        set_faults(fixture, "wrong 1000\n");
        expect(fixture, "$SAMOVAR pull acme/tea-GGUF --name wrong", 1, ", but it should be ");
        expect_good(fixture, "test ! -e $1/models/wrong");
        /* A file that is not in LFS has git's id. */
        expect_good(fixture, "head -c 999 $TOY_MODEL >" REPO "/small.gguf");
        expect(fixture, "$SAMOVAR pull acme/tea-GGUF:small.gguf --force", 1, "its git id is ");
        set_faults(fixture, "");
        expect_good(fixture, "$SAMOVAR pull acme/tea-GGUF:small.gguf --force && "
                             "cmp " REPO "/small.gguf $1/models/small/small.gguf");
        /* The user knows the digest of a URL. */
        expect_good(fixture, "mkdir $1/files && cp $TOY_MODEL $1/files/t.gguf");
        expect(fixture, "$SAMOVAR pull $FILES/t.gguf --sha256 $(printf %064d 1)", 1,
               "but --sha256 says 0000");
        assert_int_equal(logged(fixture, "/files/t.gguf range=None"), 1);
        expect_good(fixture, "$SAMOVAR pull $FILES/t.gguf --sha256 $(sha256sum $1/files/t.gguf | "
                             "cut -d' ' -f1)");
        expect(fixture,
               "$SAMOVAR pull $FILES/t.gguf --sha256 $(sha256sum $1/files/t.gguf | "
               "cut -d' ' -f1)",
               0, "is there already, and up to date");
        expect(fixture, "$SAMOVAR pull $FILES/t.gguf --sha256 $(printf %064d 1)", 1,
               "but --sha256 says 0000");
        expect_good(fixture, "cmp $TOY_MODEL $1/models/t/t.gguf");
}

static void a_file_of_a_url_is_fetched_again_only_if_it_has_changed(void **state)
{
        struct daemon_fixture *fixture = *state;
        unsigned before;

        expect_good(fixture, "mkdir $1/files && cp $TOY_MODEL $1/files/tea.gguf && "
                             "$SAMOVAR pull $FILES/tea.gguf && " SAME_URL);
        before = logged(fixture, "/files/tea.gguf range=None");
        expect(fixture, "$SAMOVAR pull $FILES/tea.gguf", 0, "is there already, and up to date");
        assert_int_equal(logged(fixture, "/files/tea.gguf range=None"), before);
        expect_good(fixture, "$SAMOVAR pull $FILES/tea.gguf --force");
        assert_int_equal(logged(fixture, "/files/tea.gguf range=None"), before + 1);
        /* Its general.name differs: another file of the same size. */
        expect_good(fixture, "sed 's/general.name/general.nomE/' $TOY_MODEL >$1/files/tea.gguf && "
                             "! cmp $TOY_MODEL $1/files/tea.gguf");
        expect_good(fixture, "$SAMOVAR pull $FILES/tea.gguf && "
                             "cmp $1/files/tea.gguf $1/models/tea/tea.gguf");
        /* A server that sends no ETag and no date cannot say it. */
        set_faults(fixture, "etag none\n");
        before = logged(fixture, "/files/tea.gguf range=None");
        expect_good(fixture, "$SAMOVAR pull $FILES/tea.gguf");
        assert_int_equal(logged(fixture, "/files/tea.gguf range=None"), before + 1);
}

static void models_tells_why_a_model_was_refused(void **state)
{
        struct daemon_fixture *fixture = *state;

        expect_good(fixture, "mkdir $1/files && tr 'a-z' 'A-Z' <$TOY_MODEL >$1/files/tea.gguf");
        expect(fixture, "$SAMOVAR pull $FILES/tea.gguf", 1, "samovard cannot serve it");
        expect_good(fixture, "$SAMOVAR models | grep -q '^tea .* samovard cannot serve it: .*; "
                             "pull --force keeps it, rm removes it$'");
        expect_good(fixture, "$SAMOVAR models --json | grep -q '\"refused\":\"samovard cannot '");
        expect_good(fixture, "$SAMOVAR pull $FILES/tea.gguf --force && "
                             "test ! -e $1/models/tea/.refused && test ! -e $1/models/.pull");
}

static void a_server_that_lies_about_sizes_gives_no_model(void **state)
{
        static const struct {
                const char *faults, *said;
        } cases[] = {
                { "longer 5\n", "bytes, but it should have " },
                { "drop 100000\nshift 3\n", "sent another range than that from byte" },
                { "drop 100000\ntotal 77\n", "says that it has 77 bytes, but it should have " },
                { "drop 100000\n416\n", "does not have byte" },
                { "more 1000\n", "sends more than the " },
        };
        struct daemon_fixture *fixture = *state;

        expect_good(fixture, LAY);
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                set_faults(fixture, cases[i].faults);
                expect(fixture, "$SAMOVAR pull acme/tea-GGUF --retries 2", 1, cases[i].said);
                expect_good(fixture, "test ! -e $1/models/tea-Q8_0");
        }
        set_faults(fixture, "");
        expect_good(fixture, "$SAMOVAR pull acme/tea-GGUF && " SAME);
}

static void waits_for_a_busy_server_and_gives_up_in_the_end(void **state)
{
        struct daemon_fixture *fixture = *state;

        expect_good(fixture, LAY);
        set_faults(fixture, "status 429 1 1\n");
        expect(fixture, "$SAMOVAR pull acme/tea-GGUF && " SAME, 0,
               "status 429, too many requests; trying again in ");
        set_faults(fixture, "status 503 1000\n");
        expect(fixture, "$SAMOVAR pull acme/tea-GGUF --name b --retries 2", 1, "status 503");
        set_faults(fixture, "status 429 1000 9999\n");
        expect(fixture, "$SAMOVAR pull acme/tea-GGUF --name b", 1,
               "it wants us to wait 2 h 46 min");
        set_faults(fixture, "status 403 1000\n");
        expect(fixture, "$SAMOVAR pull acme/tea-GGUF --name b", 1, "(status 403)");
        expect_good(fixture, "test ! -e $1/models/b");
}

/* The server has one commit only, so the manifest is made older. */
static void fetches_only_what_a_new_revision_has_changed(void **state)
{
        struct daemon_fixture *fixture = *state;

        expect_good(fixture, LAY " && $SAMOVAR pull acme/tea-GGUF && "
                                 "sed -i 's/" COMMIT_ID "/00/' $1/models/tea-Q8_0/.samovar.json");
        expect_good(fixture, "$SAMOVAR pull acme/tea-GGUF && " SAME " && "
                             "grep -q " COMMIT_ID " $1/models/tea-Q8_0/.samovar.json");
        assert_int_equal(logged(fixture, "^store .* 200"), 1);
}

/* The hub says by RateLimit how long to wait. */
static void waits_as_long_as_the_hub_says(void **state)
{
        struct daemon_fixture *fixture = *state;

        expect_good(fixture, LAY);
        set_faults(fixture, "rate 1\n");
        expect_good(fixture, "$SAMOVAR pull acme/tea-GGUF 2>&1 | "
                             "grep 'too many requests; trying again in [23] s' && " SAME);
}

static void reads_listings_of_many_pages(void **state)
{
        struct daemon_fixture *fixture = *state;

        expect_good(fixture, LAY " && for i in 1 2 3 4 5 6 7; do echo >" REPO "/a$i; done");
        set_faults(fixture, "page 2\n");
        expect_good(fixture, "$SAMOVAR pull acme/tea-GGUF && " SAME);
        assert_int_equal(logged(fixture, "^hub /api/.*/tree/"), 5);
        set_faults(fixture, "endless\n");
        expect(fixture, "$SAMOVAR pull acme/tea-GGUF", 1, "lists more than ");
}

static void takes_no_file_whose_name_leads_elsewhere_or_controls_a_terminal(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran;

        expect_good(fixture, LAY " && cp $TOY_MODEL \"" REPO "/-rf b \u00e9=.gguf\"");
        set_faults(fixture, "names\n");
        ran = shell(fixture, "$SAMOVAR pull acme/tea-GGUF:F16");
        assert_int_equal(ran.status, 1);
        assert_non_null(strstr(ran.err, "there are: -rf b \u00e9=.gguf, Q8_0\n"));
        run_result_free(&ran);
        expect(fixture, "$SAMOVAR pull \"acme/tea-GGUF:-rf\"", 1, "there is no file");
        expect_good(fixture, "$SAMOVAR pull acme/tea-GGUF && " SAME);
        expect_good(fixture, "rm " REPO "/tea-Q8_0.gguf");
        expect(fixture, "$SAMOVAR pull acme/tea-GGUF", 1, "the name has a =");
        set_faults(fixture, "huge\n");
        expect(fixture, "$SAMOVAR pull acme/tea-GGUF", 1, "it has no model that samovard could");
}

static void says_why_the_hub_refuses_files(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran;

        expect_good(fixture, LAY);
        set_faults(fixture, "gated-files\n");
        expect(fixture, "$SAMOVAR pull acme/tea-GGUF", 1, "acme/tea-GGUF is gated");
        expect(fixture, "HF_TOKEN=wrong $SAMOVAR pull acme/tea-GGUF", 1,
               "then try again with a token that may read it");
        set_faults(fixture, "expired\n");
        expect(fixture, "HF_TOKEN=old $SAMOVAR pull acme/tea-GGUF", 1, "does not know the token");
        set_faults(fixture, "disabled\n");
        ran = shell(fixture, "HF_TOKEN=geheim $SAMOVAR pull acme/tea-GGUF");
        assert_int_equal(ran.status, 1);
        assert_non_null(strstr(ran.err, "Access to this resource is ?[31mdisabled."));
        assert_null(strstr(ran.err, "geheim"));
        run_result_free(&ran);
        set_faults(fixture, "padded\n");
        expect(fixture, "$SAMOVAR pull acme/tea-GGUF --retries 1", 1, "redirects with a text of");
}

/* Neither a password nor a key in a URL is written anywhere. */
static void keeps_no_secrets_of_a_url(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran;

        expect_good(fixture, "mkdir $1/files && cp $TOY_MODEL $1/files/tea.gguf");
        set_faults(fixture, "cut 60000 2\n");
        ran = shell(fixture, "URL=http://ann:geheim@${FILES#http://}/tea.gguf; "
                             "$SAMOVAR pull \"$URL?key=geheim$(printf %01500d 1)\" --retries 1; "
                             "$SAMOVAR pull \"$URL?key=geheim$(printf %01500d 2)\" && "
                             "$SAMOVAR models && ! grep -r geheim $1/models");
        assert_int_equal(ran.status, 0);
        assert_non_null(strstr(ran.out, "/files/tea.gguf"));
        assert_null(strstr(ran.out, "geheim"));
        assert_null(strstr(ran.err, "geheim"));
        run_result_free(&ran);
        ran = shell(fixture, "for end in 'tea.txt?geheim' 't ea.gguf?geheim'; do "
                             "$SAMOVAR pull \"http://ann:geheim@localhost/$end\"; done");
        assert_non_null(strstr(ran.err, "http://localhost/tea.txt is no URL of a GGUF file"));
        assert_non_null(strstr(ran.err, "http://localhost/t ea.gguf is no URL"));
        assert_null(strstr(ran.err, "geheim"));
        run_result_free(&ran);
        /* The key has changed between the runs, and the file has not. */
        assert_true(logged(fixture, "range=bytes=[1-9][0-9]*- if-range=.* 206") > 0);
}

static void does_not_write_through_links_of_others(void **state)
{
        struct daemon_fixture *fixture = *state;

        expect_good(fixture, LAY " && mkdir -p $1/models/.pull/tea-Q8_0 $1/elsewhere && "
                                 "echo precious >$1/precious && "
                                 "ln -s $1/precious $1/models/.pull/tea-Q8_0/tea-Q8_0.gguf.part");
        expect_good(fixture, "$SAMOVAR pull acme/tea-GGUF && " SAME " && "
                             "test $(cat $1/precious) = precious");
        expect(fixture,
               "ln -s $1/elsewhere $1/models/.pull; $SAMOVAR pull acme/tea-GGUF --name b; r=$?; "
               "rmdir $1/elsewhere && test $r = 1",
               0, "/.pull belongs to another user, or has links");
}

/* The bytes of a part; 0: there is none. */
static long part_bytes(const struct daemon_fixture *fixture)
{
        char part[256];
        struct stat file;

        snprintf(part, sizeof(part), "%s/models/.pull/tea-Q8_0/tea-Q8_0.gguf.part",
                 fixture->directory);
        return stat(part, &file) < 0 ? 0 : (long)file.st_size;
}

static void a_pull_that_is_killed_anywhere_continues(void **state)
{
        struct daemon_fixture *fixture = *state;
        long last = 0, all;
        struct stat file;

        random_begin();
        expect_good(fixture, LAY);
        assert_int_equal(stat(env_path("TOY_MODEL"), &file), 0);
        all = (long)file.st_size;
        set_faults(fixture, "slow 3\n");
        for (unsigned i = 0; i < 8; i++) {
                long until = last + 1 + (long)random_below((uint32_t)(all / 8));
                pid_t pid = spawn(fixture, "exec $SAMOVAR pull acme/tea-GGUF");

                while (part_bytes(fixture) < until && !waitpid(pid, NULL, WNOHANG))
                        sleep_ms(1);
                kill(pid, SIGKILL);
                waitpid(pid, NULL, 0);
                if (part_bytes(fixture) >= last)
                        last = part_bytes(fixture);
        }
        expect_good(fixture, "$SAMOVAR models --json | grep -q '\"name\":\"tea-Q8_0\",'");
        set_faults(fixture, "");
        expect_good(fixture,
                    "$SAMOVAR pull acme/tea-GGUF && " SAME " && test ! -e $1/models/.pull");
        assert_true(logged(fixture, "^store .*range=bytes=[1-9]") > 0);
}

static void a_second_pull_of_the_same_model_is_refused(void **state)
{
        struct daemon_fixture *fixture = *state;

        expect_good(fixture, LAY);
        set_faults(fixture, "slow 5000\n");
        expect(fixture,
               "$SAMOVAR pull acme/tea-GGUF & pid=$!; "
               "until test -s $1/models/.pull/tea-Q8_0.lock; do sleep 0.02; done; "
               "$SAMOVAR pull acme/tea-GGUF; echo $? >$1/second; $SAMOVAR rm --yes tea-Q8_0; "
               "kill -INT $pid; wait $pid; test $? = 130 && test $(cat $1/second) = 1",
               0, "pulls tea-Q8_0 already");
        expect(fixture, "$SAMOVAR rm --yes tea-Q8_0; test ! -e $1/models/.pull/tea-Q8_0", 0, NULL);
}

static void shows_what_a_pull_would_do_from_the_heads_of_files(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran;

        expect_good(fixture, LAY " && cp " REPO "/tea-Q8_0.gguf " REPO "/tea-F16.gguf");
        ran = shell(fixture, "$SAMOVAR pull acme/tea-GGUF --dry-run");
        assert_int_equal(ran.status, 0);
        assert_non_null(strstr(ran.out, "\nname        tea-Q8_0\n"));
        assert_non_null(strstr(ran.out, "\nserved      yes\n"));
        assert_non_null(strstr(ran.out, "\nhere        fits"));
        assert_non_null(strstr(ran.out, "\nothers      F16 "));
        run_result_free(&ran);
        ran = shell(fixture, "$SAMOVAR pull acme/tea-GGUF --dry-run --json");
        assert_non_null(strstr(ran.out, "\"served\":true"));
        assert_non_null(strstr(ran.out, "\"fits\":"));
        run_result_free(&ran);
        expect_good(fixture, "test ! -e $1/models && ! ls -d $1/samovar-pull-*");
        assert_int_equal(logged(fixture, "^store .*range=bytes=0-1048575 "), 2);
        assert_int_equal(logged(fixture, "^store .* range=None"), 0);
}

static void pulls_a_folder_of_safetensors(void **state)
{
        struct daemon_fixture *fixture = *state;
        char line[512];

        assert_true(good_folder());
        snprintf(line, sizeof(line),
                 "mkdir -p $1/repositories/acme && cp -r %s $1/repositories/acme/Folder && "
                 "cd $1/repositories/acme/Folder && mkdir onnx && echo x >onnx/model.onnx && "
                 "echo x >pytorch_model.bin",
                 folder);
        expect_good(fixture, line);
        remove_folder();
        strcpy(folder + strlen(folder) - 6, "XXXXXX");
        set_faults(fixture, "drop 100000\n");
        expect_good(fixture, "$SAMOVAR pull acme/Folder --retries 30 && "
                             "test \"$(cd $1/models/Folder && echo *)\" = "
                             "'config.json model.safetensors tokenizer.json' && "
                             "cmp $1/models/Folder/model.safetensors "
                             "$1/repositories/acme/Folder/model.safetensors");
        expect_good(fixture, "$SAMOVAR tokenize --model folder hi");
        set_faults(fixture, "");
        expect_good(fixture, "$SAMOVAR pull acme/Folder --dry-run | grep -q '^served *yes'");
        /* The same from a folder of this machine. */
        expect_good(fixture, "$SAMOVAR pull $1/repositories/acme/Folder --name local && "
                             "$SAMOVAR tokenize --model local hi");
}

/* A GGUF file that is cut into pieces. */
struct cut {
        const uint8_t *bytes;
        size_t count;
        struct gguf_head head;
        unsigned pieces;
};

/* Where the entry of a tensor begins; with the number of all tensors, where they end. */
static size_t entry_at(const struct cut *cut, uint64_t tensor)
{
        size_t at = cut->head.tensors.at;

        for (uint64_t i = 0; i < tensor; i++)
                gguf_head_tensor(cut->bytes, &at);
        return at;
}

static uint64_t offset_of(const struct cut *cut, uint64_t tensor)
{
        size_t at = entry_at(cut, tensor);

        return tensor == cut->head.tensor_count ? cut->count - cut->head.data_at
                                                : gguf_head_tensor(cut->bytes, &at).offset;
}

static void write_split_key(FILE *out, const char *name, uint16_t value)
{
        uint64_t length = strlen(name);
        uint32_t type = 2;

        fwrite(&length, 1, 8, out);
        fwrite(name, 1, length, out);
        fwrite(&type, 1, 4, out);
        fwrite(&value, 1, 2, out);
}

static void write_piece(const struct daemon_fixture *fixture, const struct cut *cut, unsigned piece)
{
        uint64_t each = cut->head.tensor_count / cut->pieces, from = piece * each;
        uint64_t until = piece + 1 == cut->pieces ? cut->head.tensor_count : from + each;
        uint64_t counts[2] = { until - from, (piece ? 0 : cut->head.key_count) + 2 };
        size_t at = entry_at(cut, from);
        char to[256];
        FILE *out;

        snprintf(to, sizeof(to), "%s/repositories/acme/tea-GGUF/cut-Q8_0-%05u-of-%05u.gguf",
                 fixture->directory, piece + 1, cut->pieces);
        out = fopen(to, "wb");
        assert_non_null(out);
        fwrite(cut->bytes, 1, 8, out);
        fwrite(counts, 8, 2, out);
        if (!piece)
                fwrite(cut->bytes + cut->head.keys.at, 1, cut->head.keys.bytes, out);
        write_split_key(out, "split.no", (uint16_t)piece);
        write_split_key(out, "split.count", (uint16_t)cut->pieces);
        for (uint64_t i = from; i < until; i++) {
                struct gguf_entry entry = gguf_head_tensor(cut->bytes, &at);

                entry.offset -= offset_of(cut, from);
                fwrite(cut->bytes + entry.whole.at, 1, entry.whole.bytes - 8, out);
                fwrite(&entry.offset, 1, 8, out);
        }
        while (ftell(out) % cut->head.alignment)
                fputc(0, out);
        fwrite(cut->bytes + cut->head.data_at + offset_of(cut, from), 1,
               offset_of(cut, until) - offset_of(cut, from), out);
        assert_int_equal(fclose(out), 0);
}

static void joins_a_model_of_several_pieces(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct cut cut = { .pieces = 3 };
        struct bytes whole = { 0 };

        expect_good(fixture, "mkdir -p " REPO);
        assert_int_equal(text_file_read(env_path("TOY_MODEL"), 1u << 30, &whole), 0);
        cut.bytes = (const uint8_t *)whole.at;
        cut.count = whole.count;
        assert_int_equal(gguf_head_read(cut.bytes, cut.count, &cut.head), 0);
        for (unsigned i = 0; i < cut.pieces; i++)
                write_piece(fixture, &cut, i);
        bytes_deinit(&whole);
        expect_good(fixture, "$SAMOVAR pull acme/tea-GGUF --dry-run | grep -q '^served *yes'");
        set_faults(fixture, "drop 900000\n");
        expect_good(fixture, "$SAMOVAR pull acme/tea-GGUF --retries 30 && "
                             "test \"$(cd $1/models/cut-Q8_0 && echo *)\" = cut-Q8_0.gguf");
        expect_good(fixture,
                    "$SAMOVARD --inspect --model cut-Q8_0 | sed -n '/^file/p;/^model/p' >$1/a && "
                    "$SAMOVARD --inspect --model $TOY_MODEL | sed -n '/^file/p;/^model/p' >$1/b && "
                    "cmp $1/a $1/b");
        expect(fixture, "$SAMOVAR pull acme/tea-GGUF", 0, "up to date");
        set_faults(fixture, "");
        expect_good(fixture, "mkdir -p $1/files && cp " REPO "/* $1/files && "
                             "$SAMOVAR pull $FILES/cut-Q8_0-00001-of-00003.gguf --name url && "
                             "cmp $1/models/cut-Q8_0/cut-Q8_0.gguf $1/models/url/cut-Q8_0.gguf");
}

static void imports_files_of_this_machine(void **state)
{
        struct daemon_fixture *fixture = *state;

        expect_good(fixture, "cp $TOY_MODEL $1/own.gguf && $SAMOVAR pull $1/own.gguf && "
                             "cmp $TOY_MODEL $1/models/own/own.gguf && "
                             "test $(stat -c %h $1/own.gguf) = 2");
        expect_good(fixture, "ln -s $1/own.gguf $1/link.gguf && $SAMOVAR pull $1/link.gguf");
        expect(fixture, "head -c 5000 $TOY_MODEL >$1/cut.gguf && $SAMOVAR pull $1/cut.gguf", 1,
               "samovard cannot serve it: ");
        expect_good(
                fixture,
                "test ! -e $1/models/cut && $SAMOVAR rm --yes cut && test ! -e $1/models/.pull");
        expect(fixture, "cp $TOY_MODEL $1/other.gguf && $SAMOVAR pull $1/other.gguf --name own", 1,
               "own is there already, from file://");
        expect_good(fixture, "$SAMOVAR pull $1/other.gguf --name own --force");
        /* A terminal gets no controls from the name of a file; a script gets the name. */
        expect_good(fixture,
                    "FILE=$1/$(printf 'r\\033[31md').gguf; cp $TOY_MODEL \"$FILE\" && "
                    "python3 -c 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]))' "
                    "$SAMOVAR pull \"$FILE\" >$1/said && grep -q '/r?.31md.gguf' $1/said && "
                    "! grep -q \"$(printf '\\033').31m\" $1/said && "
                    "test -e \"$($SAMOVAR pull \"$FILE\" --name red)\"");
}

static void removes_models_but_not_those_that_are_served(void **state)
{
        struct daemon_fixture *fixture = *state;

        expect_good(fixture,
                    "$SAMOVAR pull $TOY_MODEL --name tea && $SAMOVAR pull $TOY_MODEL --name cup");
        expect(fixture, "$SAMOVAR rm tea </dev/null", 2, "give --yes");
        expect(fixture, "$SAMOVAR rm none --yes", 1, "there is no model none in ");
        expect(fixture, "$SAMOVAR rm ../models --yes", 1, "there is no model ../models in ");
        expect(fixture, "$SAMOVAR rm", 2, "rm takes the names of models");
        expect(fixture,
               "$SAMOVARD --model tea --socket $1/served/sock >/dev/null 2>&1 & pid=$!; "
               "until test -S $1/served/sock; do sleep 0.05; done; "
               "$SAMOVAR rm tea --yes; echo $? >$1/first; test -e $1/models/tea && "
               "$SAMOVAR rm tea cup --yes --force && test ! -e $1/models/tea; "
               "r=$?; kill $pid; wait $pid; test $r = 0 && test $(cat $1/first) = 1",
               0, "tea is served by samovard (process ");
        expect_good(fixture, "test ! -e $1/models/cup");
        /* The daemon was given the name in small letters, or a path from where it works. */
        expect(fixture,
               "$SAMOVAR pull $TOY_MODEL --name Tea && for model in tEA ./Tea/*.gguf; do "
               "(cd $1/models && exec $SAMOVARD --model $model --socket $1/served/sock) "
               ">/dev/null 2>&1 & pid=$!; "
               "until test -S $1/served/sock; do sleep 0.05; done; "
               "$SAMOVAR rm Tea --yes; r=$?; kill $pid; wait $pid; rm -f $1/served/sock; "
               "test $r = 1 && test -e $1/models/Tea || exit 1; done",
               0, "Tea is served by samovard (process ");
}

#define PULL_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
        static const char *const needed[] = { "SAMOVARD", "SAMOVAR", "TOY_MODEL", "SOURCES", NULL };
        const struct CMUnitTest tests[] = {
                PULL_TEST(pulls_a_model_of_the_hub_and_serves_it_by_its_name),
                PULL_TEST(asks_the_service_before_a_private_daemon),
                PULL_TEST(says_what_is_not_there),
                PULL_TEST(sends_the_token_to_the_hub_only),
                PULL_TEST(continues_where_connections_were_dropped),
                PULL_TEST(reads_over_what_is_there_if_a_server_ignores_ranges),
                PULL_TEST(does_without_validators_where_there_is_a_digest),
                PULL_TEST(begins_again_if_the_file_changes),
                PULL_TEST(a_file_is_not_joined_from_two_or_cut),
                PULL_TEST(fetches_a_whole_file_again_if_it_has_changed),
                PULL_TEST(a_file_of_a_url_is_fetched_again_only_if_it_has_changed),
                PULL_TEST(models_tells_why_a_model_was_refused),
                PULL_TEST(refuses_bytes_with_another_digest),
                PULL_TEST(a_server_that_lies_about_sizes_gives_no_model),
                PULL_TEST(waits_for_a_busy_server_and_gives_up_in_the_end),
                PULL_TEST(waits_as_long_as_the_hub_says),
                PULL_TEST(fetches_only_what_a_new_revision_has_changed),
                PULL_TEST(reads_listings_of_many_pages),
                PULL_TEST(takes_no_file_whose_name_leads_elsewhere_or_controls_a_terminal),
                PULL_TEST(says_why_the_hub_refuses_files),
                PULL_TEST(keeps_no_secrets_of_a_url),
                PULL_TEST(does_not_write_through_links_of_others),
                PULL_TEST(a_pull_that_is_killed_anywhere_continues),
                PULL_TEST(a_second_pull_of_the_same_model_is_refused),
                PULL_TEST(shows_what_a_pull_would_do_from_the_heads_of_files),
                PULL_TEST(pulls_a_folder_of_safetensors),
                PULL_TEST(joins_a_model_of_several_pieces),
                PULL_TEST(imports_files_of_this_machine),
                PULL_TEST(removes_models_but_not_those_that_are_served),
        };

        require_env_paths(needed);
        if (python_server_is_missing("pull --retries 1 http://127.0.0.1:1/a.gguf"))
                return 77;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
