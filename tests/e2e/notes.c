#include "tests/e2e/notes.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

struct notes *notes_new(void)
{
        void *at = mmap(NULL, sizeof(struct notes), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        assert_ptr_not_equal(at, MAP_FAILED);
        return at;
}

struct notes *notes_free(struct notes *notes)
{
        munmap(notes, sizeof(*notes));
        return NULL;
}

/* No assert, because this runs in children, too. */
void notes_take(struct notes *notes, const struct smv_event *event)
{
        struct note note = { .token_count = (uint32_t)event->token_count,
                             .text_bytes = (uint32_t)event->text_bytes };

        if (event->sequence >= RECORDS_MAX || event->sequence > notes->count ||
            event->token_count > 4 || event->text_bytes > TEXT_MAX) {
                notes->wrong = true;
                return;
        }
        for (size_t i = 0; i < event->token_count; i++)
                note.tokens[i] = event->tokens[i];
        if (event->text_bytes)
                memcpy(note.text, event->text, event->text_bytes);
        if (event->sequence < notes->count &&
            memcmp(&notes->at[event->sequence], &note, sizeof(note)))
                notes->wrong = true;
        notes->at[event->sequence] = note;
        if (event->sequence == notes->count)
                notes->count++;
        /* set last: a client that is killed before this comes back */
        if (event->kind == SMV_EVENT_END) {
                notes->end = *event;
                notes->ended = true;
        }
}

void notes_assert_same(const struct notes *a, const struct notes *b)
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

struct smv_client *kept_meet(const struct house *house, enum smv_doorbell doorbell)
{
        struct smv_connect at = { SMV_SIZE(smv_connect), .socket = house->socket,
                                  .transport = talk_transport() == TALK_SOCKET
                                                       ? SMV_TRANSPORT_SOCKET
                                                       : SMV_TRANSPORT_RING,
                                  .doorbell = doorbell };
        struct smv_client *client = NULL;

        return smv_connect(&at, &client) ? NULL : client;
}

struct smv_client *kept_connect(const struct house *house)
{
        struct smv_client *client = kept_meet(house, SMV_DOORBELL_KICK);

        assert_non_null(client);
        return client;
}

struct smv_generate kept_draw(void)
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

void kept_refused(struct smv_client *client, int r, enum smv_code code, const char *said)
{
        struct smv_problem problem = { SMV_SIZE(smv_problem) };

        assert_int_equal(r, -EREMOTEIO);
        smv_error(client, &problem);
        if (problem.code != code || !strstr(problem.message, said))
                fail_msg("%u: %s", problem.code, problem.message);
}

void kept_drop(struct smv_client *client, uint64_t kept)
{
        assert_int_equal(smv_drop(client, kept), 0);
        kept_refused(client, smv_drop(client, kept), SMV_NO_KEPT, "there is no kept stream");
}

/* Reads at most `most` events; true: the END was one of them. */
bool notes_read(struct smv_client *client, struct notes *notes, uint32_t most)
{
        struct smv_event event = { SMV_SIZE(smv_event) };

        while (most--) {
                if (smv_next(client, &event, 60000) != 1)
                        fail_msg("nothing came");
                notes_take(notes, &event);
                if (event.kind == SMV_EVENT_END)
                        return true;
        }
        return false;
}

/* Reads a whole stream at once; the stream is not kept. */
void notes_read_whole(struct smv_client *client, const struct smv_generate *ask,
                      struct notes *notes)
{
        struct smv_generate plain = *ask;
        uint32_t stream;

        plain.keep_ms = 0;
        assert_int_equal(smv_generate(client, &plain, &stream), 0);
        assert_int_equal(smv_kept(client, stream), 0);
        assert_true(notes_read(client, notes, UINT32_MAX));
}

uint64_t kept_begin(struct smv_client *client, const struct smv_generate *ask)
{
        uint32_t stream;

        assert_int_equal(smv_generate(client, ask, &stream), 0);
        assert_true(smv_kept(client, stream) != 0);
        return smv_kept(client, stream);
}

void kept_wait_status(const struct house *house, const char *path, uint64_t value)
{
        for (uint64_t end = now_ms() + PATIENCE_MS; house_status(house, path) != value;
             sleep_ms(10))
                assert_true(now_ms() < end);
}
