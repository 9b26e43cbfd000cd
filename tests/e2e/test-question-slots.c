/*
 * The slots of questions, as a client written from ring.md alone sees them, and what a client that
 * writes anything there can do: nothing to others.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/e2e/honest-client.h"
#include "tests/e2e/manual-ring.h"

#define TOKENS    40u
#define TOY_VOCAB 258u
/* 64 + 4 * ceil(258 / 32), and 64 + 4 * 258, up to multiples of 64 */
#define ANSWER_BYTES 128u
#define ROW_BYTES    1152u

#define AS_DRAWN 4294967295u

static const struct want free_want = {
        .prompt = "Tea with", .max_tokens = TOKENS, .ignore_eos = true, .temperature = 1, .seed = 5
};

/* A stream that asks: its slot, its ticket, and how many questions have an answer. */
struct asking {
        struct manual_ring *ring;
        const char *kind;
        uint32_t id, slot, ticket, prompt_tokens;
        size_t answered;
};

static struct asking begin(struct manual_ring *ring, const char *kind, bool whole_row,
                           uint32_t ask_ms, const char *late)
{
        struct raw_client *client = ring->client;
        struct asking asking = { .ring = ring, .kind = kind, .id = ++client->last_id };
        struct reply *reply;

        raw_client_send_frame(client,
                              "op=s id=u prompt=s max_tokens=u temperature=f seed=u ignore_eos=y "
                              "ask=s ask_ms=u ask_late=s whole_row=y row_top=u",
                              "generate", asking.id, "Tea with", TOKENS, 1.0, 5u, 1, kind, ask_ms,
                              late, whole_row, 3u);
        reply = raw_client_await_reply(client, asking.id);
        if (!reply->ok)
                fail_msg("%s: %s", reply->error, reply->message);
        asking.slot = (uint32_t)reply_uint(reply, "ask_slot");
        asking.ticket = (uint32_t)reply_uint(reply, "ask_ticket");
        asking.prompt_tokens = (uint32_t)reply_uint(reply, "prompt_tokens");
        return asking;
}

static uint8_t *slot_of(const struct asking *asking)
{
        return asking->ring->answers + asking->slot * (size_t)ANSWER_BYTES;
}

/* Answers a question with a token and a mask of these bytes. */
static void answer_as(const struct asking *asking, uint32_t ticket, uint32_t position,
                      uint32_t token, int bits)
{
        uint8_t *slot = slot_of(asking);
        uint64_t of = (uint64_t)ticket << 32 | position;

        memcpy(slot + 8, &token, sizeof(token));
        memset(slot + 64, bits, ANSWER_BYTES - 64);
        __atomic_store_n((uint64_t *)(void *)slot, of, __ATOMIC_RELEASE);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        if (__atomic_load_n(&asking->ring->page->state, __ATOMIC_RELAXED))
                raw_client_send(asking->ring->client, "\0\0\0\0", 4);
}

/* True if a question is open; then its position.  The reply asks for the first mask. */
static bool is_asked(const struct asking *asking, uint32_t *ret_position)
{
        const struct stream *stream = raw_client_stream(asking->ring->client, asking->id);
        bool by_reply = !strcmp(asking->kind, "mask");

        if (stream && stream->ended)
                return false;
        if (by_reply && !asking->answered) {
                *ret_position = asking->prompt_tokens;
                return true;
        }
        if (!stream || stream->ask_count + by_reply == asking->answered)
                return false;
        assert_int_equal(stream->ask_count + by_reply, asking->answered + 1);
        assert_int_equal(stream->ask.kind, by_reply ? 1 : 2);
        *ret_position = stream->ask.position;
        return true;
}

/* The row of this token is in the slot, and its entry says the same. */
static void check_row(const struct asking *asking, uint32_t position)
{
        const struct stream *stream = raw_client_stream(asking->ring->client, asking->id);
        const uint8_t *slot = asking->ring->rows + asking->slot * (size_t)ROW_BYTES;
        uint64_t of = __atomic_load_n((const uint64_t *)(const void *)slot, __ATOMIC_ACQUIRE);
        float logit, log_sum, apart;

        assert_int_equal(stream->row.is_whole, 1);
        assert_int_equal(stream->row.position, position);
        assert_true(of == ((uint64_t)asking->ticket << 32 | position));
        assert_in_range(stream->row_drawn.token, 0, TOY_VOCAB - 1);
        memcpy(&logit, slot + 64 + stream->row_drawn.token * sizeof(float), sizeof(logit));
        memcpy(&log_sum, &stream->row.log_sum, sizeof(log_sum));
        apart = logit - log_sum - stream->row_drawn.logprob;
        assert_true(apart < 1e-4f && apart > -1e-4f);
}

