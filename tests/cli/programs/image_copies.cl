// The host fills an image, copies part of it to another one and to a buffer, and maps the result.
#include <CL/cl.h>
#include <stdio.h>

__kernel void add(__global int *sums, int by) {
  sums[2 + get_global_id(0)] += by;
}

int main(void) {
  cl_device_id device;
  cl_int err;
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &err);
  cl_command_queue queue = clCreateCommandQueue(context, device, 0, &err);
  cl_program program = clCreateProgramWithSource(context, 1, NULL, NULL, &err);
  cl_kernel add = clCreateKernel(program, "add", &err);
  cl_image_format format = {CL_R, CL_SIGNED_INT32};
  cl_image_desc sizes = {CL_MEM_OBJECT_IMAGE2D, 2, 2};
  cl_mem from = clCreateImage(context, CL_MEM_READ_WRITE, &format, &sizes, NULL, &err);
  cl_mem to = clCreateImage(context, CL_MEM_READ_WRITE, &format, &sizes, NULL, &err);
  cl_mem sums = clCreateBuffer(context, CL_MEM_READ_WRITE, 4 * sizeof(int), NULL, &err);
  size_t origin[3] = {0, 0, 0}, second[3] = {0, 1, 0};
  size_t all[3] = {2, 2, 1}, row[3] = {2, 1, 1};
  int color[4] = {5, 0, 0, 0};
  clEnqueueFillImage(queue, from, color, origin, all, 0, NULL, NULL);
  clEnqueueCopyImage(queue, from, to, origin, second, row, 0, NULL, NULL);
  clEnqueueCopyImageToBuffer(queue, to, sums, second, row, 8, 0, NULL, NULL);
  size_t items = 2;
  int by = 1;
  clSetKernelArg(add, 0, sizeof(cl_mem), &sums);
  clSetKernelArg(add, 1, sizeof(int), &by);
  clEnqueueNDRangeKernel(queue, add, 1, NULL, &items, NULL, 0, NULL, NULL);
  clEnqueueCopyBufferToImage(queue, sums, to, 8, origin, row, 0, NULL, NULL);
  size_t pitch;
  int *pixels = (int *)clEnqueueMapImage(queue, to, CL_TRUE, CL_MAP_READ, origin, all, &pitch,
                                         NULL, 0, NULL, NULL, &err);
  printf("%d\n", pixels[1 * pitch / sizeof(int)]);
  clEnqueueUnmapMemObject(queue, to, pixels, 0, NULL, NULL);
  clFinish(queue);
  return 0;
}
