// Writes a log of 20 users with 8 events each, as an app does: append LOG
#include <stdio.h>

#include "wisp.h"

int main(int argc, char** argv) {
  wisp_error error;
  wisp_log* log = NULL;
  if (argc != 2 || wisp_log_open(argv[1], &log, &error) != WISP_OK) return 1;
  for (int user = 0; user < 20; ++user) {
    for (int event = 0; event < 8; ++event) {
      char name[16], item[16];
      snprintf(name, sizeof name, "u%02d", user);
      snprintf(item, sizeof item, "i%02d", (user * 5 + event * (1 + user % 3)) % 12);
      if (wisp_log_append(log, name, item, 1700000000 + 60 * (8 * user + event), &error) != WISP_OK) return 1;
    }
  }
  wisp_log_close(log);
  return 0;
}
