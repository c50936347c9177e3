#include <cassert>
#include <stop_token>
#include <thread>

__global__ void none() {}

int main() {
  int *calls = new int(0);
  std::stop_source source;
  std::thread thread([=]() mutable { source.request_stop(); });
  std::stop_source before;
  before.request_stop();
  {
    std::stop_callback callback(source.get_token(), [=] { *calls = *calls + 1; });
    std::stop_callback other(before.get_token(), [=] {});
  }
  thread.join();
  assert(*calls == 1);
  none<<<1, 1>>>();
}
