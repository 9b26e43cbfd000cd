/*
 * The ring between the daemon and one client: publish, sleep and wake, stall and resume.
 *
 *      engine --tail--> reader        engine --WAKE--> waker --doorbell--> reader
 *      engine <--head-- reader        engine <--SPACE-- loop <--RESUME---- reader
 *
 * The engine writes one stream of TOKENS records and its END into a ring of N places.  No place
 * is reserved for the END: if the ring is full, the END waits, as tokens do.  With CANCEL the
 * client cancels at any time.  With CRASH it is killed between any two steps.  With HOSTILE it
 * writes any value into its segment and sends RESUME at any time, until the daemon hangs up.
 * The doorbell is a readable socket or, with FUTEX, a futex on tail.
 *
 * Memory.  Spin interleaves steps, and so would not notice a missing fence.  Therefore each
 * shared word is two variables: the value that its writer has stored, and the value that has
 * arrived at the other side (`_there`).  In between the store is on its way: stores to one word
 * arrive in order, stores to two words in any order.  The process `memory` delivers a store at
 * any time.  A seq_cst fence waits until everything that its thread has stored or seen has
 * arrived.  The engine's tail reaches the waker before it reaches the reader: the hand-over
 * promises that the waker sees it, and promises the reader nothing.
 *
 * There are two such handshakes: tail with wake_position, and head with state.  Both at once
 * have too many states.  So a run examines the first or, with STALL, the second; the words of
 * the other one arrive at once, and its handshake is one step.
 *
 * Nothing here times out, so after a lost wake-up a process sleeps for ever: an invalid end
 * state. The next record would wake such a sleeper and hide the loss.  So at any step the engine
 * may wait until every reader has read everything that it should ("a long step").  `ends` also
 * says that no side loops for ever.
 *
 * A batching reader asks for a position ahead of tail, and may ask for one that it cannot reach
 * (FAR). An END wakes it, whatever it asked for.  So does the wake level, a number of records
 * beyond the head that the engine knew when it published.  The engine shows the waker three
 * words, end and wake level before tail.  The waker loads tail before end and wake level, and
 * may do so in the middle of the next showing.
 *
 * Not here: the bytes of a record and whether they arrive before tail (litmus-publish.c), PAD,
 * 64-bit positions, several streams, freeing of a channel (hangup.pml), other traffic on the
 * socket (doorbell.pml).  With FUTEX a reader without its second look, or without its fence,
 * makes no error: the kernel compares tail once more, under a lock.
 *
 * Mutants, by macro.  Each is an easy mistake, and each must be caught:
 *
 *      NO_RECHECK_AFTER_WAKE_POS  the reader sleeps without a second look at tail
 *      NO_READER_FENCE            ... with one that runs ahead of its store
 *      RECHECK_AGAINST_POSITION   a batching reader asks tail > wake_position, not tail moved
 *      DRAIN_AFTER_RECHECK        the reader empties the socket between the second look and poll
 *      SLEEP_BEFORE_RELEASE       the reader sleeps on records that it has not given back
 *      HEAD_BEFORE_READ           the reader gives a record back and reads it then
 *      NO_RELEASE_FENCE           its look for STALLED runs ahead of its head
 *      PUBLISH_BEFORE_RECORD      tail is shown before the record is there
 *      WAKE_BEFORE_PUBLISH        the waker is told before tail is stored
 *      NO_WAKING_FLAG             every publish posts a WAKE
 *      FLAG_LOWERED_AFTER_LOOK    the waker looks, then lowers `waking`
 *      NO_WAKER_FENCE             there is no fence between the waker's two loads
 *      TAIL_LOADED_AFTER_FENCE    the waker announces a tail which its fence did not cover
 *      OLD_IS_EXCLUSIVE           the waker rings only if old < wake_position < new
 *      END_IS_NO_NEWS             an END rings only if wake_position was passed
 *      TORN_LOOK                  the waker loads end and wake level, then tail
 *      TORN_SHOW                  the engine stores tail, then end and wake level
 *      NO_WAKE_LEVEL              a reader may sleep while its ring fills up
 *      WAKE_LEVEL_IS_A_BORDER     ... and is woken when tail passes the level, not when it is above
 *      END_WITHOUT_ROOM           an END does not ask for space
 *      NO_STALL_RECHECK           the engine declares a stall and waits
 *      NO_STALL_FENCE             its second look at head runs ahead of STALLED
 *      SENT_LOWERED_AFTER_LOOK    the engine takes SPACE, stalls anew, then lowers `resume_sent`
 *      NO_SENT_FLAG    (HOSTILE)  every RESUME posts a SPACE
 *      TRUST_HEAD      (HOSTILE)  head is used without a check
 *      DOUBLE_FETCH    (HOSTILE)  head is checked, then loaded again and used
 */
