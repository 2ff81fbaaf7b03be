/* How long a program takes to its first call of the library. tools/lab/bench/start/measure.py compiles and runs it.
 *
 *   start                        prints the clock as soon as it runs; with -DLINKED after the first call of the library
 *   start LIBRARY MODEL.wisp     opens the library as an app's plug-in would; prints nanoseconds: to the first call's
 *                                return, from there to the first recommendation
 */
#include <dlfcn.h>
#include <stdio.h>
#include <time.h>
#include <wisp/wisp.h>

static long long Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* A function of the library; the two pointers have one form. */
static void Find(void* library, const char* name, void* function) { *(void**)function = dlsym(library, name); }

static int Loaded(const char* path, const char* model_path) {
  const long long start = Now();
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const char* (*version)(void) = NULL;
  wisp_code (*open)(const char*, wisp_model**, wisp_error*) = NULL;
  wisp_code (*recommend)(wisp_model*, const int32_t*, size_t, const wisp_recommend_options*, wisp_recommendation*,
                         size_t*, wisp_error*) = NULL;
  wisp_model* model = NULL;
  wisp_error error;
  wisp_recommendation top[10];
  size_t count = 10;
  const int32_t history[] = {12, 7, 31};
  long long called;
  if (!library) return fprintf(stderr, "start: %s\n", dlerror()), 1;
  Find(library, "wisp_version", &version);
  if (!version || !version()[0]) return fprintf(stderr, "start: %s has no wisp_version\n", path), 1;
  called = Now();
  Find(library, "wisp_model_open", &open);
  Find(library, "wisp_recommend", &recommend);
  if (open(model_path, &model, &error) != WISP_OK || recommend(model, history, 3, NULL, top, &count, &error) != WISP_OK)
    return fprintf(stderr, "start: %s\n", error.message), 1;
  printf("%lld %lld\n", called - start, Now() - called);
  return 0;
}

int main(int argc, char** argv) {
  long long now;
  if (argc == 3) return Loaded(argv[1], argv[2]);
#ifdef LINKED
  if (!wisp_version()[0]) return 1;
#endif
  now = Now();
  printf("%lld\n", now);
  return 0;
}
