#include <curand_kernel.h>

__global__ void walk(curandState *states, float *out, int *hits) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  curandState state;
  memset(&hits[2 * i], 0, 2 * sizeof(int));
  curand_init(1234, i, 0, &state);
  for (int step = 0; step < 2; step++)
    hits[2 * i + step] += (int)curand(&state);
  memcpy(&states[i], &state, sizeof(curandState));
  out[i] = curand_normal(&states[i]);
}
