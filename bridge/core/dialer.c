#include "bridge/core/dialer.h"

#include <errno.h>
#include <pthread.h>
#include <samovar/client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sys.h"

#define DIAL_MS    2000       /* how long a dial may take */
#define RING_BYTES (1u << 20) /* for the parts of many answers at a time */

struct dialer {
        pthread_t thread;
        pthread_mutex_t lock;
        pthread_cond_t changed;
        struct list_head waiting, finished; /* of struct dial; under the lock */
        bool stopping;
        int news; /* an eventfd: something is in `finished` */
        struct loop_watch *watch;
};

static void dial_now(struct dial *dial)
{
        struct smv_connect options = {
                SMV_SIZE(smv_connect),
                .socket = dial->socket,
                .timeout_ms = DIAL_MS,
                .message = dial->why,
                .message_bytes = sizeof(dial->why),
                .principal = dial->principal,
                .ring_bytes = RING_BYTES,
        };
        int r = smv_connect(&options, &dial->client);

        if (r && !*dial->why)
                snprintf(dial->why, sizeof(dial->why), "%s", strerror(-r));
}

static void *run(void *arg)
{
        const uint64_t one = 1;
        struct dialer *dialer = arg;
        struct list_head *link;

        pthread_mutex_lock(&dialer->lock);
        while (!dialer->stopping) {
                link = list_pop_front(&dialer->waiting);
                if (!link) {
                        pthread_cond_wait(&dialer->changed, &dialer->lock);
                        continue;
                }
                pthread_mutex_unlock(&dialer->lock);
                dial_now(LIST_ENTRY(link, struct dial, of_dialer));
                pthread_mutex_lock(&dialer->lock);
                list_push_back(&dialer->finished, link);
                sys_write(dialer->news, &one, sizeof(one));
        }
        pthread_mutex_unlock(&dialer->lock);
        return NULL;
}

static void take_news(void *arg, unsigned mask)
{
        struct dialer *dialer = arg;
        struct list_head *link;
        uint64_t count;

        (void)mask;
        sys_read(dialer->news, &count, sizeof(count));
        for (;;) {
                struct smv_client *client;
                struct dial *dial;

                pthread_mutex_lock(&dialer->lock);
                link = list_pop_front(&dialer->finished);
                pthread_mutex_unlock(&dialer->lock);
                if (!link)
                        return;
                dial = LIST_ENTRY(link, struct dial, of_dialer);
                client = dial->client;
                dial->client = NULL;
                dial->done(dial, client, dial->why);
        }
}

int dialer_new(struct loop *loop, struct dialer **ret_dialer)
{
        struct dialer *dialer = calloc(1, sizeof(*dialer));
        int r;

        if (!dialer)
                return error_raise(-ENOMEM);
        list_init(&dialer->waiting);
        list_init(&dialer->finished);
        pthread_mutex_init(&dialer->lock, NULL);
        pthread_cond_init(&dialer->changed, NULL);
        dialer->news = sys_eventfd();
        r = dialer->news < 0 ? dialer->news
                             : loop_watch_new(loop, dialer->news, LOOP_READ, take_news, dialer,
                                              &dialer->watch);
        if (!r)
                r = sys_thread(&dialer->thread, "dialer", run, dialer);
        if (r) {
                dialer->watch = loop_watch_free(dialer->watch);
                sys_close(dialer->news);
                free(dialer);
                return error_pass(r);
        }
        *ret_dialer = dialer;
        return 0;
}

void dialer_dial(struct dialer *dialer, struct dial *dial)
{
        *dial->why = '\0';
        pthread_mutex_lock(&dialer->lock);
        list_push_back(&dialer->waiting, &dial->of_dialer);
        pthread_cond_signal(&dialer->changed);
        pthread_mutex_unlock(&dialer->lock);
}

struct dialer *dialer_free(struct dialer *dialer)
{
        struct list_head *link;

        if (!dialer)
                return NULL;
        pthread_mutex_lock(&dialer->lock);
        dialer->stopping = true;
        pthread_cond_signal(&dialer->changed);
        pthread_mutex_unlock(&dialer->lock);
        pthread_join(dialer->thread, NULL);
        while ((link = list_pop_front(&dialer->finished)))
                smv_close(LIST_ENTRY(link, struct dial, of_dialer)->client);
        loop_watch_free(dialer->watch);
        sys_close(dialer->news);
        free(dialer);
        return NULL;
}
