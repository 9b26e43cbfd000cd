/* The state folder of samovar-http, and the records and answers in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "base/sys.h"
#include "bridge/core/state-folder.h"
#include "bridge/openai/batch-answers.h"
#include "bridge/openai/batch-record.h"

static struct text text_at(const struct bytes *bytes)
{
        return (struct text){ bytes->at, bytes->count };
}

/* ---- records ---- */

static const struct file_record a_file = {
        .id = "file-abcdefghijklmnopqrstuvwx",
        .owner = "anna",
        .filename = "my \xc3\xbc \"file\".jsonl",
        .purpose = "batch",
        .created_ns = 1700000000123456789,
        .expires_s = 1702592000,
        .offset = 123,
        .bytes = 456,
};

static struct batch_record a_batch(void)
{
        struct batch_record record = {
                .id = "batch_abcdefghijklmnopqrstuvwx",
                .endpoint = "/v1/chat/completions",
                .owner = "",
                .input_id = "file-abcdefghijklmnopqrstuvwa",
                .output_id = "file-abcdefghijklmnopqrstuvwb",
                .error_id = "file-abcdefghijklmnopqrstuvwc",
                .has_errors = true,
                .metadata = strdup("{\"a\":\"b\"}"),
                .status = BATCH_FINALIZING,
                .ending = BATCH_EXPIRED,
                .created_ns = 1700000000123456789,
                .input_offset = 5,
                .input_bytes = 6,
                .total = 50000,
                .completed = 7,
                .failed = 8,
                .why = "a \"reason\"",
                .why_line = 9,
        };

        for (unsigned i = 0; i < BATCH_STATUS_N; i++)
                record.times_s[i] = 1700000000 + i;
        return record;
}

static void writes_and_reads_the_record_of_a_file(void **state)
{
        struct bytes text = { 0 }, again = { 0 };
        struct json_builder to = json_build(&text), to_again = json_build(&again);
        struct file_record read;
        const char *why;

        (void)state;
        file_record_write(&to, &a_file);
        assert_int_equal(json_put_end(&to), 0);
        assert_true(file_record_read(text_at(&text), &read, &why));
        assert_string_equal(read.filename, a_file.filename);
        assert_string_equal(read.owner, "anna");
        file_record_write(&to_again, &read);
        assert_int_equal(json_put_end(&to_again), 0);
        assert_string_equal(text.at, again.at);
        bytes_deinit(&text);
        bytes_deinit(&again);
}

static void writes_and_reads_the_record_of_a_batch(void **state)
{
        struct batch_record record = a_batch(), read;
        struct bytes text = { 0 }, again = { 0 };
        struct json_builder to = json_build(&text), to_again = json_build(&again);
        const char *why;

        (void)state;
        batch_record_write(&to, &record);
        assert_int_equal(json_put_end(&to), 0);
        assert_int_equal(batch_record_read(text_at(&text), &read, &why), 0);
        assert_string_equal(read.metadata, record.metadata);
        assert_int_equal(read.ending, BATCH_EXPIRED);
        batch_record_write(&to_again, &read);
        assert_int_equal(json_put_end(&to_again), 0);
        assert_string_equal(text.at, again.at);
        free(record.metadata);
        free(read.metadata);
        bytes_deinit(&text);
        bytes_deinit(&again);
}

/* In memory of its own size, so that a sanitizer sees a read behind the end. */
static bool is_a_record(const char *bytes, size_t count)
{
        char *copy = malloc(count ? count : 1);
        struct batch_record batch;
        struct file_record file;
        const char *why;
        bool is;

        memcpy(copy, bytes, count);
        is = file_record_read((struct text){ copy, count }, &file, &why);
        if (!batch_record_read((struct text){ copy, count }, &batch, &why)) {
                is = true;
                free(batch.metadata);
        }
        free(copy);
        return is;
}

