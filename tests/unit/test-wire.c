/* Wire: requests that arrive, frames, the scan, replies, and protocol.md against the code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <msgpack.h>

#include "tests/unit/wire-rig.h"

/* ---- decoded requests ---- */

static void missing_fields_have_their_defaults(void **state)
{
        struct wire_request request;
        struct body body;

        (void)state;
        begin_without(&body, WIRE_GENERATE, WIRE_FIELD_N, 0);
        expect_taken(&body, &request);
        assert_int_equal(request.op, WIRE_GENERATE);
        assert_int_equal(request.id, 77);
        assert_int_equal(request.given[0], 1u << WIRE_F_OP | 1u << WIRE_F_ID | 1u << WIRE_F_PROMPT);
        assert_true(request.xtc_least == 0.1f && request.temperature_exponent == 1);
        assert_true(request.mirostat_tau == 0 && request.mirostat_eta == 0.1f);
        assert_false(wire_has(&request, WIRE_F_TEMPERATURE));
        assert_int_equal(request.top_k, 0);
        assert_int_equal(request.max_tokens, 0);
        assert_int_equal(request.stop_count, 0);
        assert_int_equal(request.stop_token_count, 0);
        assert_false(request.ignore_eos);
        assert_false(request.control_text);
        assert_false(request.progress);
        assert_false(request.parts);
        assert_null(request.memory);
}

static void decodes_every_field_unchanged(void **state)
{
        struct wire_problem problem;
        struct wire_request request;
        const uint8_t *bytes;
        struct body body;
        size_t count;

        (void)state;
        put_everything(&body);
        bytes = body_bytes(&body, &count);
        assert_int_equal(wire_decode(bytes, count, &request, &problem), 0);
        assert_int_equal(request.id, UINT32_MAX);
        assert_int_equal(request.model.count, 4);
        assert_memory_equal(request.model.bytes, "tiny", 4);
        assert_int_equal(request.token_count, 3);
        assert_int_equal(request.tokens[0], 1);
        assert_int_equal(request.tokens[1], 300);
        assert_int_equal(request.tokens[2], 70000);
        assert_int_equal(request.max_tokens, 16);
        assert_true(request.temperature == 0.75f && request.top_p == 0.5f &&
                    request.min_p == 0.25f);
        assert_int_equal(request.top_k, 40);
        assert_true(request.n_sigma == 1.5f && request.typical == 0.875f);
        assert_true(request.xtc_chance == 0.5f && request.xtc_least == 0.125f);
        assert_true(request.temperature_range == 0.25f && request.temperature_exponent == 2);
        assert_int_equal(request.order, WIRE_TEMPERATURE_LAST);
        assert_true(request.seed == UINT64_MAX);
        assert_int_equal(request.stop_count, 2);
        assert_memory_equal(request.stop[0].bytes, "\n\n", 2);
        assert_memory_equal(request.stop[1].bytes, "END", 3);
        assert_int_equal(request.stop_token_count, 2);
        assert_int_equal(request.stop_tokens[1], 2);
        assert_true(request.ignore_eos);
        assert_true(request.control_text);
        assert_true(request.progress);
        assert_int_equal(request.prompt_logprobs, 3);
        assert_true(request.parts);
        assert_int_equal(request.reasoning_max, 100);
        assert_int_equal(request.reasoning_end.count, 11);
        assert_memory_equal(request.reasoning_end.bytes, "Time is up.", 11);
        assert_int_equal(request.prediction.count, 8);
        assert_memory_equal(request.prediction.bytes, "The end.", 8);
        assert_int_equal(request.draft_tokens, 5);
        wire_release(&request);
        wire_release(&request); /* a second time is nothing */

        /* Cut anywhere it is no frame, and nothing is read past its end. */
        for (size_t cut = 0; cut < count; cut++) {
                uint8_t *part = malloc(cut);

                if (cut)
                        memcpy(part, bytes, cut);
                assert_false(wire_scan(part, cut));
                assert_int_equal(wire_decode(part, cut, &request, &problem), WIRE_E_REFUSED);
                assert_int_equal(problem.code, SMV_BAD_FRAME);
                assert_true(problem.fatal);
                free(part);
        }
        buffer_deinit(&body.buffer);
}

