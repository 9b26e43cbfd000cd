/*
 * Hostile and odd model files: `samovard --model` ends with one clear sentence and status 1, soon,
 * without a signal, and without taking more memory than a good small model does.
 *
 * tests/unit/test-damage.c tests many cuts and single flipped bits, without a process for each.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/sys.h"
#include "tests/skip.h"
#include "tests/unit/good-folder.h"

#define EXTRA_KIB (64l << 10) /* more than a good model takes */
#define SECONDS   5           /* far too long, except on a busy machine */

extern char **environ;

static long usual_kib; /* the memory that a good model takes */

/* ---- the program ---- */

struct ending {
        int status;
        long kib, ms;
        char said[4096];
};

static struct ending serve(const char *model)
{
        char *argv[] = { getenv("SAMOVARD"),
                         "--check",
                         "--threads",
                         "1",
                         "--kv-bytes",
                         "4M",
                         "--max-seqs",
                         "64",
                         "--log-level",
                         "error",
                         "--model",
                         (char *)model,
                         NULL };
        posix_spawn_file_actions_t actions;
        uint64_t start = sys_clock_ns();
        struct ending e = { 0 };
        struct rusage usage;
        size_t used = 0;
        int out[2];
        ssize_t n;
        pid_t pid;

        assert_int_equal(pipe2(out, O_CLOEXEC), 0);
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
        posix_spawn_file_actions_adddup2(&actions, out[1], 2);
        assert_int_equal(posix_spawn(&pid, argv[0], &actions, NULL, argv, environ), 0);
        posix_spawn_file_actions_destroy(&actions);
        close(out[1]);
        while ((n = read(out[0], e.said + used, sizeof(e.said) - 1 - used)) > 0)
                used += (size_t)n;
        close(out[0]);
        assert_int_equal(wait4(pid, &e.status, 0, &usage), pid);
        e.kib = usage.ru_maxrss;
        e.ms = (long)((sys_clock_ns() - start) / 1000000);
        return e;
}

/* The output is one line, printable, and contains `said`. */
static void assert_refused(const char *model, const char *what, const char *said)
{
        struct ending e = serve(model);
        bool fine = WIFEXITED(e.status) && WEXITSTATUS(e.status) == 1 && strstr(e.said, said) &&
                    !strncmp(e.said, "samovard: ", 10) && e.kib < usual_kib + EXTRA_KIB &&
                    e.ms < SECONDS * 1000;

        for (const char *c = e.said; *c; c++)
                fine = fine && (*c == '\n' ? !c[1] : *c >= ' ' && *c <= '~');
        if (!fine)
                fail_msg("%s: wanted \"%s\"; status %x, %ld ms, %ld KiB (%ld usually): \"%s\"",
                         what, said, (unsigned)e.status, e.ms, e.kib, usual_kib, e.said);
}

/* ---- contents of files ---- */

struct edit {
        const char *file, *from, *to, *said; /* from NULL: the whole file */
};

static void edit(const struct edit *e)
{
        static char text[FILE_BYTES];
        bool config = !strcmp(e->file, CONFIG);
        const char *good = config ? good_config : tokens, *at;

        if (!e->from) {
                write_text(e->file, e->to);
                return;
        }
        at = strstr(good, e->from);
        assert_non_null(at);
        snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - good), good, e->to,
                 at + strlen(e->from));
        write_text(e->file, text);
}

static void refuse_all(const struct edit *edits, size_t count)
{
        mend();
        for (size_t i = 0; i < count; i++) {
                edit(&edits[i]);
                assert_refused(folder, edits[i].to, edits[i].said);
                if (i + 1 == count || strcmp(edits[i].file, edits[i + 1].file))
                        mend();
        }
}

