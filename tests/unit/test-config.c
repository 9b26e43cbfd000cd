#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/start/config.h"
#include "base/log.h"
#include "kernels/page.h"

static char why[256];

/* Reads `samovard` and these flags. */
#define READ(config, ...)                                                                          \
        settings_read(&config_table, config,                                                       \
                      (int)(sizeof((char *[]){ __VA_ARGS__ }) / sizeof(char *)) + 1,               \
                      (char *[]){ "samovard", __VA_ARGS__, NULL }, why, sizeof(why))

#define ACCEPTS(field, expected, ...)                                                              \
        do {                                                                                       \
                struct config accepted;                                                            \
                assert_int_equal(READ(&accepted, "--model", "m", __VA_ARGS__), 0);                 \
                assert_int_equal(accepted.field, expected);                                        \
                settings_deinit(&config_table, &accepted);                                         \
        } while (0)

#define REFUSES(text, ...)                                                                         \
        do {                                                                                       \
                struct config refused;                                                             \
                assert_int_equal(READ(&refused, __VA_ARGS__), -EINVAL);                            \
                assert_string_equal(why, text);                                                    \
        } while (0)

static int parse(struct config *config, const char *text)
{
        assert_int_equal(settings_init(&config_table, config), 0);
        return settings_parse(&config_table, config, text, strlen(text), why, sizeof(why));
}

static void defaults_are_as_documented(void **state)
{
        struct config c;

        (void)state;
        assert_int_equal(READ(&c, "--model", "m.gguf=tiny"), 0);
        assert_string_equal(c.model, "m.gguf=tiny");
        assert_null(c.socket);
        assert_int_equal(c.socket_mode, 0600);
        assert_null(c.socket_group);
        assert_string_equal(c.backend, "cpu");
        assert_true(c.gpu_layers == CONFIG_AUTO);
        assert_string_equal(c.isa, "auto");
        assert_int_equal(c.fd, -1);
        assert_false(c.check || c.help || c.version);
        assert_int_equal(c.ctx, 0);
        assert_int_equal(c.kv, KV_F16);
        assert_int_equal(c.kv_bytes, 0);
        assert_int_equal(c.max_seqs, 64);
        assert_int_equal(c.step_tokens, 256);
        assert_int_equal(c.threads, 0);
        assert_int_equal(c.affinity, CONFIG_AFFINITY_AUTO);
        assert_int_equal(c.pipeline_depth, 1);
        assert_int_equal(c.max_tokens, 512);
        assert_int_equal(c.uid_connections, 64);
        assert_int_equal(c.uid_requests, 320);
        assert_int_equal(c.uid_prompt_bytes, 64 << 20);
        assert_int_equal(c.uid_handles, 256);
        assert_int_equal(c.uid_blocks_percent, 100);
        assert_int_equal(c.uid_cached_percent, 50);
        assert_int_equal(c.uid_pinned_percent, 25);
        assert_int_equal(c.uid_resumable, 16);
        assert_int_equal(c.uid_resumable_bytes, 32 << 20);
        assert_int_equal(c.resumable, 256);
        assert_int_equal(c.uid_connects_burst, 64);
        assert_int_equal(c.uid_connects_per_s, 10);
        assert_int_equal(c.uid_ring_bytes, 16 << 20);
        assert_int_equal(c.ring_bytes, 256 << 10);
        assert_int_equal(c.frame_bytes, 8 << 20);
        assert_int_equal(c.reply_bytes, 64 << 10);
        assert_int_equal(c.hello_timeout_ms, 10000);
        assert_int_equal(c.frame_timeout_ms, 10000);
        assert_int_equal(c.connections, 256);
        assert_int_equal(c.requests, 1024);
        assert_int_equal(c.stall_timeout_ms, 60000);
        assert_int_equal(c.drain_timeout_ms, 30000);
        assert_int_equal(c.log_level, LOG_INFO);
        settings_deinit(&config_table, &c);
}

