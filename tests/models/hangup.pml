/*
 * A connection ends: which thread may touch which object, until when, and which messages end
 * that.
 *
 *      loop   --SUBMIT CANCEL HANGUP--> engine
 *      engine --RETIRED--> loop                           wakes nothing
 *      engine --WAKE CHANNEL_GONE--> waker --the same--> loop
 *
 * The first connection has one channel and two requests.  Each request ends by itself, or
 * because the client cancels it, or because the client is gone.  CANCEL may cross RETIRED on its
 * way.  The END becomes visible at the next flush, unless it finds no space in the ring and
 * waits.  The waker rings on the descriptor of the connection, so the channel closes the
 * descriptor.  A second connection may be accepted at any time.  As in the kernel, it gets the
 * lowest free number.
 *
 * RETIRED is posted before its END is visible, and the loop looks for RETIRED before it judges a
 * frame.  RETIRED itself wakes nothing: at the flush the engine raises `calling`, and the WAKE
 * that follows makes the waker call the loop, which lowers `draining` and then looks.  A WAKE
 * precedes every CHANNEL_GONE, so by then the loop has seen every RETIRED.
 *
 *      by default    the client may disconnect at any time
 *      HALF_CLOSED   the client has sent everything, and waits for the daemon to hang up
 *      STAYS         the client does nothing more; its requests must be freed all the same
 *      PRIVATE       (with each) the loop drains the ring, and the waker never rings
 *
 * Asserted: a ring reaches the connection that it was meant for.  No thread touches a request or
 * a channel after it was freed, and each is freed once.  A channel is freed after its requests.
 * A client that has seen an END finds its id free.  The daemon does not hang up before all ENDs
 * are visible.  The loop may rest only when everything is freed, so a lost call is an invalid
 * end state.
 *
 * Not here: the contents of the ring (ring.pml); other traffic on the socket (doorbell.pml);
 * STOP; and forks of a request, whose SUBMIT may cross its RETIRED as CANCEL does (forks.pml).
 *
 * Mutants:
 *
 *      FREE_AT_HANGUP           the loop frees the channel when the client is gone
 *      FREE_BEFORE_WAKER        the engine sends CHANNEL_GONE to the loop, past the waker
 *      CLOSED_AT_HANGUP         the descriptor is closed with its peer
 *      GONE_BEFORE_WAKE         the engine posts CHANNEL_GONE, and WAKE after it
 *      FORWARD_BEFORE_RING      the waker forwards while it takes, and rings for all at the end
 *      HANGUP_BEFORE_CANCEL     the loop posts HANGUP first
 *      GONE_AT_HANGUP           the engine answers HANGUP at once, not at the end of the step
 *      RETIRED_ONCE             the engine does not answer a CANCEL that crossed
 *      FREE_AT_FIRST_RETIRED    the loop frees a request while its CANCEL is on its way
 *      CANCEL_TAKEN_FORGOTTEN   the loop waits for an answer that it has already got
 *      CANCEL_TWICE             the loop cancels again a request that the client has cancelled
 *      CANCEL_AFTER_RETIRED     the loop cancels a request that is gone
 *      RETIRED_AFTER_SHOWN      RETIRED is posted after the flush
 *      NOT_CAUGHT_UP            the loop judges a frame without looking for RETIRED
 *      MAIL_NOT_CAUGHT_UP       ... or at a WAKE
 *      RETIRED_WITHOUT_CALL (STAYS)         no WAKE follows
 *      CALLING_RAISED_EARLY (HALF_CLOSED)   `calling` is raised with the post, not at the flush
 *      CALLING_LOWERED_FIRST (HALF_CLOSED)  the waker lowers `calling`, then `waking`
 *      DRAINING_LOWERED_LAST (HALF_CLOSED)  the loop hangs up, then lowers `draining`
 *      LOOKED_BEFORE_LOWERED (HALF_CLOSED)  the loop looks for RETIRED before it lowers `draining`
 *      HUNG_UP_UNSHOWN (HALF_CLOSED)        the loop does not check that everything is visible
 *      COUNT_BEFORE_TAIL (HALF_CLOSED)      the count becomes visible before the ENDs
 */
