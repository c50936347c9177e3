// A kernel writes packets to a pipe whose packets are smaller.
#include <CL/cl.h>
#include <stdio.h>

__kernel void produce(__write_only pipe int packets) {
  int value = 7;
  write_pipe(packets, &value);
}

__kernel void consume(__read_only pipe int packets, __global int *out) {
  int value = 0;
  read_pipe(packets, &value);
  out[0] = value;
}

int main(void) {
  cl_device_id device;
  cl_int err;
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &err);
  cl_command_queue queue = clCreateCommandQueue(context, device, 0, &err);
  cl_program program = clCreateProgramWithSource(context, 1, NULL, NULL, &err);
  cl_kernel produce = clCreateKernel(program, "produce", &err);
  cl_kernel consume = clCreateKernel(program, "consume", &err);
  cl_mem packets = clCreatePipe(context, CL_MEM_READ_WRITE, sizeof(short), 2, NULL, &err);
  cl_mem out = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof(int), NULL, &err);
  clSetKernelArg(produce, 0, sizeof(cl_mem), &packets);
  clSetKernelArg(consume, 0, sizeof(cl_mem), &packets);
  clSetKernelArg(consume, 1, sizeof(cl_mem), &out);
  clEnqueueTask(queue, produce, 0, NULL, NULL);
  clFinish(queue);
  clEnqueueTask(queue, consume, 0, NULL, NULL);
  clFinish(queue);
  int value;
  clEnqueueReadBuffer(queue, out, CL_TRUE, 0, sizeof(int), &value, 0, NULL, NULL);
  printf("%d\n", value);
  return 0;
}
