// A kernel writes a matrix, and the host reads a block of it.
#include <CL/cl.h>
#include <stdio.h>

__kernel void fill(__global int *matrix) {
  matrix[get_global_id(0)] = get_global_id(0);
}

int main(void) {
  cl_device_id device;
  cl_int err;
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &err);
  cl_command_queue queue = clCreateCommandQueue(context, device, 0, &err);
  cl_program program = clCreateProgramWithSource(context, 1, NULL, NULL, &err);
  cl_kernel fill = clCreateKernel(program, "fill", &err);
  cl_mem matrix = clCreateBuffer(context, CL_MEM_READ_WRITE, 16 * sizeof(int), NULL, &err);
  cl_mem copy = clCreateBuffer(context, CL_MEM_READ_WRITE, 4 * sizeof(int), NULL, &err);
  size_t items = 16;
  clSetKernelArg(fill, 0, sizeof(cl_mem), &matrix);
  cl_event filled;
  clEnqueueNDRangeKernel(queue, fill, 1, NULL, &items, NULL, 0, NULL, &filled);
  int block[4];
  size_t from[3] = {4, 1, 0}, to[3] = {0, 0, 0}, region[3] = {8, 2, 1};
  clEnqueueCopyBufferRect(queue, matrix, copy, from, to, region, 16, 0, 8, 0, 1, &filled, NULL);
  clEnqueueReadBufferRect(queue, copy, CL_TRUE, to, to, region, 8, 0, 8, 0, block, 0, NULL, NULL);
  printf("%d\n", block[3]);
  return 0;
}
