/* Finds out from a URI, the job, the environment and the profile where a bucket is, how its names are
 * written, what protects a body on its way, and whether it is Google's. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/net/http.h"
#include "common/os/config.h"
#include "common/storage/object/s3.h"

static const char *first(const char *a, const char *b)
{
    return a && a[0] ? a : b;
}

/* Letters, digits and "-._" only: a bucket becomes part of a host's name or of a path. */
static bool is_bucket(const char *bucket)
{
    size_t length = strlen(bucket);
    return length >= 3 && length < S3_BUCKET_MAX && bucket[0] != '.' && bucket[0] != '-' &&
           bucket[strspn(bucket, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._")] == 0;
}

static bool is_prefix(const char *prefix)
{
    while (*prefix) {
        size_t part = strcspn(prefix, "/");
        if (!part || (prefix[0] == '.' && (part == 1 || (part == 2 && prefix[1] == '.'))))
            return false;
        prefix += part;
        if (*prefix && !*++prefix)
            return false;
    }
    return true;
}

static int read_uri(struct s3_place *place, const char *uri, struct error *err)
{
    const char *bucket = uri + strlen("s3://"), *slash = strchr(bucket, '/');
    size_t length = slash ? (size_t)(slash - bucket) : strlen(bucket);
    if (strncmp(uri, "s3://", 5) != 0 || length >= sizeof place->bucket)
        return err_set(err, ERR_USAGE, "%s: not like s3://bucket/prefix", uri);
    memcpy(place->bucket, bucket, length);
    if (!text_copy(place->prefix, sizeof place->prefix, slash ? slash + 1 : ""))
        return err_set(err, ERR_USAGE, "%s: too long", uri);
    for (size_t n = strlen(place->prefix); n && place->prefix[n - 1] == '/'; n--)
        place->prefix[n - 1] = 0;
    if (!is_bucket(place->bucket))
        return err_set(err, ERR_USAGE, "%s: \"%s\" can't be a bucket's name", uri, place->bucket);
    if (!is_prefix(place->prefix))
        return err_set(err, ERR_USAGE, "%s: the prefix has an empty part, \".\" or \"..\"", uri);
    return 0;
}

static int read_region(struct s3_place *place, const struct object_options *options,
                       const struct profile *profile, struct error *err)
{
    const char *region =
        first(options->region,
              first(config_get(CONFIG_AWS_REGION),
                    first(config_get(CONFIG_AWS_DEFAULT_REGION), profile ? profile->region : NULL)));
    place->region_guessed = !region || !region[0];
    if (place->region_guessed)
        region = "us-east-1";
    if (!text_copy(place->region, sizeof place->region, region) ||
        region[strspn(region, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._")])
        return err_set(err, ERR_USAGE, "\"%.64s\" can't be a region's name", region);
    return 0;
}

static int read_endpoint(struct s3_place *place, const char *endpoint, struct error *err)
{
    const char *host = NULL;
    if (!strncasecmp(endpoint, "https://", 8))
        host = endpoint + 8;
    else if (!strncasecmp(endpoint, "http://", 7))
        host = endpoint + 7;
    place->tls = host == endpoint + 8;
    size_t length = host ? strcspn(host, "/") : 0;
    if (!length || (host[length] && host[length + 1]) || strcspn(host, "@?#%\\ \t\r\n") < length ||
        length >= sizeof place->host)
        return err_set(err, ERR_USAGE, "the endpoint \"%.200s\" is not like https://host:port", endpoint);
    memcpy(place->host, host, length);
    place->host[length] = 0;
    place->path_style = true;
    return 0;
}

/* AWS itself. A bucket with dots has no certificate for its own host name. */
static void use_aws(struct s3_place *place)
{
    const char *end = strncmp(place->region, "cn-", 3) ? "" : ".cn";
    place->tls = true;
    place->path_style = strchr(place->bucket, '.') != NULL;
    if (place->path_style)
        snprintf(place->host, sizeof place->host, "s3.%s.amazonaws.com%s", place->region, end);
    else
        snprintf(place->host, sizeof place->host, "%s.s3.%s.amazonaws.com%s", place->bucket, place->region,
                 end);
}

/* addressing_style = virtual of the profile, for stores that know no other. */
static void use_host_style(struct s3_place *place)
{
    char host[S3_HOST_MAX];
    text_copy(host, sizeof host, place->host);
    if (!http_is_own_machine(host) &&
        snprintf(place->host, sizeof place->host, "%s.%s", place->bucket, host) < (int)sizeof place->host)
        place->path_style = false;
}

/* A body is signed, or has a checksum: over TLS a checksum, in clear a signature, unless the profile's
 * payload_signing_enabled says otherwise. What may have no checksum is signed in clear, whatever it says. Who
 * comes with a token signs nothing, so there is a checksum where that may be. */
static void choose_protection(struct s3_place *place, const struct profile *profile)
{
    const char *calculation = config_get(CONFIG_AWS_REQUEST_CHECKSUM_CALCULATION);
    const char *says = profile ? profile->signing : "";
    bool may = !(calculation && !strcasecmp(calculation, "when_required"));
    place->signs = !place->tls;
    if (!strcasecmp(says, "true"))
        place->signs = true;
    else if (!strcasecmp(says, "false") && may)
        place->signs = false;
    place->checksums = may && (place->tls || !place->signs || place->googles_for_sure);
}

/* Everything below googleapis.com is Google's: regions and private endpoints of Cloud Storage have names of
 * their own there. */
static bool is_googles_name(const char *host)
{
    static const char domain[] = ".googleapis.com";
    size_t length = strcspn(host, ":"), tail = sizeof domain - 1;
    return length > tail && !strncasecmp(host + length - tail, domain, tail);
}

/* The user's own word for an endpoint of another name. In clear a token goes no further than this machine. */
static int read_google(struct s3_place *place, struct error *err)
{
    const char *given = config_get(CONFIG_GOOGLE_ENDPOINT), *name = config_name(CONFIG_GOOGLE_ENDPOINT);
    struct s3_place theirs = {0};
    place->google = is_googles_name(place->host); /* or its answers say so */
    place->googles_for_sure = place->tls && place->google;
    if (!given)
        return 0;
    if (read_endpoint(&theirs, given, err) < 0)
        return err_wrap(err, "%s", name);
    if (!theirs.tls && !http_is_own_machine(theirs.host))
        return err_set(err, ERR_USAGE, "%s is \"%.100s\": a token goes over https, or to this machine", name,
                       given);
    if (theirs.tls == place->tls && !strcasecmp(theirs.host, place->host))
        place->google = place->googles_for_sure = true;
    return 0;
}

static int find_place(struct s3_place *ret, const struct object_options *options,
                      const struct profile *profile, struct error *err)
{
    struct s3_place place = {0};
    const char *ca_file = first(config_get(CONFIG_AWS_CA_BUNDLE), profile ? profile->ca_file : NULL);
    const char *endpoint =
        first(options->endpoint,
              first(config_get(CONFIG_AWS_ENDPOINT_URL_S3),
                    first(config_get(CONFIG_AWS_ENDPOINT_URL), profile ? profile->endpoint : NULL)));
    if (read_uri(&place, options->uri, err) < 0 || read_region(&place, options, profile, err) < 0)
        return -1;
    if (endpoint && endpoint[0]) {
        if (read_endpoint(&place, endpoint, err) < 0)
            return -1;
        if (read_google(&place, err) < 0)
            return -1;
        if (profile && !strcmp(profile->style, "virtual"))
            use_host_style(&place);
    } else
        use_aws(&place);
    if (ca_file && !text_copy(place.ca_file, sizeof place.ca_file, ca_file))
        return err_set(err, ERR_USAGE, "AWS_CA_BUNDLE is too long");
    place.proxy = !http_is_own_machine(place.host);
    choose_protection(&place, profile);
    *ret = place;
    return 0;
}

/* What can't be a place is none tomorrow either: only another job, or another environment, heals that. */
int s3_place_find(struct s3_place *ret, const struct object_options *options, const struct profile *profile,
                  struct error *err)
{
    if (find_place(ret, options, profile, err) == 0)
        return 0;
    err_class(err, CLASS_JOB);
    return err_person(err);
}

void s3_place_path(const struct s3_place *place, const char *key, struct str *out)
{
    if (place->path_style)
        str_addf(out, "/%s", place->bucket);
    if (key || !place->path_style)
        str_addf(out, "/%s", key ? key : "");
}
