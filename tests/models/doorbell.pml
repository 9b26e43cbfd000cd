/*
 * The doorbell on a socket that also carries replies: the send lock of daemon/ipc/send-lock.h.
 *
 * The loop writes replies, frames of two pieces, as far as the socket accepts them.  The waker
 * rings the doorbell with an empty frame, a kick.  A thread that wants to write takes the lock.
 * If the lock is taken, the thread leaves a note in the same step: RING is the waker's note,
 * CALL the loop's.  The loop keeps the lock while any of its bytes are unsent.  The thread that
 * releases the lock looks for the other thread's note; if there is one, it does what the note
 * asks for while it still has the lock, and then tries to release it again.  A kick that finds
 * the socket full is dropped, because a full socket is readable anyway.
 *
 * A loop that did not get the lock waits here for the waker's call and for nothing else.
 *
 * The client sleeps in poll().  Whatever woke it, it reads the socket and then looks at the
 * ring.  Its way to sleep (wake_position, the second look) is two steps here that cannot be
 * reordered: ring.pml has the rest.
 *
 * Asserted: the two pieces of a frame are neighbours.  At the end the client has seen every
 * publish and every reply; otherwise it sleeps for ever, which is an invalid end state.  With
 * STUCK the client never reads, and the waker must finish all the same.
 *
 * Not here: the memory orders of the lock (litmus-send-lock.c).
 *
 * Mutants:
 *
 *      RING_WHILE_PARTIAL       the waker rings without taking the lock
 *      LET_GO_WHILE_PARTIAL     the loop releases the lock after its turn, even with bytes unsent
 *      TAKE_WITHOUT_WORD        a thread that finds the lock taken leaves no note
 *      WORD_AFTER_LOOK          ... or leaves it in a second step
 *      LET_GO_BLINDLY           a thread releases the lock without looking for a note
 *      LET_GO_ONCE              it looks and rings, and does not look again
 *      CALL_FORGOTTEN           the waker finds the loop's note and does not call the loop
 *      BLOCKING_KICK   (STUCK)  the waker waits for space in the socket
 *      DRAIN_BEFORE_POLL        the client empties the socket after its second look
 *      KICKS_ONLY               the client looks at the ring only after it has read a kick
 */
#define REPLIES   2
#define PUBLISHES 3
#define SPACE      2

mtype = { FIRST, SECOND, KICK };

chan socket = [SPACE] of { mtype };
bool taken, word_ring, word_call; /* in one atomic word */
bool called;                      /* `draining`: a WAKE is on its way to the loop */
byte tail;
bool armed; /* the client sleeps, or is about to */
byte seen, replies;
bool waker_over;

/* ---- the lock ---- */

inline take(got, word)
{
#if defined(TAKE_WITHOUT_WORD)
        atomic {
                if
                :: taken
                :: !taken -> taken = true; got = true
                fi
        }
#elif defined(WORD_AFTER_LOOK)
        if
        :: atomic { !taken -> taken = true; word_ring = false; word_call = false; got = true }
        :: taken -> word = true
        fi
#else
        atomic {
                if
                :: taken -> word = true
                :: !taken -> taken = true; got = true
                fi
        }
#endif
}

/* True: the other thread has left a note, and the lock is still ours. */
inline let_go(found)
{
        atomic {
                if
#ifdef LET_GO_BLINDLY
                :: true -> taken = false
#else
                :: word_ring || word_call -> found = true
                :: else -> taken = false
#endif
                fi;
                word_ring = false;
                word_call = false
        }
}

inline kick()
{
#ifdef BLOCKING_KICK
        socket!KICK
#else
        atomic {
                if
                :: nfull(socket) -> socket!KICK
                :: full(socket)
                fi
        }
#endif
}

/* ---- the waker ---- */

inline let_waker_go()
{
        do
        :: let_go(word);
                if
                :: word ->
                        word = false;
                        calls = true
                :: else -> break
                fi
        od;
        if
#ifndef CALL_FORGOTTEN
        :: calls -> calls = false; called = true
#endif
        :: else
        fi
}

inline ring()
{
#ifdef RING_WHILE_PARTIAL
        kick()
#else
        take(held, word_ring);
        if
        :: held -> held = false; kick(); let_waker_go()
        :: else
        fi
#endif
}

active proctype waker()
{
        bool held, word, calls;

        do
        :: tail < PUBLISHES ->
                tail++;
                if
                :: atomic { armed -> armed = false }; ring()
                :: else
                fi
        :: tail == PUBLISHES -> break
        od;
        waker_over = true
}

/* ---- the loop ---- */

inline send_piece()
{
        if
        :: left % 2 == 0 -> socket!FIRST
        :: left % 2 == 1 -> socket!SECOND
        fi;
        left--
}

inline let_loop_go()
{
#ifdef LET_GO_ONCE
        let_go(word);
        if
        :: word -> word = false; kick(); atomic { taken = false; word_ring = false }
        :: else
        fi;
#else
        do
        :: let_go(word);
                if
                :: word -> word = false; kick()
                :: else -> break
                fi
        od;
#endif
        held = false
}

/* Writes as much as the socket takes; the rest when the socket is writable again. */
inline send_out()
{
        if
        :: left > 0 && !held -> take(held, word_call)
        :: else
        fi;
        if
        :: left > 0 && held ->
                do
                :: atomic { left > 0 && nfull(socket) -> send_piece() }
                :: left > 0 && full(socket) -> break
                :: left == 0 -> break
                od;
                if
#ifdef LET_GO_WHILE_PARTIAL
                :: true -> let_loop_go()
#else
                :: left == 0 -> let_loop_go()
                :: else
#endif
                fi
        :: else
        fi
}

active proctype loop()
{
        byte made, left; /* pieces of replies that are not in the socket yet */
        bool held, word;

end:    do
        :: made < REPLIES -> made++; left = left + 2; send_out()
        :: held && left > 0 && nfull(socket) -> send_out()
#ifdef LET_GO_WHILE_PARTIAL
        :: !held && left > 0 && nfull(socket) -> send_out()
#endif
        :: called -> called = false; send_out()
        od
}

/* ---- the client ---- */

inline drain()
{
        do
        :: socket?piece ->
                if
                :: piece == FIRST -> assert(!half); half = true
                :: piece == SECOND -> assert(half); half = false; replies++
                :: piece == KICK -> assert(!half); kicked = true
                fi;
                piece = 0
        :: empty(socket) -> break
        od
}

#ifndef STUCK

/* armed: the next publish rings.  Otherwise there is more to see already. */
inline prepare()
{
        armed = true;
        if
        :: tail != seen -> armed = false; kicked = true
        :: else
        fi
}

active proctype client()
{
        mtype piece;
        bool half, kicked = true; /* it looks once before it sleeps */

        do
        :: seen == PUBLISHES && replies == REPLIES -> break
        :: else ->
#ifdef KICKS_ONLY
                drain();
                if
                :: kicked -> kicked = false; seen = tail; prepare()
                :: else /* nothing new in the ring: it sleeps again */
                fi;
#else
                drain();
                seen = tail;
                kicked = false;
                prepare();
#ifdef DRAIN_BEFORE_POLL
                drain();
#endif
#endif
                if
                :: kicked || (seen == PUBLISHES && replies == REPLIES)
                :: else -> nempty(socket) /* poll */
                fi
        od
}

#else

active proctype client()
{
        armed = true;
end:    do
        :: !armed -> armed = true
        od
}

#endif

ltl ends { <> waker_over }
