#include "daemon/engine/questions.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/error.h"
#include "daemon/draw/asking.h"
#include "daemon/ipc/channel.h"

struct questions {
        uint32_t count, max;
        struct request *open[]; /* oldest first */
};

int questions_new(uint32_t requests_max, struct questions **ret_questions)
{
        struct questions *questions =
                calloc(1, sizeof(*questions) + requests_max * sizeof(struct request *));

        if (!questions)
                return error_raise(-ENOMEM);
        questions->max = requests_max;
        *ret_questions = questions;
        return 0;
}

struct questions *questions_free(struct questions *questions)
{
        free(questions);
        return NULL;
}

void questions_ask(struct questions *questions, struct request *request, uint32_t position,
                   uint64_t now_ns)
{
        assert(questions->count < questions->max);
        asking_open(request->asking, position, now_ns);
        questions->open[questions->count++] = request;
}

static void drop(struct questions *questions, uint32_t at)
{
        questions->count--;
        for (; at < questions->count; at++)
                questions->open[at] = questions->open[at + 1];
}

static bool is_over(const struct request *request)
{
        return request->state == REQUEST_ENDING || request->state == REQUEST_RETIRED;
}

bool questions_next(struct questions *questions, uint64_t now_ns, struct heard *ret_heard)
{
        uint32_t at = 0;

        while (at < questions->count) {
                struct request *request = questions->open[at];
                struct asking *asking = request->asking;
                struct heard heard = { .request = request };

                if (is_over(request)) {
                        asking->open = false;
                        drop(questions, at);
                        continue;
                }
                if (!asking_hear(asking, &heard.token)) {
                        heard.is_late = now_ns >= asking->until_ns;
                        if (!heard.is_late) {
                                at++;
                                continue;
                        }
                        asking_give_up(asking);
                }
                drop(questions, at);
                *ret_heard = heard;
                return true;
        }
        return false;
}

void questions_forget(struct questions *questions, const struct request *request)
{
        uint32_t at = 0;

        if (!request->asking || !request->asking->open)
                return;
        while (questions->open[at] != request)
                at++;
        request->asking->open = false;
        drop(questions, at);
}

uint64_t questions_until(const struct questions *questions)
{
        uint64_t until = UINT64_MAX;

        for (uint32_t i = 0; i < questions->count; i++)
                if (questions->open[i]->asking->until_ns < until)
                        until = questions->open[i]->asking->until_ns;
        return until;
}

/* A client that does not see the engine sleep has answered before: both sides have a full fence. */
bool questions_await(const struct questions *questions)
{
        for (uint32_t i = 0; i < questions->count; i++)
                channel_ask(questions->open[i]->channel);
        atomic_thread_fence(memory_order_seq_cst);
        for (uint32_t i = 0; i < questions->count; i++)
                if (asking_is_answered(questions->open[i]->asking))
                        return true;
        return false;
}
