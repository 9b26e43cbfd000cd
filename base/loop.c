#include "base/loop.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "base/error.h"
#include "base/list.h"

struct loop_signal {
        struct loop_signal *next;
        struct event event;
        loop_handler handler;
        void *arg;
};

struct loop {
        struct event_base *base;
        struct loop_signal *signals;
        loop_handler after; /* called after each turn; or NULL */
        void *after_arg;
        struct list_head tasks; /* those that are posted */
        struct list_head running;
        bool stopped;
};

struct loop_task {
        struct loop *loop;
        struct list_head link;
        loop_handler handler;
        void *arg;
};

struct loop_watch {
        struct loop *loop;
        struct event event;
        int fd;
        unsigned mask;
        loop_fd_handler handler;
        void *arg;
};

struct loop_timer {
        struct event event;
        loop_handler handler;
        void *arg;
};

int loop_new(struct loop **ret_loop)
{
        struct loop *loop = calloc(1, sizeof(*loop));

        if (!loop)
                return error_raise(-ENOMEM);
        loop->base = event_base_new();
        if (!loop->base) {
                free(loop);
                return error_raise(-ENOMEM);
        }
        list_init(&loop->tasks);
        list_init(&loop->running);
        *ret_loop = loop;
        return 0;
}

struct loop *loop_free(struct loop *loop)
{
        if (!loop)
                return NULL;
        while (loop->signals) {
                struct loop_signal *signal = loop->signals;

                loop->signals = signal->next;
                event_del(&signal->event);
                free(signal);
        }
        event_base_free(loop->base);
        free(loop);
        return NULL;
}

/* Those that are posted now.  A task may free itself or any other one. */
static void run_tasks(struct loop *loop)
{
        struct list_head *at;

        while ((at = list_pop_front(&loop->tasks)))
                list_push_back(&loop->running, at);
        while ((at = list_pop_front(&loop->running))) {
                struct loop_task *task = LIST_ENTRY(at, struct loop_task, link);

                task->handler(task->arg);
        }
}

int loop_run(struct loop *loop)
{
        /* libevent forgets a break that comes before the loop runs; `stopped` does not. */
        while (!loop->stopped) {
                int how = list_is_empty(&loop->tasks) ? 0 : EVLOOP_NONBLOCK;

                if (event_base_loop(loop->base, how | EVLOOP_ONCE | EVLOOP_NO_EXIT_ON_EMPTY) < 0)
                        return error_raise(-EIO);
                if (loop->after)
                        loop->after(loop->after_arg);
                run_tasks(loop);
        }
        loop->stopped = false;
        return 0;
}

void loop_after_turns(struct loop *loop, loop_handler handler, void *arg)
{
        loop->after = handler;
        loop->after_arg = arg;
}

void loop_stop(struct loop *loop)
{
        loop->stopped = true;
        event_base_loopbreak(loop->base);
}

/*
 * The handler may free the watch, so the watch is not used afterwards.  If a socket has an error
 * (its peer closed with bytes unread), libevent reports only that it is readable and writable.  So
 * a watch for HUP watches READ, too, and reports it as HUP.
 */
static void on_fd(evutil_socket_t fd, short what, void *arg)
{
        struct loop_watch *watch = arg;
        unsigned mask = 0;

        (void)fd;
        if (what & (EV_READ | EV_CLOSED))
                mask |= watch->mask & (LOOP_READ | LOOP_HUP);
        if (what & EV_WRITE)
                mask |= LOOP_WRITE;
        watch->handler(watch->arg, mask);
}

static int watch_add(struct loop_watch *watch, unsigned mask)
{
        short what = EV_PERSIST;

        if (mask & LOOP_READ)
                what |= EV_READ;
        if (mask & LOOP_WRITE)
                what |= EV_WRITE;
        if (mask & LOOP_HUP)
                what |= EV_CLOSED | EV_READ | EV_ET;
        if (event_assign(&watch->event, watch->loop->base, watch->fd, what, on_fd, watch) < 0 ||
            event_add(&watch->event, NULL) < 0)
                return error_raise(-ENOMEM);
        watch->mask = mask;
        return 0;
}

