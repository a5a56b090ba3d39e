/* The parts of the question for a coordinator's status, GET /v1/status?after=7&told=41&relieve=2.1,4.3&
 * deleted=5.1&will=4.3.110&stay=3: their names, for who asks (the operator) and who answers
 * (coordinator/status/query.h, which says what they mean). */
#ifndef RM_WIRE_QUESTION_H
#define RM_WIRE_QUESTION_H

#define QUESTION_AFTER   "after"
#define QUESTION_TOLD    "told"
#define QUESTION_RELIEVE "relieve"
#define QUESTION_DELETED "deleted"
#define QUESTION_WILL    "will"
#define QUESTION_STAY    "stay"

#endif
