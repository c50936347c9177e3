#include <cassert>
#include <stop_token>

__global__ void none() {}

int main() {
  int *n = new int(5);
  std::stop_source source;
  std::stop_callback first(source.get_token(), [=] { *n = *n * 2; });
  std::stop_callback second(source.get_token(), [=] { *n = *n + 1; });
  bool made = source.request_stop();
  bool again = source.request_stop();
  assert(made && !again);
  assert(*n == 11);
  none<<<1, 1>>>();
}