static void accepts_a_flag_value_after_a_space_or_equals_sign(void **state)
{
        (void)state;
        ACCEPTS(max_seqs, 7, "--max-seqs", "7");
        ACCEPTS(max_seqs, 7, "--max-seqs=7");
        ACCEPTS(max_seqs, 8, "--max-seqs=7", "--max-seqs=8"); /* the last one counts */
        ACCEPTS(check, true, "--check");
        ACCEPTS(check, false, "--check", "--check=no");
        ACCEPTS(fd, 3, "--fd", "3");
        ACCEPTS(kv, KV_F16, "--kv", "f16");
        ACCEPTS(kv, KV_BF16, "--kv", "bf16");
        ACCEPTS(kv, KV_INT8, "--kv", "int8");
        ACCEPTS(kv, KV_F32, "--kv", "f32");
        ACCEPTS(kv, KV_FP8, "--kv", "fp8");
        ACCEPTS(socket_mode, 0600, "--socket-mode", "0600");
        ACCEPTS(socket_mode, 0660, "--socket-mode", "0660", "--socket-group", "wheel");
        ACCEPTS(socket_mode, 0660, "--socket-mode", "660");
        ACCEPTS(socket_mode, 0666, "--socket-mode=0666");
        ACCEPTS(log_level, LOG_DEBUG, "--log-level", "debug");
        ACCEPTS(ring_bytes, 65536, "--ring-bytes", "64K");
        ACCEPTS(ring_bytes, 65536, "--ring-bytes", "65536");
        ACCEPTS(ring_bytes, 1 << 20, "--ring-bytes", "1M");
        ACCEPTS(kv_bytes, UINT64_C(3) << 30, "--kv-bytes", "3G");
        ACCEPTS(uid_blocks_percent, 1, "--uid-blocks-percent", "1");
        ACCEPTS(uid_cached_percent, 100, "--uid-cached-percent=100");
        ACCEPTS(max_tokens, UINT32_MAX, "--max-tokens", "4294967295");
}

static void gpu_layers_is_a_number_all_or_auto(void **state)
{
        struct config c;

        (void)state;
        ACCEPTS(gpu_layers, 20, "--backend", "cuda", "--gpu-layers", "20");
        ACCEPTS(gpu_layers, CONFIG_ALL, "--backend", "auto", "--gpu-layers=all");
        ACCEPTS(gpu_layers, CONFIG_AUTO, "--backend", "cuda", "--gpu-layers=3",
                "--gpu-layers=auto");
        ACCEPTS(gpu_layers, 0, "--gpu-layers", "0");
        ACCEPTS(gpu_layers, CONFIG_AUTO, "--gpu-layers", "auto");
        assert_int_equal(parse(&c, "backend = cuda\ngpu_layers = 7\n"), 0);
        assert_int_equal(c.gpu_layers, 7);
        settings_deinit(&config_table, &c);
        REFUSES("--gpu-layers is some; it may be auto, all, or from 0 to 65536", "--gpu-layers",
                "some");
        REFUSES("--gpu-layers is -1; it may be auto, all, or from 0 to 65536", "--gpu-layers=-1");
        REFUSES("--gpu-layers is 65537; it may be auto, all, or from 0 to 65536", "--backend",
                "cuda", "--gpu-layers", "65537");
        REFUSES("gpu_layers puts layers on a GPU, but backend is cpu, which has none; cuda "
                "and auto do",
                "--gpu-layers", "1");
        REFUSES("gpu_layers puts layers on a GPU, but backend is ref, which has none; cuda "
                "and auto do",
                "--backend", "ref", "--gpu-layers", "all");
}

