// Two queues fill the two halves of a buffer, each through a sub-buffer.
#include <CL/cl.h>
#include <stdio.h>

const char *source =
    "__kernel void fill(__global int *part, int value) {\n"
    "  part[get_global_id(0)] = value;\n"
    "}\n";

int main(void) {
  cl_platform_id platform;
  cl_device_id device;
  cl_int err;
  clGetPlatformIDs(1, &platform, NULL);
  clGetDeviceIDs(platform, CL_DEVICE_TYPE_GPU, 1, &device, NULL);
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &err);
  cl_command_queue first = clCreateCommandQueue(context, device, 0, &err);
  cl_command_queue second = clCreateCommandQueue(context, device, 0, &err);
  cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &err);
  clBuildProgram(program, 1, &device, NULL, NULL, NULL);
  cl_kernel fill = clCreateKernel(program, "fill", &err);
  cl_mem whole = clCreateBuffer(context, CL_MEM_READ_WRITE, 8 * sizeof(int), NULL, &err);
  cl_buffer_region lower = {0, 4 * sizeof(int)};
  cl_buffer_region upper = {4 * sizeof(int), 4 * sizeof(int)};
  cl_mem low = clCreateSubBuffer(whole, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &lower, &err);
  cl_mem high = clCreateSubBuffer(whole, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &upper, &err);
  size_t n = 4;
  int one = 1, two = 2;
  clSetKernelArg(fill, 0, sizeof(cl_mem), &low);
  clSetKernelArg(fill, 1, sizeof(int), &one);
  clEnqueueNDRangeKernel(first, fill, 1, NULL, &n, NULL, 0, NULL, NULL);
  clSetKernelArg(fill, 0, sizeof(cl_mem), &high);
  clSetKernelArg(fill, 1, sizeof(int), &two);
  clEnqueueNDRangeKernel(second, fill, 1, NULL, &n, NULL, 0, NULL, NULL);
  clFinish(first);
  clFinish(second);
  int out[8];
  clEnqueueReadBuffer(first, whole, CL_TRUE, 0, sizeof(out), out, 0, NULL, NULL);
  printf("%d %d\n", out[0], out[7]);
  clReleaseMemObject(low);
  clReleaseMemObject(high);
  clReleaseMemObject(whole);
  return 0;
}