#define N      3
#ifndef TOKENS
#if defined(STALL) || defined(HOSTILE)
#define TOKENS 4 /* all places, and one more */
#else
#define TOKENS 2
#endif
#endif
#ifdef END_WITHOUT_ROOM
#define END_ROOM true
#else
#define END_ROOM (t - h < N)
#endif
#define WAKE_LEVEL   1 /* no reader sleeps while more records than this are unread */
#define END    99
#define FAR    99
#define NEVER  255

mtype = { WAKE, SPACE, RESUME };

byte place[N]; /* what is written there and not yet read, 0: nothing */

byte tail, tail_there;
byte head_there;
byte wake_there;
bool state_there; /* STALLED */
chan tail_way = [1] of { byte };
chan head_way = [1] of { byte };
chan wake_way = [1] of { byte };
chan state_way = [1] of { bool };

bool waking, resume_sent; /* both by exchange */
byte shown_tail, shown_end, shown_level = WAKE_LEVEL;
chan to_waker = [1] of { mtype };
chan to_engine = [1] of { mtype };
chan to_loop = [2] of { mtype };

bool bell;   /* the client's socket is readable */
bool asleep; /* FUTEX: in the kernel */

bool cancelled, hup;
bool engine_over, reader_over;

/* Ghosts, for asking only: what was read, and up to where the sleeper may sleep. */
byte taken, may_sleep;

active proctype memory()
{
end:    do
        :: tail_way?tail_there
        :: head_way?head_there
        :: wake_way?wake_there
        :: state_way?state_there
        od
}

/* What this run does not examine arrives at once, and its handshake is one step. */
#if defined(STALL) || defined(HOSTILE)
#define store_tail(v) atomic { tail = v; tail_there = v }
#define store_wake(v) wake_there = v
#define SLEEP_STEP    atomic
#else
#define store_tail(v) atomic { tail_way!v; tail = v }
#define store_wake(v) wake_way!v
#define SLEEP_STEP
#endif
#if defined(STALL)
#define store_head(v)  head_way!v
#define store_state(v) state_way!v
#define STALL_STEP
#else
#define store_head(v)  head_there = v
#define store_state(v) state_there = v
#define STALL_STEP     atomic
#endif

/* ---- the daemon ---- */

inline hand_over()
{
        atomic {
                if
                :: !waking -> waking = true; assert(nfull(to_waker)); to_waker!WAKE
#ifdef NO_WAKING_FLAG
                :: waking -> assert(nfull(to_waker)); to_waker!WAKE
#else
                :: else
#endif
                fi
        }
}

inline publish(ends_here)
{
#ifdef WAKE_BEFORE_PUBLISH
        hand_over();
#endif
        store_tail(t);
        SLEEP_STEP {
#ifdef TORN_SHOW
                shown_tail = t;
#endif
                if
                :: ends_here -> shown_end = t
                :: else
                fi;
                shown_level = h + WAKE_LEVEL;
#ifndef TORN_SHOW
                shown_tail = t
#endif
        };
#ifdef WAKE_BEFORE_PUBLISH
        skip
#else
        hand_over()
#endif
}