static void swap_bytes_is_for_pools_on_a_gpu(void **state)
{
        struct config c;

        (void)state;
        assert_int_equal(parse(&c, ""), 0);
        assert_true(c.swap_bytes == 0);
        settings_deinit(&config_table, &c);
        ACCEPTS(swap_bytes, 3u << 30, "--backend", "cuda", "--swap-bytes", "3G");
        ACCEPTS(swap_bytes, 1 << 20, "--backend", "auto", "--swap-bytes=1M");
        ACCEPTS(swap_bytes, 0, "--swap-bytes", "0");
        REFUSES("swap_bytes is for pools on a GPU, but backend is cpu; raise kv_bytes instead",
                "--swap-bytes", "1M");
        REFUSES("swap_bytes is for pools on a GPU, but backend is ref; raise kv_bytes instead",
                "--backend", "ref", "--swap-bytes", "1M");
        REFUSES("swap_bytes is for pools on a GPU, but gpu_layers is 0; raise kv_bytes instead",
                "--backend", "cuda", "--gpu-layers", "0", "--swap-bytes", "1M");
}

static void help_and_version_need_no_model(void **state)
{
        struct config c;

        (void)state;
        assert_int_equal(READ(&c, "--help"), 0);
        assert_true(c.help);
        settings_deinit(&config_table, &c);
        assert_int_equal(READ(&c, "--version"), 0);
        assert_true(c.version);
        settings_deinit(&config_table, &c);
}

static void refuses_an_unknown_setting_and_suggests_the_nearest(void **state)
{
        struct config c;

        (void)state;
        REFUSES("there is no setting --modl; is --model meant?", "--modl", "x");
        REFUSES("there is no setting --kv_bytes; is --kv-bytes meant?", "--kv_bytes", "1");
        REFUSES("there is no setting --uid-conections; is --uid-connections meant?",
                "--uid-conections=1");
        REFUSES("there is no setting --port", "--port", "80");
        REFUSES("there is no setting --", "--");
        REFUSES("model.gguf is not a flag", "model.gguf");
        REFUSES("there is no setting --aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                "--aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
        REFUSES("there is no setting --a?b", "--a\nb");

        assert_int_equal(parse(&c, "max-seqs = 3\n"), -EINVAL);
        assert_string_equal(why, "config:1: there is no setting max-seqs; is max_seqs meant?");
        settings_deinit(&config_table, &c);
        /* Options that exist only as flags are not allowed in a file. */
        assert_int_equal(parse(&c, "\n\nhelp = yes\n"), -EINVAL);
        assert_string_equal(why, "config:3: there is no setting help");
        settings_deinit(&config_table, &c);
}

static void refuses_a_value_out_of_range_and_names_the_range(void **state)
{
        (void)state;
        REFUSES("--max-seqs is 0; it may be from 1 to 1024", "--max-seqs", "0");
        REFUSES("--max-seqs is 1025; it may be from 1 to 1024", "--max-seqs", "1025");
        REFUSES("--max-seqs is -1; it may be from 1 to 1024", "--max-seqs", "-1");
        REFUSES("--max-seqs is 1K; it may be from 1 to 1024", "--max-seqs", "1K");
        REFUSES("--max-seqs is ; it may be from 1 to 1024", "--max-seqs=");
        REFUSES("--max-seqs is 0x10; it may be from 1 to 1024", "--max-seqs", "0x10");
        REFUSES("--max-seqs is  7; it may be from 1 to 1024", "--max-seqs", " 7");
        REFUSES("--ring-bytes is 63K; it may be from 64K to 4M, written like 512M", "--ring-bytes",
                "63K");
        REFUSES("--ring-bytes is 5M; it may be from 64K to 4M, written like 512M", "--ring-bytes",
                "5M");
        REFUSES("--ring-bytes is 64KB; it may be from 64K to 4M, written like 512M", "--ring-bytes",
                "64KB");
        REFUSES("--ring-bytes is K; it may be from 64K to 4M, written like 512M", "--ring-bytes",
                "K");
        REFUSES("--kv-bytes is 99999999999999999999; it may be from 0 to 4096G, written like 512M",
                "--kv-bytes", "99999999999999999999");
        REFUSES("--kv-bytes is 512 MB; it may be from 0 to 4096G, written like 512M", "--kv-bytes",
                "512 MB");
        REFUSES("--kv-bytes is 99999999999G; it may be from 0 to 4096G, written like 512M",
                "--kv-bytes", "99999999999G");
        REFUSES("--uid-blocks-percent is 0; it may be from 1 to 100", "--uid-blocks-percent", "0");
        REFUSES("--uid-blocks-percent is 101; it may be from 1 to 100", "--uid-blocks-percent=101");
        REFUSES("--uid-cached-percent is 0; it may be from 1 to 100", "--uid-cached-percent", "0");
        REFUSES("--uid-cached-percent is 101; it may be from 1 to 100", "--uid-cached-percent=101");
        REFUSES("--fd is 2147483648; it may be from 0 to 2147483647", "--fd", "2147483648");
        REFUSES("--kv is f8; it may be f16, bf16, int8, f32, fp8", "--kv", "f8");
        REFUSES("--backend is gpu; it may be cpu, cuda, auto, ref", "--backend", "gpu");
        REFUSES("--check is 1; it may be yes or no", "--check=1");
        REFUSES("--model is empty", "--model", "");
        REFUSES("--model has no value", "--model");
}

/*
 * Connecting needs write permission, so a mode decides who may connect.  Other modes would be
 * misleading.
 */
static void socket_mode_is_one_of_three_modes(void **state)
{
        static char *const wrong[] = { "0777", "777",  "0666x", "0640", "0620",      "0060", "0",
                                       "0606", "1660", "00660", "6",    "rw-rw----", "432" };

        (void)state;
        for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
                char text[128];

                snprintf(text, sizeof(text), "--socket-mode is %s; it may be 0600, 0660, 0666",
                         wrong[i]);
                REFUSES(text, "--socket-mode", wrong[i]);
        }
        REFUSES("--socket-mode is ; it may be 0600, 0660, 0666", "--socket-mode=");
        REFUSES("--socket-group is empty", "--socket-group=");
        REFUSES("socket_group is tea and socket_mode is 0600, which lets no group in; 0660 does",
                "--socket-group", "tea");
}

