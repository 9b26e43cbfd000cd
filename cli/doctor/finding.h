/* A finding: what a check says. */
#ifndef CLI_DOCTOR_FINDING_H
#define CLI_DOCTOR_FINDING_H

enum verdict {
        VERDICT_OK,
        VERDICT_WARN, /* it works, but worse than it could, or not for all */
        VERDICT_FAIL,
        VERDICT_COUNT,
};

struct finding {
        enum verdict verdict;
        char found[400];
        char advice[500]; /* what to do; "": nothing */
};

/* Sets the verdict and what was found. */
void find(struct finding *finding, enum verdict verdict, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
/* Adds to what was found. */
void find_more(struct finding *finding, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
void advise(struct finding *finding, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "ok", "warn", "fail" */
const char *verdict_name(enum verdict verdict);

#endif
