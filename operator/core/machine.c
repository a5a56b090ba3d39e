#include "operator/core/machine.h"

#include <stdio.h>
#include <string.h>

#include "common/wire/json.h"
#include "operator/core/read.h"

const struct machine_pool machine_pools[MACHINE_POOLS] = {
    {"eks.amazonaws.com/capacityType", "SPOT", "ON_DEMAND"},
    {"karpenter.sh/capacity-type", "spot", "on-demand"},
    {"cloud.google.com/gke-spot", "true", NULL},
    {"kubernetes.azure.com/scalesetpriority", "spot", NULL},
};

static void read_label(const struct js *labels, const char *key, char *out)
{
    const char *value = js_as_string(js_get(labels, key));
    text_tame(value ? value : "", out, PRICE_PLACE_MAX);
}

/* "aws:///eu-west-1a/i-0abc" -> "aws" */
static void read_provider(const char *id, char out[PRICE_PROVIDER_MAX])
{
    size_t length = id ? strcspn(id, ":") : 0;
    *out = 0;
    if (length && length < PRICE_PROVIDER_MAX && !strncmp(id + length, "://", 3))
        snprintf(out, PRICE_PROVIDER_MAX, "%.*s", (int)length, id);
}

void machine_read(const struct js *node, struct price_machine *ret)
{
    const struct js *labels = read_at(node, "metadata.labels");
    *ret = (struct price_machine){.capacity = PRICE_ON_DEMAND};
    read_provider(js_as_string(read_at(node, "spec.providerID")), ret->provider);
    read_label(labels, "node.kubernetes.io/instance-type", ret->type);
    read_label(labels, "topology.kubernetes.io/zone", ret->zone);
    read_label(labels, "topology.kubernetes.io/region", ret->region);
    for (int i = 0; i < MACHINE_POOLS; i++) {
        const char *value = js_as_string(js_get(labels, machine_pools[i].label));
        if (value && !strcmp(value, machine_pools[i].spot))
            ret->capacity = PRICE_SPOT;
    }
}

void machine_text(const struct price_machine *machine, char out[MACHINE_TEXT_MAX])
{
    const char *place = *machine->zone ? machine->zone : machine->region;
    snprintf(out, MACHINE_TEXT_MAX, "%s, %s%s%s", *machine->type ? machine->type : "a machine without a type",
             machine->capacity == PRICE_SPOT ? "spot" : "on demand", *place ? ", in " : "", place);
}
