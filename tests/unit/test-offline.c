/*
 * The parts of a batch without HTTP that bound its memory: reading lines in pieces, finding equal
 * ids with runs on the disk, and answers that wait on the disk for others.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/sys.h"
#include "bridge/offline/answer-window.h"
#include "bridge/offline/id-check.h"
#include "bridge/offline/line-reader.h"
#include "bridge/offline/nameless-file.h"

static uint64_t dice = 1;

static uint32_t below(uint32_t n)
{
        dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (uint32_t)(dice >> 33) % n;
}

/* ---- lines ---- */

static int file_of(const char *text, size_t bytes)
{
        int fd = nameless_file_make("/tmp");

        assert_true(fd >= 0);
        assert_int_equal(nameless_file_write(fd, text, bytes, 0), 0);
        return fd;
}

static void expect_line(struct line_reader *reader, const char *line, uint32_t number)
{
        struct text text;

        assert_int_equal(line_reader_next(reader, &text), 1);
        assert_int_equal(text.bytes, strlen(line));
        assert_memory_equal(text.at, line, text.bytes);
        assert_int_equal(line_reader_place(reader).number, number);
}

static void reads_lines_and_knows_a_torn_one(void **state)
{
        static const char text[] = "one\n\n  \ntwo\nthree";
        int fd = file_of(text, sizeof(text) - 1);
        struct line_reader reader;
        struct line_place behind_one;
        struct text line;

        (void)state;
        line_reader_init(&reader, fd, (struct line_place){ 0 });
        expect_line(&reader, "one", 1);
        assert_true(line_reader_was_whole(&reader));
        behind_one = line_reader_place(&reader);
        assert_int_equal(behind_one.at, 4);
        expect_line(&reader, "two", 4);
        expect_line(&reader, "three", 5);
        assert_false(line_reader_was_whole(&reader));
        assert_int_equal(line_reader_next(&reader, &line), 0);
        assert_int_equal(line_reader_next(&reader, &line), 0);
        line_reader_deinit(&reader);

        line_reader_init(&reader, fd, behind_one);
        expect_line(&reader, "two", 4);
        line_reader_deinit(&reader);
        sys_close(fd);
}

/* Many times the size of a read, with lines of all sizes around it. */
static void lines_that_cross_the_ends_of_reads_are_whole(void **state)
{
        enum { LINES = 400 };
        static uint32_t lengths[LINES];
        struct line_reader reader;
        struct text line;
        int fd = nameless_file_make("/tmp");
        uint64_t at = 0;

        (void)state;
        for (uint32_t i = 0; i < LINES; i++) {
                char *text;

                lengths[i] = 1 + (i % 20 ? below(60000) : below(3 << 20));
                text = malloc(lengths[i] + 1);
                assert_non_null(text);
                memset(text, 'a' + (int)(i % 26), lengths[i]);
                text[lengths[i]] = '\n';
                assert_int_equal(nameless_file_write(fd, text, lengths[i] + 1, at), 0);
                at += lengths[i] + 1;
                free(text);
        }
        line_reader_init(&reader, fd, (struct line_place){ 0 });
        for (uint32_t i = 0; i < LINES; i++) {
                assert_int_equal(line_reader_next(&reader, &line), 1);
                assert_int_equal(line.bytes, lengths[i]);
                assert_int_equal(line.at[0], 'a' + (int)(i % 26));
                assert_int_equal(line.at[line.bytes - 1], 'a' + (int)(i % 26));
                assert_true(line_reader_was_whole(&reader));
        }
        assert_int_equal(line_reader_next(&reader, &line), 0);
        assert_int_equal(line_reader_place(&reader).at, at);
        assert_true(reader.buffer.size < 16 << 20);
        line_reader_deinit(&reader);
        sys_close(fd);
}

/* ---- equal ids ---- */

static void add_id(struct id_check *check, uint32_t id, uint32_t line)
{
        char text[32];

        snprintf(text, sizeof(text), "id-%u", id);
        assert_int_equal(id_check_add(check, (struct text){ text, strlen(text) }, line), 0);
}

static void ids_that_differ_pass_in_any_number_of_runs(void **state)
{
        uint32_t first, second;

        (void)state;
        for (uint32_t count = 0; count < 200; count++) {
                struct id_check *check = id_check_new("/tmp", 1 + count % 7);

                for (uint32_t i = 0; i < count; i++)
                        add_id(check, i * 7919 % 1009, i + 1);
                assert_int_equal(id_check_end(check, &first, &second), 0);
                id_check_free(check);
        }
}

