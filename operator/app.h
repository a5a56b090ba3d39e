/* ringmaster-operator: the lease, the reflectors, the reconciler and a small HTTP server on one loop.
 *
 * Replicas that don't hold the lease keep no caches: whoever gets it lists everything first, so that it never
 * decides on what it saw long ago. A replica that loses the lease ends, with exit code 4. One that holds it
 * keeps none either while another release acts in its place (rivals.h), and ends so where one comes that goes
 * before it. */
#ifndef RM_OPERATOR_APP_H
#define RM_OPERATOR_APP_H

#include <stdbool.h>

#include "common/base/error.h"
#include "common/base/time.h"
#include "operator/core/view.h"

struct operator_options {
    const char *kubeconfig, *context; /* NULL: the pod's ServiceAccount, or what KUBECONFIG names */
    const char *namespace;            /* to look after; NULL: all */
    const char *lease_namespace;      /* NULL: our own */
    const char *lease_name;
    bool lease;           /* false: act at once, for a single replica */
    rm_time lease_every;  /* 0: 2 s */
    const char *listen;   /* address of /metrics, /healthz and /readyz */
    int port;             /* 0: any free one, told in the log */
    int coordinator_port; /* 0: the pods' own */
    double per_second, burst;
    const char *prices;            /* path of prices.csv; NULL: there is none */
    struct op_labels metrics_from; /* what settings.metrics_from may point to */
    struct op_settings settings;
};

/* Runs until SIGTERM or SIGINT (0), or until it can't go on (-1 with *err). */
int app_run(const struct operator_options *options, struct error *err);

#endif