static void refuses_settings_that_contradict_each_other(void **state)
{
        (void)state;
        REFUSES("step_tokens is 63 and max_seqs is 64; a step needs a row for every sequence",
                "--model", "m", "--step-tokens", "63");
        ACCEPTS(step_tokens, 64, "--step-tokens", "64");
        REFUSES("ring_bytes is 98304; it must be a power of two", "--model", "m", "--ring-bytes",
                "96K");
        REFUSES("uid_ring_bytes is 131072 and ring_bytes is 262144; a user needs space for one "
                "ring",
                "--model", "m", "--uid-ring-bytes", "128K");
}

static void reads_the_config_file_line_by_line(void **state)
{
        struct config c;

        (void)state;
        assert_int_equal(parse(&c, "# a comment\n"
                                   "\n"
                                   "  model=  /models/a = b.gguf \r\n"
                                   "\tkv_bytes\t=\t2G\n"
                                   "#kv = f32\n"
                                   "socket_mode = 0660\n"
                                   "socket_group = tea drinkers\n"
                                   "max_seqs = 9"),
                         0);
        assert_string_equal(c.model, "/models/a = b.gguf");
        assert_int_equal(c.kv_bytes, UINT64_C(2) << 30);
        assert_int_equal(c.kv, KV_F16);
        assert_int_equal(c.max_seqs, 9);
        assert_int_equal(c.socket_mode, 0660);
        assert_string_equal(c.socket_group, "tea drinkers");
        settings_deinit(&config_table, &c);

        assert_int_equal(parse(&c, "ctx = 1\nmax_seqs\n"), -EINVAL);
        assert_string_equal(why, "config:2: a line is `name = value`");
        settings_deinit(&config_table, &c);
        assert_int_equal(parse(&c, "ctx = 1\nctx = 2\n"), -EINVAL);
        assert_string_equal(why, "config:2: ctx is given twice, first in line 1");
        settings_deinit(&config_table, &c);
        assert_int_equal(parse(&c, "pipeline_depth = 3\n"), -EINVAL);
        assert_string_equal(why, "config:1: pipeline_depth is 3; it may be from 1 to 2");
        settings_deinit(&config_table, &c);
        assert_int_equal(settings_init(&config_table, &c), 0);
        assert_int_equal(settings_parse(&config_table, &c, "ctx\0= 1", 7, why, sizeof(why)),
                         -EINVAL);
        assert_string_equal(why, "config:1: a NUL byte is in it");
        settings_deinit(&config_table, &c);
}

