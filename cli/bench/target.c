#include "cli/bench/target.h"

#include <stdio.h>

#include "cli/clock.h"

double target_now(const struct target *target)
{
        return clock_s() - target->zero;
}

void target_end(struct target *target, struct sample *sample, const char *error)
{
        sample->ended = target_now(target);
        snprintf(sample->error, sizeof(sample->error), "%s", error);
        target->in_flight--;
        if (target->on_end)
                target->on_end(target->arg, sample);
}

int target_send(struct target *target, const struct prompt *prompt, struct sample *sample)
{
        sample->wanted_output = prompt->ignore_eos ? prompt->output : 0;
        target->in_flight++;
        sample->sent = target_now(target);
        return target->kind->send(target, prompt, sample);
}

int target_wait(struct target *target, double seconds)
{
        return target->kind->wait(target, seconds);
}

void target_cancel(struct target *target)
{
        target->kind->cancel(target);
}

struct target *target_close(struct target *target)
{
        if (target)
                target->kind->close(target);
        return NULL;
}
