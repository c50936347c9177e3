// The host asks until a command is complete. This orders nothing: the copy has to wait for its event.
#include <CL/cl.h>
#include <stdio.h>

const char *source = "__kernel void fill(__global int *p) { p[get_global_id(0)] = 7; }";

int main(void) {
  cl_platform_id platform;
  cl_device_id device;
  cl_int err;
  clGetPlatformIDs(1, &platform, NULL);
  clGetDeviceIDs(platform, CL_DEVICE_TYPE_GPU, 1, &device, NULL);
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &err);
  cl_command_queue fills = clCreateCommandQueue(context, device, 0, &err);
  cl_command_queue copies = clCreateCommandQueue(context, device, 0, &err);
  cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &err);
  clBuildProgram(program, 1, &device, NULL, NULL, NULL);
  cl_kernel fill = clCreateKernel(program, "fill", &err);
  cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, 2 * sizeof(int), NULL, &err);
  clSetKernelArg(fill, 0, sizeof(cl_mem), (void *)&buffer);
  size_t n = 2;
  cl_event filled;
  clEnqueueNDRangeKernel(fills, fill, 1, NULL, &n, NULL, 0, NULL, &filled);
  clFlush(fills);
  cl_int status;
  do {
    clGetEventInfo(filled, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(cl_int), &status, NULL);
  } while (status != CL_COMPLETE);
  int out[2];
  clEnqueueReadBuffer(copies, buffer, CL_TRUE, 0, sizeof(out), out, 0, NULL, NULL);
  printf("%d %d\n", out[0], out[1]);
  return 0;
}