static bool is_over(const struct asking *asking)
{
        const struct stream *stream = raw_client_stream(asking->ring->client, asking->id);

        return stream && stream->ended;
}

static void await_news(const struct asking *asking)
{
        assert_false(asking->ring->client->hung_up);
        if (!manual_ring_read(asking->ring, 1))
                raw_client_poll(asking->ring->client, 1);
}

/* Answers all questions with this token and mask. */
static const struct stream *answer_all(struct asking *asking, uint32_t token, int bits, bool whole)
{
        uint64_t end = now_ms() + TIMEOUT_MS;
        uint32_t position;

        while (!is_over(asking)) {
                assert_true(now_ms() < end);
                if (is_asked(asking, &position)) {
                        if (whole && !strcmp(asking->kind, "token"))
                                check_row(asking, position);
                        answer_as(asking, asking->ticket, position, token, bits);
                        asking->answered++;
                }
                await_news(asking);
        }
        return raw_client_stream(asking->ring->client, asking->id);
}

static struct stream *free_stream(const struct daemon_fixture *fixture)
{
        struct raw_client *client = raw_client_greet(fixture);
        struct stream *stream = stream_copy(raw_client_complete(client, &free_want));

        raw_client_close(client);
        return stream;
}

/* END counts the questions, so it is not compared. */
static void assert_same_tokens(const struct stream *a, const struct stream *b)
{
        assert_int_equal(a->token_count, b->token_count);
        assert_memory_equal(a->tokens, b->tokens, a->token_count * sizeof(*a->tokens));
        assert_int_equal(a->text_bytes, b->text_bytes);
        assert_memory_equal(a->text, b->text, a->text_bytes);
        assert_int_equal(a->end.reason, b->end.reason);
        assert_int_equal(a->end.code, b->end.code);
}

/* ---- the page ---- */

static void a_client_that_follows_the_page_takes_part_in_draws(void **state)
{
        static const char *const kinds[] = { "mask", "token" };
        struct daemon_fixture *fixture = *state;
        struct manual_ring *ring;
        struct stream *alone;
        uint32_t last_ticket = 0;

        START_DAEMON(fixture, "--threads", "1");
        alone = free_stream(fixture);
        ring = manual_ring_open_with_slots(fixture, 2, true);
        assert_true(ring->answers_bytes >= 2 * ANSWER_BYTES && ring->rows_bytes >= 2 * ROW_BYTES);
        for (uint32_t i = 0; i < 4; i++) {
                struct asking asking = begin(ring, kinds[i % 2], i >= 2, 600000, "end");
                const struct stream *stream;

                assert_in_range(asking.slot, 0, 1);
                assert_int_not_equal(asking.ticket, last_ticket);
                last_ticket = asking.ticket;
                stream = answer_all(&asking, AS_DRAWN, 0xff, i >= 2);
                assert_same_tokens(alone, stream);
                assert_int_equal(stream->row_count, TOKENS);
                assert_int_equal(stream->ask_count, TOKENS - (i % 2 == 0));
                assert_int_equal(stream->end.asked, TOKENS);
                assert_int_equal(stream->end.late, 0);
        }
        manual_ring_close(ring);
        stream_free(alone);
        fixture_stop(fixture);
}

static void assert_sealed(int fd, int access_mode)
{
        const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

        assert_int_equal(fcntl(fd, F_GET_SEALS) & seals, seals);
        assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, access_mode);
        assert_int_equal(ftruncate(fd, 0), -1);
}

static void a_client_cannot_resize_its_slots_or_write_rows(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct manual_ring *ring;
        struct stat file;

        START_DAEMON(fixture, "--threads", "1");
        ring = manual_ring_open_with_slots(fixture, 64, true);
        assert_sealed(ring->slots[0], O_RDWR);
        assert_sealed(ring->slots[1], O_RDONLY);
        assert_ptr_equal(
                mmap(NULL, ring->rows_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring->slots[1], 0),
                MAP_FAILED);
        assert_int_equal(fstat(ring->slots[0], &file), 0);
        assert_int_equal(file.st_size, ring->answers_bytes);
        assert_int_equal(fstat(ring->slots[1], &file), 0);
        assert_int_equal(file.st_size, ring->rows_bytes);
        for (size_t i = 0; i < ring->answers_bytes; i++)
                assert_int_equal(ring->answers[i], 0);
        for (size_t i = 0; i < ring->rows_bytes; i++)
                assert_int_equal(ring->rows[i], 0);
        manual_ring_close(ring);
        fixture_stop(fixture);
}