/* Opening a FIFO without a writer would wait for ever. */
static void refuses_a_file_that_is_not_regular(void **state)
{
        char dir[] = "/tmp/test-config-XXXXXX", path[64], words[128];

        (void)state;
        assert_non_null(mkdtemp(dir));
        snprintf(words, sizeof(words), "%s: it is not a regular file", dir);
        REFUSES(words, "--config", dir);
        snprintf(path, sizeof(path), "%s/fifo", dir);
        assert_int_equal(mkfifo(path, 0600), 0);
        snprintf(words, sizeof(words), "%s: it is not a regular file", path);
        REFUSES(words, "--config", path);
        unlink(path);
        rmdir(dir);
}

static void flags_override_the_file(void **state)
{
        char path[] = "/tmp/test-config-XXXXXX";
        const char text[] = "model = from-file\nmax_seqs = 5\npipeline_depth = 2\n";
        struct config c;
        int fd = mkstemp(path);

        (void)state;
        assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
        assert_int_equal(READ(&c, "--max-seqs", "6", "--config", path), 0);
        assert_string_equal(c.model, "from-file");
        assert_int_equal(c.max_seqs, 6);
        assert_int_equal(c.pipeline_depth, 2);
        settings_deinit(&config_table, &c);

        assert_int_equal(write(fd, "kv = f9\n", 8), 8);
        assert_int_equal(READ(&c, "--config", path), -EINVAL);
        assert_non_null(strstr(why, ":4: kv is f9; it may be f16, bf16, int8, f32, fp8"));
        close(fd);
        unlink(path);

        assert_int_equal(READ(&c, "--config", "/nonexistent/samovar.conf"), -ENOENT);
        assert_string_equal(why, "/nonexistent/samovar.conf: No such file or directory");
        assert_int_equal(READ(&c, "--config", "/dev/zero"), -EINVAL);
}

static void a_value_in_a_file_may_stand_in_quotes(void **state)
{
        struct config c;

        (void)state;
        assert_int_equal(parse(&c, "socket = \"/x y\"\nmodel = '/m'\nkv = \"f32\"\n"
                                   "socket_group = say \"tea\"\n"),
                         0);
        assert_string_equal(c.socket, "/x y");
        assert_string_equal(c.model, "/m");
        assert_int_equal(c.kv, KV_F32);
        assert_string_equal(c.socket_group, "say \"tea\"");
        settings_deinit(&config_table, &c);
        assert_int_equal(parse(&c, "socket = \"/x\n"), -EINVAL);
        assert_string_equal(why, "config:1: the value of socket begins with \" and does not end "
                                 "with it");
        settings_deinit(&config_table, &c);
        assert_int_equal(parse(&c, "socket = '\n"), -EINVAL);
        settings_deinit(&config_table, &c);
        assert_int_equal(parse(&c, "socket = ''\n"), -EINVAL);
        assert_string_equal(why, "config:1: socket is empty");
        settings_deinit(&config_table, &c);
}

