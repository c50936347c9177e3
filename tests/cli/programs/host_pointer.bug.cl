// A buffer that is an array of the host: the host reads the array before it maps it.
#include <CL/cl.h>
#include <stdio.h>

static const char *source = R"CLC(
__kernel void twice(__global int *data) {
  size_t i = get_global_id(0);
  data[i] *= 2;
}
)CLC";

int main(void) {
  int data[4] = {1, 2, 3, 4};
  cl_platform_id platform;
  cl_device_id device;
  cl_int err;
  clGetPlatformIDs(1, &platform, NULL);
  clGetDeviceIDs(platform, CL_DEVICE_TYPE_GPU, 1, &device, NULL);
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &err);
  cl_command_queue queue = clCreateCommandQueue(context, device, 0, &err);
  size_t length = strlen(source);
  cl_program program = clCreateProgramWithSource(context, 1, &source, &length, &err);
  clBuildProgram(program, 1, &device, NULL, NULL, NULL);
  cl_kernel twice = clCreateKernel(program, "twice", &err);
  cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, sizeof(data), data, &err);
  clSetKernelArg(twice, 0, sizeof(cl_mem), &buffer);
  size_t n = 4;
  clEnqueueNDRangeKernel(queue, twice, 1, NULL, &n, NULL, 0, NULL, NULL);
  clFinish(queue);
  printf("%d\n", data[0]);
  clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ, 0, sizeof(data), 0, NULL, NULL, &err);
  clEnqueueUnmapMemObject(queue, buffer, data, 0, NULL, NULL);
  clFinish(queue);
  clReleaseMemObject(buffer);
  return 0;
}