static void refuses_records_that_are_cut_or_changed(void **state)
{
        struct batch_record record = a_batch();
        struct bytes texts[2] = { { 0 }, { 0 } };
        struct json_builder file = json_build(&texts[0]), batch = json_build(&texts[1]);

        (void)state;
        file_record_write(&file, &a_file);
        batch_record_write(&batch, &record);
        assert_int_equal(json_put_end(&file) | json_put_end(&batch), 0);
        for (size_t i = 0; i < 2; i++) {
                struct bytes *text = &texts[i];

                assert_true(is_a_record(text->at, text->count));
                for (size_t cut = 0; cut < text->count; cut++)
                        assert_false(is_a_record(text->at, cut));
                for (size_t at = 0; at < text->count; at++) {
                        char was = text->at[at];

                        for (unsigned change = 1; change < 256; change++) {
                                text->at[at] = (char)((unsigned char)was ^ change);
                                (void)is_a_record(text->at, text->count);
                        }
                        text->at[at] = was;
                }
                bytes_deinit(text);
        }
        free(record.metadata);
}

static void refuses_records_with_a_value_out_of_its_range(void **state)
{
        static const char *const changes[][2] = {
                { "\"version\":1", "\"version\":2" },
                { "\"kind\":\"file\"", "\"kind\":\"batch\"" },
                { "\"file-abcdefghijklmnopqrstuvwx\"", "\"file-../../../etc/passwd\"" },
                { "\"file-abcdefghijklmnopqrstuvwx\"", "\"file-abcdefghijklmnopqrstuv\\u0000x\"" },
                { "\"owner\":\"anna\"", "\"owner\":\"an na\"" },
                { "\"owner\":\"anna\"", "\"owner\":null" },
                { "\"purpose\":\"batch\"", "\"purpose\":\"\"" },
                { "\"bytes\":456", "\"bytes\":18446744073709551615" },
                { "\"offset\":123", "\"offset\":-1" },
                { "\"expires_s\":1702592000", "\"expires_s\":9223372036854775808" },
        };
        struct bytes text = { 0 };
        struct json_builder to = json_build(&text);

        (void)state;
        file_record_write(&to, &a_file);
        assert_int_equal(json_put_end(&to), 0);
        for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
                const char *at = strstr(text.at, changes[i][0]);
                char changed[1024];

                assert_non_null(at);
                snprintf(changed, sizeof(changed), "%.*s%s%s", (int)(at - text.at), text.at,
                         changes[i][1], at + strlen(changes[i][0]));
                if (is_a_record(changed, strlen(changed)))
                        fail_msg("%s was taken", changes[i][1]);
        }
        bytes_deinit(&text);
}

/* ---- answers ---- */

#define LINES 5

static struct text id_of(unsigned number, char to[16])
{
        snprintf(to, 16, "id-%u", number);
        return (struct text){ to, strlen(to) };
}

static struct batch_ids *ids_of_lines(void)
{
        struct batch_ids *ids = batch_ids_new();
        char name[16];

        assert_non_null(ids);
        for (unsigned i = 0; i < LINES; i++)
                assert_true(batch_ids_add(ids, id_of(i, name)));
        return ids;
}

static void add_answer(struct bytes *to, unsigned number)
{
        char line[128];
        int n = snprintf(line, sizeof(line),
                         "{\"id\":\"x\",\"custom_id\":\"id-%u\",\"response\":{\"body\":null},"
                         "\"error\":null}\n",
                         number);

        assert_int_equal(bytes_add(to, line, (size_t)n), 0);
}

/* Reads in steps of some bytes. */
static struct batch_recovery recovered(const char *text, size_t count, struct batch_ids *ids,
                                       size_t step)
{
        struct batch_recovery recovery = { .text = { text, count } };

        while (batch_recovery_next(&recovery, ids, step) > 0)
                ;
        return recovery;
}

static void finds_each_whole_answer_once_wherever_a_file_is_cut(void **state)
{
        struct bytes text = { 0 };
        size_t ends[LINES + 1] = { 0 };

        (void)state;
        for (unsigned i = 0; i < LINES; i++) {
                add_answer(&text, i);
                ends[i + 1] = text.count;
        }
        for (size_t cut = 0; cut <= text.count; cut++) {
                struct batch_ids *ids = ids_of_lines();
                char *copy = malloc(cut ? cut : 1);
                struct batch_recovery recovery;
                unsigned whole = 0;
                char name[16];

                memcpy(copy, text.at, cut);
                recovery = recovered(copy, cut, ids, cut % 3 ? 1 : 1000);
                while (whole < LINES && ends[whole + 1] <= cut)
                        whole++;
                assert_int_equal(recovery.count, whole);
                assert_int_equal(recovery.at, ends[whole]);
                for (unsigned i = 0; i < LINES; i++)
                        assert_int_equal(batch_ids_is_answered(ids, id_of(i, name)), i < whole);
                batch_ids_free(ids);
                free(copy);
        }
        bytes_deinit(&text);
}

