#include "tests/e2e/combination-live.h"

#include <errno.h>
#include <stdlib.h>

struct live_seen live_seen;

struct smv_client *live_connect(const struct daemon_fixture *fixture, enum smv_transport transport,
                                uint32_t slots)
{
        const bool ring = transport == SMV_TRANSPORT_RING;
        const struct smv_connect at = { SMV_SIZE(smv_connect), .socket = fixture->socket,
                                        .transport = transport, .ask_slots = ring ? slots : 0,
                                        .whole_rows = ring };
        struct smv_client *client;

        assert_int_equal(smv_connect(&at, &client), 0);
        return client;
}

static struct outcome *new_outcome(const struct combination *of)
{
        struct outcome *outcome = calloc(1, sizeof(*outcome));

        assert_non_null(outcome);
        /* A whole row comes with the entry of its token, even if no rows were asked for. */
        outcome->shows_rows = of->rows;
        return outcome;
}

static int code_of(struct smv_client *client, int r)
{
        struct smv_problem problem = { SMV_SIZE(smv_problem) };

        assert_int_equal(r, -EREMOTEIO);
        smv_error(client, &problem);
        return (int)problem.code;
}

/* ---- a combination in company ---- */

static void begin(struct smv_client *client, struct live *live)
{
        bool ring = smv_transport_used(client) == SMV_TRANSPORT_RING;
        struct smv_generate ask =
                ring ? combination_asking_request(&live->of, 1 + live->of.siblings, LIVE_SAMPLE)
                     : combination_request(&live->of, 1 + live->of.siblings, LIVE_SAMPLE);
        int r;

        live->streams = ask.n;
        for (uint32_t i = 0; i < live->streams; i++)
                live->siblings[i] = new_outcome(&live->of);
        ask.keep_ms = live->of.detach_at ? 60000 : 0;
        ask.priority = live->of.number % 3;
        ask.prediction = live->prediction_bytes ? live->prediction : NULL;
        ask.prediction_bytes = live->prediction_bytes;
        r = smv_generate(client, &ask, &live->first);
        live->left = r ? 0 : live->streams;
        if (!r && ask.keep_ms)
                live->resume_id = smv_resume_id(client, live->first);
        for (uint32_t i = 0; r && i < live->streams; i++)
                live->siblings[i]->refused = code_of(client, r);
}

/* It is no fault if the stream has ended just now. */
static void fork_it(struct smv_client *client, struct live *live)
{
        const struct smv_fork options = { SMV_SIZE(smv_fork), .count = 1,
                                          .sample_index = LIVE_SAMPLE };
        int r = smv_fork(client, live->first, &options, &live->fork);

        if (r) {
                assert_int_equal(code_of(client, r), SMV_NO_STREAM);
                live->fork = 0;
                return;
        }
        live->forked = new_outcome(&live->of);
        live->left++;
        live_seen.forks++;
}

static void attach_again(struct smv_client *client, struct live *live)
{
        live->detached = true;
        assert_int_equal(smv_detach(client, live->first), 0);
        assert_int_equal(smv_attach(client, live->resume_id, live->sequence + 1, &live->first), 0);
        live_seen.attached++;
}

static void look(struct smv_client *client, struct live *live)
{
        const struct outcome *first = live->siblings[0];

        if (first->end.reason)
                return;
        if (live->of.fork_at && first->count >= live->of.fork_at && !live->forked)
                fork_it(client, live);
        if (live->of.detach_at && first->count >= live->of.detach_at && !live->detached)
                attach_again(client, live);
}

/* True if the event is of a stream of this combination. */
static bool hear(struct smv_client *client, struct live *live, const struct smv_event *event)
{
        struct outcome *outcome = NULL;

        if (!live->left)
                return false;
        if (live->fork && event->stream == live->fork)
                outcome = live->forked;
        else if (event->stream - live->first < live->streams)
                outcome = live->siblings[event->stream - live->first];
        if (!outcome)
                return false;
        outcome_add(outcome, event);
        live->is_asking = live->is_asking || event->kind == SMV_EVENT_ASK;
        if (event->kind == SMV_EVENT_END) {
                live->left--;
                live_seen.questions += event->asked;
                live_seen.no_token += event->code == SMV_NO_TOKEN;
                live_seen.preempted += event->preemptions;
                live_seen.calls += event->calls;
                live_seen.drafted += event->drafted;
                live_seen.right += event->drafts_right;
                live_seen.predicted += event->predicted;
                live_seen.predictions_right += event->predictions_right;
        }
        if (outcome == live->siblings[0]) {
                live->sequence = event->sequence;
                look(client, live);
        }
        return true;
}

/* Answers one of the open questions, if there is one. */
static bool answer_one(struct smv_client *client, struct live *lives, uint32_t count)
{
        for (uint32_t i = 0; i < count; i++) {
                if (!lives[i].is_asking)
                        continue;
                lives[i].is_asking = false;
                assert_int_equal(combination_answer(&lives[i].of, client, lives[i].first), 0);
                return true;
        }
        return false;
}

/* Questions wait until nothing else can be read, so some of them wait for long. */
static void next_event(struct smv_client *client, struct live *lives, uint32_t count,
                       struct smv_event *ret_event)
{
        int r;

        while (!(r = smv_next(client, ret_event, 0)))
                if (!answer_one(client, lives, count)) {
                        r = smv_next(client, ret_event, TIMEOUT_MS);
                        break;
                }
        assert_int_equal(r, 1);
}

void live_run(struct smv_client *client, struct live *lives, uint32_t count)
{
        struct smv_event event = { SMV_SIZE(smv_event) };
        uint32_t left = 0;

        for (uint32_t i = 0; i < count; i++)
                begin(client, &lives[i]);
        do {
                uint32_t i = 0;

                left = 0;
                for (uint32_t j = 0; j < count; j++)
                        left += lives[j].left;
                if (!left)
                        break;
                next_event(client, lives, count, &event);
                while (i < count && !hear(client, &lives[i], &event))
                        i++;
                assert_true(i < count);
        } while (left);
        for (uint32_t i = 0; i < count; i++)
                if (lives[i].resume_id)
                        assert_int_equal(smv_drop(client, lives[i].resume_id), 0);
}

void live_forget(struct live *live)
{
        for (uint32_t i = 0; i < live->streams; i++)
                free(live->siblings[i]);
        free(live->forked);
        *live = (struct live){ 0 };
}

/* ---- alone ---- */

struct outcome *live_alone(struct smv_client *client, const struct combination *of, uint32_t sample)
{
        struct live live = { .of = *of };
        struct smv_generate ask = combination_request(of, 1, sample);
        struct outcome *outcome = new_outcome(of);
        struct smv_event event = { SMV_SIZE(smv_event) };
        int r = smv_generate(client, &ask, &live.first);

        if (r)
                outcome->refused = code_of(client, r);
        while (!r && !outcome->end.reason) {
                assert_int_equal(smv_next(client, &event, TIMEOUT_MS), 1);
                outcome_add(outcome, &event);
        }
        return outcome;
}

/* ---- judging ---- */

bool live_is_same(struct outcome *const wholes[COMBINATION_N], const struct live *live, char *why,
                  size_t bytes)
{
        for (uint32_t i = 0; i < live->streams; i++)
                if (!outcome_same(wholes[i], live->siblings[i], false, why, bytes))
                        return false;
        /* The parent may end while its fork is on its way. */
        if (!live->forked || live->forked->end.code == SMV_NO_STREAM)
                return true;
        return outcome_same(wholes[0], live->forked, true, why, bytes);
}
