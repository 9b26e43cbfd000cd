/*
 * The space of records is paid for in advance.  Whatever text comes, in whatever tokens, a token of
 * a stream with parts takes no more of the ring than its request says, nor does its END.  A log of
 * the whole stream takes no more than resumable streams pay.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/request.h"
#include "daemon/engine/publish.h"
#include "daemon/model/served.h"
#include "daemon/text/parts.h"
#include "tests/scale.h"

#define RING  (64u << 10)
#define WORDS (sizeof(words) / sizeof(*words))

static uint64_t seed = 3;

static uint32_t random_below(uint32_t n)
{
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        return (uint32_t)(seed >> 33) % n;
}

/* Tokens of the test's vocabulary: some make a call, some are as long as they may be. */
static char blanks[129], breaks[129], letters[129];
static const char *const words[] = {
        "<tool_call>",
        "</tool_call>",
        "<think>",
        "</think>",
        "{\"name\": \"f\", \"arguments\": {",
        "{\"arguments\": {\"a\": \"",
        "\", \"name\": \"g\"}",
        "\"}, \"name\": \"g\"}",
        "\"a\": \"",
        "\"}}",
        "}",
        "{",
        "<",
        "\n",
        "x",
        "\"",
        "<tool_call>{\"name\": \"f\"}</tool_call>",
        "<tool_call>{\"name\": \"f\"}<tool_call>{\"name\": \"g\"}<tool_call>{\"name\": \"h\"}",
        "<tool_call>x<tool_call>y<tool_call>z<tool_call>",
        "\xe2\x82\xac\xe2\x82\xac",
        "\xe2",
        "\x82",
        "\x01\x02\x03\x04\x05\x06\x07\x08\x09",
        blanks,
        breaks,
        letters,
};

struct rig {
        struct tokenizer *tokenizer;
        struct dialect dialect;
        struct served served;
        struct publish *publish;
        struct channel *channel;
        struct mailbox *waker;
        struct request request;
};

static void open_words(struct rig *rig)
{
        static char bytes[256];
        struct entry entries[256 + WORDS];
        struct vocabulary vocabulary = { .kind = VOCABULARY_BYTE_LEVEL,
                                         .bos = VOCABULARY_NONE,
                                         .eos = VOCABULARY_NONE,
                                         .unknown = VOCABULARY_NONE,
                                         .entry_count = 256 + WORDS,
                                         .entries = entries };
        char why[256] = "";

        memset(blanks, ' ', 128);
        memset(breaks, '\n', 128);
        memset(letters, 'a', 128);
        for (unsigned i = 0; i < 256; i++) {
                bytes[i] = (char)i;
                entries[i] = (struct entry){ .bytes = &bytes[i], .count = 1 };
        }
        for (size_t i = 0; i < WORDS; i++)
                entries[256 + i] =
                        (struct entry){ .bytes = words[i], .count = (uint32_t)strlen(words[i]) };
        if (tokenizer_open(&vocabulary, 256 + WORDS, &rig->tokenizer, why, sizeof(why)))
                fail_msg("%s", why);
}

static void open_rig(struct rig *rig, const char *stop)
{
        struct publish_conf conf = { .requests_max = 1, .channels = 1, .dialect = &rig->dialect };
        struct request *request = &rig->request;
        uint16_t stop_bytes = (uint16_t)strlen(stop);
        size_t bytes;

        *rig = (struct rig){ 0 };
        open_words(rig);
        dialect_open(&(struct dialect_conf){ .tokenizer = rig->tokenizer,
                                             .templates = { "<tool_call><think>" } },
                     &rig->dialect);
        rig->served = (struct served){ .tokenizer = rig->tokenizer, .dialect = &rig->dialect };
        assert_int_equal(mailbox_new(8, -1, &rig->waker), 0);
        conf.piece_max = tokenizer_piece_max(rig->tokenizer);
        conf.waker = rig->waker;
        assert_int_equal(publish_new(&conf, &rig->publish), 0);
        assert_int_equal(channel_new(0, RING, &rig->channel), 0);

        *request = (struct request){ .model = &rig->served,
                                     .channel = rig->channel,
                                     .prompt_count = 1,
                                     .max_tokens = 1,
                                     .parts = true,
                                     .parts_calls = true };
        if (stop_bytes) {
                request->stops[request->stop_count] = stop;
                request->stop_bytes[request->stop_count++] = stop_bytes;
        }
        request->record_bytes_max = publish_record_bytes_max(conf.piece_max, stop_bytes, 0);
        request->end_bytes_max = publish_end_bytes_max(stop_bytes);
        bytes = publish_parts_bytes_max(&rig->dialect, stop_bytes, &request->held_bytes_max);
        request->record_bytes_max += bytes;
        request->end_bytes_max += bytes;
}

static void close_rig(struct rig *rig)
{
        publish_free(rig->publish);
        channel_free(rig->channel, false);
        mailbox_free(rig->waker);
        tokenizer_close(rig->tokenizer);
}

/* Reads all records: none is so long that a small ring would have no space for it. */
static uint64_t read_ring(struct rig *rig)
{
        const struct smv_record *record;
        uint64_t bytes = 0;
        int r;

        publish_flush(rig->publish);
        while (!(r = ring_next(&rig->channel->reader, &record))) {
                assert_true(record->size <= SMV_RING_BYTES_MIN / 64);
                bytes += (record->size + 7u) & ~7u;
        }
        assert_int_equal(r, RING_E_EMPTY);
        ring_release(&rig->channel->reader);
        return bytes;
}

static void make_stream(struct rig *rig, uint32_t tokens, uint64_t *most)
{
        const struct request *request = &rig->request;
        uint64_t log = 0, bytes;
        uint32_t favourite = random_below(WORDS);

        publish_begin(rig->publish, request, false);
        for (uint32_t i = 0; i < tokens; i++) {
                uint32_t token = 256 + (random_below(2) ? favourite : random_below(WORDS));

                publish_token(rig->publish, request, token, NULL, 1 + i, SCHED_CONTINUE);
                bytes = read_ring(rig);
                assert_true(bytes <= request->record_bytes_max);
                *most = bytes > *most ? bytes : *most;
                log += bytes;
        }
        assert_int_equal(publish_end(rig->publish, request, SMV_END_LENGTH, SMV_OK, 0), 0);
        bytes = read_ring(rig);
        assert_true(bytes <= request->end_bytes_max);
        log += bytes;
        assert_true(log <= tokens * (request->record_bytes_max - request->held_bytes_max) +
                                   request->end_bytes_max);
}

static void records_take_no_more_than_was_paid_for(void **state)
{
        static const char *const stops[] = { "", "STOP", "{\"arguments\": {\"a\": \"STOP" };

        (void)state;
        for (size_t i = 0; i < sizeof(stops) / sizeof(*stops); i++) {
                uint64_t most = 0;
                struct rig rig;

                open_rig(&rig, stops[i]);
                for (uint32_t n = scaled(3000, 300000); n; n--)
                        make_stream(&rig, random_below(60), &most);
                printf("# at most %zu of %zu bytes for a token\n", (size_t)most,
                       rig.request.record_bytes_max);
                assert_true(most > PARTS_HELD_MAX / 2);
                close_rig(&rig);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(records_take_no_more_than_was_paid_for),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
