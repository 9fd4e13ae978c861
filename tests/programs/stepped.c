// Code of every kind that compilers and the C library have, to be stepped through instruction by instruction.
#include <alloca.h>
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <math.h>
#include <locale.h>
#include <wchar.h>

#define APART __attribute__((noinline, noclone))
volatile unsigned long sink;

// Frames that the compiler sizes at run time have their CFA from rbp.
APART static unsigned long variable_frame(unsigned n) {
    unsigned char *bytes = alloca(n * 16 + 1);
    memset(bytes, 7, n * 16 + 1);
    return bytes[n] + (n ? variable_frame(n - 1) : 0);
}

// A frame that realigns the stack: its CFA is behind a pointer.
typedef double wide __attribute__((vector_size(64)));
APART static void fill(wide *w) { for (int i = 0; i < 8; i++) (*w)[i] = i; }
APART static double realigned(int depth) {
    wide w __attribute__((aligned(64)));
    fill(&w);
    return w[depth & 7] + (depth ? realigned(depth - 1) : 0);
}

APART static int variadic(int count, ...) {
    va_list list;
    int sum = 0;
    va_start(list, count);
    while (count--) sum += va_arg(list, int);
    va_end(list);
    return sum;
}

// Ends in a jump to another function.
APART static unsigned long tail(unsigned long n) { return n ? tail(n - 1) + 1 : 0; }
APART static unsigned long jumps(unsigned long n) { sink += n; return tail(n); }

// Two ways out, with the saving of registers put off to where they are needed.
APART static unsigned long early(unsigned long n) {
    if (n & 1) return n;
    unsigned long a = tail(n), b = tail(a), c = tail(b), d = tail(c), e = tail(d);
    return a + b * c + d * e + a * e + n;
}

APART static unsigned long many(unsigned long a, unsigned long b, unsigned long c, unsigned long d, unsigned long e, unsigned long f,
                                unsigned long g, unsigned long h) {
    return early(a) + early(b) + early(c) + early(d) + early(e) + early(f) * early(g) - early(h);
}

static jmp_buf back;
APART static void away(int depth) {
    if (!depth) longjmp(back, 1);
    away(depth - 1);
    sink++;
}

static int by_value(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

unsigned long stepped_code(void) {
    unsigned long sum = variable_frame(5) + (unsigned long)realigned(3) + variadic(3, 1, 2, 3) + jumps(3) + early(4) +
                        many(1, 2, 3, 4, 5, 6, 7, 8);
    if (!setjmp(back)) away(4);
    return sum;
}

unsigned long stepped_library(void) {
    char text[400];
    int values[12];
    unsigned long sum = 0;
    for (int i = 0; i < 12; i++) values[i] = i * 7919 % 13;
    qsort(values, 12, sizeof *values, by_value);
    sum += *(int *)bsearch(&values[7], values, 12, sizeof *values, by_value);
    sum += snprintf(text, sizeof text, "%s %d %lu %.3f %e %a %p %-20s|%ls", "text", 1, 2ul, 3.5, 1e30, 0.1, (void *)text, "left", L"wide");
    sum += (unsigned long)strtod("1234.5678e10", 0) + strtoul("ffff", 0, 16) + strlen(text);
    int number = 0; char word[20];
    sum += sscanf("42 word 1.5", "%d %19s", &number, word);
    for (unsigned size = 1; size < 40000; size *= 7) {
        char *block = malloc(size), *more = realloc(calloc(1, size), size * 2);
        memcpy(more, block, size); memmove(more + 1, more, size - 1); memset(block, 1, size);
        sum += memcmp(block, more, size) + (unsigned long)memchr(more, 1, size) % 2;
        free(block); free(more);
    }
    sum += strstr(text, "left") - text + strcasecmp("abc", "ABD") + strspn(text, "abc") + strlen(strdup("leaked")) + (strchr(text, 'z') != 0);
    regex_t pattern;
    if (!regcomp(&pattern, "([a-z]+)[0-9]*\\1(x|y)", REG_EXTENDED)) {
        regmatch_t found[3];
        sum += regexec(&pattern, "foo1foox bar", 3, found, 0);
        regfree(&pattern);
    }
    time_t now = 1700000000; struct tm parts;
    sum += strftime(text, sizeof text, "%c %A %Z", localtime_r(&now, &parts)) + mktime(&parts);
    sum += (unsigned long)(sin(1.5) + pow(2.5, 3.5) + log(7) + exp(2) + fmod(10, 3));
    FILE *file = tmpfile();
    if (file) { fprintf(file, "%d\n", 7); rewind(file); sum += fgetc(file); fclose(file); }
    char *copy = getenv("PATH"); sum += copy ? strlen(copy) : 0;
    sum += mbstowcs(0, "multi", 0) + (setlocale(LC_ALL, 0) != 0);
    clock_gettime(CLOCK_MONOTONIC, &(struct timespec){0});
    sum += time(0) & 1;
    return sum;
}