static void cuts_answers_that_are_double_foreign_or_damaged(void **state)
{
        static const char *const bad[] = {
                "{\"custom_id\":\"id-0\",\"response\":{}}\n", /* has its answer */
                "{\"custom_id\":\"id-9\",\"response\":{}}\n", /* no line has this id */
                "{\"custom_id\":\"id-1\",\"response\":null}\n",
                "{\"custom_id\":1,\"response\":{}}\n",
                "[]\n",
                "\n",
                "{\"custom_id\":\"id-1\",\"resp\xff\n",
        };

        (void)state;
        for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
                struct batch_ids *ids = ids_of_lines();
                struct bytes text = { 0 };
                struct batch_recovery recovery;
                char name[16];
                size_t end;

                add_answer(&text, 0);
                end = text.count;
                assert_int_equal(bytes_add(&text, bad[i], strlen(bad[i])), 0);
                add_answer(&text, 2);
                recovery = recovered(text.at, text.count, ids, 1000);
                assert_int_equal(recovery.at, end);
                assert_int_equal(recovery.count, 1);
                assert_false(batch_ids_is_answered(ids, id_of(2, name)));
                batch_ids_free(ids);
                bytes_deinit(&text);
        }
}

/* ---- the folder ---- */

struct world {
        struct loop *loop;
        struct state_folder *folder;
        char path[64];
        int result; /* of the last change; 1: none */
};

static void open_world(struct world *world)
{
        char why[256];

        snprintf(world->path, sizeof(world->path), "/tmp/samovar-state-XXXXXX");
        assert_non_null(mkdtemp(world->path));
        assert_int_equal(loop_new(&world->loop), 0);
        if (state_folder_open(world->path, world->loop, &world->folder, why, sizeof(why)))
                fail_msg("%s", why);
}

static int remove_name(void *arg, const char *name)
{
        struct world *world = arg;

        state_folder_remove(world->folder, name);
        return 0;
}

static void close_world(struct world *world)
{
        state_folder_list(world->folder, remove_name, world);
        state_folder_close(world->folder);
        loop_free(world->loop);
        assert_int_equal(rmdir(world->path), 0);
}

static void on_changed(void *arg, int result)
{
        struct world *world = arg;

        world->result = result;
        loop_stop(world->loop);
}

static struct bytes bytes_of(const char *text)
{
        struct bytes bytes = { 0 };

        assert_int_equal(bytes_add(&bytes, text, strlen(text)), 0);
        return bytes;
}

/* A record with data; `old` goes. */
static int change(struct world *world, const char *text)
{
        struct state_change change = { .data_fd = sys_open(world->path, O_TMPFILE | O_RDWR, 0600),
                                       .data = "a.data",
                                       .record = "a.json",
                                       .text = bytes_of(text),
                                       .removed = { "old" } };

        assert_true(change.data_fd >= 0);
        assert_int_equal(sys_write(change.data_fd, text, strlen(text)), strlen(text));
        world->result = 1;
        assert_int_equal(state_folder_change(world->folder, &change, on_changed, world), 0);
        assert_int_equal(loop_run(world->loop), 0);
        return world->result;
}

static bool holds(const struct world *world, const char *name, const char *text)
{
        struct bytes read = { 0 };
        int r = state_folder_read(world->folder, name, &read);
        bool same = !r && read.count == strlen(text) && !memcmp(read.at, text, read.count);

        bytes_deinit(&read);
        return same;
}

static void make(const struct world *world, const char *name)
{
        int fd = state_folder_make_file(world->folder, name);

        assert_true(fd >= 0);
        sys_close(fd);
}

static void writes_data_and_record_and_removes_the_old_file(void **state)
{
        struct world world = { 0 };

        (void)state;
        open_world(&world);
        make(&world, "old");
        assert_int_equal(change(&world, "one"), 0);
        assert_true(holds(&world, "a.data", "one"));
        assert_true(holds(&world, "a.json", "one"));
        assert_false(holds(&world, "old", ""));
        assert_int_equal(change(&world, "two"), 0);
        assert_true(holds(&world, "a.data", "two"));
        assert_true(holds(&world, "a.json", "two"));
        close_world(&world);
}

