#include "cli/doctor/finding.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void find(struct finding *finding, enum verdict verdict, const char *format, ...)
{
        va_list values;

        va_start(values, format);
        vsnprintf(finding->found, sizeof(finding->found), format, values);
        va_end(values);
        finding->verdict = verdict;
}

void find_more(struct finding *finding, const char *format, ...)
{
        size_t used = strlen(finding->found);
        va_list values;

        va_start(values, format);
        vsnprintf(finding->found + used, sizeof(finding->found) - used, format, values);
        va_end(values);
}

void advise(struct finding *finding, const char *format, ...)
{
        va_list values;

        va_start(values, format);
        vsnprintf(finding->advice, sizeof(finding->advice), format, values);
        va_end(values);
}

const char *verdict_name(enum verdict verdict)
{
        static const char *const names[] = {
                [VERDICT_OK] = "ok", [VERDICT_WARN] = "warn", [VERDICT_FAIL] = "fail"
        };

        return names[verdict];
}
