#include "common/base/fault_class.h"

const char *const fault_class_names[FAULT_CLASSES] = {"unknown", "passing",  "machine", "pair",  "object",
                                                      "source",  "software", "job",     "device"};
