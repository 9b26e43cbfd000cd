/*
 * The checks, in the order in which they are printed.  Each is a function of its machine alone, and
 * fills a finding that is all zero.
 */
#ifndef CLI_DOCTOR_CHECKS_H
#define CLI_DOCTOR_CHECKS_H

#include <stddef.h>

#include "cli/doctor/finding.h"
#include "cli/doctor/machine.h"

struct check {
        const char *topic, *name;
        void (*run)(const struct machine *machine, struct finding *finding);
};

extern const struct check checks[];
extern const size_t check_count;

/* check-daemon.c */
void check_socket(const struct machine *machine, struct finding *finding);
void check_folder(const struct machine *machine, struct finding *finding);
void check_daemon(const struct machine *machine, struct finding *finding);
void check_version(const struct machine *machine, struct finding *finding);
void check_group(const struct machine *machine, struct finding *finding);
void check_services(const struct machine *machine, struct finding *finding);

/* check-memory.c */
void check_memory(const struct machine *machine, struct finding *finding);
void check_memory_limit(const struct machine *machine, struct finding *finding);
void check_locked_memory(const struct machine *machine, struct finding *finding);
void check_huge_pages(const struct machine *machine, struct finding *finding);
void check_reserved_pages(const struct machine *machine, struct finding *finding);
void check_shared_memory(const struct machine *machine, struct finding *finding);

/* check-processors.c */
void check_instructions(const struct machine *machine, struct finding *finding);
void check_processors(const struct machine *machine, struct finding *finding);
void check_nodes(const struct machine *machine, struct finding *finding);

/* check-gpu.c */
void check_gpu(const struct machine *machine, struct finding *finding);
void check_gpu_driver(const struct machine *machine, struct finding *finding);
void check_gpu_permission(const struct machine *machine, struct finding *finding);
void check_gpu_library(const struct machine *machine, struct finding *finding);

/* check-models.c */
void check_models(const struct machine *machine, struct finding *finding);
void check_model_owners(const struct machine *machine, struct finding *finding);
void check_model_files(const struct machine *machine, struct finding *finding);
void check_disk(const struct machine *machine, struct finding *finding);

/* check-http.c */
void check_port_4(const struct machine *machine, struct finding *finding);
void check_port_6(const struct machine *machine, struct finding *finding);
void check_health(const struct machine *machine, struct finding *finding);

/* check-system.c */
void check_descriptors(const struct machine *machine, struct finding *finding);
void check_uring(const struct machine *machine, struct finding *finding);
void check_container(const struct machine *machine, struct finding *finding);
void check_seccomp(const struct machine *machine, struct finding *finding);
void check_clock(const struct machine *machine, struct finding *finding);

/*
 * check-processors.c: the instruction set that the cpu backend chooses on a processor of this
 * vendor with these features, as /proc/cpuinfo has them: "amx", "avx512bf16", "avx512", "avx2" or
 * "c".
 */
const char *instructions_for(const char *vendor, const char *features);

#endif
