/* The values of the flags of `samovar doctor`. */
#ifndef CLI_DOCTOR_OPTIONS_H
#define CLI_DOCTOR_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct doctor_options {
        uint32_t http_port; /* of samovar-http; 0: not given, the default */
        bool digests;       /* read all bytes of pulled models */
};

#endif
