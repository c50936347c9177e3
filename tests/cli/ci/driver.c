// The calls of a CUDA driver that Fencepost makes, of a device that does what store buffering shows: one instance in four ends with 0, 0.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int is(const char *what) {
  const char *wanted = getenv("DRIVER");
  return wanted && strcmp(wanted, what) == 0;
}

int cuInit(unsigned flags) { return is("none") ? 100 : 0; }
int cuDriverGetVersion(int *version) { *version = 12040; return 0; }
int cuDeviceGetCount(int *count) { *count = 1; return 0; }
int cuDeviceGet(int *device, int number) { *device = number; return 0; }
int cuDeviceGetAttribute(int *value, int what, int device) {
  // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, …_COMPUTE_CAPABILITY_MAJOR, …_MINOR
  *value = what == 16 ? 8 : what == 75 ? 9 : 0;
  return 0;
}
int cuDeviceGetName(char *name, int length, int device) { strncpy(name, "No GPU", length); return 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = context; return 0; }
int cuCtxSetCurrent(void *context) { return 0; }
int cuModuleLoadDataEx(void **module, const char *text, unsigned count, int *options, void **values) {
  if (is("refuses")) {
    strcpy(values[0], "ptxas application ptx input, line 7; error   : Unknown word\n");
    return 218;
  }
  *module = module;
  return strstr(text, ".visible .entry test(") ? 0 : 218;
}
int cuModuleGetFunction(void **function, void *module, const char *name) { *function = function; return strcmp(name, "test"); }
int cuModuleUnload(void *module) { return 0; }
int cuMemAlloc_v2(uint64_t *at, size_t bytes) {
  if (is("full")) return 2;
  *at = (uint64_t)malloc(bytes);
  return 0;
}
int cuMemFree_v2(uint64_t at) { free((void *)at); return 0; }
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes) { memcpy((void *)to, from, bytes); return 0; }
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) { memcpy(to, (void *)from, bytes); return 0; }
int cuStreamQuery(void *stream) {
  // Not ready at first.
  static int asked;
  return is("vanishes") ? 999 : asked++ % 2 ? 0 : 600;
}
int cuLaunchKernel(void *function, unsigned groups, unsigned y, unsigned z, unsigned size, unsigned v, unsigned w, unsigned shared,
                   void *stream, void **arguments, void **extra) {
  int64_t *results = (int64_t *)*(uint64_t *)arguments[1];
  uint32_t teams = *(uint32_t *)arguments[3], instances = *(uint32_t *)arguments[4];
  // Behind eight numbers, for x and for y: the first copy, and how far copies are apart.
  uint64_t first[2] = {*(uint64_t *)arguments[11], *(uint64_t *)arguments[13]};
  uint64_t apart[2] = {*(uint64_t *)arguments[12], *(uint64_t *)arguments[14]};
  if (size != 1 || groups < 2 * teams) return 1;
  for (uint64_t i = 0; i < (uint64_t)teams * instances; i++) {
    for (int at = 0; at < 2; at++) {
      int32_t *x = (int32_t *)(first[at] + i * apart[at]);
      if (*x != 0) return 1;
      *x = 1;
    }
    // Both threads ended; what they read.
    int64_t words[4] = {1, 1, i % 4 == 1 || i % 4 == 3, i % 4 == 2 || i % 4 == 3};
    memcpy(results + 4 * i, words, sizeof words);
  }
  return 0;
}
int cuGetErrorName(int error, const char **name) {
  *name = error == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : error == 999 ? "CUDA_ERROR_UNKNOWN" : "CUDA_ERROR_INVALID_VALUE";
  return 0;
}
int cuGetErrorString(int error, const char **text) { *text = error == 2 ? "out of memory" : "something is wrong"; return 0; }