static void refuses_extreme_values_in_the_config_and_names_the_key(void **state)
{
#define CASE(from, to, said)                                                                       \
        {                                                                                          \
                CONFIG, from, to, said                                                             \
        }
        static const struct edit edits[] = {
                CASE("heads\":2", "heads\":0", "'num_attention_heads' is 0, not 1 to 1024"),
                CASE("heads\":2", "heads\":-2", "'num_attention_heads' is not a whole number"),
                CASE("heads\":2", "heads\":1025", "'num_attention_heads' is 1025"),
                CASE("heads\":2", "heads\":2,\"head_dim\":1", "'head_dim' is 1, not 2 to 512"),
                CASE("size\":264", "size\":2147483648", "'vocab_size' is 2147483648"),
                CASE("size\":264", "size\":4294967297", "'vocab_size' is not a whole number"),
                CASE("size\":264", "size\":4194304", "tensor 'token_embd.weight' is 264 x 32"),
                CASE("layers\":1", "layers\":1024", "tensor 'blk.1.attn_norm.weight' is missing"),
                CASE("layers\":1", "layers\":1025", "'num_hidden_layers' is 1025"),
                CASE("theta\":10000", "theta\":NaN", "config.json"),
                CASE("theta\":10000", "theta\":1e999", "'rope_theta' is not a real number"),
                CASE("theta\":10000", "theta\":1e308", "'rope_theta' is 1e+308"),
                CASE("theta\":10000", "theta\":-1", "'rope_theta' is -1"),
                CASE("eps\":1e-5", "eps\":0", "'rms_norm_eps' is 0"),
                CASE("eps\":1e-5", "eps\":-1e-5", "'rms_norm_eps' is -1e-05"),
                CASE("ings\":64", "ings\":16777217", "'max_position_embeddings' is 16777217"),
                CASE("hidden_size\":32", "hidden_size\":1048576", "do not give heads"),
                CASE("te_size\":32", "te_size\":1048576", "is 32 x 32, not 1048576 x 32"),
                CASE("token_id\":2", "token_id\":264", "'eos_token_id' is 264"),
                CASE("LlamaFor", "\\u001b[31mevil\\n", "architecture '?[31mevil?"),
                CASE("{", "{\"hidden_act\":\"\\u001b]0;x\\u0007\",", "'?]0;x?'"),
                CASE("{", "{\"rope_scaling\":{\"\\u001b[2J\":1},", "'rope_scaling.?[2J'"),
                CASE("{", "{\"quantization_config\":{\"quant_method\":\"\\u001b[31m\\n\"},",
                     "'?[31m?'"),
                CASE("{",
                     "{\"quantization_config\":{\"quant_method\":\"compressed-tensors\","
                     "\"config_groups\":{\"\\u001b[2J\":{}}},",
                     "config_groups.?[2J.weights.type' is missing"),
                CASE("{",
                     "{\"quantization_config\":{\"quant_method\":\"fp8\","
                     "\"weight_block_size\":[4294967296,0]},",
                     "weight_block_size' is not a list of two sizes"),
                CASE("{", "{\"vocab_size\":7,", "config.json"),
                CASE(NULL, "", "config.json"),
                CASE(NULL, "[]", "names no architecture"),
                CASE(NULL, "{\"\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
                     "nested deeper"),
        };
#undef CASE

        (void)state;
        refuse_all(edits, sizeof(edits) / sizeof(*edits));
}

static void refuses_extreme_tokens_and_ids_in_the_tokenizer(void **state)
{
#define CASE(from, to, said)                                                                       \
        {                                                                                          \
                TOKENS, from, to, said                                                             \
        }
        static const struct edit edits[] = {
                CASE("\"he\":1", "\"he\":-1", "the id of token 'he'"),
                CASE("\"he\":1", "\"he\":1.5", "the id of token 'he'"),
                CASE("\"he\":1", "\"he\":18446744073709551616", "the id of token 'he'"),
                CASE("\"he\":1", "\"he\":4194304", "the id of token 'he'"),
                CASE("\"he\":1", "\"he\":4194303", "largest id is 4194303"),
                CASE("\"id\":0", "\"id\":4194303", "largest id is 4194303"),
                CASE("\"id\":0", "\"id\":-1", "without 'content' or 'id'"),
                CASE("\"id\":0", "\"id\":1", "token id 1 occurs twice"),
                CASE("\"he\":1", "\"he\":264", "a vocabulary of 265 tokens for a model of 264"),
                CASE("\"he\":1", "\"\\u001b[31m\\n\":-1", "the id of token '?[31m?'"),
                CASE("\"h e\"", "\"h \\u001b\"", "merge 0"),
                CASE("\"h e\"", "7", "merge 0"),
                CASE("\"vocab\":{", "\"vocab\":{},\"words\":{", "token"),
                CASE("\"normalizer\":null", "\"normalizer\":{\"type\":\"\\u001b[31m\"}", "?[31m"),
                CASE(NULL, "", "byte"),
                CASE(NULL, "null", "its model"),
        };
#undef CASE

        (void)state;
        refuse_all(edits, sizeof(edits) / sizeof(*edits));
}

