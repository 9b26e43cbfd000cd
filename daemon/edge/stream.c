#include "daemon/edge/stream.h"

#include <stdlib.h>

void stream_leave_family(struct stream *stream)
{
        if (stream->family && !--stream->family->members)
                free(stream->family);
        stream->family = NULL;
}

void stream_cancel(struct edge *edge, struct stream *stream, enum smv_reason reason,
                   enum smv_code code)
{
        if (stream->cancel_sent || stream->retired)
                return;
        stream->cancel_sent = true;
        stream->mails_sent++;
        mailbox_post(edge->conf.to_engine, &(struct mail){ .kind = MAIL_CANCEL,
                                                           .reason = reason,
                                                           .code = code,
                                                           .what = &stream->request });
}
