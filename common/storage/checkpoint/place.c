#include "common/storage/checkpoint/place.h"

int place_open_checkpoints(struct object_store **ret, const struct job_spec *spec, const atomic_int *cancel,
                           struct error *err)
{
    return place_open_watched(ret, spec, &(struct object_options){.cancel = cancel}, err);
}

int place_open_watched(struct object_store **ret, const struct job_spec *spec,
                       const struct object_options *how, struct error *err)
{
    struct object_options options = *how;
    options.uri = spec->checkpoint.uri;
    options.endpoint = spec->checkpoint.endpoint;
    options.region = spec->checkpoint.region;
    return object_open(ret, &options, err);
}

int place_open_data(struct object_store **ret, const struct job_spec *spec, const atomic_int *cancel,
                    struct error *err)
{
    struct object_options options = {.uri = spec->data.uri,
                                     .endpoint = spec->data.endpoint,
                                     .region = spec->data.region,
                                     .cancel = cancel};
    return object_open(ret, &options, err);
}

int place_open_init(struct object_store **ret, const struct job_spec *spec, struct error *err)
{
    struct object_options options = {
        .uri = spec->model.init, .endpoint = spec->checkpoint.endpoint, .region = spec->checkpoint.region};
    return object_open(ret, &options, err);
}

int place_open_uri(struct object_store **ret, const char *uri, struct error *err)
{
    return object_open(ret, &(struct object_options){.uri = uri}, err);
}
