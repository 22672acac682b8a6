/* Counts the code points of standard input and reports the first byte that is not UTF-8. */

#include <stdio.h>

/* How many bytes follow a lead byte; -1 for a byte that cannot lead. */
static int following(int lead)
{
    if (lead < 0x80)
        return 0;
    if (lead >= 0xC2 && lead <= 0xDF)
        return 1;
    if (lead >= 0xE0 && lead <= 0xEF)
        return 2;
    if (lead >= 0xF0 && lead <= 0xF4)
        return 3;
    return -1;
}

/* The second byte is bounded more tightly after four leads: no overlong forms, no surrogates,
 * nothing above U+10FFFF. */
static int second_allowed(int lead, int second)
{
    switch (lead) {
    case 0xE0: return second >= 0xA0 && second <= 0xBF;
    case 0xED: return second >= 0x80 && second <= 0x9F;
    case 0xF0: return second >= 0x90 && second <= 0xBF;
    case 0xF4: return second >= 0x80 && second <= 0x8F;
    default:   return second >= 0x80 && second <= 0xBF;
    }
}

int main(void)
{
    unsigned long points = 0, offset = 0;
    int lead;
    while ((lead = getchar()) != EOF) {
        int left = following(lead);
        if (left < 0) {
            fprintf(stderr, "byte %lu: 0x%02X cannot begin a character\n", offset, lead);
            return 1;
        }
        unsigned long start = offset++;
        for (int i = 0; i < left; i++, offset++) {
            int next = getchar();
            int fits = i == 0 ? second_allowed(lead, next) : next >= 0x80 && next <= 0xBF;
            if (next == EOF || !fits) {
                fprintf(stderr, "byte %lu: the character is cut short or malformed\n", start);
                return 1;
            }
        }
        points++;
    }
    printf("%lu\n", points);
    return 0;
}
