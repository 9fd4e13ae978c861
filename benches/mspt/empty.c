/* A Python function that does nothing, as cheaply as a callback can: what `sys.monitoring` costs at least. Python's headers are not needed for so little. */
struct method {
    const char *name;
    void *function;
    int flags;
    const char *documentation;
};

enum { FASTCALL = 0x80 };

extern void *PyCFunction_NewEx(struct method *method, void *self, void *module);
extern char _Py_NoneStruct;

/* None is immortal since 3.12. */
static void *nothing(void *self, void *const *arguments, long count) {
    (void)self, (void)arguments, (void)count;
    return &_Py_NoneStruct;
}

static struct method method = {"nothing", (void *)nothing, FASTCALL, 0};

void *empty_make(void) {
    return PyCFunction_NewEx(&method, 0, 0);
}
