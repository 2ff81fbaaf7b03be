/* wisp: a device in a fleet. Many devices train one model together; each sends a bounded update, and only the noised
 * sum of many is ever released. The server is Flower's; this is a node of it, without Python. Conventions: wisp.h.
 *
 *   wisp_fleet_options options = WISP_INIT(wisp_fleet_options);   at each start
 *   ...                                                           policy, model, log, ledger, the app's HTTP and key
 *   wisp_fleet_open(&options, &fleet, &error);
 *   wisp_fleet_result result = WISP_INIT(wisp_fleet_result);      now and then, in a thread of the app's
 *   wisp_fleet_work(fleet, 60, &result, &error);
 *
 * What a device does follows from its policy, a file of the app, and from public numbers. A participation is charged to
 * the ledger before the first byte of an update leaves. docs/fleet.md.
 *
 * All of it is in libwisp alone, not in the library that only recommends. */
#ifndef WISP_PORTS_C_WISP_FLEET_H_
#define WISP_PORTS_C_WISP_FLEET_H_

#include "wisp_embed.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Fleet (in libwisp alone) ----------------------------------------------------------------------------------- */

/* Takes the next bytes of a server's answer. Nonzero: there are too many, so stop and fail finally. */
typedef int (*wisp_fleet_sink)(void* sink_data, const void* bytes, size_t size);

typedef struct wisp_fleet_transport { /* the app's HTTP client, key and clock; called on the thread of the work */
  size_t size;
  void* user_data;
  /* Posts `body` to `url`, which begins with the policy's server, with `headers`: lines "name: value", each ending with
   * "\n". Follows no redirection. Gives the answer's bytes to `sink`, its status, and the time of its header Date in
   * seconds since 1970, or 0. Returns 0, whatever the status; 1 if trying again later may help (no network, a timeout);
   * 2 if not (a certificate that is not trusted). */
  int (*post)(void* user_data, const char* url, const char* headers, const void* body, size_t body_bytes,
              wisp_fleet_sink sink, void* sink_data, int32_t* status, double* server_time);
  /* Signs with the device's key: ECDSA with SHA-256 on P-256 or P-384, in DER, of at most `capacity` bytes. Returns 0;
   * anything else is WISP_IO. */
  int (*sign)(void* user_data, const void* message, size_t message_bytes, uint8_t* der, size_t capacity,
              size_t* length);
  /* Returns 0 if `der` is a signature of the message by the key, an operator's. NULL: a policy that names such a key is
   * refused. */
  int (*verify)(void* user_data, const char* key_pem, const void* message, size_t message_bytes, const uint8_t* der,
                size_t length);
  /* Pauses for so many seconds; nonzero: stop working. NULL: the work never pauses */
  int (*wait)(void* user_data, double seconds);
  const char* public_key_pem; /* the same bytes each time: the server knows a device by them */
} wisp_fleet_transport;

typedef struct wisp_fleet_options { /* how a device takes part */
  size_t size;
  const char* policy_path; /* policy.json, which comes with the app */
  const char* model_path;  /* the base, as shipped */
  /* of wisp_log_open; if it is missing or damaged, zeros are sent. If the policy protects records, a damaged one is an
   * error of wisp_fleet_work, and nothing is charged */
  const char* log_path;
  const char* ledger_path; /* of fleets alone; created if absent, with the policy's plan, before anything is read */
  const char* output_path; /* where a model of the fleet is kept, if it is not worse here; NULL: nowhere */
  /* an answer that the server has not got yet; NULL: ledger_path + ".reply". Beside it lie the request that is being
   * answered (.request) and the node's number at the server (.node) */
  const char* reply_path;
  const wisp_anchor* anchor; /* of the ledger; NULL: participations are counted for an installation, not a device */
  const wisp_fleet_transport* transport; /* posts and signs; required */
  const wisp_logger* logger;             /* gets what happened, in sentences, for the device alone; NULL: none */
  /* how events are grouped for training; 0: WISP_UNIT_USER. What is protected is always all that the device holds. If
   * the policy protects records, they are these */
  wisp_unit unit;
  uint32_t times_per_second; /* 0: 1 */
  int64_t session_gap;       /* seconds; WISP_UNIT_SESSION: required; otherwise 0 */
  /* the mean time between two questions for work while the server has none; 0: 30. N nodes must not ask faster than
   * every N / 33 seconds */
  double ask_seconds;
  /* For a policy that protects records, and only then: the ledger that their runs charge, and the next two */
  const char* records_ledger_path;
  const char* dataset;               /* the name of the data */
  const wisp_anchor* records_anchor; /* of records_ledger_path, or NULL */
} wisp_fleet_options;

typedef struct wisp_fleet wisp_fleet; /* an open fleet */

typedef struct wisp_fleet_result { /* what a call did */
  size_t size;
  uint32_t answers;             /* that the server has got in this call */
  uint32_t participations;      /* of this device, in all */
  uint32_t most_participations; /* that the policy allows */
  int32_t not_read;
  double wait_seconds; /* call again after so many: half to one and a half of ask_seconds */
} wisp_fleet_result;

/* Copies the transport, and reads the files but for the log. WISP_IO: the ledger is open as a fleet's already, here or
 * in another process. WISP_PRIVACY_REFUSED: the ledger was charged by something else, or the anchor knows more than it.
 * The callbacks are called until the fleet is closed. */
WISP_API wisp_code wisp_fleet_open(const wisp_fleet_options* options, wisp_fleet** fleet, wisp_error* error);
/* Joins, asks for work, does it, and sends the answer, for about so many seconds; 0: until nothing is there to do now.
 * Safe to call again after a crash and after every error: an answer that the server has not got is kept. WISP_IO: the
 * server cannot be reached, or a file cannot be written; call again later, each time later than before. */
WISP_API wisp_code wisp_fleet_work(wisp_fleet* fleet, double seconds, wisp_fleet_result* result, wisp_error* error);
WISP_API void wisp_fleet_close(wisp_fleet* fleet); /* what was not sent yet is kept */

#ifdef __cplusplus
}
#endif

#endif /* WISP_PORTS_C_WISP_FLEET_H_ */
