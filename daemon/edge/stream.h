/*
 * A stream: a request as the loop knows it, from its admission until its memory is freed.
 *
 * Core and engine know only its first member (core/request.h).  The rest belongs to the loop.
 *
 * CANCEL, and the SUBMIT of its forks, may cross RETIRED (mailbox.h).  Then RETIRED comes again for
 * each crossing mail, and the stream is kept until the last one.  If the loop drains the ring of
 * its peer, the stream is also kept until the loop has read its END.  Its states are
 *
 *     cancel_sent  retired  crossing
 *          -          -                alive
 *         yes         -                ending
 *                    yes       n       crossed: n more RETIRED come
 *                    yes       0       over: no other thread has it
 *
 * If a client asks for many streams, the first one has the others as its siblings.  All functions
 * on streams that are not submitted yet include the siblings.  One mail submits them all.
 */
#ifndef DAEMON_EDGE_STREAM_H
#define DAEMON_EDGE_STREAM_H

#include "daemon/edge/context.h"

/* All streams that came of one generate: see fork.h. */
struct family {
        uint32_t members;
        uint64_t next_sample_index; /* all below this are taken */
};

struct stream {
        struct request request;

        uint64_t number;   /* names it to `list` and `end`, from any connection; not 0 */
        uint64_t begun_ns; /* when it was submitted; 0: not yet */
        struct peer *peer; /* NULL once the peer is gone, or if it is resumable */
        struct list_head peer_link;
        uint64_t handle; /* number of the handle that it continues until it has retired; or 0 */
        struct constraint *constraint; /* that its request's guide follows; or NULL */
        bool reads_only;               /* it pins or publishes its prompt */
        bool makes_none;               /* max_tokens will be 0: also if it only scores its prompt */
        bool clamp;                    /* a max_tokens that does not fit is lowered */
        bool control_text;             /* goes to the engine with SUBMIT */
        uint32_t keep_ms;      /* how long its records outlive its connection; 0: not at all */
        bool is_resumable;     /* request.stream is its slot in resumable.c */
        size_t charged_bytes;  /* charged to its uid, until it is freed */
        struct family *family; /* if it has siblings or was forked; or NULL */
        uint32_t mails_sent;   /* mails about it, its own SUBMIT not counted */
        /* Set when it has retired: mails that the engine had not taken; each will be answered. */
        uint32_t crossing;
        bool unwanted; /* cancelled before it was submitted */
        bool cancel_sent;
        /* RETIRED has come.  If the loop drains the peer's ring, it has to read the END, too. */
        bool retired;
};

static inline struct stream *stream_of(struct request *request)
{
        return request ? LIST_ENTRY(request, struct stream, request) : NULL;
}

static inline struct stream *stream_sibling(const struct stream *stream)
{
        return stream_of(stream->request.sibling);
}

/* No other thread has it. */
static inline bool stream_is_over(const struct stream *stream)
{
        return stream->retired && !stream->crossing;
}

/* The stream is about to be freed. */
void stream_leave_family(struct stream *stream);

/* Asks the engine to end a stream that was submitted, with this reason and code, if it is alive. */
void stream_cancel(struct edge *edge, struct stream *stream, enum smv_reason reason,
                   enum smv_code code);

#endif