/* Compared with a search of all pairs. */
static void finds_the_first_line_whose_id_was_there_before(void **state)
{
        enum { COUNT = 300 };
        uint32_t ids[COUNT], first, second;

        (void)state;
        for (uint32_t round = 0; round < 300; round++) {
                struct id_check *check = id_check_new("/tmp", 1 + below(100));
                uint32_t wanted_first = 0, wanted_second = 0;

                for (uint32_t i = 0; i < COUNT; i++) {
                        ids[i] = below(10000);
                        add_id(check, ids[i], i + 1);
                        for (uint32_t j = 0; j < i && !wanted_second; j++)
                                if (ids[j] == ids[i]) {
                                        wanted_first = j + 1;
                                        wanted_second = i + 1;
                                }
                }
                assert_int_equal(id_check_end(check, &first, &second), wanted_second > 0);
                assert_int_equal(first, wanted_first);
                assert_int_equal(second, wanted_second);
                id_check_free(check);
        }
}

/* ---- the window ---- */

static void put_answer(struct answer_window *window, uint64_t number)
{
        struct bytes answer = { 0 };
        char text[64];

        snprintf(text, sizeof(text), "answer %llu, %*s", (unsigned long long)number,
                 (int)(number * 7 % 40), "");
        assert_int_equal(bytes_add(&answer, text, strlen(text)), 0);
        answer_window_put(window, number, &answer, number % 3);
}

/* Takes what may leave. */
static void take_answers(struct answer_window *window, uint64_t *next)
{
        char wanted[32];
        struct text answer;
        bool good;

        while (answer_window_next(window, &answer, &good) > 0) {
                int bytes =
                        snprintf(wanted, sizeof(wanted), "answer %llu,", (unsigned long long)*next);

                assert_int_equal(answer.bytes, (size_t)bytes + 1 + *next * 7 % 40);
                assert_memory_equal(answer.at, wanted, (size_t)bytes);
                assert_int_equal(good, *next % 3 != 0);
                answer_window_leave(window);
                ++*next;
        }
}

/* With little memory, most answers wait in the file. */
static void answers_leave_in_order_whatever_the_order_in_which_they_come(void **state)
{
        enum { LINES = 5000, FLYING = 300 };

        (void)state;
        for (uint32_t memory = 0; memory < 20000; memory += 5000) {
                struct answer_window *window = answer_window_new("/tmp", memory);
                uint64_t flying[FLYING], entered = 0, left = 0;
                uint32_t count = 0;

                while (left < LINES) {
                        while (count < FLYING && entered < LINES) {
                                assert_true(answer_window_has_space(window));
                                assert_int_equal(answer_window_enter(window, &flying[count]), 0);
                                assert_int_equal(flying[count++], entered++);
                        }
                        for (uint32_t n = 1 + below(20); count && n; n--) {
                                uint32_t which = below(count);

                                put_answer(window, flying[which]);
                                flying[which] = flying[--count];
                        }
                        take_answers(window, &left);
                        assert_int_equal(answer_window_count(window), entered - left);
                }
                answer_window_free(window);
        }
}

static void the_window_is_full_at_its_limit_and_when_the_disk_takes_no_more(void **state)
{
        struct answer_window *window = answer_window_new("/tmp", 1000);
        uint64_t number, left = 0;

        (void)state;
        for (uint64_t i = 0; i < WINDOW_LINES_MAX; i++) {
                assert_true(answer_window_has_space(window));
                assert_int_equal(answer_window_enter(window, &number), 0);
        }
        assert_false(answer_window_has_space(window));
        put_answer(window, 0);
        take_answers(window, &left);
        assert_true(answer_window_has_space(window));
        answer_window_free(window);

        window = answer_window_new("/nonexistent", 1000);
        for (left = 0; answer_window_has_space(window); left++) {
                assert_int_equal(answer_window_enter(window, &number), 0);
                if (number)
                        put_answer(window, number);
                assert_true(number < 1000);
        }
        put_answer(window, 0);
        left = 0;
        take_answers(window, &left);
        assert_int_equal(answer_window_count(window), 0);
        assert_true(answer_window_has_space(window));
        answer_window_free(window);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(reads_lines_and_knows_a_torn_one),
                cmocka_unit_test(lines_that_cross_the_ends_of_reads_are_whole),
                cmocka_unit_test(ids_that_differ_pass_in_any_number_of_runs),
                cmocka_unit_test(finds_the_first_line_whose_id_was_there_before),
                cmocka_unit_test(answers_leave_in_order_whatever_the_order_in_which_they_come),
                cmocka_unit_test(the_window_is_full_at_its_limit_and_when_the_disk_takes_no_more),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
