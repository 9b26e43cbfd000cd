/*
 * Each request has a seat, by its number.  The engine writes `asked`.  The thread writes `answered`
 * with release, and the engine reads it with acquire, so it sees the mask of an answer.  The thread
 * sees the question because it came by mail.
 */
#include "daemon/engine/masks.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sys.h"
#include "daemon/constraint/guide.h"
#include "daemon/core/sched.h"
#include "daemon/ipc/mailbox.h"

#define MAILS_AT_ONCE 64
#define WEIGHT        (1.0f / 16) /* of a new time in the mean */

struct seat {
        struct guide *guide;
        struct seat *parent; /* of a fork that begins */
        /* The question: tokens that were made, and guesses at the next ones. */
        uint32_t tokens[SCHED_DRAFT_MAX + 1], guesses[SCHED_DRAFT_MAX];
        uint32_t token_count, guess_count, ahead_most;
        uint64_t ns; /* that the answer took */
        _Atomic uint32_t answered;
        uint32_t asked;          /* engine only, as the rest */
        struct request *request; /* its answer was not told yet; or NULL */
        uint32_t late;           /* no wait is for it, for as many of its questions */
};

struct masks {
        struct mailbox *inbox;
        pthread_t thread;
        struct seat *seats;
        struct seat **open; /* those whose answers were not told yet, oldest first */
        uint32_t open_count, open_max;
        float mean_ns;
};

/* ---- the thread ---- */

static void answer(struct seat *seat)
{
        uint32_t answered = atomic_load_explicit(&seat->answered, memory_order_relaxed);

        atomic_store_explicit(&seat->answered, answered + 1, memory_order_release);
}

static void take(struct seat *seat)
{
        uint64_t began = sys_clock_ns();

        guide_confirm(seat->guide, seat->token_count - 1);
        guide_take(seat->guide, seat->tokens[seat->token_count - 1]);
        guide_look_ahead(seat->guide, seat->guesses, seat->guess_count, seat->ahead_most);
        seat->ns = sys_clock_ns() - began;
}

static bool on_mail(const struct mail *mail)
{
        struct seat *seat = mail->what;

        switch (mail->kind) {
        case MAIL_MASK_BEGIN:
                guide_begin(seat->guide);
                break;
        case MAIL_MASK_FORK:
                guide_copy(seat->guide, seat->parent->guide);
                answer(seat->parent);
                break;
        case MAIL_MASK_TAKE:
                take(seat);
                break;
        case MAIL_STOP:
                return false;
        default:
                assert(!"mail that is not for the mask thread");
        }
        answer(seat);
        return true;
}

static void *masks_main(void *arg)
{
        struct masks *masks = arg;
        struct mail mails[MAILS_AT_ONCE];
        bool goes_on = true;

        while (goes_on) {
                uint32_t count = mailbox_take(masks->inbox, mails, MAILS_AT_ONCE, UINT64_MAX);

                for (uint32_t i = 0; i < count; i++)
                        goes_on = on_mail(&mails[i]);
        }
        return NULL;
}

/* ---- the engine ---- */

static struct masks *masks_free(struct masks *masks)
{
        mailbox_free(masks->inbox);
        free(masks->seats);
        free(masks->open);
        free(masks);
        return NULL;
}

int masks_start(uint32_t requests_max, struct masks **ret_masks)
{
        struct masks *masks = calloc(1, sizeof(*masks));
        int r;

        if (!masks)
                return error_raise(-ENOMEM);
        masks->open_max = requests_max;
        masks->seats = calloc(requests_max, sizeof(*masks->seats));
        masks->open = calloc(requests_max, sizeof(struct seat *));
        /* a request has one question at a time; and STOP */
        r = masks->seats && masks->open ? mailbox_new(requests_max + 1, -1, &masks->inbox)
                                        : error_raise(-ENOMEM);
        if (!r)
                r = sys_thread(&masks->thread, "smv-masks", masks_main, masks);
        if (r) {
                masks_free(masks);
                return error_pass(r);
        }
        *ret_masks = masks;
        return 0;
}

