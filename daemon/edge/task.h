/*
 * Task: a peer's work for the scribe, and what is to be done with the result.
 *
 * It outlives its peer: the job is the scribe's until it comes back, and with it what
 * the work (work.h) fills.  Loop thread only, but for that.
 *
 * A frame that would hold up the loop is read by the scribe, too: until it has come
 * back its peer is not read from, so what it asks keeps its order.
 *
 * Messages go to the scribe twice: to be rendered, and when it is known how long that has
 * become and it is charged, as a text like any other.
 */
#ifndef DAEMON_EDGE_TASK_H
#define DAEMON_EDGE_TASK_H

#include "daemon/edge/peer.h"
#include "daemon/text/chat.h"

struct peer_task {
        struct scribe_job job;
        struct peer *peer; /* NULL once it is gone */
        struct peer_task *next, *prev;
        bool reads;              /* a frame; what is asked is not known yet */
        bool renders, tokenizes; /* messages are still messages; the answer has ids */
        enum wire_op op;
        uint32_t id, uid;
        const struct served *served;
        struct request *request;  /* generate: the one that waits for its prompt */
        struct handle *handle;    /* open, append: the one that waits for its tokens, or NULL */
        uint64_t charged;         /* the others, for which there is no request */
        enum smv_code called_off; /* why nobody wants it any more, or OK */

        /* The work's. */
        struct buffer frame;         /* a frame's body, or what of it the job's text points into */
        struct wire_request asked;   /* out: of the frame */
        struct wire_problem problem; /* out: or why not */
        struct wire_talk talk;       /* messages, which lie in `frame` */
        struct rendered rendered;    /* out: what they became; then the job's text is this */
        struct text_part *parts;     /* out: of it, those the template wrote */
        struct buffer reply;         /* out: whole; with room in front and behind */
        size_t reply_front, reply_behind, frame_max;
        size_t ids_max;          /* of a prompt; more are only counted */
        size_t at, answer_bytes; /* out: of an outcome of work.h */
        uint32_t bad_id;
};

/*
 * The frame that the peer's input begins with, of `bytes` with its length word, and with it the
 * memory it is in.  0, or refused: WIRE_E_REFUSED or -ENOMEM, and the frame is where it was.
 */
int task_read(struct peer *peer, size_t bytes, struct wire_problem *ret_problem);

/* 0: the request is the task's; or -ENOMEM.  What it needs of `asked`, it takes. */
int task_generate(struct peer *peer, struct wire_request *asked, struct request *request);

/* 0, WIRE_E_REFUSED or -ENOMEM.  The same. */
int task_tokenize(struct peer *peer, struct served *served, struct wire_request *asked,
                  struct wire_problem *ret_problem);
int task_detokenize(struct peer *peer, struct served *served, struct wire_request *asked,
                    struct wire_problem *ret_problem);

int task_template(struct peer *peer, struct served *served, struct wire_request *asked,
                  struct wire_problem *ret_problem);

/* For the work: what was rendered is not needed any longer. */
void task_drop_rendered(struct peer_task *task);

/* The text, or the messages, of an open or an append; the handle waits for it.  The same. */
int task_history(struct peer *peer, struct handle *handle, struct wire_request *asked,
                 struct wire_problem *ret_problem);

struct peer_task *task_find(struct peer *peer, uint32_t id);
void task_call_off(struct peer_task *task, enum smv_code code);
/* The client wants this stream of it no more: of many, the others go on. */
void task_cancel(struct peer_task *task, uint32_t stream);

/* Is there a long reply that waits, and nothing left of the one before?  Then it may go. */
bool tasks_may_pass_reply(const struct peer *peer);
void tasks_pass_reply(struct peer *peer);

/* The peer goes: its tasks come back to nobody. */
void tasks_leave(struct peer *peer);

#endif
