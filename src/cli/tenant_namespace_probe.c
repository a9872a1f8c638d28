// A library for the test to find under the driver's names.
int aliquot_probe(void) { return 42; }
