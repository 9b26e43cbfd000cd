/* The parts of `samovar top` that need no daemon: keys, rates, order, and what a frame has. */
#include "cli/top/view.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/cells.h"
#include "cli/top/keys.h"
#include "cli/top/report.h"
#include "json/utf8.h"

/* ---- keys ---- */

/* The keys that these bytes are, as text: "h", "<256>". */
static const char *keys_of(struct keys *keys, const char *bytes, size_t count)
{
        static char text[256];
        size_t used = 0;
        int key;

        text[0] = '\0';
        keys_add(keys, bytes, count);
        while (keys_next(keys, &key))
                used += (size_t)snprintf(text + used, sizeof(text) - used,
                                         key < 256 ? "%c" : "<%d>", key);
        return text;
}

static void sequences_are_keys_and_others_are_dropped(void **state)
{
        static const struct {
                const char *bytes, *keys;
        } cases[] = {
                { "qh", "qh" },
                { "\x1b[A\x1b[B", "<256><257>" },
                { "\x1bOA\x1bOB", "<256><257>" },
                { "\x1b[5~\x1b[6~", "<258><259>" },
                { "\x1b[H\x1b[F\x1b[1~\x1b[4~", "<260><261><260><261>" },
                { "\x1b[1;5A", "<256>" },
                { "\x1b[15~k", "k" }, /* F5 */
                { "\x1b[200~\x1b[201~k", "k" },
                { "\x1bqk", "k" }, /* Alt and q */
                { "\xc3\xb6k", "k" },
                { "\x1b\x1b[A", "<262><256>" },
                { "\x1b[C\x1b[Dk", "k" },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct keys keys = { 0 };

                assert_string_equal(keys_of(&keys, cases[i].bytes, strlen(cases[i].bytes)),
                                    cases[i].keys);
                assert_int_equal(keys.count, 0);
        }
}

static void a_sequence_may_come_byte_by_byte(void **state)
{
        struct keys keys = { 0 };

        (void)state;
        assert_string_equal(keys_of(&keys, "\x1b", 1), "");
        assert_string_equal(keys_of(&keys, "[", 1), "");
        assert_string_equal(keys_of(&keys, "5", 1), "");
        assert_string_equal(keys_of(&keys, "~", 1), "<258>");
        assert_string_equal(keys_of(&keys, "\x1b", 1), "");
        assert_true(keys_give_up(&keys)); /* alone, it is Escape */
        assert_string_equal(keys_of(&keys, "\x1b[", 2), "");
        assert_false(keys_give_up(&keys));
        assert_string_equal(keys_of(&keys, "q", 1), "q");
}

static void a_sequence_without_an_end_does_not_stop_the_keys(void **state)
{
        struct keys keys = { 0 };
        char bytes[sizeof(keys.bytes)];

        (void)state;
        memset(bytes, '1', sizeof(bytes));
        memcpy(bytes, "\x1b[", 2);
        assert_string_equal(keys_of(&keys, bytes, sizeof(bytes)), "");
        assert_int_equal(keys_room(&keys), sizeof(keys.bytes));
        assert_string_equal(keys_of(&keys, "q", 1), "q");
}

/* ---- cells ---- */

static void text_is_cut_by_cells_and_made_safe(void **state)
{
        static const struct {
                const char *text;
                unsigned cells;
                const char *shown;
                unsigned used;
        } cases[] = {
                { "plain", 10, "plain", 5 },
                { "plain", 3, "pla", 3 },
                { "\u540d\u524d", 4, "\u540d\u524d", 4 },
                { "\u540d\u524d", 3, "\u540d", 2 }, /* half of a character is not shown */
                { "e\u0301x", 2, "e\u0301x", 2 },
                { "\U0001f600!", 3, "\U0001f600!", 3 },
                { "a\x1b[2Jb\x07", 20, "a?[2Jb?", 7 },
                { "a\xc2\x9b"
                  "2Jb",
                  20, "a?2Jb", 5 }, /* CSI in one character */
                { "\u202eabc\u2066", 20, "?abc?", 5 },
                { "a\xff\xfe", 20, "a??", 3 },
                { "a\tb\n", 20, "a?b?", 4 },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct bytes to = { 0 };
                unsigned used = 99;

                assert_int_equal(cells_add(&to, cases[i].text, cases[i].cells, &used), 0);
                assert_int_equal(bytes_add(&to, "", 1), 0);
                assert_string_equal(to.at, cases[i].shown);
                assert_int_equal(used, cases[i].used);
                bytes_deinit(&to);
        }
}

/* ---- snapshots ---- */