static void refuses_a_text_flag_that_is_given_twice(void **state)
{
        (void)state;
        REFUSES("--model is given twice", "--model", "a", "--model", "b");
        REFUSES("--socket is given twice", "--socket=/a", "--ctx", "5", "--socket", "/a");
}

/* A folder for config files, in the environment. */
static void write_default_file(char *folder, const char *text)
{
        char path[128];
        FILE *file;

        assert_non_null(mkdtemp(folder));
        snprintf(path, sizeof(path), "%s/samovar", folder);
        assert_int_equal(mkdir(path, 0700), 0);
        snprintf(path, sizeof(path), "%s/samovar/samovar.conf", folder);
        file = fopen(path, "w");
        assert_non_null(file);
        fputs(text, file);
        fclose(file);
        setenv("XDG_CONFIG_HOME", folder, 1);
}

static void remove_default_file(const char *folder)
{
        char path[128];

        unsetenv("XDG_CONFIG_HOME");
        snprintf(path, sizeof(path), "%s/samovar/samovar.conf", folder);
        unlink(path);
        snprintf(path, sizeof(path), "%s/samovar", folder);
        rmdir(path);
        rmdir(folder);
}

static void reads_the_users_file_unless_the_flags_name_another(void **state)
{
        char folder[] = "/tmp/test-config-XXXXXX";
        struct config c;

        (void)state;
        write_default_file(folder, "max_seqs = 5\nctx = 77\n");
        assert_int_equal(READ(&c, "--ctx", "78"), 0);
        assert_int_equal(c.max_seqs, 5);
        assert_int_equal(c.ctx, 78);
        assert_non_null(strstr(c.file, "/samovar/samovar.conf"));
        settings_deinit(&config_table, &c);

        assert_int_equal(READ(&c, "--config", "none"), 0);
        assert_int_equal(c.max_seqs, 64);
        assert_null(c.file);
        settings_deinit(&config_table, &c);
        assert_int_equal(READ(&c, "--config", "/dev/null"), -EINVAL);

        /* A daemon of one program does not serve a socket, so the user's service is not meant. */
        assert_int_equal(READ(&c, "--fd", "9"), 0);
        assert_int_equal(c.max_seqs, 64);
        settings_deinit(&config_table, &c);
        remove_default_file(folder);
}

static void reloading_changes_what_can_change_and_names_the_rest(void **state)
{
        char path[] = "/tmp/test-config-XXXXXX";
        const char before[] = "max_seqs = 5\nmax_tokens = 7\nsocket = /a\nlog_level = warn\n";
        const char after[] = "max_seqs = 6\nmax_tokens = 9\nuid_requests = 3\nsocket = /b\n";
        int fd = mkstemp(path);
        char *argv[] = { "samovard", "--config", path, "--ctx", "78", NULL };
        struct config c;

        (void)state;
        assert_int_equal(write(fd, before, sizeof(before) - 1), sizeof(before) - 1);
        assert_int_equal(settings_read(&config_table, &c, 5, argv, why, sizeof(why)), 0);
        assert_int_equal(ftruncate(fd, 0), 0);
        assert_int_equal(pwrite(fd, after, sizeof(after) - 1, 0), sizeof(after) - 1);
        assert_int_equal(settings_reload(&config_table, &c, 5, argv, why, sizeof(why)), 0);
        assert_string_equal(why, "max_seqs,socket");
        assert_int_equal(c.max_seqs, 5);
        assert_string_equal(c.socket, "/a");
        assert_int_equal(c.max_tokens, 9);
        assert_int_equal(c.uid_requests, 3);
        assert_int_equal(c.log_level, LOG_INFO);
        assert_int_equal(c.ctx, 78);

        /* A file with an error changes nothing. */
        assert_int_equal(pwrite(fd, "max_tokens = 0\n", 15, 0), 15);
        assert_int_equal(settings_reload(&config_table, &c, 5, argv, why, sizeof(why)), -EINVAL);
        assert_int_equal(c.max_tokens, 9);
        settings_deinit(&config_table, &c);
        close(fd);
        unlink(path);
}

