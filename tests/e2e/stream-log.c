#include "tests/e2e/stream-log.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

struct stream_log *stream_log_new(void)
{
        void *at = mmap(NULL, sizeof(struct stream_log), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        assert_ptr_not_equal(at, MAP_FAILED);
        return at;
}

struct stream_log *stream_log_free(struct stream_log *log)
{
        munmap(log, sizeof(*log));
        return NULL;
}

/* No assert, because this runs in children, too. */
void stream_log_add(struct stream_log *log, const struct smv_event *event)
{
        struct stream_log_entry log_entry = { .token_count = (uint32_t)event->token_count,
                                              .text_bytes = (uint32_t)event->text_bytes };

        if (event->sequence >= RECORDS_MAX || event->sequence > log->count ||
            event->token_count > 4 || event->text_bytes > TEXT_MAX) {
                log->wrong = true;
                return;
        }
        for (size_t i = 0; i < event->token_count; i++)
                log_entry.tokens[i] = event->tokens[i];
        if (event->text_bytes)
                memcpy(log_entry.text, event->text, event->text_bytes);
        if (event->sequence < log->count &&
            memcmp(&log->at[event->sequence], &log_entry, sizeof(log_entry)))
                log->wrong = true;
        log->at[event->sequence] = log_entry;
        if (event->sequence == log->count)
                log->count++;
        /* set last: a client that is killed before this comes back */
        if (event->kind == SMV_EVENT_END) {
                log->end = *event;
                log->ended = true;
        }
}

void assert_same_log(const struct stream_log *a, const struct stream_log *b)
{
        assert_false(a->wrong || b->wrong);
        assert_true(a->ended && b->ended);
        assert_int_equal(a->count, b->count);
        for (uint32_t i = 0; i < a->count; i++)
                assert_memory_equal(&a->at[i], &b->at[i], sizeof(a->at[i]));
        assert_int_equal(a->end.reason, b->end.reason);
        assert_int_equal(a->end.code, b->end.code);
        assert_int_equal(a->end.prompt_tokens, b->end.prompt_tokens);
        assert_int_equal(a->end.output_tokens, b->end.output_tokens);
}

struct smv_client *resumable_try_connect(const struct daemon_fixture *fixture,
                                         enum smv_doorbell doorbell)
{
        struct smv_connect at = { SMV_SIZE(smv_connect), .socket = fixture->socket,
                                  .transport = raw_client_transport() == RAW_CLIENT_SOCKET
                                                       ? SMV_TRANSPORT_SOCKET
                                                       : SMV_TRANSPORT_RING,
                                  .doorbell = doorbell };
        struct smv_client *client = NULL;

        return smv_connect(&at, &client) ? NULL : client;
}

struct smv_client *resumable_connect(const struct daemon_fixture *fixture)
{
        struct smv_client *client = resumable_try_connect(fixture, SMV_DOORBELL_KICK);

        assert_non_null(client);
        return client;
}

struct smv_generate resumable_draw(void)
{
        static const char *const prompts[] = { "Tea", "Once upon a time", "Why", "A samovar is" };
        static const char *const stops[] = { "qx" };

        return (struct smv_generate){ SMV_SIZE(smv_generate),
                                      .prompt = prompts[random_below(4)],
                                      .max_tokens = 1 + random_below(RECORDS_MAX - 2) /
                                                                (1 + random_below(6)),
                                      .temperature = (float)random_below(3) / 2,
                                      .set = SMV_SET_TEMPERATURE | SMV_SET_SEED,
                                      .seed = random_below(1000),
                                      .stops = stops,
                                      .stop_count = random_below(2),
                                      .keep_ms = KEEP_MS };
}

void assert_client_refused(struct smv_client *client, int r, enum smv_code code, const char *said)
{
        struct smv_problem problem = { SMV_SIZE(smv_problem) };

        assert_int_equal(r, -EREMOTEIO);
        smv_error(client, &problem);
        if (problem.code != code || !strstr(problem.message, said))
                fail_msg("%u: %s", problem.code, problem.message);
}

void resumable_stream_drop(struct smv_client *client, uint64_t resume_id)
{
        assert_int_equal(smv_drop(client, resume_id), 0);
        assert_client_refused(client, smv_drop(client, resume_id), SMV_NO_RESUMABLE,
                              "there is no resumable stream");
}

/* Reads at most `most` events; true: the END was one of them. */
bool stream_log_read(struct smv_client *client, struct stream_log *log, uint32_t most)
{
        struct smv_event event = { SMV_SIZE(smv_event) };

        while (most--) {
                if (smv_next(client, &event, 60000) != 1)
                        fail_msg("nothing came");
                stream_log_add(log, &event);
                if (event.kind == SMV_EVENT_END)
                        return true;
        }
        return false;
}

/* Reads a whole stream at once; the stream is not resumable. */
void stream_log_read_whole(struct smv_client *client, const struct smv_generate *ask,
                           struct stream_log *log)
{
        struct smv_generate plain = *ask;
        uint32_t stream;

        plain.keep_ms = 0;
        assert_int_equal(smv_generate(client, &plain, &stream), 0);
        assert_int_equal(smv_resume_id(client, stream), 0);
        assert_true(stream_log_read(client, log, UINT32_MAX));
}

uint64_t resumable_stream_begin(struct smv_client *client, const struct smv_generate *ask)
{
        uint32_t stream;

        assert_int_equal(smv_generate(client, ask, &stream), 0);
        assert_true(smv_resume_id(client, stream) != 0);
        return smv_resume_id(client, stream);
}
