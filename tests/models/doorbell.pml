/*
 * The doorbell on a socket that carries replies as well: the line of daemon/line.h.
 *
 * The loop writes replies, frames of two pieces, as far as the socket takes them; the waker
 * rings with an empty frame.  Who wants to write takes the line, or finds it taken and
 * leaves word in the same step: RING is the waker's word, CALL the loop's.  The loop keeps
 * the line while anything of its own is unsent.  Who lets go finds the other's word and
 * does as it says, while the line is still his; then he lets go again.  A kick that finds
 * the socket full is dropped: a full socket is a readable one.
 *
 * The loop that did not get the line waits here for the waker's call and for nothing else.
 *
 * The client sleeps in poll and, whatever woke it, reads what there is and then looks at
 * the ring.  Its sleep (wake_position, the second look) is two steps here that cannot be
 * reordered: ring.pml has the rest.
 *
 * Asserted: a frame's two pieces are neighbours.  By the end the client has seen every
 * publish and every reply: else it sleeps for ever, an invalid end state.  With STUCK it
 * never reads, and the waker must get by nevertheless.
 *
 * Not here: the memory orders of the line (litmus-line.c).
 *
 * Mutants:
 *
 *      RING_WHILE_PARTIAL       the waker rings, and does not ask for the line
 *      LET_GO_WHILE_PARTIAL     the loop lets go at the end of its turn, all sent or not
 *      TAKE_WITHOUT_WORD        who finds the line taken leaves no word
 *      WORD_AFTER_LOOK          ... or leaves it in a second step
 *      LET_GO_BLINDLY           who lets go does not look for a word
 *      LET_GO_ONCE              he looks, rings, and does not look again
 *      CALL_FORGOTTEN           the waker finds the loop's word and does not call
 *      BLOCKING_KICK   (STUCK)  it waits for room in the socket
 *      DRAIN_BEFORE_POLL        the client empties the socket after its second look
 *      KICKS_ONLY               it looks at the ring only when it has read an empty frame
 */
#define REPLIES   2
#define PUBLISHES 3
#define ROOM      2

mtype = { FIRST, SECOND, KICK };

chan socket = [ROOM] of { mtype };
bool taken, word_ring, word_call; /* one word */
bool called;                      /* `draining`: a WAKE is on its way to the loop */
byte tail;
bool armed; /* the client sleeps, or is about to */
byte seen, replies;
bool waker_over;

/* ---- the line ---- */

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

/* True, and the line is still ours: the other one has left word. */
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

/* As much as the socket takes; what it does not, when it is writable again. */
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
        byte made, left; /* pieces of replies that the socket has not */
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

/* True to its name, armed: the next publish rings.  Else there is more to see already. */
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
                :: else /* nothing for the ring: to sleep again, as it was */
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