/* Every tensor is in the file that `text` names, in JSON's spelling. */
static void refuses_an_index_that_names_other_paths_than_plain_files(void **state)
{
        static const struct {
                const char *text, *said;
        } cases[] = {
                { "\"" INDEX "\"", INDEX },
                { "\"config.json\"", "config.json: a header of" },
                { "\"../x\"", "not a plain file name" },
                { "\"..\"", "not a plain file name" },
                { "\".\"", "not a plain file name" },
                { "\"\"", "not a plain file name" },
                { "\"/etc/passwd\"", "not a plain file name" },
                { "\"a\\u0000b\"", "is in no file" },
                { "7", "is in no file" },
                { "\"\\u001b[31m\\na\"", "?[31m?a" },
                { "\"absent\"", "absent: No such file" },
                { "\"folder\"", "folder: not a regular file" },
        };
        char text[4096];

        (void)state;
        mend();
        unlink(in_folder(WEIGHTS));
        assert_int_equal(mkdir(in_folder("folder"), 0700), 0);
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                size_t n = (size_t)sprintf(text, "{\"weight_map\":");

                for (size_t t = 0; t < TENSORS; t++)
                        n += (size_t)sprintf(text + n, "%c\"%s\":%s", t ? ',' : '{',
                                             tensors[t].name, cases[i].text);
                n += (size_t)sprintf(text + n, "}}");
                write_file(INDEX, text, n);
                assert_refused(folder, cases[i].text, cases[i].said);
        }
        write_text(INDEX, "{\"weight_map\":{\"\\u001b[2J\":\"/\"}}");
        assert_refused(folder, "escapes in a tensor's name", "tensor '?[2J'");
        write_text(INDEX, "{\"weight_map\":[]}");
        assert_refused(folder, "a list", "'weight_map' is missing or not an object");
        assert_int_equal(rmdir(in_folder("folder")), 0);
}

/* ---- kinds of files ---- */

static void refuses_model_files_that_are_not_regular_files(void **state)
{
        static const char *const names[] = { CONFIG, WEIGHTS, TOKENS };
        static const char *const links[] = { "/dev/zero", "/dev/tty", "/proc/self", "itself" };

        (void)state;
        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
                const char *said = !strcmp(names[i], TOKENS) ? TOKENS : "not a regular file";

                mend();
                unlink(in_folder(names[i]));
                assert_int_equal(mkfifo(path, 0600), 0);
                assert_refused(folder, names[i], said);
                unlink(in_folder(names[i]));
                assert_int_equal(mkdir(path, 0700), 0);
                assert_refused(folder, names[i], said);
                assert_int_equal(rmdir(in_folder(names[i])), 0);
                for (size_t l = 0; l < sizeof(links) / sizeof(*links); l++) {
                        bool itself = !strcmp(links[l], "itself");

                        assert_int_equal(symlink(itself ? names[i] : links[l], in_folder(names[i])),
                                         0);
                        assert_refused(folder, links[l], "samovard: ");
                        unlink(in_folder(names[i]));
                }
                if (geteuid()) {
                        mend();
                        assert_int_equal(chmod(in_folder(names[i]), 0), 0);
                        assert_refused(folder, names[i], "Permission denied");
                }
        }
        mend();
        assert_refused("/dev/zero", "/dev/zero", "not a regular file");
        assert_refused("/dev/null", "/dev/null", "not a regular file");
        assert_refused("/=root", "/", "config.json is missing");
        assert_refused("/nowhere", "/nowhere", "No such file");
        assert_int_equal(mkfifo(in_folder("fifo.safetensors"), 0600), 0);
        assert_refused(path, "a pipe", "samovard: ");
        unlink(in_folder("fifo.safetensors"));
}