int loop_watch_new(struct loop *loop, int fd, unsigned mask, loop_fd_handler handler, void *arg,
                   struct loop_watch **ret_watch)
{
        struct loop_watch *watch = calloc(1, sizeof(*watch));
        int r;

        if (!watch)
                return error_raise(-ENOMEM);
        *watch = (struct loop_watch){ .loop = loop, .fd = fd, .handler = handler, .arg = arg };
        r = loop_watch_set(watch, mask);
        if (r) {
                free(watch);
                return error_pass(r);
        }
        *ret_watch = watch;
        return 0;
}

int loop_watch_set(struct loop_watch *watch, unsigned mask)
{
        int r;

        assert(!(mask & LOOP_READ && mask & LOOP_HUP));
        if (mask == watch->mask)
                return 0;
        if (watch->mask)
                event_del(&watch->event);
        watch->mask = 0;
        if (!mask)
                return 0;
        r = watch_add(watch, mask);
        return error_pass(r);
}

struct loop_watch *loop_watch_free(struct loop_watch *watch)
{
        if (!watch)
                return NULL;
        if (watch->mask)
                event_del(&watch->event);
        free(watch);
        return NULL;
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
        struct loop_timer *timer = arg;

        (void)fd;
        (void)what;
        timer->handler(timer->arg);
}

int loop_timer_new(struct loop *loop, loop_handler handler, void *arg,
                   struct loop_timer **ret_timer)
{
        struct loop_timer *timer = calloc(1, sizeof(*timer));

        if (!timer)
                return error_raise(-ENOMEM);
        timer->handler = handler;
        timer->arg = arg;
        if (evtimer_assign(&timer->event, loop->base, on_timer, timer) < 0) {
                free(timer);
                return error_raise(-ENOMEM);
        }
        *ret_timer = timer;
        return 0;
}

int loop_timer_set(struct loop_timer *timer, uint64_t in_ns)
{
        uint64_t in_us = in_ns / 1000 + (in_ns % 1000 != 0);
        struct timeval in = {
                .tv_sec = (time_t)(in_us / 1000000),
                .tv_usec = (suseconds_t)(in_us % 1000000),
        };

        if (evtimer_add(&timer->event, &in) < 0)
                return error_raise(-ENOMEM);
        return 0;
}

void loop_timer_clear(struct loop_timer *timer)
{
        evtimer_del(&timer->event);
}

struct loop_timer *loop_timer_free(struct loop_timer *timer)
{
        if (!timer)
                return NULL;
        evtimer_del(&timer->event);
        free(timer);
        return NULL;
}

int loop_task_new(struct loop *loop, loop_handler handler, void *arg, struct loop_task **ret_task)
{
        struct loop_task *task = calloc(1, sizeof(*task));

        if (!task)
                return error_raise(-ENOMEM);
        *task = (struct loop_task){ .loop = loop, .handler = handler, .arg = arg };
        *ret_task = task;
        return 0;
}

void loop_task_post(struct loop_task *task)
{
        if (list_is_empty(&task->link))
                list_push_back(&task->loop->tasks, &task->link);
}

struct loop_task *loop_task_free(struct loop_task *task)
{
        if (!task)
                return NULL;
        list_remove(&task->link);
        free(task);
        return NULL;
}

static void on_signal(evutil_socket_t number, short what, void *arg)
{
        struct loop_signal *signal = arg;

        (void)number;
        (void)what;
        signal->handler(signal->arg);
}

int loop_signal(struct loop *loop, int number, loop_handler handler, void *arg)
{
        struct loop_signal *signal = calloc(1, sizeof(*signal));

        if (!signal)
                return error_raise(-ENOMEM);
        signal->handler = handler;
        signal->arg = arg;
        if (evsignal_assign(&signal->event, loop->base, number, on_signal, signal) < 0 ||
            evsignal_add(&signal->event, NULL) < 0) {
                free(signal);
                return error_raise(-ENOMEM);
        }
        signal->next = loop->signals;
        loop->signals = signal;
        return 0;
}
