// A library that is loaded and unloaded while it is sampled: one busy function of its own.

unsigned long churned_work(unsigned long rounds) {
    volatile unsigned long value = 1;
    for (unsigned long round = 0; round < rounds; round++)
        value = value * 6364136223846793005UL + 1;
    return value;
}
