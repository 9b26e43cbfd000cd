#include "bench/replay.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SILENCE_S 300.0 /* seconds without a record while the daemon has work */

struct course {
        struct replay *replay;
        uint32_t *ids; /* of the prompt that is being sent */
        uint32_t sent, ended;
        double began, heard;
};

static double now(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int refused(struct course *course, uint32_t request)
{
        struct smv_problem problem = { SMV_SIZE(smv_problem) };

        smv_error(course->replay->client, &problem);
        snprintf(course->replay->why, sizeof(course->replay->why), "request %u was refused: %s",
                 request, problem.message);
        return -EREMOTEIO;
}

static int send_next(struct course *course)
{
        struct replay *replay = course->replay;
        const struct trace_request *request = &replay->trace->requests[course->sent];
        struct replay_times *times = &replay->times[course->sent];
        const struct smv_generate options = {
                SMV_SIZE(smv_generate),
                .tokens = course->ids,
                .token_count = request->prompt,
                .max_tokens = request->output,
                .ignore_eos = 1,
                .set = SMV_SET_SEED,
                .seed = course->sent,
        };

        trace_prompt(replay->seed, course->sent + replay->salt, replay->vocab, course->ids,
                     request->prompt);
        *times = (struct replay_times){ .sent = now() - course->began };
        if (smv_generate(replay->client, &options, &times->stream))
                return refused(course, course->sent);
        course->sent++;
        return 0;
}

static int end(struct course *course, const struct smv_event *event, uint32_t request)
{
        struct replay *replay = course->replay;
        const struct trace_request *asked = &replay->trace->requests[request];

        course->ended++;
        if (event->reason == SMV_END_LENGTH && event->output_tokens == asked->output &&
            !event->cached_tokens)
                return 0;
        snprintf(
                replay->why, sizeof(replay->why),
                "request %u ended (%s) with %u of %u tokens, and %u of its prompt were in the pool",
                request, smv_reason_name(event->reason), event->output_tokens, asked->output,
                event->cached_tokens);
        return -EPROTO;
}

static int take(struct course *course, const struct smv_event *event)
{
        struct replay_times *times = course->replay->times;
        uint32_t request = 0;

        course->heard = now();
        while (request < course->sent && times[request].stream != event->stream)
                request++;
        assert(request < course->sent);
        if (event->kind == SMV_EVENT_END)
                return end(course, event, request);
        times[request].last = course->heard - course->began;
        if (!times[request].tokens)
                times[request].first = times[request].last;
        times[request].tokens += (uint32_t)event->token_count;
        return 0;
}

static int take_all(struct course *course)
{
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct replay *replay = course->replay;
        int r = 0;

        while (!r && (r = smv_next(replay->client, &event, 0)) > 0)
                r = take(course, &event);
        if (r == -ENODATA)
                return 0;
        if (r < 0 && !*replay->why)
                snprintf(replay->why, sizeof(replay->why), "the daemon is gone: %s", strerror(-r));
        return r;
}

/* Until the next one is due, or something has come. */
static int sleep_on(struct course *course)
{
        const struct trace *trace = course->replay->trace;
        struct pollfd readable = { .fd = smv_fd(course->replay->client), .events = POLLIN };
        double left = course->heard + SILENCE_S - now();
        struct timespec time;

        if (course->sent < trace->count)
                left = course->began + trace->requests[course->sent].at - now();
        else if (left < 0) {
                snprintf(course->replay->why, sizeof(course->replay->why),
                         "nothing has come for %.0f s", SILENCE_S);
                return -ETIMEDOUT;
        }
        left = fmax(0, left);
        time.tv_sec = (time_t)left;
        time.tv_nsec = (long)((left - (double)time.tv_sec) * 1e9);
        ppoll(&readable, 1, &time, NULL);
        return 0;
}

static int run(struct course *course)
{
        const struct trace *trace = course->replay->trace;
        int r = 0;

        while (!r && course->ended < trace->count) {
                if (course->sent < trace->count &&
                    now() >= course->began + trace->requests[course->sent].at)
                        r = send_next(course);
                if (!r)
                        r = take_all(course);
                if (!r && course->ended < trace->count)
                        r = sleep_on(course);
        }
        return r;
}

int replay_run(struct replay *replay)
{
        struct course course = { .replay = replay };
        uint32_t longest = 1;
        int r;

        for (uint32_t i = 0; i < replay->trace->count; i++)
                if (replay->trace->requests[i].prompt > longest)
                        longest = replay->trace->requests[i].prompt;
        *replay->why = '\0';
        course.ids = calloc(longest, sizeof(*course.ids));
        if (!course.ids)
                return -ENOMEM;
        course.heard = course.began = now();
        r = run(&course);
        free(course.ids);
        return r;
}
