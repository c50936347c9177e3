// A convolution through local memory, with its host code. The host compiler sees the kernel, too:
// a real program would hand its text to `clCreateProgramWithSource`.
#ifndef __OPENCL_VERSION__
#include <stdio.h>
#include <stdlib.h>
#include <CL/cl.h>
#endif

__kernel void convolve(__global const float *in, __constant float *weights, __global float *out,
                       __local float *tile, int n) {
  int i = get_global_id(0), l = get_local_id(0), size = get_local_size(0);
  tile[l + 1] = in[i];
  if (l == 0) tile[0] = i > 0 ? in[i - 1] : 0.0f;
  if (l == size - 1) tile[size + 1] = i + 1 < n ? in[i + 1] : 0.0f;
  float sum = 0.0f;
  for (int k = 0; k < 3; ++k) sum += weights[k] * tile[l + k];
  out[i] = sum;
}

int main(void) {
  const int n = 4;
  float h[4] = {1, 2, 3, 4}, w[3] = {0.25f, 0.5f, 0.25f};
  cl_int err;
  cl_platform_id platform;
  cl_device_id device;
  clGetPlatformIDs(1, &platform, NULL);
  clGetDeviceIDs(platform, CL_DEVICE_TYPE_GPU, 1, &device, NULL);
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &err);
  cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, 0, &err);
  cl_program program = clCreateProgramWithSource(context, 1, NULL, NULL, &err);
  err = clBuildProgram(program, 1, &device, "", NULL, NULL);
  if (err != CL_SUCCESS) {
    fprintf(stderr, "build failed: %d\n", err);
    return 1;
  }
  cl_kernel kernel = clCreateKernel(program, "convolve", &err);
  cl_mem in = clCreateBuffer(context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, sizeof(h), h, &err);
  cl_mem weights = clCreateBuffer(context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, sizeof(w), w, &err);
  cl_mem out = clCreateBuffer(context, CL_MEM_WRITE_ONLY, n * sizeof(float), NULL, &err);
  size_t global = n, local = 2;
  clSetKernelArg(kernel, 0, sizeof(cl_mem), &in);
  clSetKernelArg(kernel, 1, sizeof(cl_mem), &weights);
  clSetKernelArg(kernel, 2, sizeof(cl_mem), &out);
  clSetKernelArg(kernel, 3, (local + 2) * sizeof(float), NULL);
  clSetKernelArg(kernel, 4, sizeof(int), &n);
  err = clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, &local, 0, NULL, NULL);
  clEnqueueReadBuffer(queue, out, CL_TRUE, 0, n * sizeof(float), h, 0, NULL, NULL);
  printf("%f\n", h[0]);
  clReleaseMemObject(in);
  clReleaseMemObject(weights);
  clReleaseMemObject(out);
  clReleaseKernel(kernel);
  clReleaseProgram(program);
  clReleaseCommandQueue(queue);
  clReleaseContext(context);
  return 0;
}
