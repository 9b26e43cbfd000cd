/*
 * How much of the processors other programs use meanwhile, as the kernel counts in /proc.  A figure
 * from a busy machine means little.
 */
#ifndef BENCH_OTHER_WORK_H
#define BENCH_OTHER_WORK_H

struct other_work {
        int pid;
        double began, all, own; /* seconds */
};

/* Work of this process and of `pid` is not other work. */
void other_work_begin(struct other_work *work, int pid);
/* Their part of the time of all processors since then, 0 to 1. */
double other_work_share(const struct other_work *work);

#endif