/* The call of this number fails; NULL: none has this number. */
static struct {
        uint32_t left;
        const char *failed;
} fault;

static int fail_one(const char *call, void *arg)
{
        static const char *const calls[] = { "fsync",    "linkat", "openat",
                                             "renameat", "pwrite", "unlinkat" };

        (void)arg;
        for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
                if (!strcmp(call, calls[i]) && gettid() != getpid() && !--fault.left) {
                        fault.failed = calls[i];
                        return -ENOSPC;
                }
        return 0;
}

static void keeps_records_whole_when_a_call_fails(void **state)
{
        (void)state;
        sys_set_fault(fail_one, NULL);
        for (uint32_t number = 1;; number++) {
                struct world world = { 0 };
                int r;

                open_world(&world);
                make(&world, "old");
                fault.failed = NULL;
                fault.left = number;
                r = change(&world, "one");
                fault.left = 0;
                /* Either there is a whole record, or none. */
                assert_int_equal(!r, fault.failed == NULL);
                assert_true(holds(&world, "a.json", "one") ||
                            state_folder_open_file(world.folder, "a.json", O_RDONLY) == -ENOENT);
                if (holds(&world, "a.json", "one"))
                        assert_true(holds(&world, "a.data", "one"));
                else
                        assert_true(holds(&world, "old", ""));
                assert_false(holds(&world, "a.json.new", ""));
                assert_int_equal(change(&world, "again"), 0);
                assert_true(holds(&world, "a.json", "again"));
                close_world(&world);
                if (!fault.failed)
                        break;
        }
        sys_set_fault(NULL, NULL);
}

static void finishes_all_changes_before_it_closes(void **state)
{
        struct world world = { .result = 1 };
        struct state_change last = { .data_fd = -1, .record = "b.json" };
        char why[256];

        (void)state;
        open_world(&world);
        for (int i = 0; i < 50; i++) {
                struct state_change one = { .data_fd = -1,
                                            .record = "a.json",
                                            .text = bytes_of("earlier") };

                assert_int_equal(state_folder_change(world.folder, &one, on_changed, &world), 0);
        }
        last.text = bytes_of("last");
        assert_int_equal(state_folder_change(world.folder, &last, on_changed, &world), 0);
        world.folder = state_folder_close(world.folder);
        assert_int_equal(world.result, 0);
        assert_int_equal(state_folder_open(world.path, world.loop, &world.folder, why, sizeof(why)),
                         0);
        assert_true(holds(&world, "b.json", "last"));
        close_world(&world);
}

static void refuses_a_record_that_is_too_large(void **state)
{
        struct world world = { 0 };
        struct bytes read = { 0 };
        char path[128];
        int fd;

        (void)state;
        open_world(&world);
        snprintf(path, sizeof(path), "%s/large", world.path);
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert_int_equal(ftruncate(fd, STATE_RECORD_BYTES + 1), 0);
        assert_int_equal(state_folder_read(world.folder, "large", &read), -EFBIG);
        assert_int_equal(ftruncate(fd, STATE_RECORD_BYTES), 0);
        read.count = 0;
        assert_int_equal(state_folder_read(world.folder, "large", &read), 0);
        close(fd);
        bytes_deinit(&read);
        close_world(&world);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(writes_and_reads_the_record_of_a_file),
                cmocka_unit_test(writes_and_reads_the_record_of_a_batch),
                cmocka_unit_test(refuses_records_that_are_cut_or_changed),
                cmocka_unit_test(refuses_records_with_a_value_out_of_its_range),
                cmocka_unit_test(finds_each_whole_answer_once_wherever_a_file_is_cut),
                cmocka_unit_test(cuts_answers_that_are_double_foreign_or_damaged),
                cmocka_unit_test(writes_data_and_record_and_removes_the_old_file),
                cmocka_unit_test(keeps_records_whole_when_a_call_fails),
                cmocka_unit_test(finishes_all_changes_before_it_closes),
                cmocka_unit_test(refuses_a_record_that_is_too_large),
        };

        log_open(LOG_ERROR);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