#define REQUESTS 2
#define NONE     99

mtype = { SUBMIT, CANCEL, HANGUP, WAKE, GONE };

chan to_engine = [5] of { mtype, byte }; /* each request twice, the channel once */
chan from_engine = [4] of { byte };      /* RETIRED: each twice */
chan to_waker = [2] of { mtype };        /* WAKE once, GONE once */
chan to_loop = [2] of { mtype };         /* the same */

byte owner[2]; /* by number: the connection that has this descriptor, 1 or 2; 0: none */
byte socket;   /* the first connection's */

bool channel_alive, alive[REQUESTS];
bool waking, calling, draining; /* all three by exchange */
bool cancel_taken[REQUESTS];
bool shown[REQUESTS]; /* its END can be seen */
byte shown_retired;

inline touch_channel() { assert(channel_alive) }
inline touch(r) { assert(alive[r]) }

inline post(box, kind, what) { atomic { assert(nfull(box)); box!kind, what } }
inline pass(box, kind) { atomic { assert(nfull(box)); box!kind } }

/* ---- loop ---- */

bool listed[REQUESTS], cancel_sent[REQUESTS], retired[REQUESTS];
bool asked_to_cancel[REQUESTS], asked_again[REQUESTS];
byte alive_count, retired_received;
bool connected, read_shut, channel_freed;

inline cancel(r)
{
        if
#if defined(CANCEL_TWICE)
        :: alive[r] && !retired[r] ->
#elif defined(CANCEL_AFTER_RETIRED)
        :: !cancel_sent[r] ->
#else
        :: alive[r] && !cancel_sent[r] && !retired[r] ->
#endif
                cancel_sent[r] = true;
                post(to_engine, CANCEL, r)
        :: else
        fi
}

inline let_go(r)
{
        listed[r] = false;
        if
#ifdef FREE_AT_FIRST_RETIRED
        :: true ->
#else
        :: retired[r] && !cancel_sent[r] ->
#endif
                atomic { touch(r); alive[r] = false; alive_count-- }
        :: else
        fi
}

/* Steps that concern the loop alone are one step here. */
inline on_retired(r)
{
        atomic {
                touch(r);
                if
                :: listed[r] && !retired[r] -> retired_received++
                :: else
                fi;
                if
#ifdef CANCEL_TAKEN_FORGOTTEN
                :: cancel_sent[r] && !retired[r] -> skip
#else
                :: cancel_sent[r] && !cancel_taken[r] && !retired[r] -> skip /* crossed */
#endif
                :: else -> cancel_sent[r] = false
                fi;
                retired[r] = true;
#ifdef PRIVATE
                if
                :: !listed[r] -> let_go(r)
                :: else
                fi
#else
                let_go(r)
#endif
        }
}

inline catch_up()
{
        do
        :: atomic { from_engine?r -> on_retired(r) }
        :: empty(from_engine) -> break
        od;
        r = 0
}

inline leave(r)
{
        cancel(r);
        if
        :: listed[r] -> let_go(r)
        :: else
        fi
}

inline hang_up()
{
        connected = false;
#if defined(CLOSED_AT_HANGUP) || defined(PRIVATE)
        owner[socket] = 0;
#endif
#ifdef HANGUP_BEFORE_CANCEL
        post(to_engine, HANGUP, 0);
#endif
        leave(0);
        leave(1);
#ifndef HANGUP_BEFORE_CANCEL
        post(to_engine, HANGUP, 0);
#endif
#ifdef FREE_AT_HANGUP
        channel_alive = false;
        owner[socket] = 0;
        channel_freed = true
#endif
}

/* The loop reads the END of a private ring, perhaps before it has seen RETIRED. */
inline drain(r)
{
#ifndef PRIVATE
        skip
#else
        if
        :: shown[r] && listed[r] ->
#ifndef NOT_CAUGHT_UP
                if
                :: !retired[r] -> catch_up()
                :: else
                fi;
#endif
                assert(retired[r]);
                let_go(r)
        :: else
        fi
#endif
}

#ifdef HUNG_UP_UNSHOWN
#define ALL_SHOWN true
#else
#define ALL_SHOWN (shown_retired >= retired_received)
#endif

