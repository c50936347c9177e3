// The entries begin at the last count.
// fencepost: turn<<<1, 4>>>(pool[32], out[4])
struct Entry {
  int number;
  char flag;
};

kernel void turn(local char *pool, global int *out) {
  local int *count = (local int *)pool;
  local struct Entry *entry = (local struct Entry *)(pool + 12);
  int t = get_local_id(0);
  if (t < 2) {
    entry[t].number = t;
    entry[t].flag = 1;
  }
  count[t] = t;
  barrier(CLK_LOCAL_MEM_FENCE);
  int other = 3 - t;
  out[t] = count[other] + entry[other / 2].number * entry[other / 2].flag;
}
