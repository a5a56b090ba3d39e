/* The environment variables that Ringmaster reads: the only caller of getenv. Each is documented in docs/. */
#ifndef RM_OS_CONFIG_H
#define RM_OS_CONFIG_H

enum config_key {
    CONFIG_TRAINER,     /* RINGMASTER_TRAINER: path of the trainer program instead of the agent's sibling */
    CONFIG_TRAINER_ISA, /* RINGMASTER_TRAINER_ISA: instruction set by force, over trainer.isa */
    CONFIG_LOG,         /* RINGMASTER_LOG: debug | info | warn (default) */
    CONFIG_FAULT,       /* RINGMASTER_FAULT: NAME[:N][@WHO], test builds only; see fault.h */
    CONFIG_NO_COLOR,    /* NO_COLOR: no colours on a terminal */
    CONFIG_KEYS
};

/* NULL where it is unset or empty. */
const char *config_get(enum config_key key);

#endif
