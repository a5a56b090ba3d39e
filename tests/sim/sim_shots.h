/* What may happen to a job in a history, and what is counted of it: names for both are in sim_names.c. */
#ifndef RM_SIM_SHOTS_H
#define RM_SIM_SHOTS_H

enum shot_kind {
    SHOT_KILL,
    SHOT_CRASH,
    SHOT_TRAINER,
    SHOT_TRAINER_CRASH,
    SHOT_TERM,
    SHOT_JOIN,
    SHOT_CUT,
    SHOT_INTERRUPT,
    SHOT_ZOMBIE,
    SHOT_COORDINATOR,
    SHOT_STOP,  /* run's drill: agent and trainer; may go on as a zombie */
    SHOT_HANG,  /* run's drill: the trainer alone */
    SHOT_STUCK, /* the compute thread */
    SHOT_PAUSE, /* agent and trainer, for a while */
    SHOT_PAUSE_AGENT,
    SHOT_PAUSE_TRAINER,
    SHOT_PAUSE_COORDINATOR,
    SHOT_SILENCE, /* a connection carries nothing for a while, and does not end */
    SHOT_SLOW,    /* a step takes longer than any patience, but moves */
    SHOT_STRANGER,
    SHOT_ALL_LEAVE,  /* all are told to go at once, and are killed when their time is over */
    SHOT_STORE_AWAY, /* the store takes nothing for a while */
    SHOT_STORE_FULL, /* for good: it takes no manifest, and all, half or none of the slices */
    SHOT_MAY,        /* a pod's machine may go, and does not */
    SHOT_WILL,       /* it will, at a moment that is told */
    SHOT_WILL_ALL,   /* all will at once, in 15 s */
    SHOT_TAKEN_BACK, /* it will, and then it will not */
    SHOT_MAY_BACK,   /* it may, and then it does not */
    SHOT_MAY_WILL,   /* it may, and then it will */
    SHOT_MOVED,      /* it will, and then sooner or later than that */
    SHOT_WILL_TWO,   /* two will at once */
    SHOT_EARLY,      /* it will, and goes before its moment */
    SHOTS
};
extern const char *const shot_names[SHOTS];

/* What came of it, counted to see that a campaign really tried what it claims. */
enum tally {
    TALLY_MESSAGES_LOST, /* were under way in a connection that was cut */
    TALLY_BLAMED,        /* told to kill a trainer that hangs */
    TALLY_SILENT,        /* taken for lost, as nothing came from them */
    TALLY_GIVEN_UP,      /* stopped workers that run gave up */
    TALLY_QUARANTINED,   /* workers */
    TALLY_ZOMBIES,       /* went on after the ring had gone on without them */
    TALLY_REFUSED,       /* abandoned */
    TALLY_LOADED,        /* rings from a checkpoint */
    TALLY_DAMAGED,       /* checkpoints that did not load */
    TALLY_MISSING,       /* loads in which not every share came from its member */
    TALLY_UNWRITTEN,     /* slices that could not be written */
    TALLY_GAVE_WRONG,    /* transfers in which a source gave something else */
    TALLY_STUCK,         /* calls to the store that did not return for long, or never */
    TALLY_WAITED,        /* outages of the store that were told */
    TALLY_NOT_SAVED,     /* states that nobody saved because there was no time */
    TALLY_CUT,           /* reductions, by a wall that lets handshakes pass */
    TALLY_STALLED,       /* likewise */
    TALLY_LEFT_OUT,      /* because they and others can't reach each other */
    TALLY_TAKEN_BACK,    /* of them */
    TALLY_RESCALED,      /* passes that did not fit */
    TALLY_CUT_EARLY,     /* ranks whose pass came to nothing before the header */
    TALLY_CUT_LATE,      /* after it: without step and without kept update */
    TALLY_UNPROVEN,      /* sums that were not what their checksums said */
    TALLY_SECOND_BROKE,  /* sums by another transport that failed or hung */
    TALLY_FLAWED,        /* states in which a bit flipped */
    TALLY_OUTVOTED,      /* that were given up for those of most */
    TALLY_SPOILT,        /* that were given up for that of another one, as they were not what they had been */
    TALLY_NO_MAJORITY,   /* rings all of whose states were given up, as no majority said which are right */
    TALLY_REPAIRED,      /* updates that a successor finished */
    TALLY_WHOLE,         /* states received by who was one step behind, as nobody keeps the update */
    TALLY_BY_CLOCK,      /* snapshots whose time the coordinator chose */
    TALLY_ALL_LOST,      /* then: rings from a checkpoint behind what had been made */
    TALLY_REDONE,        /* steps */
    TALLY_RECOVERIES,
    TALLY_RINGS, /* that went as far as `go` */
    TALLY_STEPS,
    TALLY_COMPLETE, /* ends */
    TALLY_INTERRUPTED,
    TALLY_TOO_FEW,
    TALLY_NOT_FINITE, /* or with too many failures */
    TALLY_SAID_ALONE,
    TALLY_MADE_WAY,
    TALLY_STILL,
    TALLY_STORAGE,
    TALLY_UNREACHABLE,     /* of those: too few reach each other */
    TALLY_FOR_EVER,        /* did not end, as too few pods reach each other */
    TALLY_NO_PLACES,       /* nor these, as quarantines leave too few */
    TALLY_NOTICES,         /* workers told that their machines go */
    TALLY_OUT_IN_TIME,     /* of them, that were out before */
    TALLY_TAKEN_ALONG,     /* of them, that were not */
    TALLY_SAVED_AHEAD,     /* times that a save was begun while all trained, as a machine will go */
    TALLY_LIES,            /* times that a worker was told so, and its machine stayed */
    TALLY_LIED_TO,         /* workers that were let go from such a machine after another one was */
    TALLY_NOTICE_STEPS,    /* steps told between a notice and the end of who was told */
    TALLY_PROGRAMS_FAILED, /* beside their trainers */
    TALLY_IN_A_LANE,       /* of them in the middle of a lane */
    TALLY_SLOW_LANES,
    TALLY_LANES_KEPT,
    TALLY_PASSES_RESUMED,
    TALLY_HEARD,         /* states that came in while others trained */
    TALLY_UPDATES_HEARD, /* on the way to them, and behind them */
    TALLY_HEARD_IN_VAIN,
    TALLY_SHARES_MOVED,
    TALLY_PASSES_SHARED,
    TALLIES
};
extern const char *const tally_names[TALLIES];

#endif