#define STATUS                                                                                     \
        "{\"socket\":\"/run/samovar/sock\",\"version\":\"1.2.3\",\"pid\":77,\"uid\":0,"            \
        "\"uptime_s\":75,\"tokens_out\":%u,\"model\":{\"name\":\"%s\",\"backend\":\"cpu/avx2\","   \
        "\"quantisation\":\"Q8_0\",\"bytes\":4194304},\"loading\":{\"bytes\":1,\"total\":1},"      \
        "\"blocks\":{\"total\":400,\"in_use\":100,\"cached\":60,\"free\":240},"                    \
        "\"requests\":{\"running\":2,\"waiting\":1,\"stalled\":0},\"limits\":{\"max_seqs\":8},"    \
        "\"waits\":{\"blocks\":1},\"rates\":{\"mean_tokens_out_per_s\":9.5},%s"                    \
        "\"users\":[{\"uid\":4000000001,\"principal\":\"%s\",\"requests\":3,\"running\":2,"        \
        "\"waiting\":1,\"blocks\":100,\"cached_blocks\":40}]}"
#define LATENCY                                                                                    \
        "\"latency\":{\"le\":[1,2],\"time_to_first_token_seconds\":"                               \
        "{\"count\":4,\"buckets\":[4,4]}},"
#define STREAM                                                                                     \
        "{\"number\":%u,\"kind\":\"stream\",\"state\":\"%s\",\"uid\":4000000001,"                  \
        "\"principal\":\"%s\",\"pid\":9,\"priority\":\"interactive\",\"age_ms\":%u,"               \
        "\"tokens\":%u,\"waits_for\":\"%s\",\"needs\":12,\"free\":9%s}"

static char *made_status(unsigned tokens_out, const char *latency, const char *model,
                         const char *principal)
{
        char *text = NULL;

        assert_true(asprintf(&text, STATUS, tokens_out, model, latency, principal) > 0);
        return text;
}

struct stream_made {
        unsigned number, age_ms, tokens;
        const char *state, *waits_for, *more;
};

static char *made_list(const struct stream_made *streams, size_t count, const char *name)
{
        char *all = strdup("{\"streams\":["), *more = NULL, *joined = NULL;

        for (size_t i = 0; i < count; i++) {
                const struct stream_made *made = &streams[i];

                assert_true(asprintf(&more, STREAM, made->number, made->state, name, made->age_ms,
                                     made->tokens, made->waits_for, made->more) > 0);
                assert_true(asprintf(&joined, "%s%s%s", all, i ? "," : "", more) > 0);
                free(all);
                free(more);
                all = joined;
        }
        assert_true(asprintf(&joined, "%s],\"handles\":[]}", all) > 0);
        free(all);
        return joined;
}

static struct snapshot take(unsigned tokens_out, const struct stream_made *streams, size_t count,
                            uint64_t at_ms, const struct snapshot *earlier)
{
        char *status = made_status(tokens_out, LATENCY, "tiny", "alice");
        char *list = made_list(streams, count, "alice");
        char why[SNAPSHOT_WHY_BYTES];
        struct snapshot made;

        if (snapshot_make(status, list, at_ms, earlier, &made, why))
                fail_msg("%s", why);
        free(status);
        free(list);
        return made;
}

static void rates_are_those_between_two_looks(void **state)
{
        const struct stream_made before[] = { { 1, 10000, 50, "running", "", "" },
                                              { 2, 4000, 40, "running", "", "" } };
        const struct stream_made after[] = { { 1, 12000, 90, "running", "", "" },
                                             { 3, 500, 5, "running", "", "" } };
        struct snapshot none = { 0 }, first, second, third;

        (void)state;
        first = take(1000, before, 2, 100000, &none);
        /* At the first look, a stream has its mean, and so has their sum. */
        assert_true(first.streams[0].rate == 5 && first.streams[1].rate == 10);
        assert_true(first.rate == 15);
        second = take(1100, after, 2, 102000, &first);
        assert_true(second.streams[0].rate == 20);
        assert_true(second.streams[1].rate == 10); /* it is new */
        assert_true(second.rate == 50);
        assert_true(second.users[0].rate == 30);
        /* Later rates are smoothed, so that rows do not jump. */
        third = take(1100, after, 2, 103000, &second);
        assert_true(third.streams[0].rate == 10);
        assert_true(third.rate == 0);
        snapshot_deinit(&first);
        snapshot_deinit(&second);
        snapshot_deinit(&third);
}

/* The daemon may be another one, whose numbers and counts begin anew. */
static void rates_are_never_negative(void **state)
{
        const struct stream_made before[] = { { 1, 10000, 500, "running", "", "" } };
        const struct stream_made after[] = { { 1, 1000, 3, "running", "", "" } };
        struct snapshot none = { 0 }, first, second;

        (void)state;
        first = take(1000, before, 1, 100000, &none);
        second = take(3, after, 1, 101000, &first);
        assert_true(second.streams[0].rate == 3);
        assert_true(second.rate == 0);
        snapshot_deinit(&first);
        snapshot_deinit(&second);
}

