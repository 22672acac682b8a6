"""Stop words: how many of a language's commonest words a text has.

In: word hashes (tasks.text.words) and the language of each text. Out: how many different ones and how many in all. It
reads no text. A text in fluent language has some; a list of parts has none (Gopher asks for 2 of its 8).

English are Gopher's eight words, Chinese those of FineWeb-2's cmn_Hani; the others are articles, prepositions,
conjunctions and forms of "be" (project). In scripts without spaces a word is a character, so lists there hold
characters, and Thai, Lao, Khmer and Burmese have none.
"""

from __future__ import annotations

from functools import cache

import numba
import numpy as np
import pyarrow as pa

from tasks.text.words import split_words

STOP_WORDS = {
    "en": "the be to of and that have with",
    "zh": "的 年 在 月 是 和 日 了 於 為 有 被 人 中 为 他 與 後 也 而 由",
    "ja": "の に は を が で と た し れ て も な い る",
    "ko": "이 그 및 수 는 은 을 를 의 에 한 것 등 있다 있는 하는 대한 위해",
    "de": "der die das und in zu den von mit ist nicht ein eine auf für dem des",
    "fr": "le la les de des et un une en du que est dans pour qui au sur par",
    "es": "el la los las de y en que un una por con se del para es al lo",
    "it": "il la di e che in un una per del della le i con si non è da",
    "pt": "o a os as de e que em um uma para com do da no na se por não",
    "nl": "de het een en van in is dat op te zijn met voor niet aan er om",
    "sv": "och i att det som en på är av för med den till ett inte de",
    "da": "og i at det som en på er af for med den til et ikke de",
    "no": "og i å det som en på er av for med den til et ikke de",
    "fi": "ja on ei se että hän oli joka myös kun tai mutta ovat sen",
    "pl": "i w na z się nie do to że jest o jak po za od przez oraz",
    "cs": "a v na se je že s z do o i to k za by jako pro",
    "sk": "a v na sa je že s z do o i to k za by ako pre",
    "hu": "a az és hogy nem is egy ez de volt meg van csak mint",
    "ro": "și în de la a cu pe nu că este un o din care pentru se",
    "bg": "и на в да се е за от не че с по са като до",
    "el": "και το του της η ο να την τα με που για στο είναι οι από",
    "ru": "и в не на что с он я как это по но из у за от о к",
    "uk": "і в не на що з та до як це за від по у але про й",
    "tr": "ve bir bu da de için ile çok olarak daha gibi ne olan var",
    "id": "yang dan di itu dengan untuk tidak ini dari dalam akan pada ke adalah",
    "vi": "và của là có không cho một được với các trong người những đã để",
    "ar": "في من على إلى أن عن مع هذا هذه التي الذي لا ما كان أو ان",
    "fa": "و در به از که این را با است برای آن یک خود تا بر",
    "he": "של את על לא הוא היא זה עם כי אל גם או אני יש",
    "hi": "के का की है में और से को पर यह था भी हैं ने एक",
    "ca": "el la de i que en un una per amb els les del és no",
}
"""By ISO 639-1 code, separated by blanks."""

_SLOTS = 1024
Array = np.ndarray


def lists_of(languages: pa.Array) -> Array:
    """The number of the list of each text's language, int64 [D]; -1 without one."""
    numbers = {code: number for number, code in enumerate(stop_tables()[0])}
    coded = languages.dictionary_encode()
    list_L = np.array([numbers.get(code, -1) for code in coded.dictionary.to_pylist()], np.int64)
    return list_L[coded.indices.to_numpy()] if len(coded) else np.zeros(0, np.int64)


def count_stop_words(hashes_W: Array, offsets_D1: Array, list_D: Array) -> tuple[Array, Array]:
    """(different ones, occurrences), int64 [D] each; 0 where there is no list. At most 63 words a list."""
    counts_2D = np.zeros((2, len(list_D)), np.int64)
    _count(hashes_W, offsets_D1, list_D, *stop_tables()[1], counts_2D)
    return counts_2D[0], counts_2D[1]


@cache
def stop_tables() -> tuple[list[str], tuple[Array, Array, Array]]:
    """Codes, and for each a table in which no two words meet: hashes and numbers, uint64 [L, 1024], and how far a hash
    is shifted for its slot, uint64 [L]."""
    codes = sorted(STOP_WORDS)
    keys, numbers = (np.zeros((len(codes), _SLOTS), np.uint64) for _ in range(2))
    shifts = np.zeros(len(codes), np.uint64)
    for place, code in enumerate(codes):
        words = np.unique(split_words(pa.array([STOP_WORDS[code]], pa.large_string())).hashes_W)
        slots = (words >> np.uint64(shift) & np.uint64(_SLOTS - 1) for shift in range(54))
        shifts[place], chosen = next((n, each) for n, each in enumerate(slots) if len(np.unique(each)) == len(words))
        keys[place, chosen], numbers[place, chosen] = words, np.arange(len(words))
    return codes, (keys, numbers, shifts)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _count(
    hashes_W: Array, offsets_D1: Array, list_D: Array, keys: Array, numbers: Array, shifts: Array, counts_2D: Array
) -> None:
    for text in range(len(list_D)):
        table = list_D[text]
        if table < 0:
            continue
        keys_T, numbers_T, shift = keys[table], numbers[table], shifts[table]
        seen, count = np.uint64(0), np.uint64(0)
        for word in range(np.uint64(offsets_D1[text]), np.uint64(offsets_D1[text + 1])):
            slot = hashes_W[word] >> shift & np.uint64(_SLOTS - 1)
            found = np.uint64(keys_T[slot] == hashes_W[word])  # no branch: whether it is cannot be foretold
            count += found
            seen |= found << numbers_T[slot]
        counts_2D[1, text] = count
        while seen:
            counts_2D[0, text] += 1
            seen &= seen - np.uint64(1)