/* The pages are freed at once, even if a process still maps them. */
static void the_slots_of_a_client_that_left_read_as_zero(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct manual_ring *ring;
        struct asking asking;
        uint64_t end;

        START_DAEMON(fixture, "--threads", "1");
        ring = manual_ring_open_with_slots(fixture, 2, true);
        asking = begin(ring, "token", true, 600000, "end");
        answer_all(&asking, AS_DRAWN, 0xff, true);
        memset(ring->answers, 0x5a, ring->answers_bytes);
        manual_ring_disconnect(ring);
        end = now_ms() + TIMEOUT_MS;
        while (blocks_of(ring->slots[0]) || blocks_of(ring->slots[1])) {
                assert_true(now_ms() < end);
                sleep_ms(5);
        }
        assert_int_equal(ring->answers[0], 0);
        assert_int_equal(ring->rows[0], 0);
        manual_ring_close(ring);
        fixture_stop(fixture);
}

/* ---- answers to other questions ---- */

/* Answers each question as if it were another one, in a way that would end the stream at once. */
static void answer_others(struct asking *asking, uint32_t tickets, uint32_t positions)
{
        uint64_t end = now_ms() + TIMEOUT_MS;
        uint32_t position;

        while (!is_over(asking)) {
                assert_true(now_ms() < end);
                if (is_asked(asking, &position)) {
                        answer_as(asking, asking->ticket + tickets, position + positions, TOY_VOCAB,
                                  0);
                        asking->answered++;
                }
                await_news(asking);
        }
}

static void answers_to_other_questions_count_for_nothing(void **state)
{
        static const char *const kinds[] = { "mask", "token" };
        /* Added to the ticket and to the position of the question. */
        static const uint32_t others[][2] = {
                { 0, 0xffffffff }, { 0, 1000 }, { 0, 0x80000000 }, { 1, 0 }, { 0xffffffff, 0 },
        };
        struct daemon_fixture *fixture = *state;
        struct manual_ring *ring;
        struct stream *alone;

        START_DAEMON(fixture, "--threads", "1");
        alone = free_stream(fixture);
        ring = manual_ring_open_with_slots(fixture, 1, false);
        for (size_t i = 0; i < 2 * sizeof(others) / sizeof(*others); i++) {
                struct asking asking = begin(ring, kinds[i % 2], false, 3, "draw");
                const struct stream *stream;

                answer_others(&asking, others[i / 2][0], others[i / 2][1]);
                stream = raw_client_stream(ring->client, asking.id);
                assert_same_tokens(alone, stream);
                assert_int_equal(stream->end.late, TOKENS);
        }
        manual_ring_close(ring);
        stream_free(alone);
        fixture_stop(fixture);
}

/* An answer that is there before its question is the answer all the same. */
static void an_answer_may_be_there_before_its_question(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct manual_ring *ring;
        struct asking asking;

        START_DAEMON(fixture, "--threads", "1");
        ring = manual_ring_open_with_slots(fixture, 1, false);
        asking = begin(ring, "token", false, 600000, "end");
        for (uint32_t i = 0; i < TOKENS; i++) {
                const struct stream *stream;
                uint64_t end = now_ms() + TIMEOUT_MS;

                answer_as(&asking, asking.ticket, asking.prompt_tokens + i, 'a' + i % 26, 0);
                while (!(stream = raw_client_stream(ring->client, asking.id)) ||
                       stream->token_count <= i) {
                        assert_true(now_ms() < end);
                        await_news(&asking);
                }
                assert_int_equal(stream->tokens[i], 'a' + i % 26);
        }
        assert_int_equal(manual_ring_await_end(ring, asking.id)->end.reason, SMV_END_LENGTH);
        manual_ring_close(ring);
        fixture_stop(fixture);
}

/* ---- the doorbell ---- */

/* The client wants to sleep until much more has come than these records. */
static void a_question_wakes_a_client_that_sleeps_for_more(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct manual_ring *ring;
        struct asking asking;

        START_DAEMON(fixture, "--threads", "1");
        ring = manual_ring_open_with_slots(fixture, 1, false);
        for (uint32_t i = 0; i < 3; i++) {
                uint64_t end = now_ms() + TIMEOUT_MS;
                size_t bells = ring->client->doorbells;

                __atomic_store_n(&ring->own->wake_position, ring->head + 60000, __ATOMIC_SEQ_CST);
                asking = begin(ring, "token", false, 600000, "end");
                while (ring->client->doorbells == bells) {
                        assert_true(now_ms() < end);
                        raw_client_poll(ring->client, 100);
                }
                __atomic_store_n(&ring->own->wake_position, SMV_WAKE_NEVER, __ATOMIC_SEQ_CST);
                manual_ring_read(ring, UINT32_MAX);
                assert_int_equal(raw_client_stream(ring->client, asking.id)->ask_count, 1);
                answer_all(&asking, TOY_VOCAB, 0, false);
        }
        manual_ring_close(ring);
        fixture_stop(fixture);
}

