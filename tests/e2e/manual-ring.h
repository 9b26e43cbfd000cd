/*
 * A ring that the test reads by hand: the test has the descriptors and the mapped memory, and may
 * do anything to them.  Records that it reads properly go through its raw client, which checks them
 * in the same way as records from a socket.
 */
#ifndef TESTS_E2E_MANUAL_RING_H
#define TESTS_E2E_MANUAL_RING_H

#include "tests/e2e/raw-client.h"

struct manual_ring {
        struct raw_client *client;
        int data, control;            /* the descriptors of segments D and C */
        const struct smv_ring *page;  /* D, mapped for reading */
        struct smv_ring_control *own; /* segment C */
        size_t bytes;                 /* of D */
        uint64_t head;                /* how far the client has read and told the daemon */
        /* The slots of a client that is asked; NULL: it has none. */
        uint8_t *answers;
        const uint8_t *rows;
        size_t answers_bytes, rows_bytes;
        int slots[2]; /* the descriptors of their segments */
        uint32_t slot_segments;
};

#define MANUAL_RING_BYTES (64u << 10)

/* On a connection that has sent nothing: sends hello, and nothing more. */
void manual_ring_send_hello(struct raw_client *client, const char *transport, const char *doorbell,
                            uint32_t bytes);
/* Takes the two descriptors that come with the next bytes to read, and takes no bytes. */
void manual_ring_take_fds(struct raw_client *client, int fds[2]);
/* Takes one descriptor that a process sent through this socket. */
int receive_fd(int fd);

/* Connects, greets and maps.  The reader has said that it is awake. */
struct manual_ring *manual_ring_open(const struct daemon_fixture *fixture, const char *doorbell,
                                     uint32_t bytes);
/* on a socket that is connected already */
struct manual_ring *manual_ring_adopt(int fd, const char *doorbell, uint32_t bytes);
/* The same for a client that streams may ask: with so many slots, which may have whole rows. */
struct manual_ring *manual_ring_open_with_slots(const struct daemon_fixture *fixture,
                                                uint32_t slots, bool whole_rows);
struct manual_ring *manual_ring_close(struct manual_ring *ring);
/* The same, but only the connection is closed. */
void manual_ring_disconnect(struct manual_ring *ring);

/* Reads at most `most` records, frees their place, and tells the daemon if it waits.  Returns how
 * many there were. */
uint32_t manual_ring_read(struct manual_ring *ring, uint32_t most);
/* Reads until the stream's END. */
struct stream *manual_ring_await_end(struct manual_ring *ring, uint32_t id);

/* The 512-byte blocks behind a descriptor. */
uint64_t blocks_of(int fd);

/*
 * Forks a child, which dies with us; a failed assert aborts it.  Returns 0 in the child.  The child
 * shares what is mapped, and ends with _exit().
 */
pid_t fork_child(void);
/* For such a child of root: it becomes the user, and still dies with us. */
void child_becomes(uint32_t uid);
void kill_child(pid_t pid);

/* Sends the bytes with our descriptors and n more in front of them; returns sendmsg()'s result. */
ssize_t send_with_fds(int fd, const void *bytes, size_t count, const int *fds, size_t n);

#endif
