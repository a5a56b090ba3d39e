/* `ringmaster-agent install DIR`: the bundle copies itself into a folder, as an init container does it for
 * the containers of a pod. Nothing of the image but the bundle is needed for it, no shell. */
#ifndef RM_BUNDLE_INSTALL_H
#define RM_BUNDLE_INSTALL_H

#include "common/base/error.h"

/* All files and folders below `from` to the folder `to`, which must be there, readable for all, each under
 * its name only when it is whole. What an attempt that was cut short left there is replaced, so it may be
 * repeated as often as one likes; what else lies there stays. ERR_USAGE where one of the two is no folder;
 * ERR_MACHINE with a sentence, CLASS_MACHINE where there is no room. */
int bundle_install(const char *from, const char *to, struct error *err);

#endif
