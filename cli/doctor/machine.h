/*
 * A machine as the checks see it: a folder that has its files, and facts that no file has.
 *
 * The folder is "" for the machine that the program runs on.  A test gives another one, with files
 * like proc/meminfo below it, and fills in the facts.
 */
#ifndef CLI_DOCTOR_MACHINE_H
#define CLI_DOCTOR_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#define MACHINE_PATH   512u
#define MACHINE_GROUPS 64u

/* The answer of the daemon at the socket. */
struct daemon_facts {
        int result;        /* 0, or a negative errno */
        char message[256]; /* why not */
        char socket[MACHINE_PATH];
        char version[32], backend[64], model[80];
        uint64_t pid, uid, model_bytes;
        bool loading, stopping;
};

/* The answer to GET /health at an address of samovar-http. */
struct http_facts {
        const char *address; /* "127.0.0.1" or "::1" */
        int result;          /* the status, or a negative errno */
        bool is_ours;        /* the answer is that of samovar-http */
        char message[128];   /* its message */
};

/* The models of the folders of models, where samovard finds a model by its name. */
struct model_facts {
        int result;                   /* 0, or a negative errno: the folders cannot be read */
        char places[2][MACHINE_PATH]; /* the folders; the first is for new models */
        size_t place_count;
        size_t count, pulled; /* all models; those that `samovar pull` has fetched */
        uint64_t bytes, pulled_bytes;
        bool read;        /* every byte of pulled models was read, and compared with its digest */
        size_t wrong;     /* pulled models that are not as they came */
        char why[256];    /* what is wrong with the first of them */
        char source[192]; /* where pull fetched it from */
};

struct machine {
        const char *root;

        /* This process. */
        uint32_t uid, gid;
        uint32_t groups[MACHINE_GROUPS];
        size_t group_count;
        char user[64];
        const char *version; /* of this program */

        /* Where clients look for a daemon, in this order; `named`: by --socket or a variable. */
        char sockets[2][MACHINE_PATH];
        size_t socket_count;
        bool named;
        struct daemon_facts daemon;

        char services[4096]; /* what systemctl says about our units; "": there is no systemd */

        uint64_t model_bytes; /* of the file of --model; 0: not given */
        char model_why[128];  /* why its size is not known */

        uint16_t port;
        struct http_facts http[2];

        char libraries[2][MACHINE_PATH]; /* folders in which the library for GPUs may be */
        size_t library_count;
        struct model_facts models;
        uint64_t disk_free; /* where new models are put */
        int disk_result;    /* 0, or a negative errno */

        int memfd_result, uring_result; /* 0, or a negative errno */
        uint64_t shm_bytes;             /* size of /dev/shm; 0: there is none */
        int64_t now_s;                  /* seconds since 1970 */
        int clock_state;                /* 1: synchronised, 0: not, -1: unknown */
};

/* Writes the path below the root.  False: it is too long. */
bool machine_path(const struct machine *machine, const char *path, char to[MACHINE_PATH]);

/* Reads the beginning of a file, NUL-ended.  False: it cannot be read. */
bool machine_read(const struct machine *machine, const char *path, char *to, size_t bytes);
/* The first number in the file.  False: there is none. */
bool machine_read_number(const struct machine *machine, const char *path, uint64_t *ret_number);
bool machine_has(const struct machine *machine, const char *path);
/* 0 or -errno. */
int machine_stat(const struct machine *machine, const char *path, struct stat *ret_stat);

/*
 * The number after a word at the beginning of a line: "MemTotal:", of /proc/meminfo.  False: there
 * is no such line.
 */
bool machine_line_number(const char *text, const char *word, uint64_t *ret_number);

/*
 * The folder of /proc of the process that matters: the daemon's if it is here, else this one's.
 * *ret_is_daemon says which.
 */
void machine_process(const struct machine *machine, char to[MACHINE_PATH], bool *ret_is_daemon);

bool machine_in_group(const struct machine *machine, uint32_t gid);
/* True if a process of this user may read and write the file, or enter the folder, by its mode. */
bool machine_may_write(const struct machine *machine, const struct stat *file);
bool machine_may_enter(const struct machine *machine, const struct stat *folder);

#endif