static void accepts_a_single_stop_string_without_an_array(void **state)
{
        struct wire_request request;
        struct body body;

        (void)state;
        wire_put_text(begin_value(&body, wire_row(WIRE_F_STOP)), "END");
        expect_taken(&body, &request);
        assert_int_equal(request.stop_count, 1);
        assert_int_equal(request.stop[0].count, 3);
        put_length(begin_value(&body, wire_row(WIRE_F_STOP)), SMV_STOP_BYTES_MAX + 1);
        expect_refused(&body, SMV_BAD_VALUE, "stop");
}

static void error_messages_have_numbers_but_never_client_text(void **state)
{
        struct wire_request request;
        struct wire_problem problem;
        struct body body;

        (void)state;
        wire_put_uint(begin_value(&body, wire_row(WIRE_F_TOP_K)), 2000);
        judge(&body, &request, &problem);
        assert_string_equal(problem.message, "top_k is 2000; it may be from 0 to 1024");
        put_int(begin_value(&body, wire_row(WIRE_F_SEED)), -3);
        judge(&body, &request, &problem);
        assert_string_equal(problem.message,
                            "seed is -3; it may be from 0 to 18446744073709551615");
        wire_put_float(begin_value(&body, wire_row(WIRE_F_TOP_P)), 0);
        judge(&body, &request, &problem);
        assert_string_equal(problem.message, "top_p is 0; it may be from 0 (not included) to 1");
        wire_put_text(begin_value(&body, wire_row(WIRE_F_TEMPERATURE)), "secret");
        judge(&body, &request, &problem);
        assert_string_equal(problem.message, "temperature is a text; it must be a number");
        wire_put_text(begin_value(&body, wire_row(WIRE_F_TRANSPORT)), "secret");
        judge(&body, &request, &problem);
        assert_string_equal(problem.message, "transport must be one of socket, ring, auto");
        body_begin(&body, 2);
        wire_put_text(&body.writer, "id");
        wire_put_uint(&body.writer, 77);
        wire_put_text(&body.writer, "op");
        wire_put_text(&body.writer, "secret");
        judge(&body, &request, &problem);
        assert_string_equal(problem.message, "op must be one of hello, generate, cancel, tokenize, "
                                             "detokenize, status, template, open, append, "
                                             "truncate, fork, close, pin, attach, detach, "
                                             "drop, publish, revoke, list, end, pieces, pool");
}

/* ---- frames and the scan ---- */

static void recognises_whole_partial_and_too_long_frames(void **state)
{
        static const uint8_t bytes[] = { 3, 0, 0, 0, 1, 2, 3, 9 };
        struct wire_problem problem;
        const uint8_t *body = NULL;
        size_t need = 0;

        (void)state;
        for (size_t have = 0; have < 7; have++) {
                assert_int_equal(wire_frame(bytes, have, 3, &need, &body, &problem),
                                 WIRE_E_PARTIAL);
                assert_int_equal(need, have < 4 ? 4 : 7);
                assert_null(body);
        }
        assert_int_equal(wire_frame(bytes, 8, 3, &need, &body, &problem), 0);
        assert_int_equal(need, 7);
        assert_ptr_equal(body, bytes + 4);

        assert_int_equal(wire_frame(bytes, 4, 2, &need, &body, &problem), WIRE_E_REFUSED);
        assert_int_equal(problem.code, SMV_BAD_FRAME);
        assert_true(problem.fatal);
        assert_int_equal(wire_frame((const uint8_t[]){ 255, 255, 255, 255 }, 4, SMV_FRAME_BYTES_MAX,
                                    &need, &body, &problem),
                         WIRE_E_REFUSED);
        assert_non_null(strstr(problem.message, "4294967295"));

        assert_int_equal(wire_frame((const uint8_t[4]){ 0 }, 4, 3, &need, &body, &problem), 0);
        assert_int_equal(need, 4); /* a doorbell */
}