static void streams_are_sorted_in_both_directions(void **state)
{
        const struct stream_made streams[] = { { 1, 1000, 50, "running", "", "" },
                                               { 2, 9000, 90, "running", "", "" },
                                               { 3, 4000, 10, "running", "", "" } };
        struct snapshot none = { 0 }, snapshot = take(0, streams, 3, 1, &none);

        (void)state;
        snapshot_sort(&snapshot, TOP_BY_AGE, false);
        assert_int_equal(snapshot.streams[0].number, 2);
        assert_int_equal(snapshot.streams[2].number, 1);
        snapshot_sort(&snapshot, TOP_BY_AGE, true);
        assert_int_equal(snapshot.streams[0].number, 1);
        snapshot_sort(&snapshot, TOP_BY_TOKENS, false);
        assert_int_equal(snapshot.streams[0].number, 2);
        snapshot_sort(&snapshot, TOP_BY_RATE, false);
        assert_int_equal(snapshot.streams[0].number, 1); /* 50 a second, 10, and 2.5 */
        assert_int_equal(snapshot.streams[2].number, 3);
        snapshot_sort(&snapshot, TOP_BY_USER, false); /* the same one, so the oldest first */
        assert_int_equal(snapshot.streams[0].number, 2);
        snapshot_deinit(&snapshot);
}

static void a_reply_that_is_no_json_is_an_error(void **state)
{
        struct snapshot none = { 0 }, made;
        char why[SNAPSHOT_WHY_BYTES];

        (void)state;
        assert_int_equal(snapshot_make("{", "{}", 1, &none, &made, why), -EINVAL);
        assert_non_null(strstr(why, "cannot read the status"));
        assert_int_equal(snapshot_make("{}", "[", 1, &none, &made, why), -EINVAL);
        assert_non_null(strstr(why, "cannot read the list"));
        /* An older daemon may leave out everything. */
        assert_int_equal(snapshot_make("{}", "{}", 1, &none, &made, why), 0);
        assert_int_equal(made.stream_count, 0);
        snapshot_deinit(&made);
}

/* ---- frames ---- */

/* The frame of a snapshot, NUL-ended; the caller frees it. */
static char *drawn(const struct snapshot *snapshot, struct frame frame)
{
        struct view view = { .snapshot = snapshot };

        view_remember(&view);
        view_draw(&view, &frame);
        assert_int_equal(frame.result, 0);
        assert_int_equal(bytes_add(&frame.text, "", 1), 0);
        return frame.text.at;
}

static void expect(const char *text, const char *words)
{
        assert_non_null(text);
        if (!strstr(text, words))
                fail_msg("\"%s\" is not in:\n%s", words, text);
}

static void a_frame_says_how_much_of_a_prompt_is_read(void **state)
{
        const struct stream_made streams[] = {
                { 1, 9000, 0, "prefill", "",
                  ",\"prompt\":2000,\"prompt_done\":900,\"prompt_found\":128" },
                { 2, 8000, 3, "running", "", ",\"prompt\":7,\"prompt_done\":7" },
                { 3, 7000, 0, "waiting", "blocks", "" },
        };
        struct snapshot none = { 0 }, snapshot = take(0, streams, 3, 1, &none);
        struct bytes json = { 0 };
        char *wide = drawn(&snapshot, frame_plain(140));
        char *narrow = drawn(&snapshot, frame_plain(80));

        (void)state;
        expect(wide, "interactive prefill     45%      -       0    128     9s");
        expect(wide, "interactive running    100%    0.4       3      -     8s");
        expect(wide, "interactive waiting       -      -       0      -     7s        9 needs 12 "
                     "blocks, 9 free\n");
        expect(narrow, "inter. prefill     45%      -       0    128     9s\n");
        expect(narrow, "     7s blocks\n");
        expect(narrow, "alice@400000 [###.......] 25% of pool, 10% cached, 2/8 slots, 1 wait");
        assert_int_equal(report_write(&snapshot, &json), 0);
        assert_int_equal(bytes_add(&json, "", 1), 0);
        expect(json.at, "\"number\":\"1\"");
        expect(json.at, "\"prompt\":2000,\"prompt_done\":900,\"cached\":128");
        expect(json.at, "\"prompt\":null,\"prompt_done\":null,\"cached\":null");
        expect(json.at, "\"why\":\"needs 12 blocks, 9 free\"");
        expect(json.at, "\"first_token\":{\"p50_s\":0.5,");
        free(wide);
        free(narrow);
        bytes_deinit(&json);
        snapshot_deinit(&snapshot);
}

