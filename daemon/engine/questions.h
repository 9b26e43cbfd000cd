/*
 * Questions: the requests whose clients are asked for a mask or a token, and have not answered.
 *
 * The engine opens a question, and looks for answers in each of its turns.  Before it sleeps, it
 * calls channel_ask(); a client that then answers sends an empty frame, which wakes it.  A question
 * is closed by its answer, by its time, or because its request ends.  Engine thread only.
 */
#ifndef DAEMON_ENGINE_QUESTIONS_H
#define DAEMON_ENGINE_QUESTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/request.h"

struct questions;

struct heard {
        struct request *request;
        bool is_late;   /* its time is over */
        uint32_t token; /* with SMV_ASK_TOKEN, unless it is late; as the client has written it */
};

int questions_new(uint32_t requests_max, struct questions **ret_questions); /* 0 or -ENOMEM */
struct questions *questions_free(struct questions *questions);

/* Asks for the mask, or the token, of this position. */
void questions_ask(struct questions *questions, struct request *request, uint32_t position,
                   uint64_t now_ns);

/*
 * Returns the next question that was answered or timed out; false: there is none.  Drops the
 * questions of ended requests.
 */
bool questions_next(struct questions *questions, uint64_t now_ns, struct heard *ret_heard);

/* The request is to retire: it has no question any more. */
void questions_forget(struct questions *questions, const struct request *request);

/* When the time of the first is over; UINT64_MAX: none is open. */
uint64_t questions_until(const struct questions *questions);
/*
 * Before the engine sleeps: clients that answer from now on wake it.  True: an answer is there
 * already.
 */
bool questions_await(const struct questions *questions);

#endif
