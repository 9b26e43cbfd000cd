/*
 * Sends a novel in pieces to a daemon and back: text to ids to text, byte for byte, with widely
 * used tokenizers.
 *
 * SAMOVAR_DATA says where they are; without it there is nothing to test.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/e2e/raw-client.h"

#define PIECE_BYTES 40000u
#define PIPELINED   4u /* pieces in flight */

static char *novel;
static size_t novel_bytes;

static const char *data(const char *name)
{
        static char path[1024];

        snprintf(path, sizeof(path), "%s/%s", getenv("SAMOVAR_DATA"), name);
        return path;
}

static int set_up(void **state)
{
        FILE *in = fopen(data("corpora/war-and-peace.txt"), "rb");
        size_t room = 8u << 20;

        (void)state;
        novel = malloc(room);
        assert_true(in && novel);
        novel_bytes = fread(novel, 1, room, in);
        assert_true(feof(in) && novel_bytes > 1000000);
        fclose(in);
        return 0;
}

static int tear_down(void **state)
{
        (void)state;
        free(novel);
        return 0;
}

/* A model whose vocabulary is large enough for all of them. */
static void make_model(const struct daemon_fixture *fixture)
{
        static char path[128];
        struct run_result ran;

        snprintf(path, sizeof(path), "%s/large.gguf", fixture->directory);
        ran = RUN(fixture, NULL, env_path("TOY_MODEL_MAKER"), path, "--vocab", "152000", "--layers",
                  "1", "--width", "16", "--heads", "1", "--kv-heads", "1", "--head-dim", "16",
                  "--ffn", "16", "--context", "64", "--tied");
        assert_int_equal(ran.status, 0);
        run_result_free(&ran);
        setenv("TOY_MODEL", path, 1);
}

/* Returns where a character ends, so that the piece is valid text. */
static size_t piece_end(size_t from, uint32_t *seed)
{
        size_t to;

        *seed = *seed * 1664525u + 1013904223u;
        to = from + 1 + (*seed >> 8) % PIECE_BYTES;
        if (to >= novel_bytes)
                return novel_bytes;
        while (((uint8_t)novel[to] & 0xc0) == 0x80)
                to++;
        return to;
}

static uint32_t *ids_of(const struct reply *reply, size_t *ret_count)
{
        const msgpack_object *tokens = reply_at(reply, "tokens");
        uint32_t *ids;

        assert_true(tokens && tokens->type == MSGPACK_OBJECT_ARRAY);
        ids = malloc((tokens->via.array.size + 1) * sizeof(*ids));
        assert_non_null(ids);
        for (uint32_t i = 0; i < tokens->via.array.size; i++)
                ids[i] = (uint32_t)tokens->via.array.ptr[i].via.u64;
        *ret_count = tokens->via.array.size;
        return ids;
}

static void check_round_trip(struct raw_client *client, struct reply *reply, const char *text,
                             size_t bytes)
{
        const msgpack_object *back;
        size_t count;
        uint32_t *ids;

        assert_true(reply->ok);
        ids = ids_of(reply, &count);
        assert_true(count > 0 && count <= bytes + 1);
        reply = raw_client_call(client, "op=s tokens=I", "detokenize", ids, count);
        free(ids);
        back = reply_at(reply, "text");
        assert_true(back && back->type == MSGPACK_OBJECT_BIN);
        assert_int_equal(back->via.bin.size, bytes);
        assert_memory_equal(back->via.bin.ptr, text, bytes);
}

static void check_round_trips(struct daemon_fixture *fixture, const char *tokenizer)
{
        struct {
                size_t from, to;
        } pieces[PIPELINED];
        uint32_t seed = 1, count = 0;
        struct raw_client *client;
        size_t at = 0;

        make_model(fixture);
        START_DAEMON(fixture, "--tokenizer", data(tokenizer));
        client = raw_client_greet(fixture);
        while (at < novel_bytes) {
                uint32_t sent = 0;

                for (; sent < PIPELINED && at < novel_bytes; sent++) {
                        pieces[sent].from = at;
                        pieces[sent].to = at = piece_end(at, &seed);
                        raw_client_send_frame(client, "op=s id=u text=t", "tokenize", 1000 + sent,
                                              novel + pieces[sent].from,
                                              pieces[sent].to - pieces[sent].from);
                }
                for (uint32_t i = 0; i < sent; i++, count++)
                        check_round_trip(client, raw_client_await_reply(client, 1000 + i),
                                         novel + pieces[i].from, pieces[i].to - pieces[i].from);
        }
        print_message("# %u pieces\n", count);
        raw_client_close(client);
        fixture_stop(fixture);
}

static void a_novel_survives_a_round_trip_with_gpt2(void **state)
{
        check_round_trips(*state, "tokenizers/ggml-vocab/ggml-vocab-gpt-2.gguf");
}

static void a_novel_survives_a_round_trip_with_llama_2(void **state)
{
        check_round_trips(*state, "tokenizers/ggml-vocab/ggml-vocab-llama-spm.gguf");
}

static void a_novel_survives_a_round_trip_with_llama_3(void **state)
{
        check_round_trips(*state, "tokenizers/llama3.2/encoder.json=llama3");
}

static void a_novel_survives_a_round_trip_with_qwen_2(void **state)
{
        check_round_trips(*state, "tokenizers/qwen2.5/vocab.json=qwen2");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(a_novel_survives_a_round_trip_with_gpt2),
                DAEMON_TEST(a_novel_survives_a_round_trip_with_llama_2),
                DAEMON_TEST(a_novel_survives_a_round_trip_with_llama_3),
                DAEMON_TEST(a_novel_survives_a_round_trip_with_qwen_2),
        };

        if (!getenv("SAMOVAR_DATA")) {
                puts("skipped: SAMOVAR_DATA does not say where the novel is");
                return 77;
        }
        require_env_paths((const char *const[]){ "SAMOVARD", "TOY_MODEL_MAKER", NULL });
        return cmocka_run_group_tests(tests, set_up, tear_down);
}
