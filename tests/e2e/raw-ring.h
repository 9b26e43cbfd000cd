/*
 * A raw client with a ring: it takes the descriptors as they come and the memory as it is mapped,
 * so that a story may do anything to them.  Records that it reads properly go through its talk,
 * which checks them in the same way as records from a socket.
 */
#ifndef TESTS_E2E_RAW_RING_H
#define TESTS_E2E_RAW_RING_H

#include "tests/e2e/talk.h"

struct raw_ring {
        struct talk *talk;
        int data, control;            /* the descriptors of segments D and C */
        const struct smv_ring *page;  /* D, mapped for reading */
        struct smv_ring_control *own; /* segment C */
        size_t bytes;                 /* of D */
        uint64_t head;                /* how far the client has read and told the daemon */
};

#define RAW_RING_BYTES (64u << 10)

/* On a connection that has sent nothing: sends hello, and nothing more. */
void raw_hello(struct talk *talk, const char *transport, const char *doorbell, uint32_t bytes);
/* Takes the two descriptors that come with the next bytes to read, and takes no bytes. */
void raw_take(struct talk *talk, int fds[2]);
/* Takes one descriptor that a process sent through this socket. */
int raw_receive(int fd);

/* Connects, greets and maps.  The reader has said that it is awake. */
struct raw_ring *raw_open(const struct house *house, const char *doorbell, uint32_t bytes);
/* on a socket that is connected already */
struct raw_ring *raw_adopt(int fd, const char *doorbell, uint32_t bytes);
struct raw_ring *raw_close(struct raw_ring *ring);
/* The same, but only the connection is closed. */
void raw_leave(struct raw_ring *ring);

/* Reads at most `most` records, frees their place, and tells the daemon if it waits.  Returns how
 * many there were. */
uint32_t raw_read(struct raw_ring *ring, uint32_t most);
/* Reads until the stream's END. */
struct stream *raw_end(struct raw_ring *ring, uint32_t id);

/* The 512-byte blocks behind a descriptor. */
uint64_t blocks_of(int fd);

/* Waits until one number of status has this value. */
void wait_status(const struct house *house, const char *path, uint64_t value);

/*
 * Forks a child, which dies with us; a failed assert aborts it.  Returns 0 in the child.  The child
 * shares what is mapped, and ends with _exit().
 */
pid_t child(void);
void child_kill(pid_t pid);

/* Sends the bytes with our descriptors and n more in front of them; returns sendmsg()'s result. */
ssize_t send_with(int fd, const void *bytes, size_t count, const int *fds, size_t n);

#endif