/* Makes a file with holes, of a tebibyte, which takes no room. */
static void grow(const char *name, off_t bytes)
{
        int fd = open(in_folder(name), O_WRONLY | O_CREAT, 0600), r;

        assert_true(fd >= 0);
        r = ftruncate(fd, bytes);
        close(fd);
        if (r)
                skip_because("the file system has no files with holes");
}

static void refuses_a_file_of_a_tebibyte_without_reading_it_into_memory(void **state)
{
        static const char *const names[] = { CONFIG, WEIGHTS, TOKENS, INDEX };

        (void)state;
        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
                mend();
                if (!strcmp(names[i], INDEX))
                        unlink(in_folder(WEIGHTS));
                grow(names[i], (off_t)1 << 40);
                assert_refused(folder, names[i], "samovard: ");
        }
        mend();
}

static void refuses_gguf_counts_that_its_bytes_cannot_contain(void **state)
{
        static const struct {
                uint64_t tensors, pairs;
                off_t bytes;
                const char *said;
        } cases[] = {
                { 4000000, 0, 1024, "4000000 tensors do not fit in" },
                { 0, 4000000, 1024, "4000000 metadata pairs do not fit in" },
                { UINT64_C(1) << 63, 0, 1024, "do not fit in" },
                { 4000000, 0, (off_t)1 << 40, "4000000 tensors, more than" },
                { 65536, 65536, (off_t)1 << 40, "an empty key" },
                { 0, 0, 1024, "'general.architecture' is missing" },
                { 0, 0, 20, "bytes are needed" },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                char head[1024] = "GGUF\3";

                for (unsigned b = 0; b < 8; b++) {
                        head[8 + b] = (char)(cases[i].tensors >> (8 * b));
                        head[16 + b] = (char)(cases[i].pairs >> (8 * b));
                }
                write_file(GGUF, head, sizeof(head));
                grow(GGUF, cases[i].bytes);
                assert_refused(in_folder(GGUF), cases[i].said, cases[i].said);
        }
        unlink(in_folder(GGUF));
}

/* The daemon must not hold tables for a long context that its pool cannot fill. */
static void a_context_of_16_million_needs_no_memory_beyond_its_pool(void **state)
{
        const struct edit longest = { CONFIG, "ings\":64", "ings\":16777216", "" };
        struct ending e;

        (void)state;
        mend();
        for (unsigned i = 0; i < 10000; i++) {
                char name[32];

                snprintf(name, sizeof(name), "f%u", i);
                write_file(name, "", 0); /* a folder with several files is still a folder */
        }
        edit(&longest);
        e = serve(folder);
        for (unsigned i = 0; i < 10000; i++) {
                char name[32];

                snprintf(name, sizeof(name), "f%u", i);
                unlink(in_folder(name));
        }
        if (e.status || e.kib > usual_kib + EXTRA_KIB)
                fail_msg("status %x, %ld KiB (%ld usually): \"%s\"", (unsigned)e.status, e.kib,
                         usual_kib, e.said);
}

static int set_up(void **state)
{
        struct ending e;

        (void)state;
        if (!getenv("SAMOVARD") || !good_folder())
                return -1;
        e = serve(folder);
        usual_kib = e.kib;
        if (e.status)
                fprintf(stderr, "the good model: status %x: %s\n", (unsigned)e.status, e.said);
        return e.status ? -1 : 0;
}

static int tear_down(void **state)
{
        (void)state;
        return remove_folder();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(refuses_extreme_values_in_the_config_and_names_the_key),
                cmocka_unit_test(refuses_extreme_tokens_and_ids_in_the_tokenizer),
                cmocka_unit_test(refuses_an_index_that_names_other_paths_than_plain_files),
                cmocka_unit_test(refuses_model_files_that_are_not_regular_files),
                cmocka_unit_test(refuses_a_file_of_a_tebibyte_without_reading_it_into_memory),
                cmocka_unit_test(refuses_gguf_counts_that_its_bytes_cannot_contain),
                cmocka_unit_test(a_context_of_16_million_needs_no_memory_beyond_its_pool),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
