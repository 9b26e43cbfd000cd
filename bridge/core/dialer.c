#include "bridge/core/dialer.h"

#include <errno.h>
#include <samovar/client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define DIAL_MS    2000       /* how long a dial may take */
#define RING_BYTES (1u << 20) /* for the parts of many answers at a time */

struct dialer {
        struct worker *worker;
        bool closing; /* `done` is not called any more */
};

static struct dial *dial_of(struct work *work)
{
        return (struct dial *)(void *)((char *)work - offsetof(struct dial, work));
}

/* A private daemon answers when it has read what its model is, however long that takes. */
static void dial_now(struct work *work)
{
        struct dial *dial = dial_of(work);
        struct smv_connect options = {
                SMV_SIZE(smv_connect),
                .socket = dial->socket,
                .use_fd = dial->use_fd,
                .fd = dial->fd,
                .timeout_ms = dial->use_fd ? -1 : DIAL_MS,
                .message = dial->why,
                .message_bytes = sizeof(dial->why),
                .principal = dial->principal,
                .ring_bytes = RING_BYTES,
        };
        int r;

        if (dial->use_fd && dial->fd < 0) {
                snprintf(dial->why, sizeof(dial->why), "the private samovard has ended");
                return;
        }
        r = smv_connect(&options, &dial->client);
        dial->fd = -1;
        if (r && !*dial->why)
                snprintf(dial->why, sizeof(dial->why), "%s", strerror(-r));
}

static void take(struct work *work)
{
        struct dial *dial = dial_of(work);
        struct smv_client *client = dial->client;

        dial->client = NULL;
        if (dial->dialer->closing)
                smv_close(client);
        else
                dial->done(dial, client, dial->why);
}

int dialer_new(struct loop *loop, struct dialer **ret_dialer)
{
        struct dialer *dialer = calloc(1, sizeof(*dialer));
        int r;

        if (!dialer)
                return error_raise(-ENOMEM);
        r = worker_new(loop, "dialer", &dialer->worker);
        if (r) {
                free(dialer);
                return error_pass(r);
        }
        *ret_dialer = dialer;
        return 0;
}

void dialer_dial(struct dialer *dialer, struct dial *dial)
{
        *dial->why = '\0';
        dial->dialer = dialer;
        dial->work = (struct work){ .run = dial_now, .done = take };
        worker_do(dialer->worker, &dial->work);
}

struct dialer *dialer_free(struct dialer *dialer)
{
        if (!dialer)
                return NULL;
        dialer->closing = true;
        worker_free(dialer->worker, false);
        free(dialer);
        return NULL;
}