inline put(what)
{
        assert(h <= t && t - h < N);
#ifndef HOSTILE
        assert(place[t % N] == 0); /* not overwritten before it was read */
#endif
        place[t % N] = what;
        t++
}

inline put_token()
{
#ifdef PUBLISH_BEFORE_RECORD
        store_tail(t + 1);
#endif
        atomic { put(t + 1) }
}

/* One load, bounded by what is known; an impossible one is the end of this reader. */
inline load_head()
{
        x = head_there;
#ifndef TRUST_HEAD
        if
        :: x < h || x > tail -> goto over
        :: else
        fi;
#endif
#ifdef DOUBLE_FETCH
        x = head_there;
#endif
        atomic { h = x; x = 0 }
}

inline on_space()
{
        to_engine?SPACE;
#ifndef SENT_LOWERED_AFTER_LOOK
        resume_sent = false;
#endif
        if
        :: stalled -> stalled = false; store_state(false)
        :: else
        fi
}

inline stall()
{
        store_state(true);
#ifndef NO_STALL_FENCE
        empty(state_way);
#endif
        stalled = true
#ifndef NO_STALL_RECHECK
        ;
        if
        :: head_there != h -> stalled = false; store_state(false)
        :: else
        fi
#endif
}

active proctype engine()
{
        byte t, h, x; /* t: the tail with what is not published yet */
        bool stalled, resumed, told; /* told: it has heard of the cancel */

step:
#ifndef HOSTILE
        if /* the second one is a long step */
        :: true
        :: true -> taken == tail || (may_sleep >= tail && tail <= shown_level) || cancelled || hup
        fi;
#endif
        if
        :: atomic { nempty(to_engine) -> resumed = true }; on_space()
        :: empty(to_engine)
        fi;
        if
        :: hup -> goto over
        :: else
        fi;
        load_head();
        told = cancelled;
        if
        :: (told || t >= TOKENS) && END_ROOM ->
                atomic { put(END) };
                publish(true);
                goto over
        :: !told && t < TOKENS && t - h < N ->
                put_token();
                if
                :: t < TOKENS && t - h < N -> put_token()
                :: true
                fi;
                publish(false)
        :: else -> STALL_STEP { stall() }
        fi;
#ifdef SENT_LOWERED_AFTER_LOOK
        if
        :: resumed -> resume_sent = false
        :: else
        fi;
#endif
        resumed = false;
        if
        :: !stalled
        :: stalled && (nempty(to_engine) || (cancelled && !told) || hup)
        fi;
        goto step;

over:   atomic { engine_over = true; t = 0; h = 0; x = 0; stalled = 0; resumed = 0; told = 0 };
end:    do /* what is still under way */
        :: atomic { to_engine?SPACE -> resume_sent = false }
        od
}

#ifdef OLD_IS_EXCLUSIVE
#define WISHED (old < w && w < new)
#else
#define WISHED (old <= w && w < new)
#endif
#ifdef END_IS_NO_NEWS
#define ENDS false
#else
#define ENDS (old < last)
#endif
#if defined(NO_WAKE_LEVEL)
#define ABOVE_LEVEL false
#elif defined(WAKE_LEVEL_IS_A_BORDER)
#define ABOVE_LEVEL (old <= level && level < new)
#else
#define ABOVE_LEVEL (level < new)
#endif

/* A tail that was seen was stored before: behind the fence it is at the reader, too. */
inline look()
{
#if defined(TORN_LOOK)
        last = shown_end;
        level = shown_level;
        new = shown_tail;
        tail_there >= new;
#elif defined(TAIL_LOADED_AFTER_FENCE)
        tail_there == tail;
        new = shown_tail;
        last = shown_end;
        level = shown_level;
#else
        new = shown_tail;
        last = shown_end;
        level = shown_level;
#ifndef NO_WAKER_FENCE
        tail_there >= new;
#endif
#endif
        w = wake_there;
        atomic {
                if
                :: w != NEVER && (WISHED || ENDS || ABOVE_LEVEL) ->
#ifdef FUTEX
                        asleep = false
#else
                        bell = true
#endif
                :: else
                fi;
                old = new;
                new = 0;
                last = 0;
                level = 0;
                w = 0
        }
}

