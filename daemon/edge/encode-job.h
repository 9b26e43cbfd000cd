/*
 * Encode job: work of a peer for the text worker, and what follows from its result.
 *
 * Text and messages are long to read, so the text worker's thread does it (encode-work.h).  A job
 * can outlive its peer.  Until it comes back, the text worker owns its text_job and the members
 * below "Members of the work".  Only the loop writes the others, and it may do so at any time: it
 * clears `peer` when the peer leaves.
 *
 * An operation makes a job, gives it what it needs, and says how it goes on: done() is called when
 * the work has succeeded and the peer is still there, and over() when the job ends in any way.
 * Messages are worked on twice: first they are rendered.  Then their length is known and charged,
 * and encode_job_again() sends the text like any other.
 *
 * The text worker also decodes a frame that would hold up the loop.  Until that frame has come
 * back, the loop does not read from its peer, so the requests of the peer keep their order.
 */
#ifndef DAEMON_EDGE_ENCODE_JOB_H
#define DAEMON_EDGE_ENCODE_JOB_H

#include "daemon/constraint/grammar.h"
#include "daemon/edge/answer-form.h"
#include "daemon/edge/stream.h"
#include "daemon/edge/wire-request.h"
#include "daemon/text/chat.h"
#include "daemon/text/worker.h"
#include "json/bytes.h"

/* Results of the work besides 0, those of wire_decode(), and negative errnos. */
enum encode_work_outcome {
        WORK_E_BAD_ID = 3, /* `bad_id` is at index `at` */
        WORK_E_LONG = 4,   /* the reply would have `answer_bytes` */
};

/* What done() may return besides 0 and failures: the text worker has the job again. */
enum encode_job_outcome { ENCODE_JOB_E_AGAIN = 100 };

struct encode_job {
        struct text_job job;
        struct peer *peer;     /* NULL once it is gone */
        struct list_head link; /* in peer->jobs, or in peer->replies */
        enum wire_op op;
        uint32_t id;
        uint64_t uid;
        const struct served *served;
        uint64_t charged; /* bytes that are charged for the job itself */

        /* 0, ENCODE_JOB_E_AGAIN, WIRE_E_REFUSED or a negative errno; the last two are replied. */
        int (*done)(struct encode_job *job, struct wire_problem *ret_problem);
        /* Takes back what the operation has lent the job; may be NULL. */
        void (*over)(struct edge *edge, struct encode_job *job);
        /* Only for a frame: gets the result of wire_decode(); called instead of done(). */
        void (*decoded)(struct peer *peer, struct wire_request *asked, int r,
                        struct wire_problem *problem);
        struct stream *stream; /* generate: the stream that waits for its prompt */
        uint64_t handle;       /* open, append: the handle that waits for its tokens */

        /* Members of the work. */
        bool tokenizes; /* template: the answer has ids */
        bool continues; /* append: the messages follow an answer in the handle's history */
        uint32_t from;  /* pieces: the first of `id_count` ids, if the job has no list of them */
        /* The body of a frame, or the part of it that the job's text points into. */
        struct buffer frame;
        struct wire_request asked;   /* out: decoded from the frame */
        struct wire_problem problem; /* out: why it was refused */
        struct wire_chat chat;       /* messages, which lie in `frame` */
        /* Generate: the form of the answer, whose texts lie in the next two. */
        struct answer_form form;
        struct buffer constraint;
        struct buffer prediction; /* generate: a text, which is encoded after the prompt */
        struct bytes calls;       /* out, of messages: a wish (call-form.h), or nothing */
        struct grammar *grammar;  /* out: compiled; its taker clears it here */
        /* Out: the rendered messages; the job's text points into it then. */
        struct rendered rendered;
        struct text_part *parts;               /* out: the parts of it that the template wrote */
        struct argument_types *argument_types; /* out: of the tools, or NULL */
        /* Out: a whole reply, with room in front and behind. */
        struct buffer reply;
        size_t reply_front, reply_behind, frame_max;
        size_t ids_max;          /* of a prompt; from that many on, they are only counted */
        size_t at, answer_bytes; /* out: see encode_work_outcome */
        uint32_t bad_id;
};

