#include "trainer/library/job.h"

int rm_put(struct rm_job *job, const char *name, enum rm_dtype dtype, int dims, const int64_t *shape,
           const void *data)
{
    struct image_why why;
    if (job_check(job) < 0)
        return -1;
    if (!job->told)
        return image_declare(&job->image, name, dtype, dims, shape, &why) < 0
                   ? job_refuse(job, "%s", why.text)
                   : 0;
    if (job->task.kind != PROGRAM_SAVE)
        return job_refuse(job, "%s: the state is put before the first rm_next, and when RM_SAVE asks for it",
                          name);
    void *into = job->memory + job->welcome.image_at;
    return image_put(&job->image, into, name, dtype, dims, shape, data, &why) < 0
               ? job_refuse(job, "%s", why.text)
               : 0;
}

int rm_find(struct rm_job *job, const char *name, struct rm_tensor *tensor)
{
    struct image_why why;
    if (job_check(job) < 0)
        return -1;
    if (job->task.kind != PROGRAM_LOAD)
        return job_refuse(job, "%s: a state can be read while RM_LOAD is under way", name);
    const void *from = job->memory + job->welcome.image_at;
    return image_find(&job->image, from, name, tensor, &why) < 0 ? job_refuse(job, "%s", why.text) : 0;
}
