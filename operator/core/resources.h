/* Amounts of what machines have and pods ask for, by the name of the resource: "cpu", "memory",
 * "nvidia.com/gpu". Kept in thousandths, as Kubernetes counts its smallest ones. A fixed number of names: of
 * those of a node or pod beyond that nothing is known. Pure. */
#ifndef RM_OPERATOR_CORE_RESOURCES_H
#define RM_OPERATOR_CORE_RESOURCES_H

#include <stdbool.h>
#include <stdint.h>

struct js;

enum {
    RESOURCES_MAX = 8,
    RESOURCE_NAME_MAX = 64,
    RESOURCE_WHOLE = 1000 * 1000, /* a share of 1: the whole machine */
};

struct resources {
    int count;
    struct {
        char name[RESOURCE_NAME_MAX];
        int64_t milli;
    } of[RESOURCES_MAX];
};

/* A quantity of Kubernetes: "500m", "2", "1.5Gi", "1e3"; cut to what int64_t holds. false: none, or negative.
 */
bool quantity_parse(const char *text, int64_t *ret_milli);

/* An object of name to quantity, strings or numbers; what is none is left out. */
void resources_read(const struct js *object, struct resources *ret);
void resources_add(struct resources *sum, const struct resources *more);
/* At least as much of each as `least` has. */
void resources_raise(struct resources *sum, const struct resources *least);

/* What a pod takes: its containers together, or what the largest of those before them takes, with those that
 * run on beside them; the pod's own overhead; and of what the pod as a whole asks for, that. */
void resources_of_pod(const struct js *spec, struct resources *ret);

/* Does it ask for what makes a scheduler count it at all: cpu, memory, a device? Disk alone is none. */
bool resources_are_asked(const struct resources *asked);

/* The largest of asked/there, in millionths of the machine, rounded up and RESOURCE_WHOLE at most. Where
 * nothing is asked, or the machine says nothing of what it has, it is the whole of it. */
int64_t resources_share(const struct resources *asked, const struct resources *there);

#endif