/* A job for this request: NULL if there is no memory. */
struct encode_job *encode_job_new(struct peer *peer, const struct wire_request *asked,
                                  const struct served *served, int (*work)(struct text_job *job));
/* Only for a job that was not posted; its stream and handle stay the caller's. */
void encode_job_free(struct encode_job *job);

/* Give the job its text, or its messages: 0 or -ENOMEM.  They take what they need of `asked`. */
int encode_job_take_text(struct encode_job *job, struct wire_request *asked,
                         const struct wire_text *text);
int encode_job_take_messages(struct encode_job *job, struct wire_request *asked);

/* Another text, which is no template's: all of it becomes ids. */
void encode_job_set_text(struct encode_job *job, const char *text, size_t bytes);

/* The most bytes of the ids that a text of this length may become. */
size_t encode_job_ids_bytes(const struct encode_job *job, size_t text_bytes);

/* Give the job a copy of the text of a constraint, or of a prediction: 0 or -ENOMEM. */
int encode_job_take_constraint(struct encode_job *job, const struct wire_text *text);
int encode_job_take_prediction(struct encode_job *job, const struct wire_text *text);

/* Posts a job whose stream is charged for it already. */
void encode_job_post(struct encode_job *job);
/*
 * Charges a job that has no stream for itself and `bytes`, and posts it: 0, WIRE_E_REFUSED,
 * -ENOMEM.
 */
int encode_job_pay_and_post(struct encode_job *job, uint64_t bytes,
                            struct wire_problem *ret_problem);

/*
 * Posts a job whose stream is charged for it already: for its first work, or from done() for the
 * next one.  ENCODE_JOB_E_AGAIN.
 */
int encode_job_go_on(struct encode_job *job, int (*work)(struct text_job *job),
                     int (*done)(struct encode_job *job, struct wire_problem *ret_problem));
/*
 * From done(): the messages are rendered.  Charges the text and the ids that it may become (if
 * `encodes`), and posts the job again.  ENCODE_JOB_E_AGAIN, WIRE_E_REFUSED or -ENOMEM.
 */
int encode_job_again(struct encode_job *job, bool encodes, int (*work)(struct text_job *job),
                     int (*done)(struct encode_job *job, struct wire_problem *ret_problem),
                     struct wire_problem *ret_problem);
/* From done(): gives back what the job itself is charged for. */
void encode_job_uncharge(struct encode_job *job);
/* A done() that sends the reply which the work has made. */
int encode_job_reply(struct encode_job *job, struct wire_problem *ret_problem);

/*
 * Gives the text worker the first frame of the peer's input to decode, which has `bytes` with its
 * length word; the job takes the memory of the input.  0; or WIRE_E_REFUSED or -ENOMEM, and the
 * frame stays in the input.
 */
int encode_job_decode(struct peer *peer, size_t bytes, int (*work)(struct text_job *job),
                      void (*decoded)(struct peer *peer, struct wire_request *asked, int r,
                                      struct wire_problem *problem),
                      struct wire_problem *ret_problem);

/* MAIL_JOB_DONE has come, perhaps for a peer that is gone. */
void encode_job_come_back(struct edge *edge, struct text_job *job);

/* ---- while a job is with the text worker ---- */

struct encode_job *encode_job_find(struct peer *peer, uint32_t id);
/* The client does not want this stream any more.  If the job has several, the others go on. */
void encode_job_cancel(struct encode_job *job, uint32_t stream);
/* Cancels all jobs of the peer. */
void encode_jobs_cancel(struct peer *peer, enum smv_code reason);

/*
 * True if a reply that the text worker made waits, and the one before it is sent.  Then
 * encode_jobs_pass_reply() may send it.
 */
bool encode_jobs_may_pass_reply(const struct peer *peer);
void encode_jobs_pass_reply(struct peer *peer);

/* The peer goes: the results of its jobs will be thrown away. */
void encode_jobs_leave(struct peer *peer);

/* Called by the work: the rendered text is not needed any longer. */
void encode_job_drop_rendered(struct encode_job *job);

#endif