/* Hostile texts: no crash, and a refusal is one line. */
static void accepts_or_refuses_random_files_without_a_crash(void **state)
{
        static const char *const pieces[] = {
                "ctx", "max_seqs", "model", "kv", "ring_bytes", "=",           " = ",
                "\n",  "\n",       "\n",    "#",  "7",          "64K",         "f16",
                "\r",  "\t",       "\xff",  "4G", "kv_bytes",   "99999999999",
        };
        uint32_t random = 7, accepted = 0, refused = 0;

        (void)state;
        for (uint32_t i = 0; i < 20000; i++) {
                char text[256] = "";
                struct config c;
                int r;

                for (uint32_t j = 0; j < 8; j++) {
                        random = random * 1664525u + 1013904223u;
                        strcat(text, pieces[(random >> 16) % (sizeof(pieces) / sizeof(*pieces))]);
                }
                r = parse(&c, text);
                accepted += r == 0;
                refused += r == -EINVAL;
                if (r) {
                        assert_int_equal(r, -EINVAL);
                        assert_true(strlen(why) > 10);
                        assert_null(strchr(why, '\n'));
                }
                settings_deinit(&config_table, &c);
        }
        assert_true(accepted > 20 && refused > 1000);
}

static void help_shows_ranges_and_defaults_and_only_existing_flags(void **state)
{
        char *text = NULL;
        size_t bytes = 0;
        FILE *to = open_memstream(&text, &bytes);

        (void)state;
        settings_help(&config_table, to);
        fclose(to);
        assert_non_null(strstr(text, "--kv-bytes SIZE"));
        assert_non_null(strstr(text, "--model PATH[=NAME]"));
        assert_non_null(strstr(text, "1 to 1024 [64]"));
        assert_non_null(strstr(text, "64K to 4M [256K]"));
        assert_non_null(strstr(text, "error, warn, info, debug [info]; SIGHUP reloads it\n"));

        /* Each flag it names is one. */
        for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
                char flag[64];
                struct config c;

                if (sscanf(line, "  %63[-a-z]", flag) != 1 || strncmp(flag, "--", 2))
                        continue;
                strcat(flag, "=?");
                if (READ(&c, "--model", "m", flag) == 0)
                        settings_deinit(&config_table, &c);
                else
                        assert_null(strstr(why, "no setting"));
        }
        free(text);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(defaults_are_as_documented),
                cmocka_unit_test(accepts_a_flag_value_after_a_space_or_equals_sign),
                cmocka_unit_test(gpu_layers_is_a_number_all_or_auto),
                cmocka_unit_test(swap_bytes_is_for_pools_on_a_gpu),
                cmocka_unit_test(help_and_version_need_no_model),
                cmocka_unit_test(refuses_an_unknown_setting_and_suggests_the_nearest),
                cmocka_unit_test(refuses_a_value_out_of_range_and_names_the_range),
                cmocka_unit_test(socket_mode_is_one_of_three_modes),
                cmocka_unit_test(refuses_settings_that_contradict_each_other),
                cmocka_unit_test(reads_the_config_file_line_by_line),
                cmocka_unit_test(refuses_a_file_that_is_not_regular),
                cmocka_unit_test(flags_override_the_file),
                cmocka_unit_test(a_value_in_a_file_may_stand_in_quotes),
                cmocka_unit_test(refuses_a_text_flag_that_is_given_twice),
                cmocka_unit_test(reads_the_users_file_unless_the_flags_name_another),
                cmocka_unit_test(reloading_changes_what_can_change_and_names_the_rest),
                cmocka_unit_test(accepts_or_refuses_random_files_without_a_crash),
                cmocka_unit_test(help_shows_ranges_and_defaults_and_only_existing_flags),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
