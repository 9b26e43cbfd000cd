/*
 * Task: a job of a peer for the scribe, and what to do with its result.
 *
 * A task can outlive its peer: the scribe owns the job until it comes back, and with it the members
 * that the work (work.h) fills.  Apart from that, loop thread only.
 *
 * The scribe also reads a frame that would hold up the loop.  Until that frame has come back, the
 * loop does not read from its peer, so the requests of the peer keep their order.
 *
 * Messages go to the scribe twice: first to be rendered.  Then their length is known and charged,
 * and they go as a text like any other.
 */
#ifndef DAEMON_EDGE_TASK_H
#define DAEMON_EDGE_TASK_H

#include "daemon/edge/peer.h"
#include "daemon/text/chat.h"

struct peer_task {
        struct scribe_job job;
        struct peer *peer; /* NULL once it is gone */
        struct peer_task *next, *prev;
        bool reads; /* the job reads a frame; its request is not known yet */
        /* renders: the messages are not rendered yet.  tokenizes: the answer has ids. */
        bool renders, tokenizes;
        enum wire_op op;
        uint32_t id, uid;
        const struct served *served;
        struct request *request; /* generate: the request that waits for its prompt */
        /* Open, append: the handle that waits for its tokens, or NULL. */
        struct handle *handle;
        /* Bytes that are charged if there is no request. */
        uint64_t charged;
        /* The result is not wanted any more, for this reason; or OK. */
        enum smv_code called_off;

        /* Members of the work. */
        /* The body of a frame, or the part of it that the job's text points into. */
        struct buffer frame;
        struct wire_request asked;   /* out: decoded from the frame */
        struct wire_problem problem; /* out: why it was refused */
        struct wire_talk talk;       /* messages, which lie in `frame` */
        /* Out: the rendered messages; the job's text points into it then. */
        struct rendered rendered;
        struct text_part *parts; /* out: the parts of it that the template wrote */
        /* Out: a whole reply, with room in front and behind. */
        struct buffer reply;
        size_t reply_front, reply_behind, frame_max;
        size_t ids_max;          /* of a prompt; from that many on, they are only counted */
        size_t at, answer_bytes; /* out: see work_outcome in work.h */
        uint32_t bad_id;
};

/*
 * Gives the scribe the first frame of the peer's input, which has `bytes` with its length word.
 * The task takes the memory of the input.  0; or WIRE_E_REFUSED or -ENOMEM, and the frame stays in
 * the input.
 */
int task_read(struct peer *peer, size_t bytes, struct wire_problem *ret_problem);

/* 0: the request is the task's; or -ENOMEM.  Takes what it needs of `asked`. */
int task_generate(struct peer *peer, struct wire_request *asked, struct request *request);

/* 0, WIRE_E_REFUSED or -ENOMEM.  Also take what they need of `asked`. */
int task_tokenize(struct peer *peer, struct served *served, struct wire_request *asked,
                  struct wire_problem *ret_problem);
int task_detokenize(struct peer *peer, struct served *served, struct wire_request *asked,
                    struct wire_problem *ret_problem);

int task_template(struct peer *peer, struct served *served, struct wire_request *asked,
                  struct wire_problem *ret_problem);

/* Called by the work: the rendered text is not needed any longer. */
void task_drop_rendered(struct peer_task *task);

/*
 * Encodes the text, or the messages, of an open or an append; the handle waits for it.  Returns as
 * task_tokenize().
 */
int task_history(struct peer *peer, struct handle *handle, struct wire_request *asked,
                 struct wire_problem *ret_problem);

struct peer_task *task_find(struct peer *peer, uint32_t id);
void task_call_off(struct peer_task *task, enum smv_code code);
/* The client does not want this stream any more.  If the request has several, the others go on. */
void task_cancel(struct peer_task *task, uint32_t stream);

/*
 * True if a reply that the scribe made waits, and the one before it is sent.  Then
 * tasks_pass_reply() may send it.
 */
bool tasks_may_pass_reply(const struct peer *peer);
void tasks_pass_reply(struct peer *peer);

/* The peer goes: the results of its tasks will be thrown away. */
void tasks_leave(struct peer *peer);

#endif
