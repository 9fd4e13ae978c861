/* A library that says it is a CPython, and has nothing else of one. */
const char *Py_GetVersion(void) { return VERSION; }