struct masks *masks_join(struct masks *masks)
{
        if (!masks)
                return NULL;
        mailbox_post(masks->inbox, &(struct mail){ .kind = MAIL_STOP });
        pthread_join(masks->thread, NULL);
        return masks_free(masks);
}

static bool is_answered(const struct seat *seat)
{
        return atomic_load_explicit(&seat->answered, memory_order_acquire) == seat->asked;
}

static void ask(struct masks *masks, struct request *request, enum mail_kind kind)
{
        struct seat *seat = &masks->seats[request->number];

        assert(!seat->request && masks->open_count < masks->open_max);
        seat->request = request;
        seat->asked++;
        seat->late -= seat->late > 0;
        masks->open[masks->open_count++] = seat;
        mailbox_post(masks->inbox, &(struct mail){ .kind = kind, .what = seat });
}

/* The seat may have been another request's before. */
static struct seat *take_seat(struct masks *masks, const struct request *request)
{
        struct seat *seat = &masks->seats[request->number];

        assert(is_answered(seat));
        seat->guide = request->guide;
        seat->late = 0;
        seat->ns = 0;
        return seat;
}

void masks_begin(struct masks *masks, struct request *request)
{
        take_seat(masks, request);
        ask(masks, request, MAIL_MASK_BEGIN);
}

void masks_fork(struct masks *masks, struct request *request, struct request *parent)
{
        struct seat *from = &masks->seats[parent->number];

        take_seat(masks, request)->parent = from;
        from->asked++; /* the thread reads its guide */
        ask(masks, request, MAIL_MASK_FORK);
}

void masks_take(struct masks *masks, struct request *request, const struct masks_take *take)
{
        struct seat *seat = &masks->seats[request->number];

        assert(!seat->request && take->token_count);
        memcpy(seat->tokens, take->tokens, take->token_count * sizeof(*seat->tokens));
        seat->token_count = take->token_count;
        memcpy(seat->guesses, take->guesses, take->guess_count * sizeof(*seat->guesses));
        seat->guess_count = take->guess_count;
        seat->ahead_most = take->ahead_most;
        ask(masks, request, MAIL_MASK_TAKE);
}

float masks_ns(const struct masks *masks)
{
        return masks->mean_ns;
}

bool masks_are_open(const struct masks *masks)
{
        return masks->open_count;
}

/* Whether an answer is missing that the wait is for. */
static bool must_wait(const struct masks *masks)
{
        for (uint32_t i = 0; i < masks->open_count; i++)
                if (!masks->open[i]->late && !is_answered(masks->open[i]))
                        return true;
        return false;
}

void masks_wait(struct masks *masks, uint64_t most_ns)
{
        uint64_t until;

        if (!must_wait(masks))
                return;
        until = sys_clock_ns() + most_ns;
        while (must_wait(masks) && sys_clock_ns() < until)
                sched_yield();
        for (uint32_t i = 0; i < masks->open_count; i++)
                if (!masks->open[i]->late && !is_answered(masks->open[i]))
                        masks->open[i]->late = MASKS_LATE;
}

/* Masks that were not made by a take say nothing. */
static void learn_time(struct masks *masks, const struct seat *seat)
{
        float ns = (float)seat->ns / (float)(1 + seat->guide->ahead.count);

        if (seat->ns)
                masks->mean_ns += masks->mean_ns ? WEIGHT * (ns - masks->mean_ns) : ns;
}

struct request *masks_next(struct masks *masks)
{
        for (uint32_t i = 0; i < masks->open_count; i++) {
                struct seat *seat = masks->open[i];
                struct request *request = seat->request;

                if (!is_answered(seat))
                        continue;
                masks->open_count--;
                for (uint32_t j = i; j < masks->open_count; j++)
                        masks->open[j] = masks->open[j + 1];
                seat->request = NULL;
                learn_time(masks, seat);
                return request;
        }
        return NULL;
}

bool masks_is_idle(const struct masks *masks, const struct request *request)
{
        const struct seat *seat = &masks->seats[request->number];

        return !seat->request && is_answered(seat);
}