active proctype waker()
{
        byte old, new, last, level, w;

end:    do
#ifdef FLAG_LOWERED_AFTER_LOOK
        :: to_waker?WAKE -> look(); waking = false
#else
        :: atomic { to_waker?WAKE -> waking = false }; SLEEP_STEP { look() }
#endif
        od
}

active proctype loop()
{
end:    do
        :: atomic { to_loop?RESUME ->
                if
                :: !resume_sent -> resume_sent = true; assert(nfull(to_engine)); to_engine!SPACE
#ifdef NO_SENT_FLAG
                :: resume_sent -> assert(nfull(to_engine)); to_engine!SPACE
#else
                :: else
#endif
                fi
        }
        od
}

/* ---- the client ---- */

#ifndef HOSTILE

inline release()
{
        STALL_STEP {
                store_head(h);
#ifndef NO_RELEASE_FENCE
                empty(head_way);
#endif
                if
                :: state_there -> to_loop!RESUME
                :: else
                fi
        }
}

inline take()
{
#ifdef HEAD_BEFORE_READ
        h++;
        release();
        h--;
#endif
        atomic {
                assert(place[h % N] == h + 1 || place[h % N] == END);
                ended = place[h % N] == END;
                place[h % N] = 0;
                h++;
                taken = h
        }
}

inline sleep()
{
        SLEEP_STEP {
                store_wake(w);
#ifndef NO_READER_FENCE
                empty(wake_way);
#endif
                if
#if defined(RECHECK_AGAINST_POSITION)
                :: tail_there > w -> moved = true
#elif !defined(NO_RECHECK_AFTER_WAKE_POS)
                :: tail_there != t -> moved = true
#endif
                :: else
                fi
        };
#ifdef DRAIN_AFTER_RECHECK
        bell = false;
#endif
        if
        :: moved
        :: else ->
                may_sleep = w;
#ifdef FUTEX
                /* The kernel compares under its lock, and its lock is a fence. */
                empty(wake_way);
                asleep = (tail_there == t);
                !asleep
#else
                atomic { bell -> bell = false }
#endif
                may_sleep = 0
        fi;
        atomic { store_wake(NEVER); w = 0; t = 0; moved = false }
}

active proctype reader()
{
        byte h, t, w;
        bool ended, moved;

        {
                do
                :: ended -> break
                :: else ->
                        t = tail_there;
                        if
                        :: t != h ->
                                do
                                :: t != h && !ended -> take()
                                :: t != h && !ended -> take(); release()
                                :: t == h || ended -> break
                                od;
#ifndef SLEEP_BEFORE_RELEASE
                                release()
#endif
                        :: else ->
                                bell = false; /* replies are read here, and kicks with them */
                                if
                                :: w = t
                                :: w = FAR
                                fi;
                                sleep()
                        fi
                od
        } unless { hup };
        atomic { reader_over = true; h = 0; t = 0; w = 0; ended = false; moved = false }
}

#else

active proctype reader() /* of sorts */
{
        do
        :: store_head(0)
        :: store_head(1)
        :: store_head(2)
        :: store_head(200)
        :: store_wake(0)
        :: store_wake(3)
        :: store_wake(NEVER)
        :: to_loop!RESUME
        :: hup -> break
        :: engine_over -> break
        od;
        reader_over = true
}

#endif

/* What may come over the client at any time, or not. */
active proctype fate()
{
#if defined(CANCEL)
        cancelled = true
#elif defined(CRASH) || defined(HOSTILE)
        hup = true
#else
        true
#endif
}

#ifdef HOSTILE
ltl ends { <> engine_over }
#else
ltl ends { <> (engine_over && reader_over) }
#endif