/* Last in every turn: the loop drains everything, and hangs up on clients that wait for nothing. */
inline settle()
{
        if
        :: connected ->
                drain(0);
                drain(1);
                if
                :: read_shut && !listed[0] && !listed[1] && ALL_SHOWN ->
                        assert(shown[0] && shown[1]);
                        hang_up()
                :: else
                fi
        :: else
        fi
}

inline judge_frame()
{
#ifdef NOT_CAUGHT_UP
        skip
#else
        catch_up()
#endif
}

inline free_channel()
{
        atomic {
                touch_channel();
                assert(alive_count == 0);
                channel_alive = false;
                channel_freed = true;
#if !defined(PRIVATE) && !defined(CLOSED_AT_HANGUP)
                owner[socket] = 0
#endif
        }
}

/* A call from here on posts a WAKE of its own; earlier calls are served now. */
inline on_wake()
{
        touch_channel();
#if defined(DRAINING_LOWERED_LAST)
        catch_up();
        settle();
        draining = false
#elif defined(LOOKED_BEFORE_LOWERED)
        catch_up();
        draining = false;
        settle()
#elif defined(MAIL_NOT_CAUGHT_UP)
        draining = false;
        settle()
#else
        draining = false;
        catch_up();
        settle()
#endif
}

inline take_mail()
{
        to_loop?kind;
        if
        :: kind == WAKE -> on_wake()
#ifndef FREE_AT_HANGUP
        :: kind == GONE -> free_channel()
#else
        :: kind == GONE
#endif
        fi;
        kind = 0
}

active proctype loop()
{
        byte r;
        mtype kind;
        bool second;

        atomic {
                owner[socket] = 1;
                connected = true;
                channel_alive = true;
                alive[0] = true;
                alive[1] = true;
                listed[0] = true;
                listed[1] = true;
                alive_count = REQUESTS;
                post(to_engine, SUBMIT, 0);
                post(to_engine, SUBMIT, 1)
        };

        do
        :: nempty(to_loop) -> take_mail()
        :: connected && !read_shut && !asked_to_cancel[0] ->
                asked_to_cancel[0] = true;
                judge_frame();
                if
                :: listed[0] -> cancel(0)
                :: else
                fi;
                settle()
#ifndef PRIVATE
        /* The client has read the END, and uses the id again. */
        :: connected && !read_shut && shown[1] && !asked_again[1] ->
                asked_again[1] = true;
                judge_frame();
                assert(!listed[1]);
                settle()
#endif
#if defined(HALF_CLOSED)
        :: connected && !read_shut -> read_shut = true; settle()
#elif !defined(STAYS)
        :: connected -> hang_up()
#endif
#ifdef STAYS
        :: connected && alive_count == 0 -> break
#endif
        :: !second && (owner[0] == 0 || owner[1] == 0) -> second = true;
                atomic {
                        if
                        :: owner[0] == 0 -> owner[0] = 2
                        :: else -> owner[1] = 2
                        fi
                }
        :: channel_freed && alive_count == 0 -> break
        od;
end:    do /* messages that come now would be touched */
        :: from_engine?r -> touch(r)
        :: to_loop?kind -> touch_channel()
        od
}

/* ---- engine ---- */

inline tell(r)
{
        touch_channel();
#ifndef RETIRED_WITHOUT_CALL
        call = true;
#ifdef CALLING_RAISED_EARLY
        calling = true;
#endif
#endif
        dirty = true;
        atomic { assert(nfull(from_engine)); from_engine!r }
}

inline end_of(r)
{
        touch(r);
        touch_channel();
        atomic { ending[r] = false; running[r] = false; gone[r] = true; count++; live-- };
        if
        :: !hung_up -> written[r] = true; dirty = true
        :: else
        fi;
#ifdef RETIRED_AFTER_SHOWN
        call = true;
        dirty = true;
        late[r] = true
#else
        tell(r)
#endif
}

inline show_all()
{
#ifdef COUNT_BEFORE_TAIL
        shown_retired = count;
#endif
        atomic { shown[0] = written[0]; shown[1] = written[1] };
#ifndef COUNT_BEFORE_TAIL
        shown_retired = count
#endif
}

