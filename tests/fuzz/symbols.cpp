// What tests/fuzz/corpus/symbols is made of.
extern "C" int foreign(int);
namespace market {
struct Offer { int price; virtual int value(int n) const; int twice() const { return 2 * price; } };
int Offer::value(int n) const { return foreign(n) + twice(); }
template <typename T> __attribute__((noinline)) T rank(T a, T b) { return a < b ? foreign(a) : b; }
static __attribute__((noinline)) int hidden(int n) { return rank(n, 3) * 7; }
}
extern "C" int update(const market::Offer *offer, int n) { return offer->value(n) + market::hidden(n) + market::rank(2L, 5L); }

/* tests/fuzz/corpus/symbols, with GCC 12 and binutils 2.40:

   F="-shared -fPIC -nostdlib -O1 -fno-exceptions -fasynchronous-unwind-tables -fno-rtti -Wl,-z,noseparate-code -Wl,-z,max-page-size=4096 -Wl,-z,lazy -Wl,-z,norelro"
   ID="-Wl,--build-id=0x5eed0123456789abcdef0123456789abcdef0123"
   only="objcopy --remove-section=.symtab --remove-section=.strtab --strip-all --keep-section=.debug*"
   g++ $F -s -Wl,--build-id=none symbols.cpp -o exported
   g++ $F -Wl,--build-id=none symbols.cpp -o table
   g++ $F -g $ID symbols.cpp -o whole && $only whole debug
   g++ $F -g -gz=zlib -gdwarf-4 $ID symbols.cpp -o whole && $only whole debug-packed
   g++ $F $ID symbols.cpp -o whole && objcopy -S whole stripped && objcopy --only-keep-debug whole mini
   objcopy -S --keep-symbol=_ZN6marketL6hiddenEi mini && xz --check=crc32 mini && objcopy --add-section .gnu_debugdata=mini.xz stripped embedded
   objcopy --only-keep-debug whole only.debug && objcopy --add-gnu-debuglink=only.debug stripped linked */
