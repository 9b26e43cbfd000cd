#include "bridge/core/worker.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/sys.h"

struct worker {
        pthread_t thread;
        pthread_mutex_t lock;
        pthread_cond_t changed;
        struct list_head waiting, finished; /* of struct work; under the lock */
        bool stopping;
        int news; /* an eventfd: something is in `finished` */
        struct loop_watch *watch;
};

static void *run(void *arg)
{
        const uint64_t one = 1;
        struct worker *worker = arg;
        struct list_head *link;
        struct work *work;

        pthread_mutex_lock(&worker->lock);
        for (;;) {
                link = list_pop_front(&worker->waiting);
                if (!link && worker->stopping)
                        break;
                if (!link) {
                        pthread_cond_wait(&worker->changed, &worker->lock);
                        continue;
                }
                pthread_mutex_unlock(&worker->lock);
                work = LIST_ENTRY(link, struct work, of_worker);
                work->run(work);
                pthread_mutex_lock(&worker->lock);
                list_push_back(&worker->finished, link);
                sys_write(worker->news, &one, sizeof(one));
        }
        pthread_mutex_unlock(&worker->lock);
        return NULL;
}

static void finish(struct worker *worker)
{
        struct list_head *link;
        struct work *work;

        for (;;) {
                pthread_mutex_lock(&worker->lock);
                link = list_pop_front(&worker->finished);
                pthread_mutex_unlock(&worker->lock);
                if (!link)
                        return;
                work = LIST_ENTRY(link, struct work, of_worker);
                work->done(work);
        }
}

static void take_news(void *arg, unsigned mask)
{
        struct worker *worker = arg;
        uint64_t count;

        (void)mask;
        sys_read(worker->news, &count, sizeof(count));
        finish(worker);
}

int worker_new(struct loop *loop, const char *name, struct worker **ret_worker)
{
        struct worker *worker = calloc(1, sizeof(*worker));
        int r;

        if (!worker)
                return error_raise(-ENOMEM);
        list_init(&worker->waiting);
        list_init(&worker->finished);
        pthread_mutex_init(&worker->lock, NULL);
        pthread_cond_init(&worker->changed, NULL);
        worker->news = sys_eventfd();
        r = worker->news < 0 ? worker->news
                             : loop_watch_new(loop, worker->news, LOOP_READ, take_news, worker,
                                              &worker->watch);
        if (!r)
                r = sys_thread(&worker->thread, name, run, worker);
        if (r) {
                worker->watch = loop_watch_free(worker->watch);
                sys_close(worker->news);
                free(worker);
                return error_pass(r);
        }
        *ret_worker = worker;
        return 0;
}

void worker_do(struct worker *worker, struct work *work)
{
        pthread_mutex_lock(&worker->lock);
        list_push_back(&worker->waiting, &work->of_worker);
        pthread_cond_signal(&worker->changed);
        pthread_mutex_unlock(&worker->lock);
}

struct worker *worker_free(struct worker *worker, bool all)
{
        if (!worker)
                return NULL;
        pthread_mutex_lock(&worker->lock);
        worker->stopping = true;
        while (!all && list_pop_front(&worker->waiting))
                ;
        pthread_cond_signal(&worker->changed);
        pthread_mutex_unlock(&worker->lock);
        pthread_join(worker->thread, NULL);
        finish(worker);
        loop_watch_free(worker->watch);
        sys_close(worker->news);
        free(worker);
        return NULL;
}