inline flush()
{
        touch_channel();
        dirty = false;
        show_all();
#ifdef RETIRED_AFTER_SHOWN
        do
        :: late[0] -> late[0] = false; from_engine!0
        :: late[1] -> late[1] = false; from_engine!1
        :: !late[0] && !late[1] -> break
        od;
#endif
        if
        :: call ->
#ifndef CALLING_RAISED_EARLY
                calling = true;
#endif
                call = false
        :: else
        fi;
        if
        :: atomic { !waking -> waking = true }; pass(to_waker, WAKE)
        :: else
        fi
}

inline let_channel_go()
{
        if
#ifdef GONE_AT_HANGUP
        :: hung_up && !let_go_of ->
#else
        :: hung_up && live == 0 && !let_go_of ->
#endif
                let_go_of = true;
#ifdef FREE_BEFORE_WAKER
                pass(to_loop, GONE)
#else
                pass(to_waker, GONE)
#endif
        :: else
        fi
}

/* ENDs are written and their requests retire; everything becomes visible; then a channel may go. */
inline carry_out()
{
        if
        :: ending[0] -> end_of(0)
        :: !ending[0] || !hung_up /* the ring is full */
        fi;
        if
        :: ending[1] -> end_of(1)
        :: !ending[1] || !hung_up
        fi;
#ifdef GONE_BEFORE_WAKE
        let_channel_go();
#endif
        if
        :: dirty -> flush()
        :: else
        fi;
        let_channel_go()
}

active proctype engine()
{
        bool running[REQUESTS], ending[REQUESTS], gone[REQUESTS], written[REQUESTS];
#ifdef RETIRED_AFTER_SHOWN
        bool late[REQUESTS];
#endif
        bool dirty, call, hung_up, let_go_of, token;
        byte r, live, count;

end:    do
        :: atomic { to_engine?SUBMIT, r -> touch(r); running[r] = true; live++; r = 0 }
        :: to_engine?CANCEL, r ->
                touch(r);
                if
                :: gone[r] ->
#ifndef RETIRED_ONCE
                        tell(r)
#endif
                :: else -> cancel_taken[r] = true; ending[r] = true
                fi;
                r = 0
        :: to_engine?HANGUP, r ->
                touch_channel();
                hung_up = true;
#ifdef GONE_AT_HANGUP
                let_channel_go()
#endif
        :: running[0] && !ending[0] -> ending[0] = true /* by itself */
        :: running[1] && !ending[1] -> ending[1] = true
        :: running[0] && !token && !hung_up -> token = true; dirty = true /* a step */
        :: ending[0] || ending[1] || dirty || (hung_up && !let_go_of && live == 0) -> carry_out()
        od
}

/* ---- waker ---- */

inline call_loop()
{
        if
        :: atomic { !draining -> draining = true }; pass(to_loop, WAKE)
        :: else
        fi
}

inline lower_calling() { atomic { called = calling; calling = false } }

inline wake()
{
        touch_channel();
#ifdef CALLING_LOWERED_FIRST
        lower_calling();
        waking = false;
#else
        waking = false;
        lower_calling();
#endif
#ifdef PRIVATE
        call_loop();
#else
        if
        :: called -> call_loop()
        :: else
        fi;
        touch_channel();
        if
        :: assert(owner[socket] == 1); touch_channel() /* it rings */
        :: true                                        /* it is not due */
        fi;
#endif
        called = false
}

active proctype waker()
{
        mtype kind;
        bool called;
#ifdef FORWARD_BEFORE_RING
        bool rings;
#endif

end:    do
        :: to_waker?kind ->
#ifdef FORWARD_BEFORE_RING
                do /* a batch: what is there now */
                :: kind == WAKE -> rings = true; kind = 0
                :: kind == GONE -> pass(to_loop, kind); kind = 0
                :: kind == 0 && nempty(to_waker) -> to_waker?kind
                :: kind == 0 && empty(to_waker) -> break
                od;
                if
                :: rings -> wake(); rings = false
                :: else
                fi
#else
                if
                :: kind == WAKE -> wake()
                :: else -> pass(to_loop, kind)
                fi;
                kind = 0
#endif
        od
}
