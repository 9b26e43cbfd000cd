#include "daemon/edge/mail.h"

#include <assert.h>
#include <string.h>

#include "daemon/edge/channels.h"
#include "daemon/edge/connection.h"
#include "daemon/edge/encode-job.h"
#include "daemon/edge/op-pool.h"
#include "daemon/edge/resumable.h"
#include "daemon/edge/streams.h"
#include "base/log.h"

#define MAILS 64u

/*
 * The order matters: lower the flag, take RETIRED, then settle.  While the flag was up, the engine
 * may have left out a WAKE, which was for a RETIRED that we have to see.
 */
static void on_wake(struct edge *edge, struct channel *channel)
{
        channel_lower(&channel->draining);
        streams_catch_up(edge);
        if (!resumables_hear(edge->resumables, channel) && channel->owner)
                connection_mark(channel->owner);
}

static void on_failed(struct edge *edge, const struct mail *mail)
{
        log_error("engine_failed error=%s why=%s", strerror(-mail->result),
                  mail->why ? mail->why : "unknown");
        edge->result = mail->result;
        if (mail->why)
                edge->failure = mail->why;
        edge->drains_pending = 2;
}

static void on_mail(struct edge *edge, const struct mail *mail)
{
        switch (mail->kind) {
        case MAIL_JOB_DONE:
                encode_job_come_back(edge, mail->what);
                break;
        case MAIL_WAKE:
                on_wake(edge, mail->what);
                break;
        case MAIL_CHANNEL_GONE:
                channels_gone(edge, mail->what);
                break;
        case MAIL_POOL_MAPPED:
                pool_view_mapped(edge->pool_view);
                break;
        case MAIL_FAILED:
                on_failed(edge, mail);
                break;
        case MAIL_STOPPED:
                loop_stop(edge->loop);
                break;
        default:
                assert(!"mail that does not come here");
        }
}

/* The engine's mail to us is taken first: it was sent before this mail. */
static uint32_t take_from(struct edge *edge, struct mailbox *mailbox)
{
        struct mail mails[MAILS];
        uint32_t count = mailbox_take(mailbox, mails, MAILS, 0);

        streams_catch_up(edge);
        for (uint32_t i = 0; i < count; i++)
                on_mail(edge, &mails[i]);
        return count;
}

void mail_take(struct edge *edge)
{
        while (take_from(edge, edge->conf.from_waker) +
               take_from(edge, edge->conf.from_text_worker))
                ;
}