/* ---- a client that writes anything ---- */

/*
 * In a child: writes random bytes, and now and then what could be the answer to a question of one
 * of the 8 tickets from this one on.
 */
static void scribble(uint8_t *answers, size_t bytes, const uint32_t *ticket)
{
        uint64_t z = 88172645463325252u;

        for (;;) {
                uint64_t *word;

                z ^= z << 13;
                z ^= z >> 7;
                z ^= z << 17;
                word = (uint64_t *)(void *)answers + (z >> 8) % (bytes / 8);
                if (z & 1) {
                        __atomic_store_n(word, z, __ATOMIC_RELAXED);
                        continue;
                }
                word = (uint64_t *)(void *)(answers + (z >> 8) % 8 * ANSWER_BYTES);
                __atomic_store_n(word,
                                 (__atomic_load_n(ticket, __ATOMIC_RELAXED) + (z >> 40) % 8) << 32 |
                                         (8 + (z >> 16) % TOKENS),
                                 __ATOMIC_RELAXED);
        }
}

static uint32_t run_scribbled(struct manual_ring *ring, uint32_t count, const uint32_t *ids)
{
        uint32_t ended = 0;

        for (uint32_t i = 0; i < count; i++) {
                const struct stream *stream = manual_ring_await_end(ring, ids[i]);

                /* Its tokens are any tokens, but the stream ends as streams end. */
                assert_true(stream->end.code == SMV_OK || stream->end.code == SMV_NO_TOKEN ||
                            stream->end.code == SMV_BAD_ANSWER);
                for (size_t j = 0; j < stream->token_count; j++)
                        assert_in_range(stream->tokens[j], 0, TOY_VOCAB - 1);
                ended += stream->end.code != SMV_OK;
        }
        return ended;
}

static void random_bytes_in_the_slots_harm_only_the_streams_of_their_client(void **state)
{
        static const char *const kinds[] = { "mask", "token" };
        struct daemon_fixture *fixture = *state;
        struct honest_client honest;
        struct manual_ring *ring;
        uint32_t ids[8], bad = 0, rounds = scaled(30, 10000);
        uint32_t *ticket =
                mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        pid_t child;

        assert_true(ticket != MAP_FAILED);
        START_DAEMON(fixture, "--threads", "1", MANY_CONNECTS);
        honest = honest_client_start(fixture);
        ring = manual_ring_open_with_slots(fixture, 8, true);
        child = fork_child();
        if (!child)
                scribble(ring->answers, ring->answers_bytes, ticket);
        for (uint32_t round = 0; round < rounds; round++) {
                for (uint32_t i = 0; i < 8; i++) {
                        struct asking asking = begin(ring, kinds[i % 2], i < 4, 5, "draw");

                        ids[i] = asking.id;
                        if (!i)
                                __atomic_store_n(ticket, asking.ticket, __ATOMIC_RELAXED);
                }
                bad += run_scribbled(ring, 8, ids);
                honest_client_check(&honest);
        }
        kill_child(child);
        printf("# %u of %u streams got an answer that ended them\n", bad, 8 * rounds);
        assert_true(bad > 0);
        munmap(ticket, 4096);
        honest_client_stop(&honest);
        manual_ring_close(ring);
        fixture_stop(fixture);
}

int main(void)
{
        static const char *const needed[] = { "SAMOVARD", "TOY_MODEL", NULL };
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(a_client_that_follows_the_page_takes_part_in_draws),
                DAEMON_TEST(a_client_cannot_resize_its_slots_or_write_rows),
                DAEMON_TEST(the_slots_of_a_client_that_left_read_as_zero),
                DAEMON_TEST(answers_to_other_questions_count_for_nothing),
                DAEMON_TEST(an_answer_may_be_there_before_its_question),
                DAEMON_TEST(a_question_wakes_a_client_that_sleeps_for_more),
                DAEMON_TEST(random_bytes_in_the_slots_harm_only_the_streams_of_their_client),
        };

        require_env_paths(needed);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
