/* A stand-in for a vendor library: two names that the CUDA table knows, one that no table knows. */
int cuInit(unsigned int flags) { return (int)flags; }
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}
int aliquot_fixture_only(void) { return 1; }
