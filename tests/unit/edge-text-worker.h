/*
 * A house in which the test plays the text worker and decides when each job is done.
 *
 * It has requests of many bytes, and checks of the state after they have ended.
 */
#ifndef TESTS_UNIT_EDGE_TEXT_WORKER_H
#define TESTS_UNIT_EDGE_TEXT_WORKER_H

#include "tests/unit/edge-client-ring.h"

#define LONG_TEXT (2u << 20) /* a text with a long reply */

static inline struct text_job *take_job(struct edge_fixture *fixture)
{
        struct mail mail;

        assert_int_equal(mailbox_take(fixture->to_text_worker, &mail, 1,
                                      sys_clock_ns() + WAIT_MS * 1000000ull),
                         1);
        assert_int_equal(mail.kind, MAIL_JOB);
        return mail.what;
}

static inline void give_back(struct edge_fixture *fixture, struct text_job *job)
{
        mailbox_post(fixture->from_text_worker,
                     &(struct mail){ .kind = MAIL_JOB_DONE, .what = job });
}

/* Takes one job, runs it as the text worker does, and gives it back. */
static inline void do_job(struct edge_fixture *fixture)
{
        struct text_job *job = take_job(fixture);

        job->result = job->work(job);
        give_back(fixture, job);
}

static inline void expect_no_job(struct edge_fixture *fixture)
{
        struct mail mail;

        assert_int_equal(mailbox_take(fixture->to_text_worker, &mail, 1, 0), 0);
}

/* Waits until the loop has had enough turns to finish its pending work. */
static inline void let_loop_turn(struct client *witness)
{
        for (uint32_t i = 0; i < 3; i++)
                charge_of(witness, "requests");
}

/* A text of `count` equal letters; the caller frees it. */
static inline char *letters(size_t count)
{
        char *text = malloc(count);

        memset(text, 'x', count);
        return text;
}

static inline void ask_letters(struct client *client, const char *op, uint32_t id, size_t count)
{
        const char *field = strcmp(op, "generate") ? "text" : "prompt";
        char *text = letters(count);

        ask_text(client, op, id, field, text, count);
        free(text);
}

/*
 * Checks the reply to tokenize of letters.  It is read raw, to avoid an object for each of
 * millions of ids.
 */
static inline void expect_ids(struct client *client, uint32_t id, size_t count)
{
        struct wire_problem problem;
        struct buffer *in = &client->in;
        const uint8_t *body;
        size_t bytes;

        while (!buffer_count(in) || wire_frame(in->bytes + in->start, buffer_count(in), 64 << 20,
                                               &bytes, &body, &problem))
                assert_true(fill(client));
        assert_int_equal(wire_peek_id(body, bytes - 4), id);
        assert_true(bytes - 4 > count && bytes - 4 < count + 64);
        for (size_t i = 0; i < count; i++)
                assert_int_equal(body[bytes - 4 - count + i], 'x');
        buffer_take(in, bytes);
}

/* Nothing of this user is held any more, except for the witness itself. */
static inline void expect_nothing_held(struct edge_fixture *fixture, struct client *witness)
{
        ENGINE_UNTIL(fixture, charge_of(witness, "requests") == 0);
        assert_int_equal(charge_of(witness, "prompt_bytes"), 0);
        /* A connection counts until the engine has let its ring go. */
        ENGINE_UNTIL(fixture, charge_of(witness, "connections") == 1);
        expect_no_job(fixture);
}

#endif
