/* What a fault says about: who or what is to blame, and so what may help. What is done about each is decided
 * in one table (coordinator/core/rdzv_fault.h). Whoever first sees a fault gives it its class; where nobody
 * did, it is the machine's. */
#ifndef RM_BASE_FAULT_CLASS_H
#define RM_BASE_FAULT_CLASS_H

enum fault_class {
    CLASS_UNKNOWN,  /* not said: taken as the machine's */
    CLASS_PASSING,  /* time heals it: a time-out, a store that is busy, a lock */
    CLASS_MACHINE,  /* this machine's: a disk that is full or broken, no memory, a right that it lacks */
    CLASS_PAIR,     /* between two machines, and neither alone is to blame */
    CLASS_OBJECT,   /* this object is proven to be damaged, whoever reads it */
    CLASS_SOURCE,   /* who gave it gave something else than was agreed */
    CLASS_SOFTWARE, /* programs that do not fit each other: protocol, format, arithmetic */
    CLASS_JOB,      /* the job's own: it would come out the same anywhere */
    CLASS_DEVICE,   /* a device of this machine's, which may work again for another process */
    FAULT_CLASSES
};

extern const char *const fault_class_names[FAULT_CLASSES]; /* "passing" */

#endif