/* Removes the sequences that the frame itself writes: ESC [ ... and a letter. */
static void remove_sequences(char *text)
{
        char *to = text;

        while (*text) {
                if (text[0] == '\x1b' && text[1] == '[') {
                        text += 2;
                        while (*text && (*text < '@' || *text > '~'))
                                text++;
                        text += *text != '\0';
                        *to++ = '\x01'; /* so that none comes together out of the rest */
                } else {
                        *to++ = *text++;
                }
        }
        *to = '\0';
}

static void no_name_controls_the_terminal(void **state)
{
        static const char name[] = "\\u001b[2J\\u009b5n\\u202e\\u0007\\n\\u540d";
        const struct stream_made streams[] = { { 1, 9000, 0, "prefill", "\\u001b[H", "" } };
        char *status = made_status(1, LATENCY, name, name), *list = made_list(streams, 1, name);
        struct snapshot none = { 0 }, snapshot;
        char why[SNAPSHOT_WHY_BYTES], *text;
        size_t length;

        (void)state;
        assert_int_equal(snapshot_make(status, list, 1, &none, &snapshot, why), 0);
        for (unsigned columns = 1; columns < 200; columns += 7) {
                text = drawn(&snapshot, frame_screen(24, columns, true));
                assert_null(strchr(text, '\n'));
                assert_null(strstr(text, "\x1b[2J"));
                remove_sequences(text);
                for (size_t at = 0; text[at]; at += length) {
                        int32_t point = utf8_next(text + at, strlen(text + at), &length);

                        assert_true(point >= 0);
                        assert_true(point == 1 || cell_is_safe(point));
                }
                free(text);
        }
        free(status);
        free(list);
        snapshot_deinit(&snapshot);
}

/* A screen has as many lines as it has, and none is longer than it is wide. */
static void a_frame_covers_the_screen_and_no_more(void **state)
{
        struct stream_made streams[30];
        struct snapshot none = { 0 }, snapshot;

        (void)state;
        for (unsigned i = 0; i < 30; i++)
                streams[i] = (struct stream_made){ i + 1, 1000 * i, i, "waiting", "blocks", "" };
        snapshot = take(0, streams, 30, 1, &none);
        for (unsigned rows = 1; rows <= 60; rows++) {
                for (unsigned columns = 1; columns <= 220; columns += 13) {
                        char *text = drawn(&snapshot, frame_screen(rows, columns, false));
                        char last[16];
                        unsigned cells = 0;

                        snprintf(last, sizeof(last), "\x1b[%u;1H", rows);
                        expect(text, last);
                        snprintf(last, sizeof(last), "\x1b[%u;1H", rows + 1);
                        assert_null(strstr(text, last));
                        remove_sequences(text);
                        for (const char *at = text; *at; at++)
                                cells += *at != '\x01';
                        assert_true(cells <= rows * columns);
                        free(text);
                }
        }
        snapshot_deinit(&snapshot);
}

static void an_ordinary_user_is_told_that_it_sees_less(void **state)
{
        char *status = made_status(1, "", "tiny", "alice"), *list = made_list(NULL, 0, ""), *text;
        struct snapshot none = { 0 }, snapshot;
        char why[SNAPSHOT_WHY_BYTES];

        (void)state;
        assert_int_equal(snapshot_make(status, list, 1, &none, &snapshot, why), 0);
        text = drawn(&snapshot, frame_plain(100));
        expect(text, "only root and the user of the daemon see times, and all streams\n");
        expect(text, "tokens/s 0.0 of your streams\n");
        free(text);
        free(status);
        free(list);
        snapshot_deinit(&snapshot);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(sequences_are_keys_and_others_are_dropped),
                cmocka_unit_test(a_sequence_may_come_byte_by_byte),
                cmocka_unit_test(a_sequence_without_an_end_does_not_stop_the_keys),
                cmocka_unit_test(text_is_cut_by_cells_and_made_safe),
                cmocka_unit_test(rates_are_those_between_two_looks),
                cmocka_unit_test(rates_are_never_negative),
                cmocka_unit_test(streams_are_sorted_in_both_directions),
                cmocka_unit_test(a_reply_that_is_no_json_is_an_error),
                cmocka_unit_test(a_frame_says_how_much_of_a_prompt_is_read),
                cmocka_unit_test(no_name_controls_the_terminal),
                cmocka_unit_test(a_frame_covers_the_screen_and_no_more),
                cmocka_unit_test(an_ordinary_user_is_told_that_it_sees_less),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
