#include "bench/cuda/figure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const struct card cards[CARDS] = {
        [CARD_H100] = { "H100", 3.0e12, 790e12, 5.5e12 },
        [CARD_H200] = { "H200", 4.3e12, 790e12, 5.5e12 },
};

const struct card *card_of(const char *device)
{
        for (size_t i = 0; device && i < CARDS; i++)
                if (strstr(device, cards[i].name))
                        return &cards[i];
        return &cards[CARD_H200];
}

struct prediction prediction_of_all(double value)
{
        struct prediction prediction;

        for (size_t i = 0; i < CARDS; i++)
                prediction.on[i] = value;
        return prediction;
}

double figure_clock(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int compare(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;

        return x < y ? -1 : x > y;
}

struct figure figure_of(double *samples, size_t count)
{
        qsort(samples, count, sizeof(*samples), compare);
        return (struct figure){ samples[count / 2], samples[0], samples[count - 1] };
}

struct figure figure_times(struct figure f, double factor)
{
        return (struct figure){ f.median * factor, f.lowest * factor, f.highest * factor };
}

struct figure figure_rate(struct figure seconds, double much)
{
        return (struct figure){ much / seconds.median, much / seconds.highest,
                                much / seconds.lowest };
}

static void tell(double number)
{
        printf(number ? "\t%.4g" : "\t-", number);
}

void figure_tell(const char *part, const char *what, const char *unit, struct prediction predicted,
                 const struct figure *f, double share)
{
        printf("%s\t%s\t%s", part, what, unit);
        for (size_t i = 0; i < CARDS; i++)
                tell(predicted.on[i]);
        tell(f ? f->median : 0);
        tell(f ? f->lowest : 0);
        tell(f ? f->highest : 0);
        tell(share);
        putchar('\n');
        fflush(stdout);
}