#define SCAN(...)                                                                                  \
        wire_scan((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

static void scan_accepts_exactly_one_map(void **state)
{
        (void)state;
        assert_true(SCAN(0x80));
        assert_true(SCAN(0xde, 0, 0));
        assert_true(SCAN(0xdf, 0, 0, 0, 0));
        assert_true(SCAN(0x81, 0xa1, 'a', 0xc0));
        assert_false(wire_scan(NULL, 0));
        assert_false(SCAN(0x90));       /* an array */
        assert_false(SCAN(0xc0));       /* nil */
        assert_false(SCAN(0x80, 0x80)); /* two maps */
        assert_false(SCAN(0x81, 0xa1, 'a'));
        assert_false(SCAN(0x81, 0xa1, 'a', 0xc1));
        assert_false(SCAN(0x81, 0xa1, 'a', 0xd4, 0, 0));    /* fixext 1 */
        assert_false(SCAN(0x81, 0xa1, 'a', 0xc7, 1, 0, 0)); /* ext 8 */
        assert_false(SCAN(0x81, 0xa1, 'a', 0xdd, 255, 255, 255, 255, 0));
        assert_false(SCAN(0x81, 0xa1, 'a', 0xdf, 255, 255, 255, 255, 0));
        assert_false(SCAN(0x81, 0xa1, 'a', 0xdb, 255, 255, 255, 255, 0));
        assert_false(SCAN(0xdf, 0, 0, 0, 1, 0));
}

/* {"a": [[[ ... ]]]}, `depth` containers in all. */
static bool scan_nested(uint32_t depth)
{
        uint8_t bytes[100] = { 0x81, 0xa1, 'a' };

        memset(bytes + 3, 0x91, depth - 2);
        bytes[3 + depth - 2] = 0x90;
        return wire_scan(bytes, 3 + depth - 1);
}

static void scan_limits_depth_and_number_of_keys(void **state)
{
        uint8_t bytes[400];

        (void)state;
        assert_true(scan_nested(SMV_NESTING_MAX));
        assert_false(scan_nested(SMV_NESTING_MAX + 1));
        assert_false(scan_nested(90));
        for (uint32_t keys = SMV_KEYS_MAX; keys <= SMV_KEYS_MAX + 1; keys++) {
                bytes[0] = 0xde;
                bytes[1] = 0;
                bytes[2] = (uint8_t)keys;
                memset(bytes + 3, 0xc0, 2 * keys);
                assert_int_equal(wire_scan(bytes, 3 + 2 * keys), keys == SMV_KEYS_MAX);
        }
}

static void scanning_a_deep_nest_uses_no_stack(void **state)
{
        size_t count = 8u << 20;
        uint8_t *bytes = malloc(count);

        (void)state;
        memset(bytes, 0x91, count);
        bytes[0] = 0x81;
        bytes[1] = 0xc0;
        assert_false(wire_scan(bytes, count));
        memset(bytes, 0x81, count);
        assert_false(wire_scan(bytes, count));
        free(bytes);
}

static void reports_the_id_of_a_malformed_frame(void **state)
{
        static const uint8_t after[] = { 0x82, 0xa2, 'i', 'd', 0xcd, 1, 44, 0xa1, 'x', 0xc1 };
        static const uint8_t before[] = { 0x82, 0xa1, 'x', 0xc1, 0xa2, 'i', 'd', 5 };
        struct wire_request request;
        struct wire_problem problem;

        (void)state;
        assert_int_equal(wire_decode(after, sizeof(after), &request, &problem), WIRE_E_REFUSED);
        assert_int_equal(problem.id, 300);
        assert_true(problem.fatal);
        assert_int_equal(wire_decode(before, sizeof(before), &request, &problem), WIRE_E_REFUSED);
        assert_int_equal(problem.id, 0);
        assert_true(problem.fatal);
}

/* ---- writing ---- */

static void removes_a_frame_that_does_not_fit_the_buffer(void **state)
{
        struct wire_problem problem = { 0 };
        struct buffer buffer;
        size_t whole;

        (void)state;
        wire_refuse(&problem, SMV_QUOTA, 9, "prompt", "%d is over", 5);
        buffer_init(&buffer, 4096);
        assert_int_equal(wire_error(&buffer, &problem), 0);
        whole = buffer_count(&buffer);
        buffer_deinit(&buffer);

        for (size_t max = 0; max <= whole + 3; max++) {
                buffer_init(&buffer, max);
                if (max >= 3)
                        assert_int_equal(buffer_append(&buffer, "abc", 3), 0);
                assert_int_equal(wire_error(&buffer, &problem),
                                 max == whole + 3 ? 0 : BUFFER_E_FULL);
                assert_int_equal(buffer_count(&buffer), max == whole + 3 ? whole + 3
                                                        : max >= 3       ? 3
                                                                         : 0);
                buffer_deinit(&buffer);
        }
}

/* Read with msgpack-c, as a client would. */
static void an_error_reply_has_id_error_code_message_and_field(void **state)
{
        static const char *const keys[] = { "id", "error", "code", "message", "field" };
        struct wire_problem problem;
        msgpack_unpacked unpacked;
        struct buffer buffer;
        msgpack_object_map map;

        (void)state;
        buffer_init(&buffer, 4096);
        assert_int_equal(wire_refuse(&problem, SMV_BAD_VALUE, 9, "top_k", "top_k is %d", 2000),
                         WIRE_E_REFUSED);
        assert_int_equal(wire_error(&buffer, &problem), 0);
        assert_int_equal(buffer.bytes[0], buffer_count(&buffer) - 4);
        assert_true(wire_scan(buffer.bytes + 4, buffer_count(&buffer) - 4));

        msgpack_unpacked_init(&unpacked);
        assert_int_equal(msgpack_unpack_next(&unpacked, (char *)buffer.bytes + 4,
                                             buffer_count(&buffer) - 4, NULL),
                         MSGPACK_UNPACK_SUCCESS);
        map = unpacked.data.via.map;
        assert_int_equal(map.size, 5);
        for (uint32_t i = 0; i < 5; i++)
                assert_memory_equal(map.ptr[i].key.via.str.ptr, keys[i], strlen(keys[i]));
        assert_int_equal(map.ptr[0].val.via.u64, 9);
        assert_memory_equal(map.ptr[1].val.via.str.ptr, "bad_value", 9);
        assert_int_equal(map.ptr[2].val.via.u64, SMV_BAD_VALUE);
        assert_memory_equal(map.ptr[3].val.via.str.ptr, "top_k is 2000", 13);
        assert_memory_equal(map.ptr[4].val.via.str.ptr, "top_k", 5);
        msgpack_unpacked_destroy(&unpacked);
        buffer_deinit(&buffer);
}

/* ---- docs/reference/protocol.md ---- */

static char *read_docs(void)
{
        const char *here = strstr(__FILE__, "tests/unit/");
        const char *root = getenv("SAMOVAR_ROOT");
        static char text[1u << 17];
        char path[4096];
        FILE *file;

        assert_non_null(here);
        if (root)
                snprintf(path, sizeof(path), "%s/docs/reference/protocol.md", root);
        else
                snprintf(path, sizeof(path), "%.*sdocs/reference/protocol.md",
                         (int)(here - __FILE__), __FILE__);
        file = fopen(path, "r");
        if (!file)
                fail_msg("%s: cannot be read", path);
        text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
        fclose(file);
        return text;
}

/* The bytes of a line "> 05 00 ..."; 0 at its end. */
static size_t read_hex(const char *line, uint8_t *ret_bytes, size_t max)
{
        size_t count = 0;
        unsigned byte;
        int used;

        while (sscanf(line, " %2x%n", &byte, &used) == 1 && count < max) {
                ret_bytes[count++] = (uint8_t)byte;
                line += used;
                if (*line == '\n' || !*line)
                        break;
        }
        return count;
}

/* Lines that begin with "> " or "< " and two hex digits are frames: requests are
 * taken, replies are well-formed, and there is one for every operation. */
static void examples_in_the_protocol_page_are_valid(void **state)
{
        uint32_t ops = 0, refused = 0, replies = 0;
        char *docs = read_docs();

        (void)state;
        for (char *line = docs; line; line = strchr(line, '\n')) {
                struct wire_request request;
                struct wire_problem problem;
                const uint8_t *body;
                uint8_t bytes[512];
                size_t count, need;
                int r;

                line += *line == '\n';
                if ((strncmp(line, "> ", 2) && strncmp(line, "< ", 2)) ||
                    strspn(line + 2, "0123456789abcdef") != 2)
                        continue;
                count = read_hex(line + 2, bytes, sizeof(bytes));
                if (count == 4)
                        continue;
                assert_int_equal(wire_frame(bytes, count, 512, &need, &body, &problem), 0);
                assert_int_equal(need, count);
                assert_true(wire_scan(body, count - 4));
                if (*line == '<') {
                        replies++;
                        continue;
                }
                r = wire_decode(body, count - 4, &request, &problem);
                if (r) {
                        struct buffer reply;
                        char hex[2048] = "< ";

                        buffer_init(&reply, sizeof(bytes));
                        assert_int_equal(wire_error(&reply, &problem), 0);
                        for (size_t i = 0; i < buffer_count(&reply); i++)
                                snprintf(hex + 2 + 3 * i, 4, "%02x ", reply.bytes[i]);
                        hex[strlen(hex) - 1] = '\n';
                        assert_non_null(strstr(line, hex)); /* the very reply stands below */
                        buffer_deinit(&reply);
                        refused++;
                        continue;
                }
                ops |= 1u << request.op;
                wire_release(&request);
        }
        assert_int_equal(ops, (1u << WIRE_OP_N) - 1);
        assert_int_equal(refused, 1);
        assert_true(replies > 5);
}

/* Each field has its row in a table of the documentation.  The errors are in errors.md, which
 * contrib/dev/reference makes from the code. */
static void documentation_names_every_field(void **state)
{
        const struct wire_row *row;
        char *docs = read_docs();

        (void)state;
        for (uint32_t i = 0; (row = wire_row(i)); i++) {
                char cell[64];

                snprintf(cell, sizeof(cell), "| `%s` | %s |", row->name, row->type);
                if (!strstr(docs, cell))
                        fail_msg("docs/reference/protocol.md has no row %s", cell);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(missing_fields_have_their_defaults),
                cmocka_unit_test(decodes_every_field_unchanged),
                cmocka_unit_test(accepts_a_single_stop_string_without_an_array),
                cmocka_unit_test(error_messages_have_numbers_but_never_client_text),
                cmocka_unit_test(recognises_whole_partial_and_too_long_frames),
                cmocka_unit_test(scan_accepts_exactly_one_map),
                cmocka_unit_test(scan_limits_depth_and_number_of_keys),
                cmocka_unit_test(scanning_a_deep_nest_uses_no_stack),
                cmocka_unit_test(reports_the_id_of_a_malformed_frame),
                cmocka_unit_test(removes_a_frame_that_does_not_fit_the_buffer),
                cmocka_unit_test(an_error_reply_has_id_error_code_message_and_field),
                cmocka_unit_test(examples_in_the_protocol_page_are_valid),
                cmocka_unit_test(documentation_names_every_field),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
