/*
 * The event loop: only this module uses libevent.
 *
 * It has watches on descriptors, timers, and signals.  Nothing of libevent is visible outside
 * loop.c, and only its core is used: no buffers, no HTTP.  Handlers run one after another on the
 * loop thread.  A handler may free any watch or timer, including its own.
 */
#ifndef DAEMON_EDGE_LOOP_H
#define DAEMON_EDGE_LOOP_H

#include <stdint.h>

struct loop;
struct loop_watch;
struct loop_timer;
struct loop_task;

/*
 * READ and WRITE are level-triggered.  HUP is for a connection that was read to its end: READ would
 * fire for ever, and a watch on nothing would miss that the other side goes away.  A mask with HUP
 * is edge-triggered: the handler is called when anything changes or the watch is set again, and
 * must look for itself (tests/facts/test-hangup.c).  HUP may be combined with WRITE, but not with
 * READ.
 */
enum loop_mask { LOOP_READ = 1, LOOP_WRITE = 2, LOOP_HUP = 4 };

typedef void (*loop_handler)(void *arg);
typedef void (*loop_fd_handler)(void *arg, unsigned mask);

int loop_new(struct loop **ret_loop);
struct loop *loop_free(struct loop *loop); /* call after everything on it is freed */
int loop_run(struct loop *loop);           /* until loop_stop(); it may be run again */
void loop_stop(struct loop *loop);

/*
 * A turn of the loop calls the handlers of all events that are there.  This one is called behind
 * them, in every turn; NULL: none.
 */
void loop_after_turns(struct loop *loop, loop_handler handler, void *arg);

/*
 * With mask 0 nothing is watched for now; setting the same mask again does nothing.  The watch does
 * not close the fd.
 */
int loop_watch_new(struct loop *loop, int fd, unsigned mask, loop_fd_handler handler, void *arg,
                   struct loop_watch **ret_watch);
int loop_watch_set(struct loop_watch *watch, unsigned mask);
struct loop_watch *loop_watch_free(struct loop_watch *watch);

/* A new timer is not set.  Setting a timer that is set moves it. */
int loop_timer_new(struct loop *loop, loop_handler handler, void *arg,
                   struct loop_timer **ret_timer);
int loop_timer_set(struct loop_timer *timer, uint64_t in_ns);
void loop_timer_clear(struct loop_timer *timer);
struct loop_timer *loop_timer_free(struct loop_timer *timer);

/*
 * A task that is posted runs once, at the end of this turn: behind the handlers of events and that
 * of loop_after_turns().  Tasks run in the order in which they were posted.  One that is posted by
 * a task runs in the next turn, which then does not wait for events.
 */
int loop_task_new(struct loop *loop, loop_handler handler, void *arg, struct loop_task **ret_task);
void loop_task_post(struct loop_task *task); /* does nothing if it is posted already */
struct loop_task *loop_task_free(struct loop_task *task);

/* Freed with the loop. */
int loop_signal(struct loop *loop, int number, loop_handler handler, void *arg);

#endif
