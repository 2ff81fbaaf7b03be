/* wisp: the server's part of a fleet, and a simulation of its devices. For the port to Python, which carries the
 * messages; it is in none of the libraries. Conventions: wisp.h. */
#ifndef WISP_PORTS_C_WISP_FLEET_SERVER_H_
#define WISP_PORTS_C_WISP_FLEET_SERVER_H_

#include "wisp.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wisp_fleet_server wisp_fleet_server;

/* The state of a server. Pointers are valid until the next call with the server. */
typedef struct wisp_fleet_state {
  size_t size;
  uint32_t round; /* the next one, from 0 */
  int32_t done;   /* 1: all rounds were taken */
  /* 1: the newest model is due to be evaluated; a round can begin nevertheless */
  int32_t evaluation_due;
  int32_t not_read;
  const char* plan;    /* its text, as it travels */
  const void* weights; /* of the model that the next round starts from, as they travel */
  size_t weights_bytes;
} wisp_fleet_state;

typedef struct wisp_fleet_gain { /* the outcome of an evaluation */
  size_t size;
  uint32_t round;   /* the rounds that the evaluated model has learned from */
  int32_t verdict;  /* as wisp_verdict: 0 undecided, 1 better, 2 worse */
  double mean_gain; /* of a device, in NDCG@10, noised */
  double deviation; /* of that noise */
} wisp_fleet_gain;

typedef struct wisp_fleet_cost { /* at the plan's delta */
  size_t size;
  double delta;
  double readers; /* epsilon so far for those who see the models, and not in which rounds a device took part */
  double device;  /* epsilon of the whole plan for a device, whoever looks, if the server adds the noise */
} wisp_fleet_cost;

/* Begins a fleet, or resumes it from `folder`, which must exist. `seed` not NULL: noise repeats, without any guarantee;
 * for simulations and tests. */
WISP_API wisp_code wisp_fleet_server_open(const char* plan_path, const char* model_path, const char* folder,
                                          const uint64_t* seed, wisp_fleet_server** server, wisp_error* error);
WISP_API void wisp_fleet_server_close(wisp_fleet_server* server);
WISP_API wisp_code wisp_fleet_server_look(const wisp_fleet_server* server, wisp_fleet_state* state, wisp_error* error);

/* Begins the next round, or the evaluation that is due (`evaluation` 1). Charges at the first one of a block. */
WISP_API wisp_code wisp_fleet_server_begin(wisp_fleet_server* server, int32_t evaluation, wisp_error* error);
/* Sets asks[i] to 1 if what was begun asks nodes[i]. */
WISP_API wisp_code wisp_fleet_server_asks(const wisp_fleet_server* server, const uint64_t* nodes, size_t num_nodes,
                                          uint8_t* asks, wisp_error* error);
/* Takes what it sends. `added`: 0 it counts, 1 the node was not asked, 2 it has already sent, 3 out of bound. */
WISP_API wisp_code wisp_fleet_server_add(wisp_fleet_server* server, uint64_t node, const void* bytes, size_t size,
                                         int32_t* added, wisp_error* error);
/* Adds the noise, takes the step, and makes it durable. `gain`: of an evaluation; NULL for a round. */
WISP_API wisp_code wisp_fleet_server_end(wisp_fleet_server* server, wisp_fleet_gain* gain, wisp_error* error);

WISP_API wisp_code wisp_fleet_server_write(const wisp_fleet_server* server, const char* path, wisp_error* error);
WISP_API wisp_code wisp_fleet_server_cost(const wisp_fleet_server* server, wisp_fleet_cost* cost, wisp_error* error);

/* Devices in this process. Each user of the log is a device. */
typedef struct wisp_fleet_simulation wisp_fleet_simulation;

/* nodes[i] is the server's number of the device of user i; NULL: 1, 2, 3, ... */
WISP_API wisp_code wisp_fleet_simulation_open(const char* plan_path, const char* model_path, const char* log_path,
                                              const uint64_t* nodes, size_t num_nodes, uint32_t num_threads,
                                              wisp_fleet_simulation** simulation, wisp_error* error);
WISP_API void wisp_fleet_simulation_close(wisp_fleet_simulation* simulation);
WISP_API size_t wisp_fleet_simulation_num_nodes(const wisp_fleet_simulation* simulation);
/* Copies all their numbers. */
WISP_API void wisp_fleet_simulation_nodes(const wisp_fleet_simulation* simulation, uint64_t* nodes);
/* Sends one message to these nodes. `take` gets what each sends, by its index; 0 bytes: it is absent. */
WISP_API wisp_code wisp_fleet_simulation_answer(
    wisp_fleet_simulation* simulation, const char* task, int64_t round, const void* weights, size_t weights_bytes,
    const uint64_t* nodes, size_t num_nodes,
    void (*take)(void* user_data, size_t index, const void* bytes, size_t size), void* user_data, wisp_error* error);

#ifdef __cplusplus
}
#endif

#endif /* WISP_PORTS_C_WISP_FLEET_SERVER_H_ */
